import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2FrameStream;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.util.AsciiString;
import io.netty.util.ReferenceCountUtil;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import javax.net.ssl.SSLException;

/** HTTP/2 server on Netty: {@code Subject SCHEME HOST PORT CPUS}. One event loop per CPU, which also accepts. */
public final class Subject {
    private Subject() {}

    public static void main(String[] arguments) throws InterruptedException, SSLException {
        SslContext secured = arguments[0].equals("https") ? secured() : null;
        EventLoopGroup loops =
                new MultiThreadIoEventLoopGroup(Integer.parseInt(arguments[3]), NioIoHandler.newFactory());
        new ServerBootstrap()
                .group(loops)
                .channel(NioServerSocketChannel.class)
                .option(ChannelOption.SO_BACKLOG, 4096)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        if (secured != null) {
                            channel.pipeline().addLast(secured.newHandler(channel.alloc()));
                        }
                        channel.pipeline().addLast(Http2FrameCodecBuilder.forServer().build(), new Answers());
                    }
                })
                .bind(arguments[1], Integer.parseInt(arguments[2]))
                .sync()
                .channel()
                .closeFuture()
                .sync();
    }

    private static SslContext secured() throws SSLException {
        return SslContextBuilder.forServer(new File("cert.pem"), new File("key.pem"))
                .applicationProtocolConfig(new ApplicationProtocolConfig(
                        ApplicationProtocolConfig.Protocol.ALPN,
                        ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE,
                        ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
                        ApplicationProtocolNames.HTTP_2))
                .build();
    }

    /** Answers the requests of one connection, each on its stream. */
    private static final class Answers extends ChannelInboundHandlerAdapter {
        private static final ByteBuf KIB_64 = filled(65_536);
        private static final ByteBuf KIB_1 = filled(1024);
        private static final ByteBuf NOT_FOUND =
                Unpooled.unreleasableBuffer(Unpooled.copiedBuffer("not found", StandardCharsets.US_ASCII));
        private static final AsciiString SERVER = AsciiString.cached("netty");
        private static final AsciiString TEXT = AsciiString.cached("text/plain");

        private static ByteBuf filled(int size) {
            byte[] bytes = new byte[size];
            Arrays.fill(bytes, (byte) 'x');
            ByteBuf direct = Unpooled.directBuffer(size).writeBytes(bytes);
            return Unpooled.unreleasableBuffer(direct);
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            if (message instanceof Http2HeadersFrame head) {
                answer(context, head.stream(), head.headers().path().toString());
            }
            ReferenceCountUtil.release(message);
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext context) {
            context.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.close();
        }

        private static void answer(ChannelHandlerContext context, Http2FrameStream stream, String path) {
            ByteBuf body =
                    switch (path) {
                        case "/bytes/1024" -> KIB_1;
                        case "/bytes/65536" -> KIB_64;
                        default -> NOT_FOUND;
                    };
            HttpResponseStatus status = body == NOT_FOUND ? HttpResponseStatus.NOT_FOUND : HttpResponseStatus.OK;
            Http2Headers headers = new DefaultHttp2Headers()
                    .status(status.codeAsText())
                    .set(HttpHeaderNames.SERVER, SERVER)
                    .set(HttpHeaderNames.CONTENT_TYPE, TEXT)
                    .set(HttpHeaderNames.CONTENT_LENGTH, Integer.toString(body.readableBytes()));
            context.write(new DefaultHttp2HeadersFrame(headers).stream(stream));
            context.write(new DefaultHttp2DataFrame(body.duplicate(), true).stream(stream));
        }
    }
}
