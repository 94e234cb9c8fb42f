/* What the bare loops share: a ring as our driver's, and sockets over it. Multishot receives into provided buffers, direct
 * descriptors, work done when it is asked for; of a send only a failure is heard.
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

enum { ENTRIES = 4096, BUFFERS = 512, BUFFER_BYTES = 4096, REQUEST_MOST = 128, CONNECTIONS_MOST = 4096 };
/* What only counts when it failed. */
static const unsigned long long SEND = 1ULL << 32;

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char memory[BUFFERS][BUFFER_BYTES];
static int files[CONNECTIONS_MOST];

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

static void send_bytes(int connection, const char *bytes, size_t len) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    io_uring_prep_send(entry, connection, bytes, len, MSG_WAITALL);
    entry->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data = SEND;
}

/* The number of the buffer that has what came; it is to be given back. */
static int received_in(const struct io_uring_cqe *said) {
    if (said->res <= 0 || said->user_data == SEND) {
        fprintf(stderr, "a connection ended, or could not be sent to: %s\n", strerror(-said->res));
        exit(1);
    }
    return said->flags >> IORING_CQE_BUFFER_SHIFT;
}

static void give_back(const struct io_uring_cqe *said) {
    int id = said->flags >> IORING_CQE_BUFFER_SHIFT;
    io_uring_buf_ring_add(buffers, memory[id], BUFFER_BYTES, id, BUFFERS - 1, 0);
    io_uring_buf_ring_advance(buffers, 1);
    if (!(said->flags & IORING_CQE_F_MORE))
        receive(said->user_data);
}

/* What a loop does with bytes: how many answers have ended in them. */
static int hear(struct io_uring_cqe *said, int depth);
/* What it does behind all that came at once. */
static void answer_back(void);

/* Hears answers for so long, and prints their number and the CPU time as JSON. */
static void work(int depth, long long milliseconds, long long cpu_ns) {
    long long answers = 0, began_ns = now_ns(CLOCK_MONOTONIC), until_ns = began_ns + milliseconds * 1000000;
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
        answer_back();
    }
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("{\"answers\": %lld, \"cpu_ns\": %lld, \"wall_ns\": %lld}\n", answers, cpu_ns,
           now_ns(CLOCK_MONOTONIC) - began_ns);
}

static void check_load(int connections, int depth) {
    if (connections < 1 || connections > CONNECTIONS_MOST || depth < 1 || depth > REQUEST_MOST) {
        fprintf(stderr, "at most %d connections, and a depth of %d\n", CONNECTIONS_MOST, REQUEST_MOST);
        exit(2);
    }
}
