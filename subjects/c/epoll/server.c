/*
 * HTTP/1 at the speed of the event loop: one thread, one epoll instance, no library.
 *
 * How it works: one shared read buffer and one shared write buffer serve every connection. A read is parsed request by
 * request, the answers are gathered and leave in one send. Only what does not fit the moment (half a request, or answers
 * that the peer is slow to take) is kept with its connection, so that an idle connection costs a few dozen bytes. A
 * connection whose answers are stuck is not read until they are gone: what it can make us hold is bounded.
 *
 * It finds where one request ends and reads what decides that (version, Connection, Content-Length); it has no general
 * parser, no router beyond two paths, and no Date header: it shows what the machine can do, not what a framework does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_BYTES_MAX = 8 * 1024,     /* a longer request head is refused with 431 */
    READ_BYTES = 64 * 1024,        /* taken from one connection at a time, so that none starves the rest */
    WRITE_BYTES = 64 * 1024,       /* answers gathered before they are sent */
    RESPONSE_BYTES_MAX = 512,      /* the longest answer below */
    PLAIN_RESPONSE_BYTES = 192,    /* like every other subject's, see subjects/README.md */
    EVENTS_PER_WAIT = 512,
    BACKLOG = 4096,
    CONNECTIONS_MAX = 1 << 20,
};

enum route { PLAIN, PERF, NOT_FOUND, BAD_METHOD, BAD_REQUEST, HEAD_TOO_LARGE, NOT_IMPLEMENTED, ROUTES };
enum persistence { STAY, STAY_1_0, CLOSE, PERSISTENCES };   /* HTTP/1.0 wants to be told that we stay */
enum outcome { DONE, BLOCKED, DEAD };

struct response {
    char bytes[RESPONSE_BYTES_MAX];
    size_t len;
};

struct request {
    size_t head_len;        /* 0: the head is not complete yet */
    uint64_t body_len;
    enum route route;
    enum persistence persistence;
};

struct connection {
    char *input;            /* not parsed yet */
    char *output;           /* not sent yet */
    uint32_t input_len, output_len, output_sent;
    uint64_t body_left;     /* of a request body, to be skipped */
    bool open, closing, draining;
};

static struct response responses[ROUTES][PERSISTENCES];
static char read_buffer[HEAD_BYTES_MAX + READ_BYTES + READ_BYTES];
static char write_buffer[WRITE_BYTES];
static size_t write_len;
static struct connection *connections;
static size_t connections_max;
static int epoll_fd, listen_fd, spare_fd;
static bool edge;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- responses, made once ---- */

static void compose(enum route route, const char *status, const char *type, const char *body, size_t pad_to)
{
    static const char *const lines[PERSISTENCES] = {"", "Connection: keep-alive\r\n", "Connection: close\r\n"};

    for (int i = 0; i < PERSISTENCES; i++) {
        struct response *r = &responses[route][i];
        char head[RESPONSE_BYTES_MAX];
        int len = snprintf(head, sizeof head,
                           "HTTP/1.1 %s\r\nServer: epoll\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s",
                           status, type, strlen(body), lines[i]);
        size_t bare = (size_t)len + 2 + strlen(body);
        size_t pad_line = strlen("X-Pad: \r\n");
        if (pad_to > bare + pad_line) {
            char pad[RESPONSE_BYTES_MAX] = "";
            memset(pad, '.', pad_to - bare - pad_line);
            len += snprintf(head + len, sizeof head - (size_t)len, "X-Pad: %s\r\n", pad);
        }
        r->len = (size_t)snprintf(r->bytes, sizeof r->bytes, "%s\r\n%s", head, body);
    }
}

static void compose_all(void)
{
    compose(PLAIN, "200 OK", "text/plain", "Hello, World!", PLAIN_RESPONSE_BYTES);
    compose(PERF, "200 OK", "application/json",
            "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\"numbers\":[1,2,3,5,8,13,21]}", 0);
    compose(NOT_FOUND, "404 Not Found", "text/plain", "not found", 0);
    compose(BAD_METHOD, "405 Method Not Allowed\r\nAllow: GET", "text/plain", "", 0);
    compose(BAD_REQUEST, "400 Bad Request", "text/plain", "", 0);
    compose(HEAD_TOO_LARGE, "431 Request Header Fields Too Large", "text/plain", "", 0);
    compose(NOT_IMPLEMENTED, "501 Not Implemented", "text/plain", "", 0);
}

/* ---- where one request ends ---- */

static bool starts(const char *p, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    return len >= n && memcmp(p, prefix, n) == 0;
}

static bool ends(const char *p, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len >= n && memcmp(p + len - n, suffix, n) == 0;
}

/* The value of a header line if it carries this name, else NULL. */
static const char *header(const char *line, size_t len, const char *name, size_t *value_len)
{
    size_t n = strlen(name);

    if (len < n || strncasecmp(line, name, n) != 0)
        return NULL;
    while (n < len && (line[n] == ' ' || line[n] == '\t'))
        n++;
    while (len > n && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    *value_len = len - n;
    return line + n;
}

static bool has_token(const char *list, size_t len, const char *token)
{
    size_t n = strlen(token);

    for (size_t i = 0; i + n <= len; i++) {
        bool begins = i == 0 || strchr(", \t", list[i - 1]);
        bool stops = i + n == len || strchr(", \t", list[i + n]);
        if (begins && stops && strncasecmp(list + i, token, n) == 0)
            return true;
    }
    return false;
}

static void refuse(struct request *r, enum route why)
{
    r->route = why;
    r->persistence = CLOSE;
    r->body_len = 0;
}

static void read_request_line(struct request *r, const char *line, size_t len)
{
    if (ends(line, len, " HTTP/1.1"))
        r->persistence = STAY;
    else if (ends(line, len, " HTTP/1.0"))
        r->persistence = CLOSE;
    else {
        refuse(r, BAD_REQUEST);
        return;
    }
    if (starts(line, len, "GET / "))
        r->route = PLAIN;
    else if (starts(line, len, "GET /perf "))
        r->route = PERF;
    else if (starts(line, len, "GET "))
        r->route = NOT_FOUND;
    else
        r->route = BAD_METHOD;
}

/* False when the request cannot be told from what follows it. */
static bool read_body_len(struct request *r, const char *digits, size_t len)
{
    if (len == 0 || len > 18)
        return false;
    r->body_len = 0;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        r->body_len = r->body_len * 10 + (uint64_t)(digits[i] - '0');
    }
    return true;
}

static void read_header(struct request *r, const char *line, size_t len, bool http_1_0)
{
    const char *value;
    size_t n;
    char first = (char)(line[0] | 0x20);

    /* The two letters that the names we must know begin with: all other lines are passed over. */
    if (first == 'c' && (value = header(line, len, "connection:", &n))) {
        if (has_token(value, n, "close"))
            r->persistence = CLOSE;
        else if (http_1_0 && has_token(value, n, "keep-alive"))
            r->persistence = STAY_1_0;
    } else if (first == 'c' && (value = header(line, len, "content-length:", &n))) {
        if (!read_body_len(r, value, n))
            refuse(r, BAD_REQUEST);
    } else if (first == 't' && header(line, len, "transfer-encoding:", &n)) {
        refuse(r, NOT_IMPLEMENTED);
    }
}

/* One request head at `p`; `head_len` stays 0 until it is complete. */
static struct request parse(const char *p, size_t len)
{
    struct request r = {0};
    const char *line = p, *end = p + len, *newline;
    bool http_1_0 = false, refused = false;

    while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
        size_t line_len = (size_t)(newline - line);
        if (line_len && line[line_len - 1] == '\r')
            line_len--;
        if (line == p && line_len == 0)
            p = newline + 1;                    /* RFC 9112 2.2: an empty line before a request is ignored */
        else if (line == p) {
            read_request_line(&r, line, line_len);
            http_1_0 = r.persistence == CLOSE;
        } else if (line_len == 0) {
            r.head_len = (size_t)(newline + 1 - (end - len));
            return r;
        } else if (!refused)
            read_header(&r, line, line_len, http_1_0);
        refused = r.route >= BAD_REQUEST;
        line = newline + 1;
    }
    return r;
}

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

/* Bytes taken by the socket, which may be fewer than asked; -1 when the connection is gone. */
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

/* Answers what is complete until the write buffer is full. Returns the bytes used. */
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

/* After the last answer. Unread bytes at close() would reset the connection and could destroy that answer on its way, so
   our side is closed first, and the peer's side is read to its end. */
static void begin_drain(struct connection *c, int fd)
{
    shutdown(fd, SHUT_WR);
    c->draining = true;
    keep(&c->input, &c->input_len, NULL, 0);
}

/* Everything that `len` bytes of input lead to; what cannot be used now is kept. */
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

/* One read, and all that follows from it. DONE with `*empty` set: there is nothing more to read now. */
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

    /* Level-triggered: one read, the kernel tells again. Edge-triggered: read until there is nothing left. */
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
            /* Out of descriptors, and the waiting connection would wake us for ever: take it with the spare one, close it. */
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

static int listen_on(const char *host, const char *port, bool reuse_port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *address;
    int on = 1, error = getaddrinfo(host, port, &hints, &address);

    if (error) {
        fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(error));
        exit(2);
    }
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (reuse_port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);   /* inherited by each accepted connection */
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0)
        die("bind");
    if (listen(fd, BACKLOG) != 0)
        die("listen");
    freeaddrinfo(address);
    return fd;
}

static int signals_as_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void make_room_for_connections(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    connections_max = limit.rlim_cur < CONNECTIONS_MAX ? limit.rlim_cur : CONNECTIONS_MAX;
    connections = calloc(connections_max, sizeof *connections);   /* pages come with their first use */
    if (!connections)
        die("calloc");
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
    compose_all();
    make_room_for_connections();
    int signal_fd = signals_as_fd();
    spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    listen_fd = listen_on(argv[1], argv[2], reuse_port);
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
