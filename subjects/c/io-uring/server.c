/*
 * HTTP/1 server on a raw io_uring loop: server HOST PORT [--reuse-port]. One thread, one ring, no library but
 * liburing. It needs Linux 6.1.
 *
 * There is one multishot accept, and one multishot receive per connection, which puts its bytes into buffers that all
 * connections share. The completions of a batch are handled together. The same system call submits all operations
 * that result from it and waits for the next batch.
 *
 * A connection has at most one send in flight. A single answer is sent from where it was composed; several are
 * gathered in a chunk first. A connection keeps only half a request, and the bytes that arrive while a send is stuck.
 * When these are too many, its receive is cancelled until the peer has read its answers.
 *
 * A descriptor is closed only when no operation on it is pending (`receiving` and `sending` are false). So a
 * completion never meets a new connection that got the same descriptor.
 *
 * HTTP itself is in http.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "setup.h"

enum {
    BUFFER_BYTES = 2 * 1024,
    BUFFERS = 1024,                /* a power of two, as the kernel asks */
    BUFFER_GROUP = 0,
    CHUNK_BYTES = 16 * 1024,       /* answers gathered for one send */
    INPUT_BYTES_MAX = 64 * 1024,   /* input kept of one connection before its receive is cancelled */
    SUBMISSIONS = 2048,
    COMPLETIONS = 8192,
    COMPLETIONS_PER_WAIT = 512,
    ACCEPT_PAUSE_MS = 100,         /* after an accept that found no descriptor free */
};

enum operation { ACCEPT, ACCEPT_LATER, RECEIVE, CANCEL, SEND, SIGNAL };

struct connection {
    char *input;            /* not parsed yet */
    const char *output;     /* the send in flight: one of `responses`, or in `chunk` */
    char *chunk;            /* NULL while there is at most one answer */
    uint32_t input_len, input_room, output_len, output_sent;
    uint64_t body_left;     /* bytes of a request body still to be skipped */
    bool receiving, sending;            /* a completion of it is still to come */
    bool cancelling, hung_up;           /* the receive is being cancelled; shutdown() was called */
    bool closing, draining;             /* the last answer is composed; it is sent */
    bool ended, dead;                   /* the peer has ended its side; the connection is broken */
};

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static char buffers[BUFFERS][BUFFER_BYTES];
static char *free_chunks;   /* a list: each begins with the address of the next */
static struct connection *connections;
static size_t connections_max;
static int listen_fd;

/* ---- submissions ---- */

static void fail(const char *what, int error)
{
    fprintf(stderr, "io_uring: %s: %s\n", what, strerror(-error));
    exit(1);
}

static struct io_uring_sqe *next_submission(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

    if (!sqe) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    if (!sqe)
        fail("submission queue", -EBUSY);
    return sqe;
}

static uint64_t label(enum operation operation, int fd)
{
    return (uint64_t)operation << 32 | (uint32_t)fd;
}

static void submit_accept(void)
{
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_multishot_accept(sqe, listen_fd, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, label(ACCEPT, listen_fd));
}

static void submit_accept_later(void)
{
    static struct __kernel_timespec pause = {.tv_nsec = ACCEPT_PAUSE_MS * 1000000LL};
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_timeout(sqe, &pause, 0, 0);
    io_uring_sqe_set_data64(sqe, label(ACCEPT_LATER, listen_fd));
}

static void submit_receive(struct connection *c, int fd)
{
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    io_uring_sqe_set_data64(sqe, label(RECEIVE, fd));
    c->receiving = true;
    c->cancelling = false;
}

static void submit_cancel(struct connection *c, int fd)
{
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_cancel64(sqe, label(RECEIVE, fd), 0);
    io_uring_sqe_set_data64(sqe, label(CANCEL, fd));
    c->cancelling = true;
}

/* With MSG_WAITALL the kernel itself continues after a partial send. */
static void submit_send(struct connection *c, int fd)
{
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_send(sqe, fd, c->output + c->output_sent, c->output_len - c->output_sent, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, label(SEND, fd));
    c->sending = true;
}

/* ---- what a connection keeps ---- */

static void *checked(void *memory)
{
    if (!memory)
        die("malloc");
    return memory;
}

static char *take_chunk(void)
{
    char *chunk = free_chunks;

    if (!chunk)
        return checked(malloc(CHUNK_BYTES));
    memcpy(&free_chunks, chunk, sizeof free_chunks);
    return chunk;
}

static void drop_output(struct connection *c)
{
    if (c->chunk) {
        memcpy(c->chunk, &free_chunks, sizeof free_chunks);
        free_chunks = c->chunk;
    }
    c->chunk = NULL;
    c->output_len = c->output_sent = 0;
}

static void drop_input(struct connection *c)
{
    free(c->input);
    c->input = NULL;
    c->input_len = c->input_room = 0;
}

static void append_input(struct connection *c, const char *bytes, size_t len)
{
    if (c->input_len + len > c->input_room) {
        c->input_room = 2 * (uint32_t)(c->input_len + len);
        c->input = checked(realloc(c->input, c->input_room));
    }
    memcpy(c->input + c->input_len, bytes, len);
    c->input_len += (uint32_t)len;
}

static void answer(struct connection *c, enum route route, enum persistence persistence)
{
    const struct response *r = &responses[route][persistence];

    if (c->output_len == 0) {
        c->output = r->bytes;
    } else {
        if (!c->chunk) {
            c->chunk = take_chunk();
            memcpy(c->chunk, c->output, c->output_len);
            c->output = c->chunk;
        }
        memcpy(c->chunk + c->output_len, r->bytes, r->len);
    }
    c->output_len += (uint32_t)r->len;
    c->closing = persistence == CLOSE;
}

/* Answers complete requests until a chunk is full. Returns the number of bytes used. */
static size_t answer_requests(struct connection *c, const char *p, size_t len)
{
    size_t used = 0;

    while (used < len && !c->closing && c->output_len + RESPONSE_BYTES_MAX <= CHUNK_BYTES) {
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

/* ---- one connection ---- */

/* Answers the requests in the new bytes, or with `len` 0 those in the kept input. While a send is in flight it only
   keeps the bytes. Bytes that cannot be used now are kept, too. */
static void use_input(struct connection *c, int fd, const char *bytes, size_t len)
{
    if (c->sending || c->input_len) {
        if (len)
            append_input(c, bytes, len);
        bytes = c->input;
        len = c->input_len;
    }
    if (c->sending)
        return;
    size_t used = answer_requests(c, bytes, len);
    if (c->closing || used == len) {
        drop_input(c);
    } else if (c->input_len) {
        c->input_len = (uint32_t)(len - used);
        memmove(c->input, c->input + used, c->input_len);
    } else {
        append_input(c, bytes + used, len - used);
    }
    if (c->output_len)
        submit_send(c, fd);
}

static void forget(struct connection *c, int fd)
{
    drop_input(c);
    drop_output(c);
    memset(c, 0, sizeof *c);
    close(fd);
}

/* Makes the kernel end its operations on the connection; their completions show when they have ended. */
static void hang_up(struct connection *c, int fd)
{
    shutdown(fd, SHUT_RDWR);
    c->hung_up = true;
}

/* Called after each completion: submits what the connection needs next, or closes it. */
static void settle(struct connection *c, int fd)
{
    if (c->dead || (c->ended && !c->sending)) {
        if (!c->receiving && !c->sending)
            forget(c, fd);
        else if (!c->hung_up)
            hang_up(c, fd);
        return;
    }
    bool full = c->input_len > INPUT_BYTES_MAX;
    if (c->receiving && full && !c->cancelling)
        submit_cancel(c, fd);
    else if (!c->receiving && !full && !c->ended)
        submit_receive(c, fd);
}

static void give_back(int buffer)
{
    io_uring_buf_ring_add(buffer_ring, buffers[buffer], BUFFER_BYTES, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

/* A multishot receive may deliver bytes but miss a reset that follows them (seen on Linux 6.18). A new receive reports
   the reset, and so does a send. So if the bytes led to no send, the receive is cancelled and submitted again. */
static void received(struct connection *c, int fd, int result, unsigned flags)
{
    c->receiving = flags & IORING_CQE_F_MORE;
    if (result > 0) {
        int buffer = (int)(flags >> IORING_CQE_BUFFER_SHIFT);
        if (!c->draining && !c->closing && !c->dead)
            use_input(c, fd, buffers[buffer], (size_t)result);
        give_back(buffer);
        if (c->receiving && !c->sending && !c->cancelling)
            submit_cancel(c, fd);   /* settle() submits a new one after that, see above */
    } else if (result == 0) {
        c->ended = true;
    } else if (result != -ENOBUFS && result != -ECANCELED && result != -EINTR) {
        c->dead = true;
    }
    settle(c, fd);
}

static void sent(struct connection *c, int fd, int result)
{
    c->sending = false;
    if (result < 0 && result != -EINTR)
        c->dead = true;
    else
        c->output_sent += result < 0 ? 0 : (uint32_t)result;
    if (!c->dead && c->output_sent < c->output_len) {
        submit_send(c, fd);
        return;
    }
    drop_output(c);
    if (c->closing && !c->draining && !c->dead) {
        /* close() with unread bytes would reset the connection, and the reset could destroy the last answer on its
           way. So our side is shut down first, and the peer's side is read to its end. */
        shutdown(fd, SHUT_WR);
        c->draining = true;
    } else if (c->input_len && !c->dead) {
        use_input(c, fd, NULL, 0);
    }
    settle(c, fd);
}

static void accepted(int result, unsigned flags)
{
    bool no_room = result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;

    if (result >= 0 && (size_t)result < connections_max)
        submit_receive(&connections[result], result);
    else if (result >= 0)
        close(result);
    if (flags & IORING_CQE_F_MORE)
        return;
    if (no_room)
        submit_accept_later();
    else
        submit_accept();
}

/* ---- the loop ---- */

static void open_ring(void)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    int error = io_uring_queue_init_params(SUBMISSIONS, &ring, &params);

    if (error)
        fail("no ring (Linux 6.1 or newer is needed, and that nothing forbids it)", error);
}

static void provide_buffers(void)
{
    struct io_uring_buf_reg registration = {.ring_entries = BUFFERS, .bgid = BUFFER_GROUP};
    void *memory = NULL;

    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), BUFFERS * sizeof(struct io_uring_buf)))
        die("posix_memalign");
    buffer_ring = memory;
    io_uring_buf_ring_init(buffer_ring);
    registration.ring_addr = (uint64_t)(uintptr_t)memory;
    int error = io_uring_register_buf_ring(&ring, &registration, 0);
    if (error)
        fail("buffer ring", error);
    for (int buffer = 0; buffer < BUFFERS; buffer++)
        give_back(buffer);
}

static void watch_signals(void)
{
    int fd = signals_as_fd();
    struct io_uring_sqe *sqe = next_submission();

    io_uring_prep_poll_add(sqe, fd, POLLIN);
    io_uring_sqe_set_data64(sqe, label(SIGNAL, fd));
}

static void complete(const struct io_uring_cqe *cqe)
{
    int fd = (int)(uint32_t)cqe->user_data;

    switch ((enum operation)(cqe->user_data >> 32)) {
    case ACCEPT:
        accepted(cqe->res, cqe->flags);
        break;
    case ACCEPT_LATER:
        submit_accept();
        break;
    case RECEIVE:
        received(&connections[fd], fd, cqe->res, cqe->flags);
        break;
    case SEND:
        sent(&connections[fd], fd, cqe->res);
        break;
    case SIGNAL:
        exit(0);
    case CANCEL:   /* the receive's own completion shows that it has ended */
        break;
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s HOST PORT [--reuse-port]\n", argv[0]);
        return 2;
    }
    compose_all("io_uring");
    connections_max = descriptors_max();
    connections = zeroed(connections_max, sizeof *connections);
    listen_fd = listen_on(argv[1], argv[2], 0, argc > 3 && strcmp(argv[3], "--reuse-port") == 0);
    open_ring();
    provide_buffers();
    watch_signals();
    submit_accept();

    struct io_uring_cqe *cqes[COMPLETIONS_PER_WAIT];
    for (;;) {
        int error = io_uring_submit_and_wait(&ring, 1);
        if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY)
            fail("io_uring_submit_and_wait", error);
        unsigned n = io_uring_peek_batch_cqe(&ring, cqes, COMPLETIONS_PER_WAIT);
        for (unsigned i = 0; i < n; i++)
            complete(cqes[i]);
        io_uring_cq_advance(&ring, n);
    }
}
