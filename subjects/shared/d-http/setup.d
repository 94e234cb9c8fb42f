/**
 * What a server in D needs before it serves: a listening socket, a descriptor for signals, and memory for
 * connections.
 *
 * This file must not know the protocol that is served. It lies in subjects/shared, and is copied into the build of
 * each subject whose manifest names its folder.
 */
module setup;

import core.stdc.stdio : fprintf, perror, stderr;
import core.stdc.stdlib : calloc, exit;
import core.sys.linux.sys.signalfd : SFD_CLOEXEC, signalfd;
import core.sys.posix.netdb;
import core.sys.posix.netinet.in_ : IPPROTO_TCP;
import core.sys.posix.netinet.tcp : TCP_NODELAY;
import core.sys.posix.signal;
import core.sys.posix.sys.resource : getrlimit, rlimit, RLIMIT_NOFILE;
import core.sys.posix.sys.socket;

nothrow @nogc:

private enum backlog = 4096;
private enum connectionsMax = 1 << 20;
// Not in druntime.
private enum SOCK_CLOEXEC = 0x80000;
private enum SO_REUSEPORT = 15;

/// Ends the program; `what` failed with the error in errno.
void die(const(char)* what)
{
    perror(what);
    exit(1);
}

/// Returns a listening socket. Connections inherit TCP_NODELAY from it. `flags`: SOCK_NONBLOCK or 0.
int listenOn(const(char)* host, const(char)* port, int flags, bool reusePort)
{
    addrinfo hints = {ai_socktype: SOCK_STREAM, ai_flags: AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    addrinfo* address;
    immutable int on = 1;

    if (immutable error = getaddrinfo(host, port, &hints, &address))
    {
        fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(error));
        exit(2);
    }
    scope (exit)
        freeaddrinfo(address);
    immutable fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, on.sizeof);
    if (reusePort)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, on.sizeof);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, on.sizeof);
    if (bind(fd, address.ai_addr, address.ai_addrlen) != 0)
        die("bind");
    if (listen(fd, backlog) != 0)
        die("listen");
    return fd;
}

/// Returns a descriptor that becomes readable when SIGTERM or SIGINT arrives.
int signalsAsFd()
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, null);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/// Returns a zeroed element for each possible descriptor. The kernel allocates their pages at their first use.
T[] forEachDescriptor(T)()
{
    rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    immutable count = limit.rlim_cur < connectionsMax ? cast(size_t) limit.rlim_cur : connectionsMax;
    auto all = cast(T*) calloc(count, T.sizeof);
    if (!all)
        die("calloc");
    return all[0 .. count];
}
