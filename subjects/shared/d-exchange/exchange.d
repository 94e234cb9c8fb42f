/**
 * HTTP/1 on one connection, for programs whose library moves bytes and knows no HTTP: what was read goes in, what is
 * to be sent comes out.
 *
 * It keeps the part of a request that is not complete yet, and the answers that are to be sent. At most half a request
 * and one full set of answers are in memory, so a peer cannot make it grow without limit. This file must not use
 * sockets. It lies in subjects/shared, and is copied into the build of each subject whose manifest names its folder.
 */
module exchange;

import http;

private enum firstRoomBytes = 2 * 1024;
private enum roomBytesMax = 2 * headBytesMax;
private enum answerBytesMax = 32 * 1024;

/// The state of one connection. Use it in turns: room, received, then answers until they are empty.
struct Exchange
{
@safe:
    private const(Responses)* responses;
    private ubyte[] input; /// `input[0 .. filled]` was read and not used yet
    private ubyte[] output;
    private size_t filled;
    private ulong bodyLeft; /// bytes of a request body still to be skipped
    private bool closing;

    /// `responses` must outlive this.
    this(const(Responses)* responses) nothrow
    {
        this.responses = responses;
        input = new ubyte[firstRoomBytes];
    }

    /// Whether the last answer has been composed. After it was sent, our side of the connection is to be shut down,
    /// and the peer's side read to its end: close() with unread bytes could destroy the answer on its way.
    bool isOver() const pure nothrow @nogc
    {
        return closing;
    }

    /// Returns where to read to. It is never empty.
    ubyte[] room() nothrow
    {
        if (closing)
            filled = 0;
        if (filled == input.length)
            input.length *= 2;
        return input[filled .. $];
    }

    /// To be called when `count` bytes have been read into the room.
    void received(size_t count) pure nothrow @nogc
    {
        filled += count;
    }

    /// Answers complete requests. Returns what is to be sent, which is valid until the next call. Empty: read more.
    const(ubyte)[] answers() nothrow
    {
        size_t used, outLen;

        while (used < filled && !closing && outLen + responseBytesMax <= answerBytesMax)
        {
            if (bodyLeft)
            {
                immutable here = filled - used;
                immutable skip = bodyLeft < here ? cast(size_t) bodyLeft : here;
                bodyLeft -= skip;
                used += skip;
                continue;
            }
            const r = parse(text(input[used .. filled]));
            if (r.headLen == 0)
            {
                if (filled - used > headBytesMax)
                    append(outLen, Route.headTooLarge, Persistence.close);
                break;
            }
            used += r.headLen;
            bodyLeft = r.bodyLen;
            append(outLen, r.route, r.persistence);
        }
        dropFront(used);
        return output[0 .. outLen];
    }

    private void append(ref size_t outLen, Route route, Persistence persistence) nothrow
    {
        const bytes = (*responses)[route][persistence];

        if (output.length < outLen + bytes.length)
            output.length = outLen + bytes.length < responseBytesMax ? responseBytesMax : answerBytesMax;
        output[outLen .. outLen + bytes.length] = cast(const(ubyte)[]) bytes;
        outLen += bytes.length;
        closing = persistence == Persistence.close;
    }

    private void dropFront(size_t used) pure nothrow @nogc
    {
        immutable left = filled - used;

        if (used)
            foreach (i; 0 .. left)
                input[i] = input[used + i];
        filled = left;
    }

    private static const(char)[] text(const(ubyte)[] bytes) pure nothrow @nogc @trusted
    {
        return cast(const(char)[]) bytes;
    }
}

static assert(roomBytesMax > headBytesMax && answerBytesMax >= 2 * responseBytesMax);
