/*
 * TCP echo on a raw epoll loop: server HOST PORT [--reuse-port]. One thread, one level-triggered epoll instance, no
 * library.
 *
 * All connections share one buffer, and what is read is sent at once. If the peer is slow to read, its connection
 * keeps the rest, and is not read until the rest is sent. So a peer can make us hold at most one buffer, and an idle
 * connection costs a few dozen bytes. When the peer ends its side, the server ends its own after the last byte.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "setup.h"

enum {
    READ_BYTES = 64 * 1024,        /* taken from one connection at a time, so that none starves the rest */
    EVENTS_PER_WAIT = 512,
};

struct connection {
    char *output;           /* not sent yet; until it is sent, nothing is read */
    uint32_t output_len, output_sent;
    bool open;
};

static char buffer[READ_BYTES];
static struct connection *connections;
static size_t connections_max;
static int epoll_fd, listen_fd, spare_fd;

static void watch(int fd, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(epoll_fd, operation, fd, &event) != 0)
        die("epoll_ctl");
}

static void forget(struct connection *c, int fd)
{
    free(c->output);
    memset(c, 0, sizeof *c);
    close(fd);
}

/* Returns how many bytes the socket took, perhaps fewer than `len`, or -1 if the connection is broken. */
static ssize_t send_some(int fd, const char *bytes, size_t len)
{
    size_t sent = 0;

    while (sent < len) {
        ssize_t n = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)sent;
}

static void keep(struct connection *c, const char *bytes, size_t len)
{
    c->output = malloc(len);
    if (!c->output)
        die("malloc");
    memcpy(c->output, bytes, len);
    c->output_len = (uint32_t)len;
    c->output_sent = 0;
}

/* Returns false when the connection is over. */
static bool echo(struct connection *c, int fd)
{
    ssize_t n = recv(fd, buffer, READ_BYTES, 0);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    ssize_t sent = send_some(fd, buffer, (size_t)n);
    if (sent < 0)
        return false;
    if (sent < n) {
        keep(c, buffer + sent, (size_t)(n - sent));
        watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
    }
    return true;
}

static bool send_kept(struct connection *c, int fd)
{
    ssize_t sent = send_some(fd, c->output + c->output_sent, c->output_len - c->output_sent);

    if (sent < 0)
        return false;
    c->output_sent += (uint32_t)sent;
    if (c->output_sent == c->output_len) {
        free(c->output);
        c->output = NULL;
        watch(fd, EPOLL_CTL_MOD, EPOLLIN);
    }
    return true;
}

static void accept_all(void)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && (size_t)fd < connections_max) {
            connections[fd].open = true;
            watch(fd, EPOLL_CTL_ADD, EPOLLIN);
        } else if (fd >= 0) {
            close(fd);
        } else if ((errno == EMFILE || errno == ENFILE) && spare_fd >= 0) {
            /* Out of descriptors. The waiting connection would wake us forever, so it is accepted with the spare
               descriptor and closed. */
            close(spare_fd);
            fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                close(fd);
            spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void serve(int fd)
{
    struct connection *c = &connections[fd];

    if (!(c->output ? send_kept(c, fd) : echo(c, fd)))
        forget(c, fd);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s HOST PORT [--reuse-port]\n", argv[0]);
        return 2;
    }
    connections_max = descriptors_max();
    connections = zeroed(connections_max, sizeof *connections);
    int signal_fd = signals_as_fd();
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    listen_fd = listen_on(argv[1], argv[2], SOCK_NONBLOCK, argc > 3 && strcmp(argv[3], "--reuse-port") == 0);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(listen_fd, EPOLL_CTL_ADD, EPOLLIN);
    watch(signal_fd, EPOLL_CTL_ADD, EPOLLIN);

    struct epoll_event events[EVENTS_PER_WAIT];
    for (;;) {
        int n = epoll_wait(epoll_fd, events, EVENTS_PER_WAIT, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listen_fd)
                accept_all();
            else if (fd == signal_fd)
                return 0;
            else if (connections[fd].open)
                serve(fd);
        }
    }
}
