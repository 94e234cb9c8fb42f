/**
 * The part of HTTP/1 that a raw event loop needs: answers that are composed at compile time, and a parser that finds
 * where a request ends.
 *
 * The parser reads only what it needs for this: the version, Connection and Content-Length. It is no general parser,
 * and the router knows only two paths. All code that reads a peer's bytes is @safe: an index out of bounds ends the
 * program. This file must not use sockets. It lies in subjects/shared, and is copied into the build of each subject
 * whose manifest names its folder.
 */
module http;

import core.stdc.string : memchr;

/// A longer request head is refused with 431.
enum headBytesMax = 8 * 1024;
/// The longest answer below.
enum responseBytesMax = 512;
/// The size of the plain answer, the same for every subject, see subjects/README.md.
private enum plainResponseBytes = 192;

/// Which answer a request gets.
enum Route : ubyte
{
    plain,
    perf,
    notFound,
    badMethod,
    badRequest,
    headTooLarge,
    notImplemented,
}

/// Whether the connection is kept. `stay10`: with HTTP/1.0, keep-alive must be stated.
enum Persistence : ubyte
{
    stay,
    stay10,
    close,
}

/// The answer for each route and each persistence.
alias Responses = string[Persistence.max + 1][Route.max + 1];

/// A request head. `headLen` is 0 while it is not complete yet.
struct Request
{
    size_t headLen;
    ulong bodyLen;
    bool hasBodyLen;
    Route route;
    Persistence persistence;
}

/// Composes all answers; to be called at compile time.
Responses composeAll(string server) pure
{
    immutable perfBody = `{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}`;
    Responses all;
    with (Route)
    {
        all[plain] = compose(server, "200 OK", "text/plain", "Hello, World!", plainResponseBytes);
        all[perf] = compose(server, "200 OK", "application/json", perfBody, 0);
        all[notFound] = compose(server, "404 Not Found", "text/plain", "not found", 0);
        all[badMethod] = compose(server, "405 Method Not Allowed\r\nAllow: GET", "text/plain", "", 0);
        all[badRequest] = compose(server, "400 Bad Request", "text/plain", "", 0);
        all[headTooLarge] = compose(server, "431 Request Header Fields Too Large", "text/plain", "", 0);
        all[notImplemented] = compose(server, "501 Not Implemented", "text/plain", "", 0);
    }
    return all;
}

private string[Persistence.max + 1] compose(string server, string status, string type, string content, size_t padTo) pure
{
    static immutable lines = ["", "Connection: keep-alive\r\n", "Connection: close\r\n"];
    string[Persistence.max + 1] made;

    foreach (i, line; lines)
    {
        string head = "HTTP/1.1 " ~ status ~ "\r\nServer: " ~ server ~ "\r\nContent-Type: " ~ type
            ~ "\r\nContent-Length: " ~ decimal(content.length) ~ "\r\n" ~ line;
        immutable bare = head.length + 2 + content.length;
        immutable padLine = "X-Pad: \r\n".length;
        if (padTo > bare + padLine)
        {
            head ~= "X-Pad: ";
            foreach (_; 0 .. padTo - bare - padLine)
                head ~= ".";
            head ~= "\r\n";
        }
        made[i] = head ~ "\r\n" ~ content;
        assert(made[i].length <= responseBytesMax);
    }
    return made;
}

private string decimal(size_t number) pure
{
    string digits;
    do
        digits = cast(char)('0' + number % 10) ~ digits;
    while (number /= 10);
    return digits;
}

/// Parses the request head at the beginning of `bytes`.
Request parse(scope const(char)[] bytes) @safe pure nothrow @nogc
{
    Request r;
    size_t at;
    bool begun, http10;

    for (;;)
    {
        immutable len = lineLen(bytes[at .. $]);
        if (len == size_t.max)
            return Request.init;
        const line = withoutReturn(bytes[at .. at + len]);
        at += len + 1;
        if (!begun)
        {
            if (line.length == 0)
                continue; // RFC 9112 2.2: an empty line before a request is ignored
            begun = true;
            readRequestLine(r, line);
            http10 = r.persistence == Persistence.close;
        }
        else if (line.length == 0)
        {
            r.headLen = at;
            return r;
        }
        else if (r.route < Route.badRequest)
            readHeader(r, line, http10);
    }
}

/// Returns the number of bytes before the first newline, or size_t.max if there is none.
private size_t lineLen(scope const(char)[] bytes) @trusted pure nothrow @nogc
{
    const newline = bytes.length ? cast(const(char)*) memchr(bytes.ptr, '\n', bytes.length) : null;
    return newline ? newline - bytes.ptr : size_t.max;
}

@safe pure nothrow @nogc private:

inout(char)[] withoutReturn(return scope inout(char)[] line)
{
    return line.length && line[$ - 1] == '\r' ? line[0 .. $ - 1] : line;
}

bool starts(scope const(char)[] text, string prefix)
{
    return text.length >= prefix.length && text[0 .. prefix.length] == prefix;
}

bool ends(scope const(char)[] text, string suffix)
{
    return text.length >= suffix.length && text[$ - suffix.length .. $] == suffix;
}

bool isBlank(char c)
{
    return c == ' ' || c == '\t';
}

/// Compares without regard to case. `word` must be in lower case.
bool isWord(scope const(char)[] text, string word)
{
    if (text.length != word.length)
        return false;
    foreach (i, c; text)
        if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != word[i])
            return false;
    return true;
}

/// Returns whether the header line has this name. If so, `line` becomes its value.
bool takeName(ref scope const(char)[] line, string name)
{
    if (line.length < name.length || !isWord(line[0 .. name.length], name))
        return false;
    line = line[name.length .. $];
    while (line.length && isBlank(line[0]))
        line = line[1 .. $];
    while (line.length && isBlank(line[$ - 1]))
        line = line[0 .. $ - 1];
    return true;
}

bool hasToken(scope const(char)[] list, string token)
{
    for (size_t i; i + token.length <= list.length; i++)
    {
        immutable end = i + token.length;
        immutable begins = i == 0 || list[i - 1] == ',' || isBlank(list[i - 1]);
        immutable stops = end == list.length || list[end] == ',' || isBlank(list[end]);
        if (begins && stops && isWord(list[i .. end], token))
            return true;
    }
    return false;
}

void refuse(ref Request r, Route why)
{
    r.route = why;
    r.persistence = Persistence.close;
    r.bodyLen = 0;
}

void readRequestLine(ref Request r, scope const(char)[] line)
{
    if (ends(line, " HTTP/1.1"))
        r.persistence = Persistence.stay;
    else if (ends(line, " HTTP/1.0"))
        r.persistence = Persistence.close;
    else
        return refuse(r, Route.badRequest);

    if (starts(line, "GET / "))
        r.route = Route.plain;
    else if (starts(line, "GET /perf "))
        r.route = Route.perf;
    else if (starts(line, "GET "))
        r.route = Route.notFound;
    else
        r.route = Route.badMethod;
}

/// Returns false if the length is invalid, so that the end of the request is unknown.
bool readBodyLen(ref Request r, scope const(char)[] digits)
{
    if (r.hasBodyLen || digits.length == 0 || digits.length > 18)
        return false;
    r.hasBodyLen = true;
    foreach (c; digits)
    {
        if (c < '0' || c > '9')
            return false;
        r.bodyLen = r.bodyLen * 10 + (c - '0');
    }
    return true;
}

void readHeader(ref Request r, scope const(char)[] line, bool http10)
{
    // All header names that we need begin with `c` or `t`. Other lines are skipped quickly.
    immutable first = line[0] | 0x20;

    if (first == 'c' && takeName(line, "connection:"))
    {
        if (hasToken(line, "close"))
            r.persistence = Persistence.close;
        else if (http10 && hasToken(line, "keep-alive"))
            r.persistence = Persistence.stay10;
    }
    else if (first == 'c' && takeName(line, "content-length:"))
    {
        if (!readBodyLen(r, line))
            refuse(r, Route.badRequest);
    }
    else if (first == 't' && takeName(line, "transfer-encoding:"))
        refuse(r, Route.notImplemented);
}
