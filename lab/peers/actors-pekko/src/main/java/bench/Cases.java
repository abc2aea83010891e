package bench;

import static bench.ActorBench.*;

import bench.Actors.Answerer;
import bench.Actors.Asker;
import bench.Actors.Countdown;
import bench.Actors.Counter;
import bench.Actors.Finish;
import bench.Actors.Game;
import bench.Actors.Idle;
import bench.Actors.Player;
import bench.Actors.Ring;
import bench.Actors.Sender;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.Props;
import org.apache.pekko.actor.typed.pubsub.Topic;

/** One method for each case. */
final class Cases {
  private static final int CHUNK = 1_000;
  private static final double STATE_BYTES = 8;

  private final ActorSystem<Object> system;
  private final Measurement measurement;
  private final int actors;
  private long names;

  Cases(ActorSystem<Object> system, Measurement measurement, int actors) {
    this.system = system;
    this.measurement = measurement;
    this.actors = actors;
  }

  private <T> ActorRef<T> spawn(Behavior<T> behavior) {
    return system.systemActorOf(behavior, "actor-" + names++, Props.empty());
  }

  String tell() throws Exception {
    Finish finish = new Finish(1);
    ActorRef<Long> counter = spawn(Counter.create(new Countdown(finish, TELLS)));
    return measurement.batches(
        TELLS,
        () -> {
          Sender.sendAll(counter, TELLS);
          finish.await();
        });
  }

  String hop() throws Exception {
    Finish finish = new Finish(1);
    List<ActorRef<Ring.Message>> members = new ArrayList<>();
    for (int index = 0; index < RING; index++) {
      members.add(spawn(Ring.create(finish)));
    }
    for (int index = 0; index < RING; index++) {
      members.get(index).tell(new Ring.Link(members.get((index + 1) % RING)));
    }
    return measurement.batches(
        HOPS,
        () -> {
          members.get(0).tell(new Ring.Token(HOPS));
          finish.await();
        });
  }

  /** Its senders are actors, too: who is none would need a thread of its own. */
  String fanIn() throws Exception {
    return fanInActors();
  }

  String fanInActors() throws Exception {
    Finish finish = new Finish(1);
    long all = SENDERS * SENDER_MESSAGES;
    ActorRef<Long> counter = spawn(Counter.create(new Countdown(finish, all)));
    List<ActorRef<Long>> senders = new ArrayList<>();
    for (int index = 0; index < SENDERS; index++) {
      senders.add(spawn(Sender.create(counter)));
    }
    return measurement.batches(
        all,
        () -> {
          senders.forEach(sender -> sender.tell(SENDER_MESSAGES));
          finish.await();
        });
  }

  String ask() throws Exception {
    Finish finish = new Finish(1);
    ActorRef<Answerer.Question> answerer = spawn(Answerer.create());
    ActorRef<Asker.Message> asker = spawn(Asker.create(answerer, finish));
    return measurement.batches(
        ASKS,
        () -> {
          asker.tell(new Asker.Ask(ASKS));
          finish.await();
        });
  }

  String pingPong(int workers) throws Exception {
    play(measurement.warmUp(), workers);
    return play(measurement.time(), workers);
  }

  private String play(long time, int workers) throws Exception {
    Game game = new Game(PAIRS + BUSY_PAIRS);
    Measurement.Clock clock = new Measurement.Clock();
    for (int number = 0; number < PAIRS + BUSY_PAIRS; number++) {
      ActorRef<Player.Message> pong = spawn(Player.pong());
      ActorRef<Player.Message> ping = spawn(Player.ping(game, pong, number >= PAIRS));
      ping.tell(new Player.Ball(pong));
    }
    Thread.sleep(Duration.ofNanos(time).toMillis());
    game.over = true;
    game.finish.await();
    double atPlay = (double) clock.elapsed() * workers - game.computed.sum();
    return clock.measured(game.roundTrips.sum(), atPlay, null);
  }

  String crowd() throws Exception {
    Finish finish = new Finish(1);
    ActorRef<Integer> nursery = spawn(Idle.nursery(finish));
    long before = heapBytes();
    Measurement.Clock clock = new Measurement.Clock();
    for (int started = 0; started < actors; started += CHUNK) {
      nursery.tell(Math.min(CHUNK, actors - started));
      finish.await();
    }
    double wall = clock.elapsed();
    double bytes = (double) (heapBytes() - before) / actors - STATE_BYTES;
    return clock.measured(actors, wall, bytes);
  }

  private static long heapBytes() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  String bus() throws Exception {
    Finish finish = new Finish(SUBSCRIBERS);
    ActorRef<Topic.Command<Long>> topic = spawn(Topic.create(Long.class, "topic"));
    for (int index = 0; index < SUBSCRIBERS; index++) {
      topic.tell(Topic.subscribe(spawn(Counter.create(new Countdown(finish, PUBLICATIONS)))));
    }
    // Topics find their subscribers through the receptionist, after a while.
    Thread.sleep(2_000);
    return measurement.batches(
        PUBLICATIONS * SUBSCRIBERS,
        () -> {
          for (long number = 0; number < PUBLICATIONS; number++) {
            topic.tell(Topic.publish(number));
          }
          finish.await();
        });
  }
}
