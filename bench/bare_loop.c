/* The minimal work of an HTTP load generator on sockets: an io_uring loop that sends and counts bytes.
 *
 * bare_loop PORT CONNECTIONS DEPTH MILLISECONDS opens CONNECTIONS to 127.0.0.1 and sends DEPTH requests over each. It
 * sends them again whenever as many bytes have come as DEPTH answers take. It does not parse answers, except the first
 * one for its length, and it times and checks nothing. It prints the number of answers and the CPU time of the loop,
 * without connecting, as JSON.
 */
#include "bare_ring.h"

static char requests[REQUEST_MOST * 64];
static size_t requests_len;
static size_t received[CONNECTIONS_MOST];

static void ask(int connection) {
    send_bytes(connection, requests, requests_len);
}

/* Returns the number of requests whose answers are now complete: 0 or depth. */
static int hear(struct io_uring_cqe *said, int depth) {
    static size_t answer_len;
    int connection = said->user_data, id = received_in(said);
    if (answer_len == 0) {
        /* All answers are as long as the first one, whose header is assumed to come in one piece. */
        const char *end = memmem(memory[id], said->res, "\r\n\r\n", 4);
        const char *body = memmem(memory[id], said->res, "ength: ", 7);
        if (end == NULL || body == NULL) {
            fprintf(stderr, "the first answer has no length\n");
            exit(1);
        }
        answer_len = end + 4 - memory[id] + atoi(body + 7);
    }
    give_back(said);
    received[connection] += said->res;
    if (received[connection] < answer_len * depth)
        return 0;
    received[connection] -= answer_len * depth;
    ask(connection);
    return depth;
}

static void answer_back(void) {
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: bare_loop PORT CONNECTIONS DEPTH MILLISECONDS\n");
        return 2;
    }
    int port = atoi(argv[1]), connections = atoi(argv[2]), depth = atoi(argv[3]);
    check_load(connections, depth);
    for (int number = 0; number < depth; number++)
        requests_len += snprintf(requests + requests_len, sizeof requests - requests_len,
                                 "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
    for (int connection = 0; connection < connections; connection++)
        files[connection] = connect_to(port);
    set_up(connections);
    long long cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int connection = 0; connection < connections; connection++) {
        receive(connection);
        ask(connection);
    }
    work(depth, atoll(argv[4]), cpu_ns);
    return 0;
}
