/*
 * TCP echo on libev, written as its documentation shows: server HOST PORT [--reuse-port]. One loop, and one watcher
 * for each connection.
 *
 * What is read is sent at once. If the peer is slow to read, its connection keeps the rest, and its watcher waits for
 * the socket to become writable instead of readable. So a peer can make us hold at most one buffer. When the peer
 * ends its side, the server ends its own after the last byte.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "setup.h"

enum { READ_BYTES = 64 * 1024 };   /* taken from one connection at a time, so that none starves the rest */

struct connection {
    ev_io io;               /* first member, so that its address is the connection's */
    char *output;           /* not sent yet; until it is sent, nothing is read */
    size_t output_len, output_sent;
};

static char buffer[READ_BYTES];
static int spare_fd;

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

static void wait_for(struct ev_loop *loop, ev_io *io, int events)
{
    ev_io_stop(loop, io);
    ev_io_set(io, io->fd, events);
    ev_io_start(loop, io);
}

static void keep(struct connection *c, const char *bytes, size_t len)
{
    c->output = malloc(len);
    if (!c->output)
        die("malloc");
    memcpy(c->output, bytes, len);
    c->output_len = len;
    c->output_sent = 0;
}

/* Returns false when the connection is over. */
static bool echo(struct ev_loop *loop, struct connection *c)
{
    ssize_t n = recv(c->io.fd, buffer, READ_BYTES, 0);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    ssize_t sent = send_some(c->io.fd, buffer, (size_t)n);
    if (sent < 0)
        return false;
    if (sent < n) {
        keep(c, buffer + sent, (size_t)(n - sent));
        wait_for(loop, &c->io, EV_WRITE);
    }
    return true;
}

static bool send_kept(struct ev_loop *loop, struct connection *c)
{
    ssize_t sent = send_some(c->io.fd, c->output + c->output_sent, c->output_len - c->output_sent);

    if (sent < 0)
        return false;
    c->output_sent += (size_t)sent;
    if (c->output_sent == c->output_len) {
        free(c->output);
        c->output = NULL;
        wait_for(loop, &c->io, EV_READ);
    }
    return true;
}

static void on_connection(struct ev_loop *loop, ev_io *io, int events)
{
    struct connection *c = (struct connection *)io;

    (void)events;
    if (c->output ? send_kept(loop, c) : echo(loop, c))
        return;
    ev_io_stop(loop, io);
    close(io->fd);
    free(c->output);
    free(c);
}

static void adopt(struct ev_loop *loop, int fd)
{
    struct connection *c = zeroed(1, sizeof *c);

    ev_io_init(&c->io, on_connection, fd, EV_READ);
    ev_io_start(loop, &c->io);
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events)
{
    int fd;

    (void)events;
    while ((fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 || errno == ECONNABORTED) {
        if (fd >= 0)
            adopt(loop, fd);
    }
    if ((errno == EMFILE || errno == ENFILE) && spare_fd >= 0) {
        /* Out of descriptors. The waiting connection would wake us forever, so it is accepted with the spare
           descriptor and closed. */
        close(spare_fd);
        fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)watcher;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
    ev_io listener;
    ev_signal terminate;

    if (argc < 3) {
        fprintf(stderr, "usage: %s HOST PORT [--reuse-port]\n", argv[0]);
        return 2;
    }
    struct ev_loop *loop = ev_default_loop(0);
    if (!loop) {
        fprintf(stderr, "libev finds no way to wait for events\n");
        return 1;
    }
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool reuse_port = argc > 3 && strcmp(argv[3], "--reuse-port") == 0;
    ev_io_init(&listener, on_listener, listen_on(argv[1], argv[2], SOCK_NONBLOCK, reuse_port), EV_READ);
    ev_io_start(loop, &listener);
    ev_signal_init(&terminate, on_signal, SIGTERM);
    ev_signal_start(loop, &terminate);
    ev_run(loop, 0);
    return 0;
}
