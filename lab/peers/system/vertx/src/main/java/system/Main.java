package system;

import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Promise;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.PoolOptions;
import io.vertx.core.http.RequestOptions;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.math.BigInteger;

/** Both tests on event loops: {@code java ... system.Main HOST PORT URL}, the page to load. */
public final class Main extends AbstractVerticle {
  private static final int N_MAX = 100_000;
  private static final int CONNECTIONS_MAX = 2048;

  private final String host;
  private final int port;
  private final RequestOptions page;
  private HttpClient client;

  private Main(String host, int port, String page) {
    this.host = host;
    this.port = port;
    this.page =
        new RequestOptions()
            .setMethod(HttpMethod.GET)
            .setAbsoluteURI(page)
            .setConnectTimeout(3000)
            .setTimeout(10_000);
  }

  public static void main(String[] arguments) {
    int port = Integer.parseInt(arguments[1]);
    int loops = Runtime.getRuntime().availableProcessors();
    Vertx.vertx(new VertxOptions().setPreferNativeTransport(true))
        .deployVerticle(
            () -> new Main(arguments[0], port, arguments[2]),
            new DeploymentOptions().setInstances(loops))
        .onFailure(
            error -> {
              error.printStackTrace();
              System.exit(1);
            });
  }

  @Override
  public void start(Promise<Void> started) {
    client =
        vertx.createHttpClient(
            new HttpClientOptions(), new PoolOptions().setHttp1MaxSize(CONNECTIONS_MAX));
    Router router = Router.router(vertx);
    router.get("/fib/:n").handler(this::fib);
    router.get("/proxy").handler(this::proxy);
    vertx
        .createHttpServer()
        .requestHandler(router)
        .listen(port, host)
        .<Void>mapEmpty()
        .onComplete(started);
  }

  private void fib(RoutingContext context) {
    int n = number(context.pathParam("n"));
    if (n < 0 || n > N_MAX) {
      context.fail(400);
      return;
    }
    vertx
        .executeBlocking(() -> fibonacci(n) + "\n", false)
        .onSuccess(text -> context.response().putHeader("content-type", "text/plain").end(text))
        .onFailure(context::fail);
  }

  private void proxy(RoutingContext context) {
    client
        .request(page)
        .compose(HttpClientRequest::send)
        .onSuccess(
            page -> {
              context.response().setStatusCode(page.statusCode());
              context.response().headers().set("content-type", page.getHeader("content-type"));
              context.response().headers().set("content-length", page.getHeader("content-length"));
              page.pipeTo(context.response());
            })
        .onFailure(error -> context.fail(502));
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
