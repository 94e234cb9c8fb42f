package app;

import io.quarkus.vertx.http.runtime.filters.Filters;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpHeaders;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Adds the Date header, which Quarkus does not send by itself. It is formatted once a second. */
@ApplicationScoped
public class Clock {
    private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH)
            .withZone(ZoneOffset.UTC);
    private static final long TICK_MS = 1000;
    private static final int PRIORITY = 100;

    private volatile String date;

    void register(@Observes Filters filters, Vertx vertx) {
        read();
        vertx.setPeriodic(TICK_MS, timer -> read());
        filters.register(
                context -> {
                    context.response().putHeader(HttpHeaders.DATE, date);
                    context.next();
                },
                PRIORITY);
    }

    private void read() {
        date = FORMAT.format(Instant.now());
    }
}
