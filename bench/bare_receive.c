/* The minimal work of a broadcast client: one epoll loop that reads and counts bytes.
 *
 * bare_receive PORT CLIENTS MESSAGES PADDING opens CLIENTS WebSockets at /ws on 127.0.0.1. The clients take turns to
 * broadcast MESSAGES messages, each after the one before has come everywhere. Frames are not parsed: a message has
 * come everywhere when as many bytes have come as the contract's answers take. It prints the number of deliveries and
 * the CPU time of sending and receiving, without connecting, as JSON.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 1024, READ_BYTES = 64 * 1024 };

static char buffer[READ_BYTES];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double cpu_ns(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

/* Opens a connection and upgrades it to a WebSocket. */
static int open_client(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const char *request = "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    if (write(fd, request, strlen(request)) < 0)
        fail("write");
    size_t got = 0;
    while (got < 4 || memcmp(buffer + got - 4, "\r\n\r\n", 4) != 0) {
        ssize_t count = read(fd, buffer + got, 1);
        if (count <= 0 || ++got == sizeof buffer)
            fail("no upgrade");
    }
    return fd;
}

/* The length of a server's frame with a payload of this many bytes. */
static size_t framed(size_t payload) { return payload + (payload < 126 ? 2 : 4); }

/* Writes a masked text frame and returns its length. The mask is 0, because masking by it costs the least. */
static size_t frame(const char *payload, size_t len, char *out) {
    size_t at = 0;
    out[at++] = (char)0x81;
    if (len < 126) {
        out[at++] = (char)(0x80 | len);
    } else {
        out[at++] = (char)(0x80 | 126);
        out[at++] = (char)(len >> 8);
        out[at++] = (char)len;
    }
    memset(out + at, 0, 4);
    memcpy(out + at + 4, payload, len);
    return at + 4 + len;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int port = atoi(argv[1]), clients = atoi(argv[2]), messages = atoi(argv[3]), padding = atoi(argv[4]);
    int *fds = calloc(clients, sizeof *fds), poll = epoll_create1(0);
    for (int at = 0; at < clients; at++) {
        struct epoll_event wanted = {.events = EPOLLIN};
        wanted.data.fd = fds[at] = open_client(port);
        if (epoll_ctl(poll, EPOLL_CTL_ADD, fds[at], &wanted) < 0)
            fail("epoll_ctl");
    }
    char *filling = malloc(padding + 1), *payload = malloc(padding + 100), *out = malloc(padding + 256);
    memset(filling, 'x', padding);
    filling[padding] = 0;
    int carried = sprintf(payload, "{\"sender\":0,\"sequence\":1,\"padding\":\"%s\"}", filling);
    char *message = malloc(padding + 200);
    int len = sprintf(message, "{\"type\":\"broadcast\",\"payload\":%s}", payload);
    char digits[100];
    size_t counted = sprintf(digits, "{\"type\":\"broadcastResult\",\"payload\":,\"listenerCount\":%d}", clients);
    size_t expected = framed(len) * clients + framed(counted + carried);
    size_t sending = frame(message, len, out);

    struct epoll_event events[EVENTS];
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    double before_ns = cpu_ns();
    for (int number = 0; number < messages; number++) {
        if (write(fds[number % clients], out, sending) != (ssize_t)sending)
            fail("write");
        for (size_t got = 0; got < expected;) {
            int count = epoll_wait(poll, events, EVENTS, 10000);
            if (count <= 0)
                fail("epoll_wait");
            for (int at = 0; at < count; at++) {
                ssize_t bytes = read(events[at].data.fd, buffer, sizeof buffer);
                if (bytes <= 0)
                    fail("read");
                got += bytes;
            }
        }
    }
    double used_ns = cpu_ns() - before_ns;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double wall_ns = (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec);
    printf("{\"deliveries\": %ld, \"cpu_ns\": %.0f, \"wall_ns\": %.0f}\n", (long)messages * clients, used_ns, wall_ns);
    return 0;
}
