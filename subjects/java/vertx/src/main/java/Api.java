import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.json.JsonObject;
import io.vertx.core.net.SocketAddress;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** One server. It belongs to one event loop; Vert.x distributes the connections over all of them. */
final class Api extends VerticleBase {
    private static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH)
            .withZone(ZoneOffset.UTC);
    private static final long DATE_MS = 1000;
    /** Brings the plain response to 192 bytes, see subjects/README.md. */
    private static final String PAD = "....................................................";

    private final HttpServerOptions options;
    private final SocketAddress address;
    private String date;

    Api(HttpServerOptions options, SocketAddress address) {
        this.options = options;
        this.address = address;
    }

    @Override
    public Future<?> start() {
        readClock();
        vertx.setPeriodic(DATE_MS, timer -> readClock());

        Router router = Router.router(vertx);
        router.route().handler(this::stamp);
        router.get("/").handler(context -> context.response()
                .putHeader(HttpHeaders.CONTENT_TYPE, "text/plain")
                .putHeader("x-pad", PAD)
                .end("Hello, World!"));
        router.get("/json").handler(context -> context.json(new JsonObject().put("message", "Hello, World!")));
        return vertx.createHttpServer(options).requestHandler(router).listen(address);
    }

    /** Vert.x sends neither a name nor a date by itself. */
    private void stamp(RoutingContext context) {
        context.response().putHeader(HttpHeaders.SERVER, "vert.x").putHeader(HttpHeaders.DATE, date);
        context.next();
    }

    private void readClock() {
        date = DATE.format(Instant.now());
    }
}
