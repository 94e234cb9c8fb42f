import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.AsciiString;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;

/**
 * Answers the requests of one connection. A connection belongs to one event loop, so nothing here is shared. Answers
 * leave in the order of their requests. While a request waits, requests that were read with it are queued, and no more
 * are read.
 */
final class Answers extends SimpleChannelInboundHandler<HttpObject> {
    private static final byte[] PLAIN = "Hello, World!".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] PERF =
            "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\"numbers\":[1,2,3,5,8,13,21]}"
                    .getBytes(StandardCharsets.US_ASCII);
    private static final byte[] OK = "ok".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOT_FOUND = "not found".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] BAD_WAIT =
            "not a number of milliseconds up to a minute".getBytes(StandardCharsets.US_ASCII);
    private static final AsciiString SERVER = AsciiString.cached("netty");
    private static final AsciiString PAD_NAME = AsciiString.cached("x-pad");
    /** Brings the plain response to 192 bytes, see subjects/README.md. */
    private static final AsciiString PAD =
            AsciiString.cached(".....................................................");
    private static final AsciiString JSON = AsciiString.cached("application/json");
    private static final AsciiString TEXT = AsciiString.cached("text/plain");
    private static final String WAIT = "/wait/";
    private static final long WAIT_MS_MAX = 60_000;

    private final Queue<HttpRequest> queued = new ArrayDeque<>();
    private HttpRequest request;
    private boolean waiting;

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
        if (message instanceof HttpRequest head) {
            request = head;
        }
        // An invalid head has no LastHttpContent: it is answered at once, and nothing after it is read.
        if (message instanceof LastHttpContent || message.decoderResult().isFailure()) {
            queued.add(request);
            answerQueued(context);
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }

    private void answerQueued(ChannelHandlerContext context) {
        while (!waiting && !queued.isEmpty()) {
            answer(context, queued.remove());
        }
    }

    private void answer(ChannelHandlerContext context, HttpRequest request) {
        if (request.decoderResult().isFailure()) {
            HttpUtil.setKeepAlive(request, false);
            write(context, request, HttpResponseStatus.BAD_REQUEST, TEXT, new byte[0]);
            return;
        }
        String path = request.uri();
        if (path.equals("/")) {
            write(context, request, HttpResponseStatus.OK, TEXT, PLAIN);
        } else if (path.equals("/perf")) {
            write(context, request, HttpResponseStatus.OK, JSON, PERF);
        } else if (path.startsWith(WAIT)) {
            answerLater(context, request, path.substring(WAIT.length()));
        } else {
            write(context, request, HttpResponseStatus.NOT_FOUND, TEXT, NOT_FOUND);
        }
    }

    private void answerLater(ChannelHandlerContext context, HttpRequest request, String text) {
        long delay = milliseconds(text);
        if (delay < 0 || delay > WAIT_MS_MAX) {
            write(context, request, HttpResponseStatus.BAD_REQUEST, TEXT, BAD_WAIT);
            return;
        }
        stayWaiting(context, true);
        context.executor().schedule(
                () -> {
                    stayWaiting(context, false);
                    write(context, request, HttpResponseStatus.OK, TEXT, OK);
                    answerQueued(context);
                    context.flush();
                },
                delay,
                TimeUnit.MILLISECONDS);
    }

    private void stayWaiting(ChannelHandlerContext context, boolean on) {
        waiting = on;
        context.channel().config().setAutoRead(!on);
    }

    private static long milliseconds(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException notANumber) {
            return -1;
        }
    }

    private void write(
            ChannelHandlerContext context, HttpRequest request, HttpResponseStatus status, AsciiString type, byte[] body) {
        FullHttpResponse response =
                new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, Unpooled.wrappedBuffer(body));
        response.headers()
                .set(HttpHeaderNames.SERVER, SERVER)
                .set(HttpHeaderNames.DATE, Clock.date())
                .set(HttpHeaderNames.CONTENT_TYPE, type)
                .setInt(HttpHeaderNames.CONTENT_LENGTH, body.length);
        if (body == PLAIN) {
            response.headers().set(PAD_NAME, PAD);
        }
        if (!HttpUtil.isKeepAlive(request)) {
            response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
            context.write(response).addListener(ChannelFutureListener.CLOSE);
            return;
        }
        if (!request.protocolVersion().isKeepAliveDefault()) {
            response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.KEEP_ALIVE);
        }
        context.write(response, context.voidPromise());
    }
}
