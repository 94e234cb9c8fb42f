import static io.undertow.Handlers.path;
import static io.undertow.Handlers.websocket;

import io.undertow.Undertow;
import io.undertow.server.handlers.ResponseCodeHandler;
import org.xnio.Options;

/**
 * WebSocket echo and broadcast on Undertow: {@code Subject HOST PORT CPUS}. One I/O thread per CPU. Nothing blocks, so
 * no worker threads are needed.
 */
public final class Subject {
    private static final String PATH = "/ws";
    private static final int BACKLOG = 4096;

    private Subject() {}

    public static void main(String[] arguments) {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        int cpus = Integer.parseInt(arguments[2]);

        Undertow.builder()
                .setIoThreads(cpus)
                .setSocketOption(Options.BACKLOG, BACKLOG)
                .setSocketOption(Options.TCP_NODELAY, true)
                .addHttpListener(port, host)
                .setHandler(path(ResponseCodeHandler.HANDLE_404)
                        .addExactPath(PATH, websocket((exchange, channel) -> {
                            channel.getReceiveSetter().set(new Talk());
                            channel.resumeReceives();
                        })))
                .build()
                .start();
    }
}
