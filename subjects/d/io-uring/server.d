/**
 * HTTP/1 server on a raw io_uring loop, in D: server HOST PORT [--reuse-port]. One thread, one ring, no library but
 * liburing, no garbage collection while it serves. It needs Linux 6.1.
 *
 * There is one multishot accept, and one multishot receive per connection, which puts its bytes into buffers that all
 * connections share. The completions of a batch are handled together. The same system call submits all operations
 * that result from it and waits for the next batch.
 *
 * A connection has at most one send in flight. A single answer is sent from where it was composed; several are
 * gathered in a chunk first. A connection keeps only half a request, and the bytes that arrive while a send is stuck.
 * When these are too many, its receive is cancelled until the peer has read its answers.
 *
 * A descriptor is closed only when no operation on it is pending (`receiving` and `sending` are false). So a
 * completion never meets a new connection that got the same descriptor.
 *
 * HTTP itself is in http.d, the interface of the ring in liburing.d.
 */
module server;

import core.stdc.errno;
import core.stdc.stdio : fprintf, stderr;
import core.stdc.stdlib : exit, free, malloc, realloc;
import core.stdc.string : memmove, strerror;
import core.sys.posix.poll : POLLIN;
import core.sys.posix.sys.socket;
import core.sys.posix.unistd : close;
import http;
import liburing;
import setup;

enum bufferBytes = 2 * 1024;
enum bufferCount = 1024; // a power of two, as the kernel asks
enum bufferGroup = 0;
enum chunkBytes = 16 * 1024; // answers gathered for one send
enum inputBytesMax = 64 * 1024; // input kept of one connection before its receive is cancelled
enum submissions = 2048;
enum completions = 8192;
enum completionsPerWait = 512;
enum acceptPauseNs = 100_000_000; // after an accept that found no descriptor free

enum SOCK_CLOEXEC = 0x80000; // not in druntime

static immutable Responses responses = composeAll("io_uring");

/// The operation that a completion belongs to.
enum Operation : uint
{
    accept,
    acceptLater,
    receive,
    cancel,
    send,
    signal,
}

/// Gathered answers. A chunk that is free points to the next free one.
union Chunk
{
    Chunk* next;
    char[chunkBytes] bytes;
}

/// The state of a connection. Its memory comes from malloc.
struct Connection
{
    char[] input; /// not parsed yet
    size_t inputRoom;
    const(char)[] output; /// the send in flight: one of `responses`, or in `chunk`
    Chunk* chunk; /// null while there is at most one answer
    ulong bodyLeft; /// bytes of a request body still to be skipped
    bool receiving, sending; /// a completion of it is still to come
    bool cancelling, hungUp; /// the receive is being cancelled; shutdown() was called
    bool closing, draining; /// the last answer is composed; it is sent
    bool ended, dead; /// the peer has ended its side; the connection is broken
}

void fail(const(char)* what, int error) nothrow @nogc
{
    fprintf(stderr, "io_uring: %s: %s\n", what, strerror(-error));
    exit(1);
}

/// The ring and its operations. What a `submit...` method queues goes to the kernel with the next wait.
struct Ring
{
nothrow @nogc:
    io_uring ring;
    align(4096) io_uring_buf[bufferCount] bufferRing;
    ubyte[bufferBytes][bufferCount] buffers = void;

    void open()
    {
        io_uring_params params;
        params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
        params.cq_entries = completions;
        if (immutable error = io_uring_queue_init_params(submissions, &ring, &params))
            fail("no ring (Linux 6.1 or newer is needed, and that nothing forbids it)", error);

        io_uring_buf_reg registration;
        registration.ring_addr = cast(size_t) bufferRing.ptr;
        registration.ring_entries = bufferCount;
        registration.bgid = bufferGroup;
        if (immutable error = io_uring_register_buf_ring(&ring, &registration, 0))
            fail("buffer ring", error);
        foreach (ushort buffer; 0 .. bufferCount)
            giveBack(buffer);
    }

    void giveBack(ushort buffer)
    {
        io_uring_buf_ring_give(bufferRing[], buffers[buffer][], buffer);
    }

    private io_uring_sqe* next(IoUringOp opcode, Operation operation, int fd)
    {
        auto sqe = io_uring_get_sqe(&ring);

        if (!sqe)
        {
            io_uring_submit(&ring);
            sqe = io_uring_get_sqe(&ring);
        }
        if (!sqe)
            fail("submission queue", -EBUSY);
        *sqe = io_uring_sqe.init;
        sqe.opcode = opcode;
        sqe.fd = fd;
        sqe.user_data = label(operation, fd);
        return sqe;
    }

    private static ulong label(Operation operation, int fd)
    {
        return cast(ulong) operation << 32 | cast(uint) fd;
    }

    void submitAccept(int fd)
    {
        auto sqe = next(IoUringOp.accept, Operation.accept, fd);
        sqe.ioprio = IORING_ACCEPT_MULTISHOT;
        sqe.opFlags = SOCK_CLOEXEC;
    }

    void submitAcceptLater(int fd)
    {
        static immutable long[2] pause = [0, acceptPauseNs]; // struct __kernel_timespec
        auto sqe = next(IoUringOp.timeout, Operation.acceptLater, fd);
        sqe.addr = cast(size_t) pause.ptr;
        sqe.len = 1;
    }

    void submitReceive(ref Connection c, int fd)
    {
        auto sqe = next(IoUringOp.recv, Operation.receive, fd);
        sqe.ioprio = IORING_RECV_MULTISHOT;
        sqe.flags = IOSQE_BUFFER_SELECT;
        sqe.buf_group = bufferGroup;
        c.receiving = true;
        c.cancelling = false;
    }

    void submitCancel(ref Connection c, int fd)
    {
        auto sqe = next(IoUringOp.asyncCancel, Operation.cancel, fd);
        sqe.addr = label(Operation.receive, fd);
        c.cancelling = true;
    }

    /// With MSG_WAITALL the kernel itself continues after a partial send.
    void submitSend(ref Connection c, int fd)
    {
        auto sqe = next(IoUringOp.send, Operation.send, fd);
        sqe.addr = cast(size_t) c.output.ptr;
        sqe.len = cast(uint) c.output.length;
        sqe.opFlags = MSG_NOSIGNAL | MSG_WAITALL;
        c.sending = true;
    }

    void submitPoll(int fd)
    {
        auto sqe = next(IoUringOp.pollAdd, Operation.signal, fd);
        sqe.opFlags = POLLIN;
    }
}

/// The only event loop, with its connections indexed by descriptor.
struct Loop
{
nothrow @nogc:
    Ring ring;
    Connection[] connections;
    Chunk* freeChunks;
    int listenFd;

    // ---- what a connection keeps ----

    Chunk* takeChunk()
    {
        auto chunk = freeChunks;

        if (chunk)
            freeChunks = chunk.next;
        else
            chunk = cast(Chunk*) malloc(Chunk.sizeof);
        if (!chunk)
            die("malloc");
        return chunk;
    }

    void dropOutput(ref Connection c)
    {
        if (c.chunk)
        {
            c.chunk.next = freeChunks;
            freeChunks = c.chunk;
        }
        c.chunk = null;
        c.output = null;
    }

    static void dropInput(ref Connection c)
    {
        free(c.input.ptr);
        c.input = null;
        c.inputRoom = 0;
    }

    static void appendInput(ref Connection c, const(char)[] bytes)
    {
        immutable len = c.input.length;
        auto memory = c.input.ptr;

        if (len + bytes.length > c.inputRoom)
        {
            c.inputRoom = 2 * (len + bytes.length);
            memory = cast(char*) realloc(memory, c.inputRoom);
            if (!memory)
                die("realloc");
        }
        c.input = memory[0 .. len + bytes.length];
        c.input[len .. $] = bytes[];
    }

    // ---- answers ----

    void answer(ref Connection c, Route route, Persistence persistence)
    {
        const bytes = responses[route][persistence];
        immutable len = c.output.length;

        if (len == 0)
            c.output = bytes;
        else
        {
            if (!c.chunk)
            {
                c.chunk = takeChunk();
                c.chunk.bytes[0 .. len] = c.output[];
            }
            c.chunk.bytes[len .. len + bytes.length] = bytes[];
            c.output = c.chunk.bytes[0 .. len + bytes.length];
        }
        c.closing = persistence == Persistence.close;
    }

    /// Answers complete requests until a chunk is full. Returns the number of bytes used.
    size_t answerRequests(ref Connection c, const(char)[] bytes)
    {
        size_t used;

        while (used < bytes.length && !c.closing && c.output.length + responseBytesMax <= chunkBytes)
        {
            if (c.bodyLeft)
            {
                immutable here = bytes.length - used;
                immutable skip = c.bodyLeft < here ? cast(size_t) c.bodyLeft : here;
                c.bodyLeft -= skip;
                used += skip;
                continue;
            }
            immutable r = parse(bytes[used .. $]);
            if (r.headLen == 0)
            {
                if (bytes.length - used > headBytesMax)
                    answer(c, Route.headTooLarge, Persistence.close);
                break;
            }
            used += r.headLen;
            c.bodyLeft = r.bodyLen;
            answer(c, r.route, r.persistence);
        }
        return used;
    }

    // ---- one connection ----

    /// Answers the requests in the new bytes, or with no bytes those in the kept input. While a send is in flight
    /// it only keeps the bytes. Bytes that cannot be used now are kept, too.
    void useInput(ref Connection c, int fd, const(char)[] bytes)
    {
        if (c.sending || c.input.length)
        {
            appendInput(c, bytes);
            bytes = c.input;
        }
        if (c.sending)
            return;
        immutable used = answerRequests(c, bytes);
        immutable left = bytes.length - used;
        if (c.closing || left == 0)
            dropInput(c);
        else if (c.input.length)
        {
            memmove(c.input.ptr, c.input.ptr + used, left);
            c.input = c.input[0 .. left];
        }
        else
            appendInput(c, bytes[used .. $]);
        if (c.output.length)
            ring.submitSend(c, fd);
    }

    void forget(ref Connection c, int fd)
    {
        dropInput(c);
        dropOutput(c);
        c = Connection.init;
        close(fd);
    }

    /// Makes the kernel end its operations on the connection; their completions show when they have ended.
    static void hangUp(ref Connection c, int fd)
    {
        shutdown(fd, SHUT_RDWR);
        c.hungUp = true;
    }

    /// Called after each completion: submits what the connection needs next, or closes it.
    void settle(ref Connection c, int fd)
    {
        if (c.dead || (c.ended && !c.sending))
        {
            if (!c.receiving && !c.sending)
                forget(c, fd);
            else if (!c.hungUp)
                hangUp(c, fd);
            return;
        }
        immutable full = c.input.length > inputBytesMax;
        if (c.receiving && full && !c.cancelling)
            ring.submitCancel(c, fd);
        else if (!c.receiving && !full && !c.ended)
            ring.submitReceive(c, fd);
    }

    /// A multishot receive may deliver bytes but miss a reset that follows them (seen on Linux 6.18). A new receive
    /// reports the reset, and so does a send. So if the bytes led to no send, the receive is cancelled and submitted
    /// again.
    void received(ref Connection c, int fd, int result, uint flags)
    {
        c.receiving = (flags & IORING_CQE_F_MORE) != 0;
        if (result > 0)
        {
            immutable buffer = cast(ushort)(flags >> IORING_CQE_BUFFER_SHIFT);
            if (!c.draining && !c.closing && !c.dead)
                useInput(c, fd, cast(const(char)[]) ring.buffers[buffer][0 .. result]);
            ring.giveBack(buffer);
            if (c.receiving && !c.sending && !c.cancelling)
                ring.submitCancel(c, fd); // settle() submits a new one after that, see above
        }
        else if (result == 0)
            c.ended = true;
        else if (result != -ENOBUFS && result != -ECANCELED && result != -EINTR)
            c.dead = true;
        settle(c, fd);
    }

    void sent(ref Connection c, int fd, int result)
    {
        c.sending = false;
        if (result < 0 && result != -EINTR)
            c.dead = true;
        else
            c.output = c.output[result < 0 ? 0 : result .. $];
        if (!c.dead && c.output.length)
            return ring.submitSend(c, fd);
        dropOutput(c);
        if (c.closing && !c.draining && !c.dead)
        {
            // close() with unread bytes would reset the connection, and the reset could destroy the last answer on
            // its way. So our side is shut down first, and the peer's side is read to its end.
            shutdown(fd, SHUT_WR);
            c.draining = true;
        }
        else if (c.input.length && !c.dead)
            useInput(c, fd, null);
        settle(c, fd);
    }

    void accepted(int result, uint flags)
    {
        immutable noRoom = result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;

        if (result >= 0 && result < connections.length)
            ring.submitReceive(connections[result], result);
        else if (result >= 0)
            close(result);
        if (flags & IORING_CQE_F_MORE)
            return;
        if (noRoom)
            ring.submitAcceptLater(listenFd);
        else
            ring.submitAccept(listenFd);
    }

    // ---- the loop ----

    /// Handles a completion. Returns false if it is a signal that ends the program.
    bool complete(const io_uring_cqe* cqe)
    {
        immutable fd = cast(int) cqe.user_data;

        final switch (cast(Operation)(cqe.user_data >> 32))
        {
        case Operation.accept:
            accepted(cqe.res, cqe.flags);
            break;
        case Operation.acceptLater:
            ring.submitAccept(listenFd);
            break;
        case Operation.receive:
            received(connections[fd], fd, cqe.res, cqe.flags);
            break;
        case Operation.send:
            sent(connections[fd], fd, cqe.res);
            break;
        case Operation.cancel: // the receive's own completion shows that it has ended
            break;
        case Operation.signal:
            return false;
        }
        return true;
    }

    void start(const(char)* host, const(char)* port, bool reusePort)
    {
        connections = forEachDescriptor!Connection();
        listenFd = listenOn(host, port, 0, reusePort);
        ring.open();
        ring.submitPoll(signalsAsFd());
        ring.submitAccept(listenFd);
    }

    /// Runs until a signal arrives.
    void run()
    {
        io_uring_cqe*[completionsPerWait] cqes = void;

        for (;;)
        {
            immutable error = io_uring_submit_and_wait(&ring.ring, 1);
            if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY)
                fail("io_uring_submit_and_wait", error);
            immutable n = io_uring_peek_batch_cqe(&ring.ring, cqes.ptr, completionsPerWait);
            foreach (cqe; cqes[0 .. n])
                if (!complete(cqe))
                    return;
            io_uring_cq_advance(&ring.ring, n);
        }
    }
}

__gshared Loop loop;

int main(string[] args)
{
    import std.algorithm.searching : canFind;
    import std.stdio : stderr;
    import std.string : toStringz;

    if (args.length < 3)
    {
        stderr.writeln("usage: ", args[0], " HOST PORT [--reuse-port]");
        return 2;
    }
    loop.start(args[1].toStringz, args[2].toStringz, args.canFind("--reuse-port"));
    loop.run();
    return 0;
}
