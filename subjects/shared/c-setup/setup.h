/*
 * What a server in C does before it serves: a listening socket, the signals that end it, the limit of open files.
 *
 * The same file stands in each raw subject in C, because a subject's folder holds all that it is built from; a test keeps
 * the copies alike. It must not know what is said over the connections.
 */
#ifndef SETUP_H
#define SETUP_H

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

enum { BACKLOG = 4096, CONNECTIONS_MAX = 1 << 20 };

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Connections inherit TCP_NODELAY from it. `flags`: SOCK_NONBLOCK or 0. */
static inline int listen_on(const char *host, const char *port, int flags, bool reuse_port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *address;
    int on = 1, error = getaddrinfo(host, port, &hints, &address);

    if (error) {
        fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(error));
        exit(2);
    }
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (reuse_port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0)
        die("bind");
    if (listen(fd, BACKLOG) != 0)
        die("listen");
    freeaddrinfo(address);
    return fd;
}

/* Readable once SIGTERM or SIGINT has come. */
static inline int signals_as_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* One more than the highest descriptor that there can be. */
static inline size_t descriptors_max(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < CONNECTIONS_MAX ? limit.rlim_cur : CONNECTIONS_MAX;
}

/* `count` zeroed elements; their pages come with their first use. */
static inline void *zeroed(size_t count, size_t size)
{
    void *all = calloc(count, size);

    if (!all)
        die("calloc");
    return all;
}

#endif
