/**
 * HTTP/1 server on geario, in D: server HOST PORT THREADS. The first thread accepts connections, and that many event
 * loops in threads of their own serve them; with one, everything runs in the first thread.
 *
 * A connection answers all requests that have come completely in one write. geario knows no HTTP, so a request is
 * parsed in http.d. There is no router beyond two paths, and no Date header.
 */
module server;

import core.sys.posix.signal : SIG_IGN, signal, SIGPIPE;
import exchange;
import geario.event;
import geario.net.TcpListener;
import geario.net.TcpStream;
import http;
import std.conv : to;
import std.stdio : stderr;

enum backlog = 4096;

static immutable Responses responses = composeAll("geario");

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

    void onReceived(const(ubyte)[] bytes)
    {
        try
            answer(bytes);
        catch (Exception e)
            stream.Close(); // the peer has gone
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
            // geario may keep what it cannot send at once, and the next answers overwrite theirs.
            for (auto answers = http.answers; answers.length; answers = http.answers)
                stream.Write(answers.dup);
        }
        if (http.isOver)
            stream.ShutdownOutput();
    }
}

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT THREADS");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); // geario writes to connections that the peer has reset
    auto loop = new EventLoop();
    auto listener = new TcpListener(loop);

    listener.Threads(args[3].to!size_t);
    listener.Bind(args[1], args[2].to!ushort).Listen(backlog);
    listener.Accepted((TcpListener listening, TcpStream stream) {
        auto connection = new Connection(stream);
        stream.Received((bytes) { connection.onReceived(cast(const(ubyte)[]) bytes.data); });
    });
    listener.Start();
    loop.Run();
    return 0;
}
