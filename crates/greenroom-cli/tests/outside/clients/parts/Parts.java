import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** Java's HttpClient, reading a response part by part. It offers an upgrade to HTTP/2 at first. */
class Parts {
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    public static void main(String[] arguments) throws Exception {
        String base = arguments[0];
        try (InputStream response = get(base + "/parts", BodyHandlers.ofInputStream())) {
            for (int number = 1; number < arguments.length; number++) {
                int length = Integer.parseInt(arguments[number]);
                String part = String.valueOf((char) ('a' + number - 1)).repeat(length);
                if (!new String(response.readNBytes(length)).equals(part)) {
                    throw new AssertionError("part " + number + " is another");
                }
                get(base + "/next", BodyHandlers.discarding());
            }
            if (response.read() != -1) {
                throw new AssertionError("something is behind the last part");
            }
        }
    }

    static <T> T get(String url, BodyHandler<T> handler) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(20));
        return CLIENT.send(request.build(), handler).body();
    }
}
