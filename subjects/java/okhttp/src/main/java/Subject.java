// HTTP client on OkHttp: a client with its ConnectionPool for each pool, and a thread for each
// request that is open at once. With the argument http2 it speaks HTTP/2 in plain text.
//
// A ConnectionPool keeps connections but does not limit them. So each pool has a semaphore, for
// which its requests wait, as is usual when OkHttp is called from the user's own threads.
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import okhttp3.ConnectionPool;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.internal.http2.ConnectionShutdownException;
import okhttp3.internal.http2.StreamResetException;

public final class Subject {
    private record Pool(OkHttpClient client, Semaphore room) {}

    private static boolean http2;

    private Subject() {}

    public static void main(String[] arguments) throws Exception {
        http2 = arguments.length > 0 && arguments[0].equals("http2");
        Talk.talk(Subject::unsupported, Subject::open);
    }

    private static String unsupported(Talk.Setup setup) {
        return setup.pipelining > 1 && !http2 ? "OkHttp does not pipeline" : null;
    }

    private static Function<Integer, Talk.Request> open(Talk.Setup setup) {
        List<Pool> pools = new ArrayList<>();
        for (int i = 0; i < setup.pools; i++) {
            pools.add(new Pool(newClient(setup), new Semaphore(setup.pool_size * setup.pipelining)));
        }
        var builder = new Request.Builder().url(setup.url);
        if (!setup.keep_alive) {
            builder.header("Connection", "close");
        }
        Request request = builder.build();
        return thread -> {
            Pool pool = pools.get(thread % pools.size());
            return () -> get(pool, request);
        };
    }

    private static OkHttpClient newClient(Talk.Setup setup) {
        Duration timeout = Duration.ofMillis(setup.timeout_ms);
        return new OkHttpClient.Builder()
                .protocols(List.of(http2 ? Protocol.H2_PRIOR_KNOWLEDGE : Protocol.HTTP_1_1))
                .connectionPool(new ConnectionPool(setup.pool_size, 1, TimeUnit.HOURS))
                .retryOnConnectionFailure(false)
                .followRedirects(false)
                .connectTimeout(timeout)
                .readTimeout(timeout)
                .writeTimeout(timeout)
                .build();
    }

    private static String get(Pool pool, Request request) throws InterruptedException {
        pool.room().acquire();
        try (var answer = pool.client().newCall(request).execute()) {
            answer.body().bytes();
            return answer.code() == 200 ? null : "status";
        } catch (InterruptedIOException error) {
            return "timeout.first_byte";
        } catch (StreamResetException error) {
            return "h2.stream";
        } catch (ConnectionShutdownException error) {
            return "h2.goaway";
        } catch (IOException error) {
            String name = Talk.classOf(error);
            boolean ended = String.valueOf(error.getMessage()).startsWith("unexpected end of stream");
            return ended && name.equals("other") ? "empty" : name;
        } finally {
            pool.room().release();
        }
    }
}
