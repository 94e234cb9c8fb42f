import io.netty.util.AsciiString;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** The Date header, formatted once a second and read by every event loop. */
final class Clock {
    private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH)
            .withZone(ZoneOffset.UTC);

    private record Stamp(long second, AsciiString text) {}

    private static volatile Stamp latest = new Stamp(-1, AsciiString.EMPTY_STRING);

    private Clock() {}

    static AsciiString date() {
        long second = System.currentTimeMillis() / 1000;
        Stamp stamp = latest;
        if (stamp.second != second) {
            stamp = new Stamp(second, new AsciiString(FORMAT.format(Instant.ofEpochSecond(second))));
            latest = stamp;
        }
        return stamp.text;
    }
}
