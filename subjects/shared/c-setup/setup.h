/*
 * What a server in C needs before it serves: a listening socket, a descriptor for signals, and the limit of open
 * files.
 *
 * This file must not know the protocol that is served. It lies in subjects/shared, and is copied into the build of
 * each subject whose manifest names its folder.
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

/* Returns a listening socket. Connections inherit TCP_NODELAY from it. `flags`: SOCK_NONBLOCK or 0. */
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

/* Returns a descriptor that becomes readable when SIGTERM or SIGINT arrives. */
static inline int signals_as_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Returns one more than the highest possible descriptor. */
static inline size_t descriptors_max(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < CONNECTIONS_MAX ? limit.rlim_cur : CONNECTIONS_MAX;
}

/* Returns `count` zeroed elements. The kernel allocates their pages at their first use. */
static inline void *zeroed(size_t count, size_t size)
{
    void *all = calloc(count, size);

    if (!all)
        die("calloc");
    return all;
}

#endif
