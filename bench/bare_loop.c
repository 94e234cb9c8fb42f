/* The least that a generator of HTTP on sockets can do: an io_uring loop that sends and counts bytes.
 *
 * bare_loop PORT CONNECTIONS DEPTH MILLISECONDS: opens CONNECTIONS to 127.0.0.1, sends DEPTH requests over each, and
 * the same again whenever as many bytes have come as DEPTH answers take. Answers are not looked at, nothing is timed
 * or checked. The ring is as our driver's: multishot receives into provided buffers, direct descriptors, work done
 * when it is asked for. Prints the answers and the CPU time of the loop, without the connecting, as JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { ENTRIES = 4096, BUFFERS = 512, BUFFER_BYTES = 4096, REQUEST_MOST = 64, CONNECTIONS_MOST = 4096 };
/* What only counts when it failed. */
static const unsigned long long SEND = 1ULL << 32;

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char memory[BUFFERS][BUFFER_BYTES];
static char requests[REQUEST_MOST * 64];
static size_t requests_len;
static int files[CONNECTIONS_MOST];
static size_t received[CONNECTIONS_MOST];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static long long now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void set_up(int connections) {
    struct io_uring_params how = {.cq_entries = 2 * ENTRIES};
    how.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    if (io_uring_queue_init_params(ENTRIES, &ring, &how) < 0)
        fail("io_uring");
    io_uring_register_ring_fd(&ring);
    if (io_uring_register_files(&ring, files, connections) < 0)
        fail("direct descriptors");
    buffers = aligned_alloc(4096, BUFFERS * sizeof(struct io_uring_buf));
    struct io_uring_buf_reg where = {.ring_addr = (unsigned long)buffers, .ring_entries = BUFFERS};
    if (buffers == NULL || io_uring_register_buf_ring(&ring, &where, 0) < 0)
        fail("buffers");
    io_uring_buf_ring_init(buffers);
    for (int id = 0; id < BUFFERS; id++)
        io_uring_buf_ring_add(buffers, memory[id], BUFFER_BYTES, id, BUFFERS - 1, id);
    io_uring_buf_ring_advance(buffers, BUFFERS);
}

/* A connection has one send and at most one receive to submit: there is always room. */
static void receive(int connection) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_recv_multishot(entry, connection, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
    entry->user_data = connection;
}

static void ask(int connection) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_send(entry, connection, requests, requests_len, MSG_WAITALL);
    entry->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data = SEND;
}

/* Answers to so many requests have come: 0 or depth. */
static int hear(struct io_uring_cqe *said, int depth) {
    static size_t answer_len;
    if (said->res <= 0 || said->user_data == SEND) {
        fprintf(stderr, "a connection ended, or could not be sent to: %s\n", strerror(-said->res));
        exit(1);
    }
    int connection = said->user_data, id = said->flags >> IORING_CQE_BUFFER_SHIFT;
    io_uring_buf_ring_add(buffers, memory[id], BUFFER_BYTES, id, BUFFERS - 1, 0);
    io_uring_buf_ring_advance(buffers, 1);
    if (!(said->flags & IORING_CQE_F_MORE))
        receive(connection);
    if (answer_len == 0) {
        /* All are as long as the first one, whose head has come as a whole. */
        const char *end = memmem(memory[id], said->res, "\r\n\r\n", 4);
        const char *body = memmem(memory[id], said->res, "ength: ", 7);
        if (end == NULL || body == NULL) {
            fprintf(stderr, "the first answer has no length\n");
            exit(1);
        }
        answer_len = end + 4 - memory[id] + atoi(body + 7);
    }
    received[connection] += said->res;
    if (received[connection] < answer_len * depth)
        return 0;
    received[connection] -= answer_len * depth;
    ask(connection);
    return depth;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: bare_loop PORT CONNECTIONS DEPTH MILLISECONDS\n");
        return 2;
    }
    int port = atoi(argv[1]), connections = atoi(argv[2]), depth = atoi(argv[3]);
    if (connections < 1 || connections > CONNECTIONS_MOST || depth < 1 || depth > REQUEST_MOST) {
        fprintf(stderr, "at most %d connections, and a depth of %d\n", CONNECTIONS_MOST, REQUEST_MOST);
        return 2;
    }
    for (int number = 0; number < depth; number++)
        requests_len += snprintf(requests + requests_len, sizeof requests - requests_len,
                                 "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
    for (int connection = 0; connection < connections; connection++)
        files[connection] = connect_to(port);
    set_up(connections);
    long long answers = 0, cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID), began_ns = now_ns(CLOCK_MONOTONIC);
    long long until_ns = began_ns + atoll(argv[4]) * 1000000;
    for (int connection = 0; connection < connections; connection++) {
        receive(connection);
        ask(connection);
    }
    while (now_ns(CLOCK_MONOTONIC) < until_ns) {
        struct io_uring_cqe *said;
        unsigned head, count = 0;
        if (io_uring_submit_and_wait(&ring, 1) < 0)
            fail("io_uring_enter");
        io_uring_for_each_cqe(&ring, head, said) {
            answers += hear(said, depth);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("{\"answers\": %lld, \"cpu_ns\": %lld, \"wall_ns\": %lld}\n", answers, cpu_ns,
           now_ns(CLOCK_MONOTONIC) - began_ns);
    return 0;
}
