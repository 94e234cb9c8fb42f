/* An HTTP/1.1 server with known behaviour: its options decide how long each answer takes.
 *
 * server [OPTION=VALUE]... listens on 127.0.0.1 (host=, port=). It prints its port, then `first` at the first request,
 * and its counts as JSON on SIGTERM. log=FILE receives, for each answer, the times at which the request arrived in the
 * kernel and the answer was written (monotonic clock), and the number of the connection. A late waking of this process
 * is therefore part of its service, as it is for the client. The server has one thread and uses epoll. It supports
 * keep-alive and pipelining, and answers on one connection keep their order. Options combine. Times are written 100us,
 * 5ms or 1.5s. The times of speed and freeze count from the first request.
 *
 *   fixed=5ms | exp=2ms | uniform=2ms:8ms   service time: constant, exponential with this mean, or uniform
 *   modes=1ms:50ms:0.1      service time: 1 ms, or 50 ms with probability 0.1
 *   serves=990              one queue for all connections, with this many answers a second
 *   chance=0.001:1s         with this probability an answer takes this long instead
 *   nth=500:4s              the answer to the 500th request takes this long instead
 *   slow=6:900ms            on the first six connections each answer takes this long
 *   starve=1                the first connection is never answered
 *   hang=1                  the first connection is answered once, and never again
 *   freeze=300ms:3s         the server stands still for the last 300 ms of every 3 s
 *   freeze=300ms:0:1s       the server stands still once for 300 ms, from 1 s on
 *   workers=2               each of two workers has every second connection, and stands still in turn
 *   pausing=3               freezes are those of the first three connections
 *   speed=0:0.5:3:0.5:3:1   pairs of a time in seconds and a speed, interpolated linearly
 *   noise=0.15:1s           in each second the speed is drawn anew, within 15 %
 *   seed=7                  another noise
 *   overload=100:0.5:3s     with serves: half speed from when more than 100 wait until 3 s after that
 *   changes=1000            after this many answers, answers have no body
 *   bare=1000               after this many answers, answers have no headers but Content-Length
 *   blind=1000              after this many answers, any path gets a good answer; before that, all but / get a 404
 *   predict=7ms             after the first request, an answer every 7 ms, at most one ahead of the requests
 *   idle=500ms:408          connections with no answer due are closed after this time, after a 408 (0: without one)
 *   work=100us              CPU time that each answer costs
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef long long ns;
enum { CONNECTIONS_MOST = 65536, EVENTS = 512, READ_BYTES = 65536, POINTS_MOST = 16, LINE_BYTES = 16 };
static const ns NS_PER_S = 1000000000;
static const char WHOLE[] = "HTTP/1.1 200 OK\r\nServer: redteam\r\nDate: Wed, 25 Nov 2026 06:00:00 GMT\r\n"
                            "Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
static const char BARE[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";
static const char EMPTY[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static const char MISSING[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
static const char LATE[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

static struct {
    double service_ns, other_ns, other_chance, rare_chance, serves_per_s, noise, overload_speed;
    ns work_ns, rare_ns, nth_ns, slow_ns, freeze_ns, freeze_every_ns, freeze_at_ns, predict_ns, idle_ns;
    ns noise_every_ns, overload_ns;
    char kind;
    long long nth, changes, bare, blind, slow, starve, hang, workers, pausing, seed, overload;
    int points, idle_status;
    double point_s[POINTS_MOST], point_speed[POINTS_MOST];
} how = {.kind = 'f', .changes = -1, .bare = -1, .blind = -1};

/* A request that waits for its answer. */
struct answer {
    ns due_ns, arrived_ns, order;
    unsigned generation;
    int fd;
    bool found;
};
struct logged {
    ns arrived_ns, written_ns;
    long long connection;
};
struct connection {
    unsigned generation;
    bool open;
    long long number, requests, answers, waiting;
    ns last_due_ns, active_ns;
    int matched, line_length;
    char line[LINE_BYTES];
};

static struct connection connections[CONNECTIONS_MOST];
static struct answer *heap;
static struct logged *entries;
static size_t heap_length, heap_room, logged_length, logged_room;
static long long requests, answers, accepted, unwritten, idle_closed;
static int polling, peak, now_open;
static ns first_ns, queue_free_ns, overloaded_until_ns;
static volatile sig_atomic_t ended;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static ns now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Returns a random number above 0 and at most 1 (xorshift64*). Every run draws the same numbers. */
static double chance(void) {
    static unsigned long long state = 88172645463325252ULL;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return ((state * 2685821657736338717ULL >> 11) + 1) / 9007199254740993.0;
}

static void *grown(void *memory, size_t *room, size_t length, size_t each) {
    if (length < *room)
        return memory;
    *room = *room ? 2 * *room : 4096;
    memory = realloc(memory, *room * each);
    return memory ? memory : (fail("memory"), NULL);
}

/* --- service times --- */

static double speed(ns since_ns) {
    double at_s = (double)since_ns / NS_PER_S;
    int next = 0;
    while (next < how.points && how.point_s[next] <= at_s)
        next++;
    if (next == 0)
        return 1;
    if (next == how.points)
        return how.point_speed[next - 1];
    double part = (at_s - how.point_s[next - 1]) / (how.point_s[next] - how.point_s[next - 1]);
    return how.point_speed[next - 1] + part * (how.point_speed[next] - how.point_speed[next - 1]);
}

/* Returns the noise of a time: the same number throughout each step (splitmix64). */
static double noise(ns since_ns) {
    if (how.noise_every_ns == 0)
        return 1;
    unsigned long long mixed = (how.seed + 1) * 0x9e3779b97f4a7c15ULL + since_ns / how.noise_every_ns;
    for (int round = 0; round < 2; round++) {
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
    }
    return 1 + how.noise * (2 * ((mixed >> 11) / 9007199254740992.0) - 1);
}

/* Returns the time itself, or the end of the freeze in which it lies. */
static ns thawed(const struct connection *from, ns at_ns) {
    ns since_ns = at_ns - first_ns, every_ns = how.freeze_every_ns;
    if (how.pausing && from->number >= how.pausing)
        return at_ns;
    if (how.workers > 0)
        since_ns += every_ns * (from->number % how.workers) / how.workers;
    if (how.freeze_ns == 0)
        return at_ns;
    if (every_ns == 0) {
        bool frozen = since_ns >= how.freeze_at_ns && since_ns < how.freeze_at_ns + how.freeze_ns;
        return frozen ? first_ns + how.freeze_at_ns + how.freeze_ns : at_ns;
    }
    ns within_ns = since_ns % every_ns;
    return within_ns < every_ns - how.freeze_ns ? at_ns : at_ns - within_ns + every_ns;
}

static ns service_ns(const struct connection *from) {
    double taken_ns = how.service_ns;
    if (how.kind == 'e')
        taken_ns *= -log(chance());
    if (how.kind == 'u')
        taken_ns += chance() * (how.other_ns - how.service_ns);
    if (how.kind == 'm' && chance() <= how.other_chance)
        taken_ns = how.other_ns;
    if (how.rare_ns && chance() <= how.rare_chance)
        taken_ns = how.rare_ns;
    if (how.nth && requests == how.nth)
        taken_ns = how.nth_ns;
    if (from->number < how.slow)
        taken_ns = how.slow_ns;
    return taken_ns;
}

/* Returns the speed of a queue at the time at which it takes a request that has arrived now. */
static double queue_speed(ns at_ns, ns begin_ns) {
    if (how.overload && (begin_ns - at_ns) * how.serves_per_s > (double)how.overload * NS_PER_S)
        overloaded_until_ns = begin_ns + how.overload_ns;
    double faster = how.points ? speed(begin_ns - first_ns) : 1;
    return faster * noise(begin_ns - first_ns) * (begin_ns <= overloaded_until_ns ? how.overload_speed : 1);
}

static ns due_ns(const struct connection *from, ns at_ns) {
    double faster = how.points ? speed(at_ns - first_ns) : 1;
    ns begin_ns = thawed(from, at_ns), taken_ns = service_ns(from) / faster;
    if (how.serves_per_s > 0) {
        begin_ns = thawed(from, begin_ns > queue_free_ns ? begin_ns : queue_free_ns);
        begin_ns += NS_PER_S / (how.serves_per_s * queue_speed(at_ns, begin_ns));
        queue_free_ns = begin_ns;
    }
    return thawed(from, begin_ns + taken_ns);
}

/* --- the heap of answers to write, the soonest first --- */

static bool sooner(const struct answer *one, const struct answer *two) {
    return one->due_ns < two->due_ns || (one->due_ns == two->due_ns && one->order < two->order);
}

static void put(struct answer this) {
    static ns order;
    heap = grown(heap, &heap_room, heap_length + 1, sizeof *heap);
    size_t at = heap_length++;
    for (this.order = order++; at > 0 && sooner(&this, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = this;
}

static struct answer take(void) {
    struct answer first = heap[0], last = heap[--heap_length];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < heap_length) {
        child += child + 1 < heap_length && sooner(&heap[child + 1], &heap[child]);
        if (!sooner(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* --- connections --- */

static void drop(int fd) {
    close(fd);
    connections[fd].open = false;
    connections[fd].generation++;
    now_open--;
}

static void accept_all(int listening) {
    int fd, on = 1;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= CONNECTIONS_MOST)
            fail("too many connections");
        unsigned generation = connections[fd].generation;
        connections[fd] = (struct connection){generation, .open = true, .number = accepted++, .active_ns = now_ns()};
        peak = ++now_open > peak ? now_open : peak;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(polling, EPOLL_CTL_ADD, fd, &wanted);
    }
}

static void hear(int fd, bool found, ns arrived_ns, ns at_ns) {
    struct connection *from = &connections[fd];
    if (requests++ == 0) {
        first_ns = at_ns;
        printf("first\n");
    }
    from->requests++;
    from->active_ns = at_ns;
    if (from->number < how.starve || (from->number < how.hang && from->requests > 1) ||
        (how.predict_ns && from->requests > 1))
        return;
    ns due = due_ns(from, at_ns);
    from->last_due_ns = due > from->last_due_ns ? due : from->last_due_ns;
    from->waiting++;
    put((struct answer){from->last_due_ns, arrived_ns, 0, from->generation, fd, found});
}

/* Returns when the kernel received the bytes that were read at this time; that time if it does not say. */
static ns arrival(struct msghdr *received, ns at_ns) {
    struct timespec real, stamp;
    clock_gettime(CLOCK_REALTIME, &real);
    for (struct cmsghdr *said = CMSG_FIRSTHDR(received); said; said = CMSG_NXTHDR(received, said))
        if (said->cmsg_level == SOL_SOCKET && said->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&stamp, CMSG_DATA(said), sizeof stamp);
            return at_ns - ((real.tv_sec - stamp.tv_sec) * NS_PER_S + real.tv_nsec - stamp.tv_nsec);
        }
    return at_ns;
}

static void read_from(int fd) {
    static char bytes[READ_BYTES], control[CMSG_SPACE(sizeof(struct timespec))];
    static const char end[] = "\r\n\r\n";
    struct connection *from = &connections[fd];
    struct iovec into = {bytes, sizeof bytes};
    struct msghdr received = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(fd, &received, 0);
    if (length < 0 && errno == EAGAIN)
        return;
    if (length <= 0) {
        drop(fd);
        return;
    }
    ns at_ns = now_ns(), arrived_ns = arrival(&received, at_ns);
    for (ssize_t at = 0; at < length; at++) {
        if (from->line_length < LINE_BYTES)
            from->line[from->line_length++] = bytes[at];
        from->matched = bytes[at] == end[from->matched] ? from->matched + 1 : bytes[at] == '\r';
        if (from->matched == 4) {
            hear(fd, memcmp(from->line, "GET / ", 6) == 0, arrived_ns, at_ns);
            from->matched = from->line_length = 0;
        }
    }
}

static void say(int fd, const char *bytes) {
    ssize_t length = strlen(bytes);
    if (send(fd, bytes, length, MSG_NOSIGNAL) != length)
        unwritten++;
}

static void write_answer(const struct answer *this) {
    struct connection *to = &connections[this->fd];
    if (!to->open || to->generation != this->generation)
        return;
    for (ns until_ns = how.work_ns ? now_ns() + how.work_ns : 0; until_ns && now_ns() < until_ns;)
        ;
    if (!this->found && (how.blind < 0 || answers < how.blind))
        say(this->fd, MISSING);
    else if (how.changes >= 0 && answers >= how.changes)
        say(this->fd, EMPTY);
    else if (how.bare >= 0 && answers >= how.bare)
        say(this->fd, BARE);
    else
        say(this->fd, WHOLE);
    answers++;
    to->answers++;
    to->waiting -= to->waiting > 0;
    to->active_ns = now_ns();
    entries = grown(entries, &logged_room, logged_length + 1, sizeof *entries);
    entries[logged_length++] = (struct logged){this->arrived_ns, to->active_ns, to->number};
    if (how.predict_ns == 0)
        return;
    /* Schedules the next answer, whether or not it is asked for. */
    struct answer next = *this;
    next.due_ns += how.predict_ns;
    next.arrived_ns = to->active_ns;
    put(next);
}

static void write_due(ns at_ns) {
    while (heap_length > 0 && heap[0].due_ns <= at_ns) {
        struct answer this = take();
        struct connection *to = &connections[this.fd];
        if (how.predict_ns && to->open && to->generation == this.generation && to->answers > to->requests) {
            this.due_ns += how.predict_ns;
            put(this);
            continue;
        }
        write_answer(&this);
    }
}

static void close_idle(ns at_ns) {
    for (int fd = 0; how.idle_ns && fd < CONNECTIONS_MOST; fd++) {
        struct connection *this = &connections[fd];
        if (!this->open || this->waiting || at_ns - this->active_ns < how.idle_ns)
            continue;
        if (how.idle_status)
            say(fd, LATE);
        idle_closed++;
        drop(fd);
    }
}

/* --- options, start and end --- */

static double time_ns(const char **at) {
    char *end;
    double value = strtod(*at, &end) * NS_PER_S;
    if (strncmp(end, "ms", 2) == 0)
        value /= 1e3, end += 2;
    else if (strncmp(end, "us", 2) == 0)
        value /= 1e6, end += 2;
    else
        end += *end == 's';
    *at = end + (*end == ':');
    return value;
}

static double number(const char **at) {
    char *end;
    double value = strtod(*at, &end);
    *at = end + (*end == ':');
    return value;
}

static bool set(const char *name, const char *at) {
    if (strcmp(name, "fixed") == 0 || strcmp(name, "exp") == 0 || strcmp(name, "uniform") == 0)
        how.kind = *name, how.service_ns = time_ns(&at), how.other_ns = *at ? time_ns(&at) : 0;
    else if (strcmp(name, "modes") == 0)
        how.kind = 'm', how.service_ns = time_ns(&at), how.other_ns = time_ns(&at), how.other_chance = number(&at);
    else if (strcmp(name, "serves") == 0)
        how.serves_per_s = number(&at);
    else if (strcmp(name, "chance") == 0)
        how.rare_chance = number(&at), how.rare_ns = time_ns(&at);
    else if (strcmp(name, "nth") == 0)
        how.nth = number(&at), how.nth_ns = time_ns(&at);
    else if (strcmp(name, "slow") == 0)
        how.slow = number(&at), how.slow_ns = time_ns(&at);
    else if (strcmp(name, "starve") == 0)
        how.starve = number(&at);
    else if (strcmp(name, "hang") == 0)
        how.hang = number(&at);
    else if (strcmp(name, "freeze") == 0)
        how.freeze_ns = time_ns(&at), how.freeze_every_ns = time_ns(&at), how.freeze_at_ns = *at ? time_ns(&at) : 0;
    else if (strcmp(name, "workers") == 0)
        how.workers = number(&at);
    else if (strcmp(name, "speed") == 0)
        for (; *at && how.points < POINTS_MOST; how.points++)
            how.point_s[how.points] = number(&at), how.point_speed[how.points] = number(&at);
    else if (strcmp(name, "pausing") == 0)
        how.pausing = number(&at);
    else if (strcmp(name, "noise") == 0)
        how.noise = number(&at), how.noise_every_ns = time_ns(&at);
    else if (strcmp(name, "seed") == 0)
        how.seed = number(&at);
    else if (strcmp(name, "overload") == 0)
        how.overload = number(&at), how.overload_speed = number(&at), how.overload_ns = *at ? time_ns(&at) : 0;
    else if (strcmp(name, "changes") == 0)
        how.changes = number(&at);
    else if (strcmp(name, "bare") == 0)
        how.bare = number(&at);
    else if (strcmp(name, "blind") == 0)
        how.blind = number(&at);
    else if (strcmp(name, "predict") == 0)
        how.predict_ns = time_ns(&at);
    else if (strcmp(name, "idle") == 0)
        how.idle_ns = time_ns(&at), how.idle_status = number(&at);
    else if (strcmp(name, "work") == 0)
        how.work_ns = time_ns(&at);
    else
        return false;
    return true;
}

static int listen_on(const char *host, int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t length = sizeof at;
    inet_pton(AF_INET, host, &at.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 16384) < 0)
        fail("listen");
    getsockname(fd, (struct sockaddr *)&at, &length);
    printf("%d\n", ntohs(at.sin_port));
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd};
    polling = epoll_create1(0);
    epoll_ctl(polling, EPOLL_CTL_ADD, fd, &wanted);
    return fd;
}

static void end(int number) {
    (void)number;
    ended = 1;
}

static void write_log(const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(entries, sizeof *entries, logged_length, file) != logged_length || fclose(file) != 0)
        fail(path);
}

static void serve(int listening) {
    static struct epoll_event events[EVENTS];
    ns looked_ns = 0;
    while (!ended) {
        ns at_ns = now_ns(), wait_ns = how.idle_ns ? 20000000 : 200000000;
        if (heap_length > 0 && heap[0].due_ns - at_ns < wait_ns)
            wait_ns = heap[0].due_ns > at_ns ? heap[0].due_ns - at_ns : 0;
        struct timespec wait = {wait_ns / NS_PER_S, wait_ns % NS_PER_S};
        int count = epoll_pwait2(polling, events, EVENTS, &wait, NULL);
        for (int at = 0; at < count; at++) {
            if (events[at].data.fd == listening)
                accept_all(listening);
            else
                read_from(events[at].data.fd);
        }
        at_ns = now_ns();
        write_due(at_ns);
        if (at_ns - looked_ns > 10000000) {
            close_idle(at_ns);
            looked_ns = at_ns;
        }
    }
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1", *log_path = NULL;
    int port = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int at = 1; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        if (value == NULL)
            return fprintf(stderr, "%s: not NAME=VALUE\n", argv[at]), 2;
        *value++ = 0;
        if (strcmp(argv[at], "host") == 0)
            host = value;
        else if (strcmp(argv[at], "port") == 0)
            port = atoi(value);
        else if (strcmp(argv[at], "log") == 0)
            log_path = value;
        else if (!set(argv[at], value))
            return fprintf(stderr, "%s: no such option\n", argv[at]), 2;
    }
    signal(SIGTERM, end);
    prctl(PR_SET_TIMERSLACK, 1);
    serve(listen_on(host, port));
    if (log_path != NULL)
        write_log(log_path);
    printf("{\"requests\": %lld, \"answers\": %lld, \"connections\": %lld, \"peak\": %d, \"first_ns\": %lld, "
           "\"idle_closed\": %lld, \"unwritten\": %lld}\n",
           requests, answers, accepted, peak, first_ns, idle_closed, unwritten);
    return 0;
}
