/**
 * HTTP/1 server on eventcore, in D: server HOST PORT [--fibers] [--reuse-port]. One thread, eventcore's epoll driver.
 *
 * Each connection reads once, answers all requests that have come completely, writes the answers in one operation, and
 * starts again. By default, callbacks do this. With --fibers, each connection has a fiber, in which reading and
 * writing wait. eventcore knows no HTTP, so a request is parsed in http.d. There is no router beyond two paths, and no
 * Date header.
 */
module server;

import core.sys.posix.signal : SIGINT, SIGTERM;
import core.thread : Fiber;
import core.time : Duration;
import eventcore.core;
import exchange;
import http;
import std.algorithm.searching : canFind;
import std.conv : to;
import std.socket : parseAddress;
import std.stdio : stderr;

enum stackBytes = 64 * 1024; // of each fiber

static immutable Responses responses = composeAll("eventcore");

/// What does the work, one for each connection.
abstract class Connection
{
@safe nothrow:
    protected StreamSocketFD socket;
    protected Exchange http;

    this(StreamSocketFD socket)
    {
        this.socket = socket;
        http = Exchange(&responses);
        eventDriver.sockets.setTCPNoDelay(socket, true);
    }

    abstract void start();

    protected void end()
    {
        connections[cast(size_t) socket] = null;
        eventDriver.sockets.releaseRef(socket);
    }
}

/// The open connections, by descriptor. eventcore keeps its callbacks where the garbage collector does not look.
Connection[] connections;

/// A connection whose callbacks start the next operation.
final class CallbackConnection : Connection
{
@safe nothrow:
    private bool isStepping, hasFinished, isShut, isBroken;

    this(StreamSocketFD socket)
    {
        super(socket);
    }

    /// Starts operations as long as they finish at once. A callback that comes while one is being started only leaves a
    /// note: if it started the next one, a peer that sends without pause could exhaust the stack.
    override void start()
    {
        if (isStepping)
        {
            hasFinished = true;
            return;
        }
        isStepping = true;
        do
        {
            hasFinished = false;
            step();
        }
        while (hasFinished);
        isStepping = false;
    }

    private void step()
    {
        if (isBroken)
            return end();
        const bytes = http.answers;
        if (bytes.length)
            return eventDriver.sockets.write(socket, bytes, IOMode.all, &onWritten);
        if (http.isOver && !isShut)
        {
            isShut = true;
            eventDriver.sockets.shutdown(socket, false, true);
        }
        eventDriver.sockets.read(socket, http.room, IOMode.once, &onRead);
    }

    private void onRead(StreamSocketFD, IOStatus status, size_t count)
    {
        isBroken = status != IOStatus.ok;
        http.received(count);
        start();
    }

    private void onWritten(StreamSocketFD, IOStatus status, size_t)
    {
        isBroken = status != IOStatus.ok;
        start();
    }
}

/// A connection with a fiber of its own.
final class FiberConnection : Connection
{
nothrow:
    private static Fiber[] idle; // ended, to be used again
    private Fiber fiber;
    private bool hasFinished, isOk;
    private size_t count;

    this(StreamSocketFD socket) @safe
    {
        super(socket);
    }

    override void start() @trusted
    {
        if (idle.length)
        {
            fiber = idle[$ - 1];
            idle = idle[0 .. $ - 1];
            idle.assumeSafeAppend;
            fiber.reset(&serve);
        }
        else
            fiber = new Fiber(&serve, stackBytes);
        resume();
    }

    private void resume() @trusted
    {
        fiber.call!(Fiber.Rethrow.no);
        if (fiber.state == Fiber.State.TERM)
            idle ~= fiber;
    }

    private void serve() @safe
    {
        while (!http.isOver && read() && write())
        {
        }
        if (http.isOver)
        {
            eventDriver.sockets.shutdown(socket, false, true);
            while (read())
            {
            }
        }
        end();
    }

    private bool read() @safe
    {
        hasFinished = false;
        eventDriver.sockets.read(socket, http.room, IOMode.once, &onFinished);
        wait();
        http.received(count);
        return isOk;
    }

    /// Writes answers until there are none.
    private bool write() @safe
    {
        for (;;)
        {
            const bytes = http.answers;
            if (bytes.length == 0)
                return true;
            hasFinished = false;
            eventDriver.sockets.write(socket, bytes, IOMode.all, &onFinished);
            wait();
            if (!isOk)
                return false;
        }
    }

    private void wait() @trusted
    {
        while (!hasFinished)
            Fiber.yield();
    }

    private void onFinished(StreamSocketFD, IOStatus status, size_t count) @trusted
    {
        hasFinished = true;
        isOk = status == IOStatus.ok;
        this.count = count;
        // If the operation finished at once, we are still in the fiber.
        if (fiber.state == Fiber.State.HOLD)
            resume();
    }
}

void accept(T)(StreamSocketFD socket) @trusted nothrow
{
    immutable index = cast(size_t) socket;

    if (connections.length <= index)
        connections.length = index + 1024;
    connections[index] = new T(socket);
    connections[index].start();
}

int main(string[] args)
{
    if (args.length < 3)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT [--fibers] [--reuse-port]");
        return 2;
    }
    immutable fibers = args.canFind("--fibers");
    auto options = StreamListenOptions.reuseAddress;
    if (args.canFind("--reuse-port"))
        options |= StreamListenOptions.reusePort;

    bool isRunning = true;
    foreach (number; [SIGTERM, SIGINT])
        eventDriver.signals.listen(number, (id, status, signal) { isRunning = false; });
    auto listener = eventDriver.sockets.listenStream(parseAddress(args[1], args[2].to!ushort), options,
        (listening, socket, scope peer) { fibers ? accept!FiberConnection(socket) : accept!CallbackConnection(socket); });
    if (listener == StreamListenSocketFD.invalid)
    {
        stderr.writeln(args[1], " port ", args[2], ": cannot listen");
        return 1;
    }
    while (isRunning)
        eventDriver.core.processEvents(Duration.max);
    return 0;
}
