/**
 * HTTP server on lighttp, in D: server HOST PORT. One event loop, in one thread.
 *
 * Parser, router and answers are lighttp's; `Whole` takes the place of its connection. That of lighttp 0.5 takes the
 * bytes of one read for one whole request, keeps a connection only for a request that says so, and tries for ever to
 * send to a client that reads slowly or has gone.
 */
module server;

import core.sys.posix.signal : SIG_IGN, signal, SIGPIPE;
import libasync : AsyncTCPConnection;
import lighttp;
import lighttp.server.router : HandleResult;
import lighttp.server.server : Connection, ServerBase, ServerImpl;
import std.algorithm.searching : endsWith;
import std.conv : to;
import std.json : JSONValue;
import std.stdio : stderr;
import std.string : indexOf, toLower;
import xbuffer : Buffer;

// Brings the plain response to 192 bytes, see subjects/README.md.
enum pad = "..................................................................";
enum perfBody = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`;
enum line = "\r\n";
enum headEnd = line ~ line;
// A client that sends a longer head is disconnected.
enum headBytesMax = 64 * 1024;

/// One connection: each request is answered once, however its bytes arrive.
final class Whole : Connection
{
    private ServerBase server;
    private string unread;

    this(ServerBase server, AsyncTCPConnection conn)
    {
        this.server = server;
        this.conn = conn;
        buffer = new Buffer(4096);
    }

    override void onRead()
    {
        unread ~= buffer.data!char;
        for (ptrdiff_t end; conn.isConnected && (end = unread.indexOf(headEnd)) >= 0;)
        {
            immutable head = unread[0 .. end + headEnd.length];
            unread = unread[head.length .. $];
            answer(head);
        }
        if (conn.isConnected && unread.length > headBytesMax)
            conn.kill(true);
    }

    override void onClose()
    {
    }

    private void answer(string head)
    {
        auto request = new ServerRequest();
        auto response = new ServerResponse();
        HandleResult result;

        response.headers["Server"] = server.options.name;
        if (request.parse(head))
            server.router.handle(server.options, result, conn, request, response);
        else
            response.status = StatusCodes.badRequest;
        if (response.status.code >= 400 && response.body_.length == 0)
            server.router.handleError(request, response);
        immutable isKept = keeps(request, head);
        response.headers["Connection"] = isKept ? "keep-alive" : "close";
        if (!send(response.toString()) || !isKept)
            conn.kill(true);
    }

    /// Returns false if the client has gone, or leaves so much unread that the kernel takes no more.
    private bool send(string text)
    {
        auto bytes = cast(const(ubyte)[]) text;

        while (bytes.length)
        {
            immutable count = conn.send(bytes);
            if (count == 0)
                return false;
            bytes = bytes[count .. $];
        }
        return true;
    }
}

/// Whether HTTP keeps the connection after this request.
bool keeps(ServerRequest request, string head)
{
    immutable wish = request.headers.get("Connection", "").toLower;

    return head[0 .. head.indexOf(line)].endsWith(" HTTP/1.1") ? wish != "close" : wish == "keep-alive";
}

int main(string[] args)
{
    if (args.length != 3)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); // libasync writes to connections that the peer has reset
    auto server = new ServerImpl!(Whole, 80)(ServerOptions("lighttp"));

    server.router.add(Get(), (ServerRequest request, ServerResponse response) {
        response.contentType = MimeTypes.text;
        response.headers["X-Pad"] = pad;
        response.body = "Hello, World!";
    });
    server.router.add(Get("json"), (ServerRequest request, ServerResponse response) {
        response.body = JSONValue(["message": "Hello, World!"]);
    });
    server.router.add(Get("perf"), (ServerRequest request, ServerResponse response) {
        response.contentType = MimeTypes.json;
        response.body = perfBody;
    });
    server.host(args[1], args[2].to!ushort);
    server.run();
    return 0;
}
