/**
 * HTTP server on hunt-http, in D: server HOST PORT THREADS, with that many threads for input and output.
 */
module server;

import hunt.http;
import std.conv : to;
import std.json : JSONValue;
import std.stdio : stderr;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = "..................................................................................";
enum perfBody = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`;

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT THREADS");
        return 2;
    }
    auto builder = HttpServer.builder()
        .setListener(args[2].to!ushort, args[1])
        .ioThreadSize(args[3].to!uint);
    builder.onGet("/", (RoutingContext context) {
        context.responseHeader("X-Pad", pad);
        send(context, "text/plain", "Hello, World!");
    });
    builder.onGet("/perf", (RoutingContext context) { send(context, "application/json", perfBody); });
    builder.onGet("/json", (RoutingContext context) {
        send(context, "application/json", JSONValue(["message": "Hello, World!"]).toString());
    });
    builder.setDefaultRequest((RoutingContext context) {
        context.setStatus(404);
        send(context, "text/plain", "not found");
    });
    builder.build().start();
    return 0;
}

/// Without a length, hunt-http would send the body in chunks.
void send(RoutingContext context, string type, string content)
{
    context.responseHeader("Content-Type", type);
    context.responseHeader("Content-Length", content.length.to!string);
    context.end(content);
}
