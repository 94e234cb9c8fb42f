/**
 * HTTP server on vibe.d, in D: server HOST PORT THREADS.
 *
 * With one thread, everything runs in it. With more, each of vibe.d's worker threads has its own event loop and its own
 * listening socket on the same port, and the kernel distributes the connections.
 */
module server;

import core.time : Duration, hours, MonoTime, msecs;
import std.conv : ConvException, to;
import std.stdio : stderr;
import vibe.core.core : runEventLoop, runWorkerTaskDist, setupWorkerThreads, sleep;
import vibe.http.common : HTTPStatusException;
import vibe.http.router : URLRouter;
import vibe.http.server;
import vibe.http.status : HTTPStatus;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = "..................";
enum waitMsMax = 60_000;

struct Perf
{
    string path = "/perf";
    string status = "ok";
    string message = "Hello, World!";
    int[] numbers;
}

struct Message
{
    string message;
}

void listen(string host, ushort port) nothrow
{
    try
    {
        auto settings = new HTTPServerSettings;
        settings.bindAddresses = [host];
        settings.port = port;
        settings.options |= HTTPServerOption.reusePort;
        settings.keepAliveTimeout = 24.hours;

        auto router = new URLRouter;
        router.get("/", (scope request, scope response) {
            response.headers["X-Pad"] = pad;
            response.writeBody("Hello, World!", "text/plain");
        });
        router.get("/perf", (scope request, scope response) {
            Perf perf;
            perf.numbers = [1, 2, 3, 5, 8, 13, 21];
            response.writeJsonBody(perf);
        });
        router.get("/json", (scope request, scope response) { response.writeJsonBody(Message("Hello, World!")); });
        router.get("/wait/:ms", (scope request, scope response) {
            sleepAtLeast(waitMs(request.params["ms"]).msecs);
            response.writeBody("ok", "text/plain");
        });
        listenHTTP(settings, router);
    }
    catch (Exception e)
        assert(false, e.msg);
}

/// vibe.d's sleep may end a fraction of a millisecond early.
void sleepAtLeast(Duration time) @safe
{
    immutable end = MonoTime.currTime + time;

    for (auto left = time; left > Duration.zero; left = end - MonoTime.currTime)
        sleep(left);
}

uint waitMs(string text) @safe
{
    try
    {
        immutable ms = text.to!uint;
        if (ms <= waitMsMax)
            return ms;
    }
    catch (ConvException e)
    {
    }
    throw new HTTPStatusException(HTTPStatus.notFound);
}

int main(string[] args)
{
    if (args.length != 4)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT THREADS");
        return 2;
    }
    immutable host = args[1];
    immutable port = args[2].to!ushort;
    immutable threads = args[3].to!uint;

    if (threads > 1)
    {
        setupWorkerThreads(threads);
        runWorkerTaskDist(&listen, host, port);
    }
    else
        listen(host, port);
    return runEventLoop();
}
