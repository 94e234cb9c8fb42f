import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.ServerSocketChannel;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpServerCodec;

/** HTTP server on Netty: {@code Subject HOST PORT CPUS [--epoll]}. One event loop per CPU, which also accepts. */
public final class Subject {
    private Subject() {}

    private record Transport(IoHandlerFactory loop, Class<? extends ServerSocketChannel> listener) {
        static Transport of(boolean epoll) {
            return epoll
                    ? new Transport(EpollIoHandler.newFactory(), EpollServerSocketChannel.class)
                    : new Transport(NioIoHandler.newFactory(), NioServerSocketChannel.class);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        int cpus = Integer.parseInt(arguments[2]);
        boolean epoll = arguments.length > 3 && arguments[3].equals("--epoll");

        Transport transport = Transport.of(epoll);
        EventLoopGroup loops = new MultiThreadIoEventLoopGroup(cpus, transport.loop());
        Channel listener = new ServerBootstrap()
                .group(loops)
                .channel(transport.listener())
                .option(ChannelOption.SO_BACKLOG, 4096)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel channel) {
                        channel.pipeline().addLast(new HttpServerCodec(), new Answers());
                    }
                })
                .bind(host, port)
                .sync()
                .channel();
        listener.closeFuture().sync();
    }
}
