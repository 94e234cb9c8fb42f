/**
 * HTTP server on serverino, in D: server HOST PORT WORKERS.
 *
 * A daemon accepts connections, and passes each request to one of its worker processes and the answer back. serverino
 * starts this program again for each worker; only the first process calls `configure`.
 */
module server;

import core.time : hours;
import serverino;
import std.conv : to;
import std.experimental.logger : LogLevel;
import std.json : JSONValue;
import std.stdio : stderr;

mixin ServerinoMain;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = ".....................";

@onServerInit ServerinoConfig configure(string[] args)
{
    auto config = ServerinoConfig.create();

    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT WORKERS");
        return config.setReturnCode(2);
    }
    return config
        .addListener(args[1], args[2].to!ushort)
        .setWorkers(args[3].to!uint)
        .setListenerBacklog(4096)
        .enableKeepAlive(24.hours)
        .enableServerSignature()
        .setLogLevel(LogLevel.warning);
}

@endpoint @route!"/"
void plain(Request request, Output output)
{
    output.addHeader("Content-Type", "text/plain");
    output.addHeader("X-Pad", pad);
    output ~= "Hello, World!";
}

@endpoint @route!"/perf"
void perf(Request request, Output output)
{
    output.addHeader("Content-Type", "application/json");
    output ~= `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`;
}

@endpoint @route!"/json"
void json(Request request, Output output)
{
    output.addHeader("Content-Type", "application/json");
    output ~= JSONValue(["message": "Hello, World!"]).toString();
}
