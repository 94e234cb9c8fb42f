import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.ChannelMatchers;
import io.netty.handler.codec.http.websocketx.TextWebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolHandler;

/**
 * Answers one client. The channel group holds the clients of all event loops. A channel that closes leaves it
 * automatically.
 */
final class Talk extends SimpleChannelInboundHandler<TextWebSocketFrame> {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final ChannelGroup clients;

    Talk(ChannelGroup clients) {
        this.clients = clients;
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof WebSocketServerProtocolHandler.HandshakeComplete) {
            clients.add(context.channel());
        }
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, TextWebSocketFrame frame)
            throws JsonProcessingException {
        JsonNode message = MAPPER.readTree(frame.text());
        JsonNode payload = message.path("payload");
        switch (message.path("type").asText()) {
            case "echo" -> context.writeAndFlush(say("echo", payload));
            case "broadcast" -> {
                int count = clients.size();
                // Every channel gets a duplicate that shares the bytes. `true`: a void promise, as the results are
                // not needed.
                clients.writeAndFlush(say("broadcast", payload), ChannelMatchers.all(), true);
                context.writeAndFlush(frame(said("broadcastResult", payload).put("listenerCount", count)));
            }
            default -> context.close();
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close();
    }

    private static ObjectNode said(String type, JsonNode payload) {
        ObjectNode message = MAPPER.createObjectNode().put("type", type);
        message.set("payload", payload);
        return message;
    }

    private static TextWebSocketFrame say(String type, JsonNode payload) throws JsonProcessingException {
        return frame(said(type, payload));
    }

    private static TextWebSocketFrame frame(ObjectNode message) throws JsonProcessingException {
        return new TextWebSocketFrame(MAPPER.writeValueAsString(message));
    }
}
