/**
 * HTTP server on photon and photon-http, in D: server HOST PORT. photon runs fibers on a thread for each CPU of the
 * machine, or on one thread if it is built with debug=photon_single. Each connection has a fiber; a call that would
 * block switches to another one.
 *
 * Two things are ours. photon 0.11 can lose the first event of a descriptor, see `register`; and it pins its threads to
 * the first CPUs of the machine, which is trueload's to decide, see `sched_setaffinity`.
 */
module server;

import core.sys.linux.epoll;
import core.sys.posix.sys.types : pid_t;
import core.time : msecs;
import photon;
import photon.http;
import photon.linux.core;
import std.conv : to;
import std.socket;
import std.stdio : stderr;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = "...............................................";
enum backlog = 4096;
enum perfBody = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`;

final class Processor : HttpProcessor
{
    private HttpHeader[] plain, json, text;

    this(Socket client)
    {
        super(client);
        text = [HttpHeader("Content-Type", "text/plain")];
        plain = text ~ HttpHeader("X-Pad", pad);
        json = [HttpHeader("Content-Type", "application/json")];
    }

    override void handle(HttpRequest request)
    {
        if (request.uri == "/")
            respondWith("Hello, World!", 200, plain);
        else if (request.uri == "/perf")
            respondWith(perfBody, 200, json);
        else
            respondWith("not found", 404, text);
    }
}

// photon keeps these to itself.
alias event_loop_fd = __traits(getMember, photon.linux.core, "event_loop_fd");
alias Fcntl = __traits(getMember, photon.linux.core, "Fcntl");
alias interceptFd = __traits(getMember, photon.linux.core, "interceptFd");

/// photon registers a descriptor with epoll before it expects its events. One that comes in between is lost, and the
/// fiber waits for ever. So it is registered here, and epoll is asked once more for what is ready.
void register(Socket socket)
{
    epoll_event event;

    interceptFd!(Fcntl.explicit)(socket.handle);
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.fd = socket.handle;
    epoll_ctl(event_loop_fd, EPOLL_CTL_MOD, socket.handle, &event);
}

/// Takes the place of the system's.
extern (C) int sched_setaffinity(pid_t, size_t, const(void)*) nothrow @nogc
{
    return 0;
}

void serve(Socket client)
{
    scope (exit)
        client.close();
    register(client);
    scope processor = new Processor(client);
    try
        processor.run();
    catch (Exception e)
    {
        // The peer has sent something that is no request, or has gone.
    }
}

void start(Socket client)
{
    go(() => serve(client));
}

void acceptAll(Socket listener)
{
    register(listener);
    for (;;)
    {
        try
            start(listener.accept());
        catch (SocketAcceptException e)
            delay(10.msecs); // no descriptor is free
    }
}

int main(string[] args)
{
    if (args.length != 3)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT");
        return 2;
    }
    auto address = parseAddress(args[1], args[2].to!ushort);
    auto listener = new Socket(address.addressFamily, SocketType.STREAM);
    listener.setOption(SocketOptionLevel.SOCKET, SocketOption.REUSEADDR, true);
    listener.bind(address);
    listener.listen(backlog);

    startloop();
    go(() => acceptAll(listener));
    runFibers();
    return 0;
}
