// HTTP client on the JDK's own HttpClient: one for each pool, and a thread for each request that
// is open at once. With the argument http2 it speaks HTTP/2 over TLS and accepts any certificate.
// (In plain text, it only upgrades from HTTP/1.1.)
//
// An HttpClient keeps connections but does not limit them. So each pool has a semaphore, for
// which its requests wait, as is usual with this library. Only system properties decide whether
// connections are kept.
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

public final class Subject {
    private record Pool(HttpClient client, Semaphore room) {}

    private static boolean http2;

    private Subject() {}

    public static void main(String[] arguments) throws Exception {
        http2 = arguments.length > 0 && arguments[0].equals("http2");
        Talk.talk(Subject::unsupported, Subject::open);
    }

    private static String unsupported(Talk.Setup setup) {
        return setup.pipelining > 1 && !http2 ? "the JDK's HttpClient does not pipeline" : null;
    }

    private static HttpClient newClient() {
        var builder = HttpClient.newBuilder();
        if (!http2) {
            return builder.version(HttpClient.Version.HTTP_1_1).build();
        }
        try {
            var context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[] {new Anybody()}, null);
            return builder.version(HttpClient.Version.HTTP_2).sslContext(context).build();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Accepts every certificate. A plain X509TrustManager would still check the host name. */
    private static final class Anybody extends X509ExtendedTrustManager {
        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }

    private static Function<Integer, Talk.Request> open(Talk.Setup setup) {
        System.setProperty("jdk.httpclient.enableAllMethodRetry", "false");
        System.setProperty("jdk.httpclient.disableRetryConnect", "true");
        System.setProperty("jdk.httpclient.keepalive.timeout", setup.keep_alive ? "3600" : "0");
        System.setProperty("jdk.httpclient.allowRestrictedHeaders", "connection");
        List<Pool> pools = new ArrayList<>();
        for (int i = 0; i < setup.pools; i++) {
            pools.add(new Pool(newClient(), new Semaphore(setup.pool_size * setup.pipelining)));
        }
        var builder = HttpRequest.newBuilder(URI.create(setup.url));
        builder.timeout(Duration.ofMillis(setup.timeout_ms));
        if (!setup.keep_alive) {
            builder.header("Connection", "close");
        }
        HttpRequest request = builder.build();
        return thread -> {
            Pool pool = pools.get(thread % pools.size());
            return () -> get(pool, request);
        };
    }

    private static String get(Pool pool, HttpRequest request) throws InterruptedException {
        pool.room().acquire();
        try {
            var answer = pool.client().send(request, HttpResponse.BodyHandlers.ofByteArray());
            return answer.statusCode() == 200 ? null : "status";
        } catch (HttpTimeoutException error) {
            return "timeout.total";
        } catch (IOException error) {
            String text = String.valueOf(error.getMessage());
            // The client's HTTP/2 errors can only be recognised by their texts.
            if (http2 && text.contains("GOAWAY")) {
                return "h2.goaway";
            }
            // When the server allows no more streams, the client itself refuses the request.
            if (http2 && (text.contains("RST_STREAM") || text.contains("too many concurrent streams"))) {
                return "h2.stream";
            }
            return Talk.classOf(error);
        } finally {
            pool.room().release();
        }
    }
}
