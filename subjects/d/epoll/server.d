/**
 * HTTP/1 server on a raw epoll loop, in D: server HOST PORT [--edge] [--reuse-port]. One thread, one epoll instance,
 * no library, no garbage collection while it serves. It shows what the machine can do, not what a framework does.
 *
 * One shared read buffer and one shared write buffer serve all connections. A read is parsed request by request; the
 * answers are gathered and leave in one send. A connection keeps only what is left over: half a request, or answers
 * that the peer is slow to read. So an idle connection costs a few dozen bytes. A connection whose answers are stuck
 * is not read until they are sent, so a peer can make us hold only a limited amount of memory.
 *
 * HTTP itself is in http.d. There is no general parser, no router beyond two paths, and no Date header.
 */
module server;

import core.stdc.errno : EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, errno;
import core.stdc.stdlib : exit, free, malloc;
import core.stdc.string : memcpy;
import core.sys.linux.epoll;
import core.sys.posix.fcntl : open, O_RDONLY;
import core.sys.posix.sys.socket;
import core.sys.posix.sys.types : ssize_t;
import core.sys.posix.unistd : close;
import http;
import setup;

enum readBytes = 64 * 1024; // taken from one connection at a time, so that none starves the rest
enum writeBytes = 64 * 1024; // answers gathered before they are sent
enum eventsPerWait = 512;

// Not in druntime.
enum SOCK_NONBLOCK = 0x800;
enum SOCK_CLOEXEC = 0x80000;
enum O_CLOEXEC = 0x80000;
extern (C) int accept4(int, sockaddr*, socklen_t*, int) nothrow @nogc;

static immutable Responses responses = composeAll("epoll");

enum Outcome
{
    done,
    blocked,
    dead,
}

/// The state of a connection. The slices come from malloc, or are null.
struct Connection
{
    char[] input; /// not parsed yet
    char[] output; /// not sent yet, from `outputSent` on
    size_t outputSent;
    ulong bodyLeft; /// bytes of a request body still to be skipped
    bool open, closing, draining;
}

/// The only event loop, with its connections indexed by descriptor.
struct Loop
{
nothrow @nogc:
    Connection[] connections;
    int epollFd, listenFd, spareFd, signalFd;
    bool edge;
    size_t writeLen;
    char[writeBytes] writeBuffer = void;
    char[headBytesMax + readBytes + readBytes] readBuffer = void;

    // ---- what a connection keeps ----

    void forget(ref Connection c, int fd)
    {
        free(c.input.ptr);
        free(c.output.ptr);
        c = Connection.init;
        close(fd);
    }

    static void keep(ref char[] where, const(char)[] bytes)
    {
        char[] copy;

        if (bytes.length)
        {
            auto memory = cast(char*) malloc(bytes.length);
            if (!memory)
                die("malloc");
            copy = memory[0 .. bytes.length];
            copy[] = bytes[];
        }
        free(where.ptr);
        where = copy;
    }

    // ---- answers ----

    /// Returns how many bytes the socket took, perhaps fewer than given, or -1 if the connection is broken.
    static ssize_t sendSome(int fd, const(char)[] bytes)
    {
        size_t sent;

        while (sent < bytes.length)
        {
            immutable n = send(fd, &bytes[sent], bytes.length - sent, MSG_NOSIGNAL);
            if (n > 0)
                sent += n;
            else if (errno == EAGAIN)
                break;
            else if (errno != EINTR)
                return -1;
        }
        return sent;
    }

    Outcome sendAnswers(ref Connection c, int fd)
    {
        immutable sent = sendSome(fd, writeBuffer[0 .. writeLen]);
        immutable left = sent < 0 ? 0 : writeLen - sent;

        if (left)
            keep(c.output, writeBuffer[sent .. writeLen]);
        c.outputSent = 0;
        writeLen = 0;
        return sent < 0 ? Outcome.dead : left ? Outcome.blocked : Outcome.done;
    }

    void answer(ref Connection c, Route route, Persistence persistence)
    {
        const bytes = responses[route][persistence];

        writeBuffer[writeLen .. writeLen + bytes.length] = bytes[];
        writeLen += bytes.length;
        c.closing = persistence == Persistence.close;
    }

    /// Answers complete requests until the write buffer is full. Returns the number of bytes used.
    size_t answerRequests(ref Connection c, const(char)[] bytes)
    {
        size_t used;

        while (used < bytes.length && !c.closing && writeLen + responseBytesMax <= writeBytes)
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

    /// Called after the last answer. close() with unread bytes would reset the connection, and the reset could
    /// destroy that answer on its way. So our side is shut down first, and the peer's side is read to its end.
    static void beginDrain(ref Connection c, int fd)
    {
        shutdown(fd, SHUT_WR);
        c.draining = true;
        keep(c.input, null);
    }

    /// Answers the requests in the input, and keeps the bytes that cannot be used now.
    Outcome useInput(ref Connection c, int fd, const(char)[] bytes)
    {
        size_t used, step;
        auto outcome = Outcome.done;

        do
        {
            step = answerRequests(c, bytes[used .. $]);
            used += step;
            if (writeLen)
                outcome = sendAnswers(c, fd);
        }
        while (outcome == Outcome.done && step && !c.closing);

        if (outcome == Outcome.dead)
            return outcome;
        if (c.closing)
            used = bytes.length;
        if (used < bytes.length || c.input)
            keep(c.input, bytes[used .. $]);
        if (c.closing && outcome == Outcome.done)
            beginDrain(c, fd);
        return outcome;
    }

    Outcome sendKept(ref Connection c, int fd)
    {
        immutable sent = sendSome(fd, c.output[c.outputSent .. $]);

        if (sent < 0)
            return Outcome.dead;
        c.outputSent += sent;
        if (c.outputSent < c.output.length)
            return Outcome.blocked;
        keep(c.output, null);
        if (c.closing)
        {
            beginDrain(c, fd);
            return Outcome.done;
        }
        immutable len = c.input.length;
        readBuffer[0 .. len] = c.input[];
        return len ? useInput(c, fd, readBuffer[0 .. len]) : Outcome.done;
    }

    /// Reads once and answers what came. Sets `empty` when there was nothing left to read.
    Outcome readOnce(ref Connection c, int fd, out bool empty)
    {
        immutable kept = c.input.length;

        readBuffer[0 .. kept] = c.input[];
        immutable n = recv(fd, &readBuffer[kept], readBytes, 0);
        if (n == 0)
            return Outcome.dead;
        if (n < 0)
        {
            empty = errno == EAGAIN;
            return errno == EAGAIN || errno == EINTR ? Outcome.done : Outcome.dead;
        }
        return c.draining ? Outcome.done : useInput(c, fd, readBuffer[0 .. kept + n]);
    }

    void serve(int fd)
    {
        auto c = &connections[fd];
        immutable wasBlocked = c.output !is null;
        auto outcome = wasBlocked ? sendKept(*c, fd) : Outcome.done;
        bool empty;

        // Level-triggered: read once, as the kernel reports the rest again. Edge-triggered: read until nothing is left.
        if (outcome == Outcome.done && (edge || !wasBlocked))
        {
            do
                outcome = readOnce(*c, fd, empty);
            while (edge && outcome == Outcome.done && !empty);
        }
        if (outcome == Outcome.dead)
            forget(*c, fd);
        else if (!edge && wasBlocked != (outcome == Outcome.blocked))
            watch(fd, EPOLL_CTL_MOD, wasBlocked ? EPOLLIN : EPOLLOUT);
    }

    // ---- the loop ----

    void watch(int fd, int operation, uint events)
    {
        epoll_event event;

        event.events = events;
        event.data.fd = fd;
        if (epoll_ctl(epollFd, operation, fd, &event) != 0)
            die("epoll_ctl");
    }

    void acceptAll()
    {
        for (;;)
        {
            int fd = accept4(listenFd, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd >= 0 && fd < connections.length)
            {
                connections[fd].open = true;
                watch(fd, EPOLL_CTL_ADD, edge ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN);
            }
            else if (fd >= 0)
                close(fd);
            else if ((errno == EMFILE || errno == ENFILE) && spareFd >= 0)
            {
                // Out of descriptors. The waiting connection would wake us forever, so it is accepted with the spare
                // descriptor and closed.
                close(spareFd);
                fd = accept4(listenFd, null, null, SOCK_CLOEXEC);
                if (fd >= 0)
                    close(fd);
                spareFd = open("/dev/null", O_RDONLY | O_CLOEXEC);
                return;
            }
            else if (errno != EINTR && errno != ECONNABORTED)
                return;
        }
    }

    void start(const(char)* host, const(char)* port, bool reusePort)
    {
        connections = forEachDescriptor!Connection();
        signalFd = signalsAsFd();
        spareFd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        listenFd = listenOn(host, port, SOCK_NONBLOCK, reusePort);
        epollFd = epoll_create1(EPOLL_CLOEXEC);
        watch(listenFd, EPOLL_CTL_ADD, EPOLLIN);
        watch(signalFd, EPOLL_CTL_ADD, EPOLLIN);
    }

    /// Runs until a signal arrives.
    void run()
    {
        epoll_event[eventsPerWait] events = void;

        for (;;)
        {
            immutable n = epoll_wait(epollFd, events.ptr, eventsPerWait, -1);
            foreach (i; 0 .. n)
            {
                immutable fd = events[i].data.fd;
                if (fd == listenFd)
                    acceptAll();
                else if (fd == signalFd)
                    return;
                else if (connections[fd].open)
                    serve(fd);
            }
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
        stderr.writeln("usage: ", args[0], " HOST PORT [--edge] [--reuse-port]");
        return 2;
    }
    loop.edge = args.canFind("--edge");
    loop.start(args[1].toStringz, args[2].toStringz, args.canFind("--reuse-port"));
    loop.run();
    return 0;
}
