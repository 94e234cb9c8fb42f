// GETs with the JDK's own HttpClient, one for each pool; a thread for each request that is open at once.
//
// The client keeps connections but does not limit them; as its users do, a semaphore for each pool
// does, and a request waits for it. Whether connections are kept is told by system properties alone.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.function.Function;

public final class Subject {
    private record Pool(HttpClient client, Semaphore room) {}

    private Subject() {}

    public static void main(String[] arguments) throws Exception {
        Talk.talk(Subject::unsupported, Subject::open);
    }

    private static String unsupported(Talk.Setup setup) {
        return setup.pipelining > 1 ? "the JDK's HttpClient does not pipeline" : null;
    }

    private static Function<Integer, Talk.Request> open(Talk.Setup setup) {
        System.setProperty("jdk.httpclient.enableAllMethodRetry", "false");
        System.setProperty("jdk.httpclient.disableRetryConnect", "true");
        System.setProperty("jdk.httpclient.keepalive.timeout", setup.keep_alive ? "3600" : "0");
        System.setProperty("jdk.httpclient.allowRestrictedHeaders", "connection");
        List<Pool> pools = new ArrayList<>();
        for (int i = 0; i < setup.pools; i++) {
            var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
            pools.add(new Pool(client, new Semaphore(setup.pool_size)));
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
            return Talk.classOf(error);
        } finally {
            pool.room().release();
        }
    }
}
