import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.SocketAddress;

/** HTTP server on Vert.x Web: {@code Subject HOST PORT CPUS}. One event loop per CPU, each with its own {@link Api}. */
public final class Subject {
    private static final int BACKLOG = 4096;

    private Subject() {}

    public static void main(String[] arguments) {
        SocketAddress address = SocketAddress.inetSocketAddress(Integer.parseInt(arguments[1]), arguments[0]);
        int cpus = Integer.parseInt(arguments[2]);

        // No files are served, so Vert.x needs no cache for them in the system's folder for temporary files.
        FileSystemOptions noFiles =
                new FileSystemOptions().setFileCachingEnabled(false).setClassPathResolvingEnabled(false);
        Vertx vertx =
                Vertx.vertx(new VertxOptions().setEventLoopPoolSize(cpus).setFileSystemOptions(noFiles));
        HttpServerOptions http = new HttpServerOptions().setAcceptBacklog(BACKLOG);
        vertx.deployVerticle(() -> new Api(http, address), new DeploymentOptions().setInstances(cpus))
                .onFailure(cause -> {
                    cause.printStackTrace();
                    System.exit(1);
                });
    }
}
