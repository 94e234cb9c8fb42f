/**
 * HTTP/1 server on vibe-core, in D: server HOST PORT [--reuse-port]. One thread, vibe-core's event loop.
 *
 * Each connection has a task, in which reading and writing wait. It reads once, answers all requests that have come
 * completely, writes the answers in one operation, and starts again. vibe-core knows no HTTP, so a request is parsed in
 * http.d. There is no router beyond two paths, and no Date header.
 */
module server;

import core.sys.posix.sys.socket : SHUT_WR, shutdown;
import exchange;
import http;
import std.algorithm.searching : canFind;
import std.conv : to;
import std.stdio : stderr;
import vibe.core.core : runEventLoop;
import vibe.core.net;
import vibe.core.stream : IOMode;

static immutable Responses responses = composeAll("vibe-core");

void serve(TCPConnection connection) @safe nothrow
{
    auto http = Exchange(&responses);

    try
    {
        connection.tcpNoDelay = true;
        while (!http.isOver && read(connection, http))
            for (auto bytes = http.answers; bytes.length; bytes = http.answers)
                connection.write(bytes, IOMode.all);
        if (http.isOver)
        {
            shutdown(connection.fd, SHUT_WR);
            while (read(connection, http))
            {
            }
        }
    }
    catch (Exception e)
    {
        // The peer has closed the connection before it has read its answers.
    }
}

/// Returns false at the end of the peer's side.
bool read(ref TCPConnection connection, ref Exchange http) @safe
{
    if (connection.empty)
        return false;
    http.received(connection.read(http.room, IOMode.once));
    return true;
}

int main(string[] args)
{
    if (args.length < 3)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT [--reuse-port]");
        return 2;
    }
    auto options = TCPListenOptions.defaults;
    if (args.canFind("--reuse-port"))
        options |= TCPListenOptions.reusePort;
    listenTCP(args[2].to!ushort, (connection) @safe nothrow { serve(connection); }, args[1], options);
    return runEventLoop();
}
