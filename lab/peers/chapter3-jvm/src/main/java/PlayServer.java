import static play.mvc.Results.ok;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.pattern.Patterns;
import play.Mode;
import play.mvc.Result;
import play.routing.Router;
import play.routing.RoutingDsl;
import play.server.Server;

/** Programs 3.9 and 3.10 for Play, an action and an asynchronous one: PlayServer HOST PORT. */
public final class PlayServer {
  private static final Duration STEP = Duration.ofMillis(5);
  private static final int QUERY_MILLIS = 20;
  /** A pool of its own for what blocks, as Play's documentation advises. */
  private static final Executor DATABASE = Executors.newFixedThreadPool(20);

  private static Router router;

  public static void main(String[] args) {
    System.setProperty("play.server.http.address", args[0]);
    // The function is called for every request.
    Server.forRouter(
        Mode.PROD,
        Integer.parseInt(args[1]),
        components -> router == null ? router = routes(components) : router);
  }

  private static Router routes(play.BuiltInComponents components) {
    var system = components.actorSystem();
    return RoutingDsl.fromComponents(components)
        .GET("/hello").routingTo(request -> ok("Hello World\n"))
        .GET("/steps").routingAsync(request -> steps(system))
        .GET("/query").routingAsync(request -> query())
        .build();
  }

  private static CompletionStage<Result> steps(ActorSystem system) {
    return step(system, 0)
        .thenCompose(one -> step(system, one))
        .thenCompose(two -> step(system, two))
        .thenCompose(three -> step(system, three))
        .thenApply(four -> ok(four + "\n"));
  }

  private static CompletionStage<Integer> step(ActorSystem system, int value) {
    return Patterns.after(STEP, system, () -> CompletableFuture.completedFuture(value + 1));
  }

  private static CompletionStage<Result> query() {
    return CompletableFuture.supplyAsync(PlayServer::findById, DATABASE)
        .thenApply(contact -> ok(contact));
  }

  private static String findById() {
    try {
      Thread.sleep(QUERY_MILLIS);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
    return "contact 123\n";
  }
}
