package bench;

import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;
import org.apache.pekko.actor.typed.receptionist.ServiceKey;
import org.apache.pekko.cluster.sharding.typed.javadsl.EntityTypeKey;

/** The actor that is asked, alone or as an entity. */
final class Answerer extends AbstractBehavior<Answerer.Command> {
  /** Bound to Jackson's CBOR in the configuration. */
  interface CborSerializable {}

  sealed interface Command extends CborSerializable permits Ask, Tell, Told, Holder, Heap {}

  record Ask(long number, String text, ActorRef<Long> replyTo) implements Command {}

  record Tell(long number, String text) implements Command {}

  /** Asks for the number of messages told. */
  record Told(ActorRef<Long> replyTo) implements Command {}

  /** Asks for the process that it lives in. */
  record Holder(ActorRef<Long> replyTo) implements Command {}

  /** Asks for the bytes that its process holds after a collection. */
  record Heap(ActorRef<Long> replyTo) implements Command {}

  static final ServiceKey<Command> SERVICE = ServiceKey.create(Command.class, "answerer");
  static final EntityTypeKey<Command> ENTITY = EntityTypeKey.create(Command.class, "answerer");

  private long told;

  private Answerer(ActorContext<Command> context) {
    super(context);
  }

  static Behavior<Command> create() {
    return Behaviors.setup(Answerer::new);
  }

  @Override
  public Receive<Command> createReceive() {
    return newReceiveBuilder()
        .onMessage(Ask.class, ask -> reply(ask.replyTo(), ask.number() + 1))
        .onMessage(Tell.class, this::count)
        .onMessage(Told.class, ask -> reply(ask.replyTo(), told))
        .onMessage(Holder.class, ask -> reply(ask.replyTo(), ProcessHandle.current().pid()))
        .onMessage(Heap.class, ask -> reply(ask.replyTo(), heapBytes()))
        .build();
  }

  private Behavior<Command> reply(ActorRef<Long> to, long number) {
    to.tell(number);
    return this;
  }

  private Behavior<Command> count(Tell message) {
    told++;
    return this;
  }

  private static long heapBytes() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }
}
