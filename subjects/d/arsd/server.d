/**
 * HTTP server on arsd's cgi.d, in D: server HOST PORT CPUS. The configuration in dub.json chooses how it serves: hybrid
 * (two processes, and in each of their threads fibers on an event loop), threads, or processes. In the last two, each
 * thread or process keeps a connection until it ends.
 */
module server;

import arsd.cgi;
import core.sys.posix.signal : kill, SIG_DFL, signal, SIGTERM;
import core.sys.posix.unistd : setpgid;
import std.conv : to;
import std.json : JSONValue;
import std.stdio : stderr;

void answer(Cgi cgi)
{
    switch (cgi.pathInfo)
    {
    case "/":
        cgi.setResponseContentType("text/plain"); // makes 192 bytes, see subjects/README.md
        cgi.write("Hello, World!", true);
        break;
    case "/perf":
        cgi.setResponseContentType("application/json");
        cgi.write(`{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`, true);
        break;
    case "/json":
        cgi.setResponseContentType("application/json");
        cgi.write(JSONValue(["message": "Hello, World!"]).toString(), true);
        break;
    default:
        cgi.setResponseStatus("404 Not Found");
        cgi.setResponseContentType("text/plain");
        cgi.write("not found", true);
    }
}

/// cgi.d forks, but does not end the other processes.
extern (C) void endAll(int) nothrow @nogc
{
    signal(SIGTERM, SIG_DFL);
    kill(0, SIGTERM);
}

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT CPUS");
        return 2;
    }
    setpgid(0, 0);
    signal(SIGTERM, &endAll);

    immutable cpus = args[3].to!int;
    auto server = RequestServer(args[1], args[2].to!ushort);
    // The library's own rules; for processes, those that it has on a machine with two CPUs.
    version (Processes)
        processPoolSize = 4 * cpus;
    else version (Threads)
        server.numberOfThreads = 4 * cpus;
    else
        server.numberOfThreads = 2 * cpus + 1;
    server.serve!answer();
    return 0;
}
