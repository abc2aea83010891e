package system;

import static java.util.concurrent.CompletableFuture.completedFuture;
import static java.util.concurrent.CompletableFuture.supplyAsync;
import static play.mvc.Http.Status.BAD_GATEWAY;
import static play.mvc.Results.badRequest;
import static play.mvc.Results.ok;
import static play.mvc.Results.status;

import java.math.BigInteger;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import play.ApplicationLoader.Context;
import play.BuiltInComponentsFromContext;
import play.http.HttpEntity;
import play.libs.ws.WSResponse;
import play.libs.ws.ahc.AhcWSComponents;
import play.mvc.EssentialFilter;
import play.mvc.Http.Request;
import play.mvc.Result;
import play.routing.Router;
import play.routing.RoutingDsl;

/** Both tests, without a thread that waits; the property {@code third-party} is the page to load. */
final class Components extends BuiltInComponentsFromContext implements AhcWSComponents {
  private static final int N_MAX = 100_000;

  private final String thirdParty = config().getString("third-party");
  private final Executor computing = actorSystem().dispatchers().lookup("computing");

  Components(Context context) {
    super(context);
  }

  /** Both are GET requests without cookies: there is nothing to filter. */
  @Override
  public List<EssentialFilter> httpFilters() {
    return List.of();
  }

  @Override
  public Router router() {
    return RoutingDsl.fromComponents(this)
        .GET("/fib/:n")
        .routingAsync((Request request, Object n) -> fib(n.toString()))
        .GET("/proxy")
        .routingAsync(request -> proxy())
        .build();
  }

  private CompletionStage<Result> fib(String text) {
    int n = number(text);
    if (n < 0 || n > N_MAX) {
      return completedFuture(badRequest("not such a number\n"));
    }
    return supplyAsync(() -> ok(fibonacci(n) + "\n"), computing);
  }

  private CompletionStage<Result> proxy() {
    return wsClient().url(thirdParty).get().handle(Components::relay);
  }

  private static Result relay(WSResponse page, Throwable failure) {
    if (failure != null || page.getStatus() != 200) {
      return status(BAD_GATEWAY, "the third party has failed\n");
    }
    var body = new HttpEntity.Strict(page.getBodyAsBytes(), Optional.of(page.getContentType()));
    return ok().sendEntity(body);
  }

  private static int number(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException error) {
      return -1;
    }
  }

  private static BigInteger fibonacci(int n) {
    BigInteger current = BigInteger.ZERO;
    BigInteger next = BigInteger.ONE;
    for (int i = 0; i < n; i++) {
      BigInteger sum = current.add(next);
      current = next;
      next = sum;
    }
    return current;
  }
}
