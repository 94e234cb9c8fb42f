// HTTP client on Apache HttpClient 5: a client with its pooling connection manager for each pool,
// and a thread for each request that is open at once. A request that finds no connection waits in
// the manager.
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.core5.http.NoHttpResponseException;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.util.Timeout;

public final class Subject {
    private Subject() {}

    public static void main(String[] arguments) throws Exception {
        Talk.talk(Subject::unsupported, Subject::open);
    }

    private static String unsupported(Talk.Setup setup) {
        return setup.pipelining > 1 ? "the classic client does not pipeline" : null;
    }

    private static Function<Integer, Talk.Request> open(Talk.Setup setup) {
        List<CloseableHttpClient> clients = new ArrayList<>();
        for (int i = 0; i < setup.pools; i++) {
            clients.add(newClient(setup));
        }
        return thread -> {
            CloseableHttpClient client = clients.get(thread % clients.size());
            return () -> get(client, setup);
        };
    }

    private static CloseableHttpClient newClient(Talk.Setup setup) {
        Timeout timeout = Timeout.ofMilliseconds(setup.timeout_ms);
        var connections =
                PoolingHttpClientConnectionManagerBuilder.create()
                        .setMaxConnTotal(setup.pool_size)
                        .setMaxConnPerRoute(setup.pool_size)
                        .setDefaultConnectionConfig(
                                ConnectionConfig.custom()
                                        .setConnectTimeout(timeout)
                                        .setSocketTimeout(timeout)
                                        .build())
                        .build();
        var requests =
                RequestConfig.custom()
                        .setResponseTimeout(timeout)
                        .setConnectionRequestTimeout(1, TimeUnit.HOURS)
                        .build();
        return HttpClients.custom()
                .setConnectionManager(connections)
                .setDefaultRequestConfig(requests)
                .disableAutomaticRetries()
                .disableRedirectHandling()
                .disableContentCompression()
                .build();
    }

    private static String get(CloseableHttpClient client, Talk.Setup setup) {
        var request = new HttpGet(setup.url);
        if (!setup.keep_alive) {
            request.setHeader("Connection", "close");
        }
        try {
            return client.execute(
                    request,
                    answer -> {
                        EntityUtils.consume(answer.getEntity());
                        return answer.getCode() == 200 ? null : "status";
                    });
        } catch (SocketTimeoutException error) {
            return "timeout.first_byte";
        } catch (NoHttpResponseException error) {
            return "empty";
        } catch (IOException error) {
            return Talk.classOf(error);
        }
    }
}
