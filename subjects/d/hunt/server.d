/**
 * HTTP/1 server on hunt, in D: server HOST PORT THREADS. An event loop accepts connections, and a group of that many
 * event loops, each in a thread, serves them.
 *
 * A connection answers all requests that have come completely in one write. hunt knows no HTTP, so a request is parsed
 * in http.d. There is no router beyond two paths, and no Date header.
 */
module server;

import core.sys.posix.signal : SIG_IGN, signal, SIGPIPE;
import exchange;
import http;
import hunt.event;
import hunt.io;
import hunt.io.ByteBuffer;
import hunt.io.channel;
import std.conv : to;
import std.socket : Socket, SocketOption, SocketOptionLevel;
import std.stdio : stderr;

enum backlog = 4096;

static immutable Responses responses = composeAll("hunt");

/// One connection.
final class Connection
{
    private TcpStream stream;
    private Exchange http;

    this(TcpStream stream)
    {
        this.stream = stream;
        http = Exchange(&responses);
    }

    DataHandleStatus onReceived(ByteBuffer buffer)
    {
        try
            answer(cast(const(ubyte)[]) buffer.peekRemaining());
        catch (Exception e)
            stream.close(); // the peer has gone
        return DataHandleStatus.Done;
    }

    private void answer(const(ubyte)[] bytes)
    {
        while (bytes.length)
        {
            auto room = http.room;
            immutable count = bytes.length < room.length ? bytes.length : room.length;
            room[0 .. count] = bytes[0 .. count];
            http.received(count);
            bytes = bytes[count .. $];
            // hunt may keep what it cannot send at once, and the next answers overwrite theirs.
            for (auto answers = http.answers; answers.length; answers = http.answers)
                stream.write(answers.dup);
        }
        if (http.isOver)
            stream.shutdownOutput();
    }
}

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT THREADS");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); // hunt writes to connections that the peer has reset
    auto group = new EventLoopGroup(args[3].to!size_t);
    auto options = TcpStreamOptions.create();
    auto loop = new EventLoop();
    auto listener = new TcpListener(loop);

    group.start();
    listener.bind(args[1], args[2].to!ushort);
    listener.listen(backlog);
    listener.onPeerCreating((TcpListener listening, Socket socket, size_t bufferBytes) {
        socket.setOption(SocketOptionLevel.TCP, SocketOption.TCP_NODELAY, true);
        return new TcpStream(group.nextLoop(socket.handle), socket, options);
    });
    listener.accepted((TcpListener listening, TcpStream stream) {
        auto connection = new Connection(stream);
        stream.received(&connection.onReceived);
    });
    listener.start();
    loop.run();
    return 0;
}
