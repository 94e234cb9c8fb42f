package app;

import io.smallrye.common.annotation.NonBlocking;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import org.jboss.resteasy.reactive.ResponseHeader;

/** The routes. None of them waits for anything, so they are answered on the event loops. */
@Path("/")
@NonBlocking
public class Api {
    /** Brings the plain response to 192 bytes, see subjects/README.md. */
    private static final String PAD = ".....................................";

    public record Greeting(String message) {}

    @GET
    @Produces(MediaType.TEXT_PLAIN)
    @ResponseHeader(name = "X-Pad", value = PAD)
    public String plain() {
        return "Hello, World!";
    }

    @GET
    @Path("json")
    @Produces(MediaType.APPLICATION_JSON)
    public Greeting json() {
        return new Greeting("Hello, World!");
    }
}
