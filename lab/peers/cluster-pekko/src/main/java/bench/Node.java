package bench;

import com.typesafe.config.ConfigFactory;
import java.util.Locale;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Props;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.receptionist.Receptionist;
import org.apache.pekko.cluster.sharding.typed.javadsl.ClusterSharding;
import org.apache.pekko.cluster.sharding.typed.javadsl.Entity;

/** A node with an actor and with entities: Node SEED_PORT NUMBER, of which number 1 is the seed. */
public final class Node {
  private Node() {}

  public static void main(String[] arguments) {
    int seed = Integer.parseInt(arguments[0]);
    int port = arguments[1].equals("1") ? seed : 0;
    ActorSystem<Void> system = system(seed, port, "host");
    ActorRef<Answerer.Command> answerer =
        system.systemActorOf(Answerer.create(), "answerer", Props.empty());
    system.receptionist().tell(Receptionist.register(Answerer.SERVICE, answerer));
    host(system);
  }

  static ActorSystem<Void> system(int seed, int port, String role) {
    return ActorSystem.create(
        Behaviors.empty(),
        "lab",
        ConfigFactory.parseString(settings(seed, port, role)).withFallback(ConfigFactory.load()));
  }

  /** Entities live at nodes with the role; the client sends to them. */
  static ClusterSharding host(ActorSystem<Void> system) {
    ClusterSharding sharding = ClusterSharding.get(system);
    sharding.init(Entity.of(Answerer.ENTITY, context -> Answerer.create()).withRole("host"));
    return sharding;
  }

  /** As the documentation advises, whose least `stable-after` for clusters of 5 nodes is 7 s. */
  private static String settings(int seed, int port, String role) {
    return String.format(
        Locale.ROOT,
        """
        pekko {
          loglevel = "ERROR"
          stdout-loglevel = "OFF"
          actor {
            provider = "cluster"
            serialization-bindings { "bench.Answerer$CborSerializable" = jackson-cbor }
          }
          remote.artery.canonical { hostname = "127.0.0.1", port = %d }
          cluster {
            roles = ["%s"]
            seed-nodes = ["pekko://lab@127.0.0.1:%d"]
            downing-provider-class = "org.apache.pekko.cluster.sbr.SplitBrainResolverProvider"
            split-brain-resolver.stable-after = 7s
          }
        }
        """,
        port, role, seed);
  }
}
