import java.time.Duration;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.pattern.Patterns;

/** Program 3.11 for Play's actors, a mailer: PekkoMailer LETTERS QUESTIONS. */
public final class PekkoMailer {
  record DefaultMail(String email, String content) {}

  record ImageMail(String email, String image) {}

  /** Asks how many letters were sent. */
  record Sent() {}

  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  static final class Mailer extends AbstractActor {
    private long sent;

    @Override
    public Receive createReceive() {
      return receiveBuilder()
          .match(DefaultMail.class, mail -> ++sent)
          .match(ImageMail.class, mail -> ++sent)
          .match(Sent.class, question -> getSender().tell(sent, getSelf()))
          .build();
    }
  }

  public static void main(String[] args) {
    long letters = Long.parseLong(args[0]);
    long questions = Long.parseLong(args[1]);
    var system = ActorSystem.create("chapter3");
    var mailer = system.actorOf(Props.create(Mailer.class), "mailer");
    // The machine compiles what is run often.
    for (int i = 0; i < 5; ++i) tell(mailer, letters);
    ask(mailer, questions);
    double message = tell(mailer, letters);
    double question = ask(mailer, questions);
    if (sent(mailer) != 6 * letters) throw new IllegalStateException("letters are lost");
    System.out.printf("{\"message_ns\": %.1f, \"question_ns\": %.1f}%n", message, question);
    system.terminate();
  }

  private static double tell(ActorRef mailer, long letters) {
    long begun = System.nanoTime();
    for (long i = 0; i < letters / 2; ++i) {
      mailer.tell(new DefaultMail("john@doe.com", "Hello John"), ActorRef.noSender());
      mailer.tell(new ImageMail("john@doe.com", "cat.png"), ActorRef.noSender());
    }
    sent(mailer); // comes after the letters
    return (double) (System.nanoTime() - begun) / letters;
  }

  private static double ask(ActorRef mailer, long questions) {
    long begun = System.nanoTime();
    for (long i = 0; i < questions; ++i) sent(mailer);
    return (double) (System.nanoTime() - begun) / questions;
  }

  private static long sent(ActorRef mailer) {
    return (long) Patterns.ask(mailer, new Sent(), TIMEOUT).toCompletableFuture().join();
  }
}
