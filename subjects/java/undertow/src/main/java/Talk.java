import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.undertow.websockets.core.AbstractReceiveListener;
import io.undertow.websockets.core.BufferedTextMessage;
import io.undertow.websockets.core.WebSocketChannel;
import io.undertow.websockets.core.WebSockets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Set;

/** Answers one client. Undertow itself keeps the set of all clients that are connected at this path. */
final class Talk extends AbstractReceiveListener {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final long MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

    @Override
    protected void onFullTextMessage(WebSocketChannel channel, BufferedTextMessage text) throws IOException {
        JsonNode message = MAPPER.readTree(text.getData());
        JsonNode payload = message.path("payload");
        switch (message.path("type").asText()) {
            case "echo" -> send(channel, encode(said("echo", payload)));
            case "broadcast" -> {
                // Encoded once for all.
                byte[] bytes = encode(said("broadcast", payload));
                Set<WebSocketChannel> clients = channel.getPeerConnections();
                int count = 0;
                for (WebSocketChannel client : clients) {
                    send(client, bytes);
                    count++;
                }
                send(channel, encode(said("broadcastResult", payload).put("listenerCount", count)));
            }
            default -> channel.sendClose();
        }
    }

    @Override
    protected long getMaxTextBufferSize() {
        return MESSAGE_BYTES_MAX;
    }

    private static void send(WebSocketChannel client, byte[] bytes) {
        WebSockets.sendText(ByteBuffer.wrap(bytes), client, null);
    }

    private static ObjectNode said(String type, JsonNode payload) {
        ObjectNode message = MAPPER.createObjectNode().put("type", type);
        message.set("payload", payload);
        return message;
    }

    private static byte[] encode(ObjectNode message) throws JsonProcessingException {
        return MAPPER.writeValueAsBytes(message);
    }
}
