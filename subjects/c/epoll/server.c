/*
 * HTTP/1 server on a raw epoll loop: server HOST PORT [--edge] [--reuse-port]. One thread, one epoll instance, no
 * library: it shows what the machine can do, not what a framework does.
 *
 * One shared read buffer and one shared write buffer serve all connections. A read is parsed request by request; the
 * answers are gathered and leave in one send. A connection keeps only what is left over: half a request, or answers
 * that the peer is slow to read. So an idle connection costs a few dozen bytes. A connection whose answers are stuck
 * is not read until they are sent, so a peer can make us hold only a limited amount of memory.
 *
 * HTTP itself is in http.h. There is no general parser, no router beyond two paths, and no Date header.
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

#include "http.h"
#include "setup.h"

enum {
    READ_BYTES = 64 * 1024,        /* taken from one connection at a time, so that none starves the rest */
    WRITE_BYTES = 64 * 1024,       /* answers gathered before they are sent */
    EVENTS_PER_WAIT = 512,
};

enum outcome { DONE, BLOCKED, DEAD };

struct connection {
    char *input;            /* not parsed yet */
    char *output;           /* not sent yet */
    uint32_t input_len, output_len, output_sent;
    uint64_t body_left;     /* bytes of a request body still to be skipped */
    bool open, closing, draining;
};

static char read_buffer[HEAD_BYTES_MAX + READ_BYTES + READ_BYTES];
static char write_buffer[WRITE_BYTES];
static size_t write_len;
static struct connection *connections;
static size_t connections_max;
static int epoll_fd, listen_fd, spare_fd;
static bool edge;

/* ---- one connection ---- */

static void forget(struct connection *c, int fd)
{
    free(c->input);
    free(c->output);
    memset(c, 0, sizeof *c);
    close(fd);
}

static void keep(char **where, uint32_t *where_len, const char *bytes, size_t len)
{
    char *copy = NULL;

    if (len) {
        copy = malloc(len);
        if (!copy)
            die("malloc");
        memcpy(copy, bytes, len);
    }
    free(*where);
    *where = copy;
    *where_len = (uint32_t)len;
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

static enum outcome send_answers(struct connection *c, int fd)
{
    ssize_t sent = send_some(fd, write_buffer, write_len);
    size_t left = sent < 0 ? 0 : write_len - (size_t)sent;

    if (left)
        keep(&c->output, &c->output_len, write_buffer + sent, left);
    c->output_sent = 0;
    write_len = 0;
    return sent < 0 ? DEAD : left ? BLOCKED : DONE;
}

static void answer(struct connection *c, enum route route, enum persistence persistence)
{
    const struct response *r = &responses[route][persistence];

    memcpy(write_buffer + write_len, r->bytes, r->len);
    write_len += r->len;
    c->closing = persistence == CLOSE;
}

/* Answers complete requests until the write buffer is full. Returns the number of bytes used. */
static size_t answer_requests(struct connection *c, const char *p, size_t len)
{
    size_t used = 0;

    while (used < len && !c->closing && write_len + RESPONSE_BYTES_MAX <= WRITE_BYTES) {
        if (c->body_left) {
            size_t skip = c->body_left < len - used ? (size_t)c->body_left : len - used;
            c->body_left -= skip;
            used += skip;
            continue;
        }
        struct request r = parse(p + used, len - used);
        if (r.head_len == 0) {
            if (len - used > HEAD_BYTES_MAX)
                answer(c, HEAD_TOO_LARGE, CLOSE);
            break;
        }
        used += r.head_len;
        c->body_left = r.body_len;
        answer(c, r.route, r.persistence);
    }
    return used;
}

/* Called after the last answer. close() with unread bytes would reset the connection, and the reset could destroy that
   answer on its way. So our side is shut down first, and the peer's side is read to its end. */
static void begin_drain(struct connection *c, int fd)
{
    shutdown(fd, SHUT_WR);
    c->draining = true;
    keep(&c->input, &c->input_len, NULL, 0);
}

/* Answers the requests in `len` bytes of input, and keeps the bytes that cannot be used now. */
static enum outcome use_input(struct connection *c, int fd, const char *p, size_t len)
{
    size_t used = 0, step;
    enum outcome outcome = DONE;

    do {
        step = answer_requests(c, p + used, len - used);
        used += step;
        if (write_len)
            outcome = send_answers(c, fd);
    } while (outcome == DONE && step && !c->closing);
    if (outcome == DEAD)
        return DEAD;
    if (c->closing)
        used = len;
    if (used < len || c->input)
        keep(&c->input, &c->input_len, p + used, len - used);
    if (c->closing && outcome == DONE)
        begin_drain(c, fd);
    return outcome;
}

static enum outcome send_kept(struct connection *c, int fd)
{
    ssize_t sent = send_some(fd, c->output + c->output_sent, c->output_len - c->output_sent);

    if (sent < 0)
        return DEAD;
    c->output_sent += (uint32_t)sent;
    if (c->output_sent < c->output_len)
        return BLOCKED;
    keep(&c->output, &c->output_len, NULL, 0);
    if (c->closing) {
        begin_drain(c, fd);
        return DONE;
    }
    if (c->input_len == 0)
        return DONE;
    size_t len = c->input_len;
    memcpy(read_buffer, c->input, len);
    return use_input(c, fd, read_buffer, len);
}

/* Reads once and answers what came. Sets `*empty` when there was nothing left to read. */
static enum outcome read_once(struct connection *c, int fd, bool *empty)
{
    size_t kept = c->input_len;

    if (kept)
        memcpy(read_buffer, c->input, kept);
    ssize_t n = recv(fd, read_buffer + kept, READ_BYTES, 0);
    if (n == 0)
        return DEAD;
    if (n < 0) {
        *empty = errno == EAGAIN;
        return errno == EAGAIN || errno == EINTR ? DONE : DEAD;
    }
    if (c->draining)
        return DONE;
    return use_input(c, fd, read_buffer, kept + (size_t)n);
}

static void watch(int fd, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(epoll_fd, operation, fd, &event) != 0)
        die("epoll_ctl");
}

static void serve(int fd)
{
    struct connection *c = &connections[fd];
    bool was_blocked = c->output != NULL, empty = false;
    enum outcome outcome = was_blocked ? send_kept(c, fd) : DONE;

    /* Level-triggered: read once, as the kernel reports the rest again. Edge-triggered: read until nothing is left. */
    if (outcome == DONE && (edge || !was_blocked)) {
        do
            outcome = read_once(c, fd, &empty);
        while (edge && outcome == DONE && !empty);
    }
    if (outcome == DEAD)
        forget(c, fd);
    else if (!edge && was_blocked != (outcome == BLOCKED))
        watch(fd, EPOLL_CTL_MOD, outcome == BLOCKED ? EPOLLOUT : EPOLLIN);
}

/* ---- the loop ---- */

static void accept_all(void)
{
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && (size_t)fd < connections_max) {
            connections[fd].open = true;
            watch(fd, EPOLL_CTL_ADD, edge ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN);
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

int main(int argc, char **argv)
{
    bool reuse_port = false;

    for (int i = 3; i < argc; i++) {
        edge |= strcmp(argv[i], "--edge") == 0;
        reuse_port |= strcmp(argv[i], "--reuse-port") == 0;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: %s HOST PORT [--edge] [--reuse-port]\n", argv[0]);
        return 2;
    }
    compose_all("epoll");
    connections_max = descriptors_max();
    connections = zeroed(connections_max, sizeof *connections);
    int signal_fd = signals_as_fd();
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    listen_fd = listen_on(argv[1], argv[2], SOCK_NONBLOCK, reuse_port);
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
