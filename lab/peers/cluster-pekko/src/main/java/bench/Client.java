package bench;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import bench.Answerer.Command;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongFunction;
import java.util.function.LongPredicate;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.javadsl.AskPattern;
import org.apache.pekko.actor.typed.receptionist.Receptionist;
import org.apache.pekko.cluster.sharding.typed.javadsl.ClusterSharding;
import org.apache.pekko.japi.function.Function;

/** The questions: Client SEED_PORT CASE RATE SECONDS WARM_UP ENTITIES prints a line of JSON. */
public final class Client {
  private static final Duration DEADLINE = Duration.ofSeconds(5);
  private static final String TEXT = "x".repeat(100);
  private static final int OUTSTANDING = 64;
  private static final int TELLS = 1_000;
  private static final int ENTITIES = 1_000;
  private static final long PAUSE_MS = 200;
  private static final long RECOVERY_TICK_MS = 50;

  private final ActorSystem<Void> system;
  private final ClusterSharding sharding;
  private final ActorRef<Command> answerer;
  /** On two cores, stages without an executor would take a new thread each. */
  private final Executor dispatcher;

  private Client(int seed) throws Exception {
    system = Node.system(seed, 0, "client");
    dispatcher = system.executionContext();
    sharding = Node.host(system);
    answerer = find();
  }

  public static void main(String[] arguments) throws Exception {
    Client client = new Client(Integer.parseInt(arguments[0]));
    int rate = Integer.parseInt(arguments[2]);
    long seconds = Long.parseLong(arguments[3]);
    long warmUp = Long.parseLong(arguments[4]);
    int entities = Integer.parseInt(arguments[5]);
    String figures =
        switch (arguments[1]) {
          case "ask" -> client.asks(rate, seconds, warmUp);
          case "flood" -> client.flood(seconds, warmUp);
          case "entities" -> client.entities(warmUp, entities);
          case "recover" -> client.recover();
          default -> throw new IllegalArgumentException("no case is named " + arguments[1]);
        };
    System.out.println("{" + figures + "}");
    Runtime.getRuntime().halt(0);
  }

  private ActorRef<Command> find() throws Exception {
    while (true) {
      Receptionist.Listing listing =
          AskPattern.<Receptionist.Command, Receptionist.Listing>ask(
                  system.receptionist(), me -> Receptionist.find(Answerer.SERVICE, me), DEADLINE, system.scheduler())
              .toCompletableFuture().get();
      Set<ActorRef<Command>> found = listing.getServiceInstances(Answerer.SERVICE);
      if (!found.isEmpty()) {
        return found.iterator().next();
      }
      Thread.sleep(PAUSE_MS);
    }
  }

  private CompletionStage<Long> ask(long number) {
    return AskPattern.ask(answerer, me -> new Answerer.Ask(number, TEXT, me), DEADLINE, system.scheduler());
  }

  private CompletionStage<Long> askEntity(long id) {
    return entity("e" + id % ENTITIES, id);
  }

  private CompletionStage<Long> entity(String id, long number) {
    return sharding.entityRefFor(Answerer.ENTITY, id).ask(me -> new Answerer.Ask(number, TEXT, me), DEADLINE);
  }

  private CompletionStage<Long> holder(String id) {
    return sharding.entityRefFor(Answerer.ENTITY, id).ask(Answerer.Holder::new, DEADLINE);
  }

  private long number(Function<ActorRef<Long>, Command> question) throws Exception {
    return AskPattern.ask(answerer, question, DEADLINE, system.scheduler()).toCompletableFuture().get();
  }

  private String asks(int rate, long seconds, long warmUp) throws Exception {
    closed(lasting(warmUp), this::ask);
    Thread.sleep(PAUSE_MS);
    int ticks = Math.min(rate, 1_000);
    int burst = Math.max(1, rate / 1_000);
    int count = (int) (ticks * seconds);
    double[] latencies = new double[count * burst];
    double[] late = new double[count];
    CountDownLatch open = new CountDownLatch(count * burst);
    LongAdder failed = new LongAdder();
    begin("ask");
    long start = System.nanoTime() + 100_000_000;
    for (int tick = 0; tick < count; tick++) {
      long due = start + tick * 1_000_000_000L / ticks;
      for (long now = System.nanoTime(); now < due; now = System.nanoTime()) {
        LockSupport.parkNanos(due - now);
      }
      late[tick] = (System.nanoTime() - due) / 1e6;
      for (int one = 0; one < burst; one++) {
        int index = tick * burst + one;
        ask(index).whenCompleteAsync((answer, error) -> {
          latencies[index] = error == null ? (System.nanoTime() - due) / 1e6 : Double.POSITIVE_INFINITY;
          failed.add(error == null ? 0 : 1);
          open.countDown();
        }, dispatcher);
      }
    }
    open.await();
    end("ask", latencies.length - failed.sum());
    Arrays.sort(latencies);
    Arrays.sort(late);
    int ok = (int) (latencies.length - failed.sum());
    return figures("p50_ms", percentile(50, latencies, ok), "p99_ms", percentile(99, latencies, ok),
        "late_p50_ms", percentile(50, late, count), "failed", (double) failed.sum());
  }

  private static double percentile(int percent, double[] sorted, int count) {
    return count == 0 ? 0 : sorted[Math.max(0, (int) Math.ceil(count * percent / 100.0) - 1)];
  }

  private String flood(long seconds, long warmUp) throws Exception {
    double ask = rate("ask", seconds, warmUp, this::ask);
    String told = told(seconds, warmUp);
    return figures("ask_rate", ask, "entity_rate", rate("entity", seconds, warmUp, this::askEntity)) + ", " + told;
  }

  private double rate(String name, long seconds, long warmUp, LongFunction<CompletionStage<Long>> ask)
      throws Exception {
    closed(lasting(warmUp), ask);
    begin(name);
    long count = closed(lasting(seconds), ask);
    end(name, count);
    return (double) count / seconds;
  }

  private static LongPredicate lasting(long seconds) {
    long end = System.nanoTime() + SECONDS.toNanos(seconds);
    return number -> System.nanoTime() < end;
  }

  /** Asks as many questions at a time as are outstanding; returns how many were replied to. */
  private long closed(LongPredicate goesOn, LongFunction<CompletionStage<Long>> ask) throws Exception {
    AtomicLong next = new AtomicLong();
    LongAdder done = new LongAdder();
    CountDownLatch open = new CountDownLatch(OUTSTANDING);
    for (int worker = 0; worker < OUTSTANDING; worker++) {
      asking(goesOn, ask, next, done, open);
    }
    open.await();
    return done.sum();
  }

  private void asking(LongPredicate goesOn, LongFunction<CompletionStage<Long>> ask, AtomicLong next,
      LongAdder done, CountDownLatch open) {
    long number = next.getAndIncrement();
    if (!goesOn.test(number)) {
      open.countDown();
      return;
    }
    ask.apply(number).whenCompleteAsync((answer, error) -> {
      if (error != null) {
        error.printStackTrace();
        Runtime.getRuntime().halt(1);
      }
      done.increment();
      asking(goesOn, ask, next, done, open);
    }, dispatcher);
  }

  /** Batches of messages, each with a question after it. */
  private String told(long seconds, long warmUp) throws Exception {
    batches(lasting(warmUp));
    long before = number(Answerer.Told::new);
    begin("tell");
    long start = System.nanoTime();
    long sent = batches(lasting(seconds));
    long told = number(Answerer.Told::new) - before;
    double spent = (System.nanoTime() - start) / 1e9;
    end("tell", told);
    return figures("tell_rate", told / spent, "lost", (double) (sent - told));
  }

  private long batches(LongPredicate goesOn) throws Exception {
    long sent = 0;
    for (; goesOn.test(sent); sent += TELLS) {
      for (int number = 0; number < TELLS; number++) {
        answerer.tell(new Answerer.Tell(number, TEXT));
      }
      number(Answerer.Told::new);
    }
    return sent;
  }

  private String entities(long warmUp, int entities) throws Exception {
    closed(lasting(warmUp), this::askEntity);
    long before = number(Answerer.Heap::new);
    begin("entities");
    long start = System.nanoTime();
    closed(id -> id < entities, id -> entity("new" + id, id));
    double spent = (System.nanoTime() - start) / 1e9;
    end("entities", entities);
    long grown = number(Answerer.Heap::new) - before;
    return figures("rate", entities / spent, "entities", (double) entities, "heap_bytes", (double) grown / entities);
  }

  /** Asks for an entity while its node is killed; its questions wait until it is known elsewhere. */
  private String recover() throws Exception {
    Set<Long> holders = new HashSet<>();
    for (int id = 0; holders.size() < 2; id++) {
      holders.add(holder("search" + id).toCompletableFuture().get());
    }
    String id = "e" + ThreadLocalRandom.current().nextInt(ENTITIES);
    long killed = holder(id).toCompletableFuture().get();
    System.out.println("kill " + killed);
    long start = System.nanoTime();
    CountDownLatch recovered = new CountDownLatch(1);
    int asks = 0;
    do {
      asks++;
      holder(id).thenAcceptAsync(pid -> {
        if (pid != killed) {
          recovered.countDown();
        }
      }, dispatcher);
    } while (!recovered.await(RECOVERY_TICK_MS, MILLISECONDS));
    return figures("recovery_ms", (System.nanoTime() - start) / 1e6, "asks", (double) asks);
  }

  /** The meter counts CPU between the two lines, over the number, and says when it has looked. */
  private static void begin(String name) throws IOException {
    System.out.println("begin " + name);
    System.in.read();
  }

  private static void end(String name, long count) throws IOException {
    System.out.println("end " + name + " " + count);
    System.in.read();
  }

  private static String figures(Object... namesAndValues) {
    StringBuilder out = new StringBuilder();
    for (int index = 0; index < namesAndValues.length; index += 2) {
      String separator = index == 0 ? "" : ", ";
      out.append(String.format(Locale.ROOT, "%s\"%s\": %f", separator, namesAndValues[index], namesAndValues[index + 1]));
    }
    return out.toString();
  }
}
