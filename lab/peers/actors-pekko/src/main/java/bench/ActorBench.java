package bench;

import com.typesafe.config.ConfigFactory;
import java.util.Locale;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.javadsl.Behaviors;

/** The actor benchmark with Pekko typed: ActorBench CASE MILLISECONDS ACTORS prints a line of JSON. */
public final class ActorBench {
  static final int RING = 503;
  static final int SENDERS = 8;
  static final int PAIRS = 64;
  static final int BUSY_PAIRS = 4;
  static final int SUBSCRIBERS = 1_000;
  static final long TELLS = 1_000;
  static final long HOPS = 200L * RING;
  static final long SENDER_MESSAGES = 10_000;
  static final long ASKS = 1_000;
  static final long PUBLICATIONS = 10;

  private ActorBench() {}

  public static void main(String[] arguments) {
    try {
      run(arguments);
      Runtime.getRuntime().halt(0);
    } catch (Exception error) {
      // Pekko's threads would keep the process.
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private static void run(String[] arguments) throws Exception {
    String name = arguments[0];
    long milliseconds = Long.parseLong(arguments[1]);
    int actors = Integer.parseInt(arguments[2]);
    int workers =
        switch (name) {
          case "fan-in-two", "fan-in-actors-two", "ping-pong" -> 2;
          default -> 1;
        };
    ActorSystem<Object> system =
        ActorSystem.create(Behaviors.ignore(), "bench", ConfigFactory.parseString(settings(workers)));
    Cases cases = new Cases(system, new Measurement(milliseconds), actors);
    String outcome =
        switch (name) {
          case "tell" -> cases.tell();
          case "hop" -> cases.hop();
          case "fan-in", "fan-in-two" -> cases.fanIn();
          case "fan-in-actors", "fan-in-actors-two" -> cases.fanInActors();
          case "ask" -> cases.ask();
          case "ping-pong" -> cases.pingPong(workers);
          case "spawn", "idle" -> cases.crowd();
          case "bus" -> cases.bus();
          case "ask-inline", "ask-queued" -> missing("a handler cannot wait for an answer, which comes as a message: see ask");
          case "async" -> missing("a handler cannot wait");
          default -> throw new IllegalArgumentException("no case is named " + name);
        };
    System.out.println(outcome);
    System.out.flush();
  }

  /** A dispatcher of exactly so many threads; its throughput is what Pekko has as a default. */
  private static String settings(int workers) {
    return String.format(
        Locale.ROOT,
        """
        pekko.log-dead-letters = off
        pekko.loglevel = "ERROR"
        pekko.stdout-loglevel = "OFF"
        pekko.actor.default-dispatcher.fork-join-executor {
          parallelism-min = %1$d
          parallelism-max = %1$d
        }
        """,
        workers);
  }

  private static String missing(String why) {
    return "{\"missing\": \"" + why + "\"}";
  }
}
