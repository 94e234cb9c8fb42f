/* The minimal work of an HTTP/2 load generator on sockets: an io_uring loop that counts the ends of streams.
 *
 * bare_http2 PORT CONNECTIONS STREAMS MILLISECONDS opens CONNECTIONS to 127.0.0.1 and keeps STREAMS requests in flight
 * on each. For every stream that ends in the received bytes it sends a new request. It parses only the frame headers.
 * The windows are as large as possible and opened once. It prints the number of answers and the CPU time of the loop,
 * without connecting, as JSON.
 */
#include "bare_ring.h"

enum { HEADER = 9, FRAME_MOST = 64, HEADERS = 1, END_STREAM = 1, END_HEADERS = 4 };

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                              "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"    /* SETTINGS_INITIAL_WINDOW_SIZE */
                              "\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0"          /* WINDOW_UPDATE of the connection */
                              "\0\0\0\4\1\0\0\0\0";                          /* the acknowledgement, in advance */

static struct connection {
    unsigned stream;            /* the number of the next one */
    size_t skip;                /* bytes of the current frame still to come */
    size_t kept;                /* bytes of the next header received */
    unsigned char header[HEADER];
    char out[sizeof PREFACE + REQUEST_MOST * FRAME_MOST];
} connections[CONNECTIONS_MOST];
static char block[FRAME_MOST];
static size_t block_len;
/* The connections on which requests are due, and the number due on each. */
static int due[CONNECTIONS_MOST], ended[CONNECTIONS_MOST], due_len;

/* Sends `count` requests, after the `len` bytes that are already in the buffer. */
static void ask(int number, int count, size_t len) {
    struct connection *one = &connections[number];
    for (; count > 0; count--, one->stream += 2) {
        unsigned id = htonl(one->stream);
        char *frame = one->out + len;
        memcpy(frame, (char[]){0, 0, block_len, HEADERS, END_HEADERS | END_STREAM}, 5);
        memcpy(frame + 5, &id, 4);
        memcpy(frame + HEADER, block, block_len);
        len += HEADER + block_len;
    }
    send_bytes(number, one->out, len);
}

/* Returns the number of streams that end in these bytes. */
static int ends_in(struct connection *one, const unsigned char *bytes, size_t len) {
    int answers = 0;
    while (len > 0) {
        size_t take = one->skip < len ? one->skip : len;
        one->skip -= take, bytes += take, len -= take;
        if (one->skip > 0)
            break;
        take = HEADER - one->kept < len ? HEADER - one->kept : len;
        memcpy(one->header + one->kept, bytes, take);
        one->kept += take, bytes += take, len -= take;
        if (one->kept < HEADER)
            break;
        one->kept = 0;
        one->skip = one->header[0] << 16 | one->header[1] << 8 | one->header[2];
        answers += one->header[3] <= HEADERS && one->header[4] & END_STREAM; /* DATA is 0 */
    }
    return answers;
}

static int hear(struct io_uring_cqe *said, int depth) {
    (void)depth; /* one new request for each stream that ended */
    int number = said->user_data, id = received_in(said);
    int answers = ends_in(&connections[number], (unsigned char *)memory[id], said->res);
    give_back(said);
    if (answers > 0 && ended[number] == 0)
        due[due_len++] = number;
    ended[number] += answers;
    return answers;
}

/* The kernel has taken the bytes of earlier sends, so the buffers are free. */
static void answer_back(void) {
    while (due_len > 0) {
        int number = due[--due_len];
        ask(number, ended[number], 0);
        ended[number] = 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: bare_http2 PORT CONNECTIONS STREAMS MILLISECONDS\n");
        return 2;
    }
    int port = atoi(argv[1]), count = atoi(argv[2]), streams = atoi(argv[3]);
    check_load(count, streams);
    /* GET, / and http from the static table, and the authority as a literal. */
    int name = snprintf(block + 5, sizeof block - 5, "127.0.0.1:%d", port);
    memcpy(block, (char[]){0x82, 0x84, 0x86, 0x01, name}, 5);
    block_len = 5 + name;
    for (int number = 0; number < count; number++)
        files[number] = connect_to(port);
    set_up(count);
    long long cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int number = 0; number < count; number++) {
        connections[number].stream = 1;
        memcpy(connections[number].out, PREFACE, sizeof PREFACE - 1);
        receive(number);
        ask(number, streams, sizeof PREFACE - 1);
    }
    work(streams, atoll(argv[4]), cpu_ns);
    return 0;
}
