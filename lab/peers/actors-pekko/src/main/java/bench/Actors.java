package bench;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;

/** The actors of all cases, and how they tell that a batch is done. */
final class Actors {
  private Actors() {}

  /** Where some parties meet; the last one wakes the thread that waits. */
  static final class Finish {
    private final int parties;
    private final AtomicInteger missing;
    private final Semaphore allArrived = new Semaphore(0);

    Finish(int parties) {
      this.parties = parties;
      missing = new AtomicInteger(parties);
    }

    void arrive() {
      if (missing.decrementAndGet() == 0) {
        missing.set(parties);
        allArrived.release();
      }
    }

    void await() throws InterruptedException {
      allArrived.acquire();
    }
  }

  /** One party: it arrives with the last message of a batch. */
  static final class Countdown {
    private final Finish finish;
    private final long batch;
    private long left;

    Countdown(Finish finish, long batch) {
      this.finish = finish;
      this.batch = batch;
      left = batch;
    }

    void count() {
      if (--left == 0) {
        left = batch;
        finish.arrive();
      }
    }
  }

  static final class Counter extends AbstractBehavior<Long> {
    private final Countdown countdown;
    private long sum;

    private Counter(ActorContext<Long> context, Countdown countdown) {
      super(context);
      this.countdown = countdown;
    }

    static Behavior<Long> create(Countdown countdown) {
      return Behaviors.setup(context -> new Counter(context, countdown));
    }

    @Override
    public Receive<Long> createReceive() {
      return newReceiveBuilder().onAnyMessage(this::add).build();
    }

    private Behavior<Long> add(Long number) {
      sum += number;
      countdown.count();
      return this;
    }
  }

  static final class Ring extends AbstractBehavior<Ring.Message> {
    sealed interface Message permits Link, Token {}

    record Link(ActorRef<Message> next) implements Message {}

    record Token(long left) implements Message {}

    private final Finish finish;
    private ActorRef<Message> next;

    private Ring(ActorContext<Message> context, Finish finish) {
      super(context);
      this.finish = finish;
    }

    static Behavior<Message> create(Finish finish) {
      return Behaviors.setup(context -> new Ring(context, finish));
    }

    @Override
    public Receive<Message> createReceive() {
      return newReceiveBuilder().onMessage(Token.class, this::pass).onMessage(Link.class, this::link).build();
    }

    private Behavior<Message> link(Link message) {
      next = message.next();
      return this;
    }

    private Behavior<Message> pass(Token token) {
      if (token.left() == 0) {
        finish.arrive();
      } else {
        next.tell(new Token(token.left() - 1));
      }
      return this;
    }
  }

  static final class Sender {
    private Sender() {}

    static Behavior<Long> create(ActorRef<Long> counter) {
      return Behaviors.receiveMessage(
          count -> {
            sendAll(counter, count);
            return Behaviors.same();
          });
    }

    static void sendAll(ActorRef<Long> counter, long count) {
      for (long number = 0; number < count; number++) {
        counter.tell(number);
      }
    }
  }

  static final class Answerer {
    record Question(long number, ActorRef<Long> who) {}

    private Answerer() {}

    static Behavior<Question> create() {
      return Behaviors.receiveMessage(
          question -> {
            question.who().tell(question.number() + 1);
            return Behaviors.same();
          });
    }
  }

  /** The answer to each question comes as a message; then it asks the next one. */
  static final class Asker extends AbstractBehavior<Asker.Message> {
    sealed interface Message permits Ask, Answered {}

    record Ask(long count) implements Message {}

    record Answered(Long answer, Throwable failure) implements Message {}

    private static final Duration DEADLINE = Duration.ofSeconds(5);

    private final ActorRef<Answerer.Question> answerer;
    private final Finish finish;
    private long left;

    private Asker(
        ActorContext<Message> context, ActorRef<Answerer.Question> answerer, Finish finish) {
      super(context);
      this.answerer = answerer;
      this.finish = finish;
    }

    static Behavior<Message> create(ActorRef<Answerer.Question> answerer, Finish finish) {
      return Behaviors.setup(context -> new Asker(context, answerer, finish));
    }

    @Override
    public Receive<Message> createReceive() {
      return newReceiveBuilder()
          .onMessage(Answered.class, this::answered)
          .onMessage(Ask.class, this::begin)
          .build();
    }

    private Behavior<Message> begin(Ask message) {
      left = message.count();
      askNext();
      return this;
    }

    private Behavior<Message> answered(Answered message) {
      if (message.failure() != null || message.answer() != left + 1) {
        throw new IllegalStateException("a wrong answer", message.failure());
      }
      left--;
      if (left == 0) {
        finish.arrive();
      } else {
        askNext();
      }
      return this;
    }

    private void askNext() {
      getContext()
          .ask(
              Long.class,
              answerer,
              DEADLINE,
              who -> new Answerer.Question(left, who),
              Answered::new);
    }
  }

  /** What all pairs of ping-pong share. */
  static final class Game {
    final LongAdder roundTrips = new LongAdder();
    final LongAdder computed = new LongAdder();
    final Finish finish;
    volatile boolean over;

    Game(int pairs) {
      finish = new Finish(pairs);
    }
  }

  static final class Player extends AbstractBehavior<Player.Message> {
    sealed interface Message permits Ball {}

    record Ball(ActorRef<Message> from) implements Message {}

    private static final long WORK_NANOSECONDS = 1_000;
    private static final long WORK_NANOSECONDS_MAX = 2_000;

    private final Game game;
    private final ActorRef<Message> partner;
    private final boolean computes;
    private final Ball ball;
    private long roundTrips;
    private long computed;

    private Player(
        ActorContext<Message> context, Game game, ActorRef<Message> partner, boolean computes) {
      super(context);
      this.game = game;
      this.partner = partner;
      this.computes = computes;
      ball = new Ball(context.getSelf());
    }

    static Behavior<Message> ping(Game game, ActorRef<Message> partner, boolean computes) {
      return Behaviors.setup(context -> new Player(context, game, partner, computes));
    }

    static Behavior<Message> pong() {
      return Behaviors.setup(
          context -> {
            Ball ball = new Ball(context.getSelf());
            return Behaviors.receiveMessage(
                message -> {
                  ((Ball) message).from().tell(ball);
                  return Behaviors.same();
                });
          });
    }

    @Override
    public Receive<Message> createReceive() {
      return newReceiveBuilder().onMessage(Ball.class, this::play).build();
    }

    private Behavior<Message> play(Ball message) {
      roundTrips++;
      if (computes) {
        computed += compute();
      }
      if (game.over) {
        game.roundTrips.add(roundTrips);
        game.computed.add(computed);
        game.finish.arrive();
      } else {
        partner.tell(ball);
      }
      return this;
    }

    private static long compute() {
      long start = System.nanoTime();
      while (true) {
        Thread.onSpinWait();
        long elapsed = System.nanoTime() - start;
        if (elapsed >= WORK_NANOSECONDS) {
          return Math.min(elapsed, WORK_NANOSECONDS_MAX);
        }
      }
    }
  }

  static final class Idle extends AbstractBehavior<Long> {
    private final Finish finish;
    private long sum;

    private Idle(ActorContext<Long> context, Finish finish) {
      super(context);
      this.finish = finish;
    }

    /** Starts as many children as it is told, of which the last one tells that it has begun. */
    static Behavior<Integer> nursery(Finish finish) {
      return Behaviors.receive(
          (context, count) -> {
            ActorRef<Long> last = null;
            for (int started = 0; started < count; started++) {
              last = context.spawnAnonymous(Behaviors.setup(own -> new Idle(own, finish)));
            }
            last.tell(1L);
            return Behaviors.same();
          });
    }

    @Override
    public Receive<Long> createReceive() {
      return newReceiveBuilder().onAnyMessage(this::add).build();
    }

    private Behavior<Long> add(Long number) {
      sum += number;
      finish.arrive();
      return this;
    }
  }
}
