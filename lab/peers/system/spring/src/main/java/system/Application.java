package system;

import java.math.BigInteger;
import java.util.concurrent.TimeUnit;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.ServerConnector;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.jetty.servlet.JettyServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import org.springframework.web.server.ResponseStatusException;

/** Both tests as blocking controllers; the property {@code third-party} is the page to load. */
@SpringBootApplication
@RestController
public class Application {
  private static final int N_MAX = 100_000;
  private static final int CONNECTIONS_MAX = 2048;
  private static final int BACKLOG = 4096;

  private final RestClient client;

  Application(@Value("${third-party}") String thirdParty) {
    client = RestClient.builder().requestFactory(connections()).baseUrl(thirdParty).build();
  }

  public static void main(String[] arguments) {
    SpringApplication.run(Application.class, arguments);
  }

  /** By default 50 connections wait to be accepted. */
  @Bean
  static WebServerFactoryCustomizer<JettyServletWebServerFactory> backlog() {
    return factory ->
        factory.addServerCustomizers(
            server -> {
              for (Connector connector : server.getConnectors()) {
                ((ServerConnector) connector).setAcceptQueueSize(BACKLOG);
              }
            });
  }

  @GetMapping(path = "/fib/{n}", produces = MediaType.TEXT_PLAIN_VALUE)
  String fib(@PathVariable int n) {
    if (n < 0 || n > N_MAX) {
      throw new ResponseStatusException(HttpStatus.BAD_REQUEST);
    }
    return fibonacci(n) + "\n";
  }

  @GetMapping("/proxy")
  ResponseEntity<byte[]> proxy() {
    byte[] page = client.get().retrieve().body(byte[].class);
    return ResponseEntity.ok().contentType(MediaType.TEXT_HTML).body(page);
  }

  @ExceptionHandler(RestClientException.class)
  @ResponseStatus(HttpStatus.BAD_GATEWAY)
  void thirdPartyFailed() {}

  /** The pool's own limit is 5 connections to a host. */
  private static HttpComponentsClientHttpRequestFactory connections() {
    var limits =
        ConnectionConfig.custom()
            .setConnectTimeout(3, TimeUnit.SECONDS)
            .setSocketTimeout(10, TimeUnit.SECONDS)
            .build();
    var pool =
        PoolingHttpClientConnectionManagerBuilder.create()
            .setMaxConnPerRoute(CONNECTIONS_MAX)
            .setMaxConnTotal(CONNECTIONS_MAX)
            .setDefaultConnectionConfig(limits)
            .build();
    var request = RequestConfig.custom().setConnectionRequestTimeout(10, TimeUnit.SECONDS).build();
    return new HttpComponentsClientHttpRequestFactory(
        HttpClients.custom().setConnectionManager(pool).setDefaultRequestConfig(request).build());
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
