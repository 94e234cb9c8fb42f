/**
 * HTTP server on archttp, in D: server HOST PORT THREADS, with that many threads for input and output.
 *
 * archttp 1.1 forgets that an answer was sent, and sends an empty one after it. `setSent` prevents this. A connection
 * keeps its response for all requests, so the middleware sets it back.
 */
module server;

import archttp;
import std.conv : to;
import std.json : JSONValue;
import std.stdio : stderr;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = "...................................................";

/// archttp has no public way to say this.
void setSent(HttpResponse response, bool isSent)
{
    __traits(getMember, response, "_headersSent") = isSent;
}

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT THREADS");
        return 2;
    }
    auto app = new Archttp(args[3].to!uint);

    app.use((HttpRequest request, HttpResponse response, void delegate() next) {
        setSent(response, false);
        next();
    });
    app.get("/", (HttpRequest request, HttpResponse response) {
        response.header("X-Pad", pad);
        response.send("Hello, World!");
        setSent(response, true);
    });
    app.get("/json", (HttpRequest request, HttpResponse response) {
        response.send(JSONValue(["message": "Hello, World!"]));
        setSent(response, true);
    });
    app.bind(args[1], args[2].to!ushort);
    app.run();
    return 0;
}
