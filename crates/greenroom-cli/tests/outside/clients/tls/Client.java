import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Version;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.HexFormat;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** Java's HttpClient over TLS: both versions, both protocols, long bodies both ways. */
class Client {
    static final int BODY_BYTES = 5_000_000;
    static final int LONG_BYTES = 20_000_000;

    public static void main(String[] arguments) throws Exception {
        String base = arguments[0];
        SSLContext context = trusting(arguments[1]);
        for (String tls : new String[] {"TLSv1.2", "TLSv1.3"}) {
            for (Version version : Version.values()) {
                visit(base, context, tls, version);
            }
        }
    }

    static void visit(String base, SSLContext context, String tls, Version version)
            throws Exception {
        SSLParameters parameters = context.getDefaultSSLParameters();
        parameters.setProtocols(new String[] {tls});
        var builder = HttpClient.newBuilder().sslContext(context).sslParameters(parameters);
        HttpClient client = builder.version(version).build();
        for (int turn = 0; turn < 3; turn++) {
            HttpResponse<byte[]> hello = get(client, base + "/hello");
            equal("version", hello.version(), version);
            equal("TLS", hello.sslSession().get().getProtocol(), tls);
            equal("/hello", new String(hello.body()), "Hello, world!\n");
        }
        byte[] body = new byte[BODY_BYTES];
        for (int index = 0; index < body.length; index++) {
            body[index] = (byte) (index % 251);
        }
        String sum = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
        BodyPublisher sized = BodyPublishers.ofByteArray(body);
        // Without a length it goes in chunks.
        for (var publisher : new BodyPublisher[] {sized, BodyPublishers.fromPublisher(sized)}) {
            var request = HttpRequest.newBuilder(URI.create(base + "/upload")).POST(publisher);
            String receipt = client.send(request.build(), BodyHandlers.ofString()).body();
            if (!receipt.contains(sum)) {
                throw new AssertionError(receipt);
            }
        }
        equal("/bytes", get(client, base + "/bytes/" + LONG_BYTES).body().length, LONG_BYTES);
    }

    static HttpResponse<byte[]> get(HttpClient client, String url) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofMinutes(1));
        var response = client.send(request.build(), BodyHandlers.ofByteArray());
        equal(url, response.statusCode(), 200);
        return response;
    }

    static SSLContext trusting(String file) throws Exception {
        KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
        roots.load(null, null);
        try (FileInputStream pem = new FileInputStream(file)) {
            var factory = CertificateFactory.getInstance("X.509");
            roots.setCertificateEntry("root", factory.generateCertificate(pem));
        }
        String algorithm = TrustManagerFactory.getDefaultAlgorithm();
        TrustManagerFactory trust = TrustManagerFactory.getInstance(algorithm);
        trust.init(roots);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    static void equal(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new AssertionError(what + ": " + found + ", not " + wanted);
        }
    }
}
