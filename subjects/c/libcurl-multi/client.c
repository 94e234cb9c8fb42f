/*
 * HTTP client on libcurl's multi interface: client CPUS [http2]. It has a multi handle for each pool, and an easy
 * handle for each request that is open at once.
 *
 * With `http2` it speaks HTTP/2 over TLS and accepts any certificate, and the multi handle limits the streams of a
 * connection. It uses TLS because the libcurl of Debian 12 cannot reuse an HTTP/2 connection in plain text.
 *
 * A multi handle belongs to one thread. So there are as many threads as CPUs, or fewer if there are fewer pools. Each
 * thread has one epoll instance for the sockets of all its pools (curl_multi_socket_action). The multi handle limits
 * the connections; a request that finds none free waits inside it. The time-out of a transfer is libcurl's, which
 * includes this wait.
 *
 * The protocol with trueload is in talk.h.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "talk.h"

enum {
    EVENTS_PER_WAIT = 512,
    KEPT_S_MAX = 1 << 30,          /* kept connections stay open as long as the program runs */
};

static const uint64_t NEVER = UINT64_MAX;

struct pool {
    CURLM *multi;
    struct loop *loop;
    uint64_t due_ns;        /* when libcurl wants to be called without a socket */
};

struct request {
    CURL *easy;
    struct pool *pool;
    uint64_t begun_ns;
};

struct loop {
    int epoll_fd;
    struct pool **pools;
    struct request **requests;
    size_t pools_len, requests_len;
    long open;
    struct tally tally;
};

static struct setup setup;
static bool http2;
static struct pool *pools;
static atomic_long left;    /* requests of the order that have not begun */

static void check(CURLMcode code)
{
    if (code != CURLM_OK)
        die("libcurl", curl_multi_strerror(code));
}

/* ---- one request ---- */

static size_t discard(char *bytes, size_t size, size_t count, void *request)
{
    (void)bytes;
    (void)request;
    return size * count;
}

static const char *class_of_connect(CURL *easy)
{
    long error = 0;

    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
    switch (error) {
    case 0:     /* nothing was tried: there was no descriptor for a socket */
        return "local.fds";
    case ECONNREFUSED:
        return "connect.refused";
    case EADDRNOTAVAIL:
        return "local.ports";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "connect.unreachable";
    case ECONNRESET:
        return "reset";
    default:
        return "other";
    }
}

/* timeout.first_byte: the request was sent, but no answer began. A time-out while connecting, or while waiting for a
   connection, is timeout.total. */
static const char *class_of_timeout(CURL *easy)
{
    curl_off_t sent_us = 0, answered_us = 0;

    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &answered_us);
    return sent_us && !answered_us ? "timeout.first_byte" : "timeout.total";
}

/* Returns the failure class, or NULL if the answer was as expected. */
static const char *class_of(CURL *easy, CURLcode code)
{
    long status = 0;

    switch (code) {
    case CURLE_OK:
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        return status == 200 ? NULL : "status";
    case CURLE_COULDNT_CONNECT:
        return class_of_connect(easy);
    case CURLE_OPERATION_TIMEDOUT:
        return class_of_timeout(easy);
    case CURLE_GOT_NOTHING:
        return "empty";
    case CURLE_HTTP2_STREAM:
        return "h2.stream";
    case CURLE_HTTP2:
        return "h2.goaway";
    case CURLE_PARTIAL_FILE:
        return "truncated";
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return "reset";
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return "framing";
    default:
        return "other";
    }
}

static bool begin(struct loop *loop, struct request *r)
{
    if (atomic_fetch_sub(&left, 1) <= 0)
        return false;
    loop->open++;
    r->begun_ns = now_ns();
    check(curl_multi_add_handle(r->pool->multi, r->easy));
    return true;
}

static void end(struct loop *loop, struct request *r, CURLcode code)
{
    const char *class = class_of(r->easy, code);

    if (class)
        tally_failed(&loop->tally, class, 1);
    else
        tally_ok(&loop->tally, now_ns() - r->begun_ns);
    check(curl_multi_remove_handle(r->pool->multi, r->easy));
    loop->open--;
}

/* ---- a loop, in a thread of its own ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *of_pool, void *known)
{
    struct pool *pool = of_pool;
    struct epoll_event event = {.data.u64 = (uint64_t)(pool - pools) << 32 | (uint32_t)fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(pool->loop->epoll_fd, EPOLL_CTL_DEL, fd, &event);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(pool->loop->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl", strerror(errno));
    check(curl_multi_assign(pool->multi, fd, pool));
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *of_pool)
{
    (void)multi;
    ((struct pool *)of_pool)->due_ns = timeout_ms < 0 ? NEVER : now_ns() + (uint64_t)timeout_ms * 1000000u;
    return 0;
}

/* Calls libcurl, and begins a new request for each one that has ended. */
static void act(struct loop *loop, struct pool *pool, curl_socket_t fd, int what)
{
    CURLMsg *message;
    int ignored;

    check(curl_multi_socket_action(pool->multi, fd, what, &ignored));
    while ((message = curl_multi_info_read(pool->multi, &ignored))) {
        struct request *r;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        end(loop, r, message->data.result);
        begin(loop, r);
    }
}

static void act_on_event(struct loop *loop, const struct epoll_event *event)
{
    int what = (event->events & EPOLLIN ? CURL_CSELECT_IN : 0) | (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (event->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

    act(loop, &pools[event->data.u64 >> 32], (curl_socket_t)(uint32_t)event->data.u64, what);
}

/* Calls the pools whose timers are due. Returns the milliseconds until the next timer, rounded up, or -1 if there is
   none. */
static int act_on_time(struct loop *loop)
{
    uint64_t now = now_ns(), next_ns = NEVER;

    for (size_t i = 0; i < loop->pools_len; i++) {
        struct pool *pool = loop->pools[i];
        if (pool->due_ns <= now) {
            pool->due_ns = NEVER;   /* before the call, which may set it anew */
            act(loop, pool, CURL_SOCKET_TIMEOUT, 0);
        }
        if (pool->due_ns < next_ns)
            next_ns = pool->due_ns;
    }
    if (next_ns == NEVER)
        return -1;
    return next_ns <= now ? 0 : (int)((next_ns - now + 999999u) / 1000000u);
}

static void *run(void *of_loop)
{
    struct loop *loop = of_loop;
    struct epoll_event events[EVENTS_PER_WAIT];

    for (size_t i = 0; i < loop->requests_len && begin(loop, loop->requests[i]); i++)
        ;
    while (loop->open > 0) {
        int wait_ms = act_on_time(loop);
        if (loop->open == 0)
            break;
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_WAIT, wait_ms);
        for (int i = 0; i < count; i++)
            act_on_event(loop, &events[i]);
    }
    return NULL;
}

/* ---- setting up, and the orders ---- */

static CURL *new_easy(struct request *r, struct curl_slist *headers)
{
    CURL *easy = curl_easy_init();

    if (!easy)
        die("libcurl", "no easy handle");
    curl_easy_setopt(easy, CURLOPT_URL, setup.url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     (long)(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)http2);   /* else each of the first requests opens a connection */
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, r);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)setup.timeout_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)setup.timeout_ms);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)KEPT_S_MAX);
    if (!setup.keep_alive) {
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    }
    return easy;
}

static void open_pool(struct pool *pool, struct loop *loop)
{
    pool->multi = curl_multi_init();
    if (!pool->multi)
        die("libcurl", "no multi handle");
    pool->loop = loop;
    pool->due_ns = NEVER;
    check(curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)setup.pool_size));
    check(curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)setup.pool_size));
    check(curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, (long)setup.pool_size));
    check(curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)(http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING)));
    check(curl_multi_setopt(pool->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)setup.pipelining));
    check(curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket));
    check(curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool));
    check(curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timer));
    check(curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool));
    loop->pools[loop->pools_len++] = pool;
}

/* Distributes the pools over the loops in turn, and the requests over the pools. */
static struct loop *open_loops(size_t loops_len)
{
    struct loop *loops = zeroed(loops_len, sizeof *loops);
    struct request *requests = zeroed((size_t)setup.concurrency, sizeof *requests);
    struct curl_slist *headers = curl_slist_append(NULL, "Connection: close");

    pools = zeroed((size_t)setup.pools, sizeof *pools);
    for (size_t i = 0; i < loops_len; i++) {
        loops[i].epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loops[i].epoll_fd < 0)
            die("epoll_create1", strerror(errno));
        loops[i].pools = zeroed((size_t)setup.pools, sizeof *loops[i].pools);
        loops[i].requests = zeroed((size_t)setup.concurrency, sizeof *loops[i].requests);
    }
    for (int i = 0; i < setup.pools; i++)
        open_pool(&pools[i], &loops[(size_t)i % loops_len]);
    for (int i = 0; i < setup.concurrency; i++) {
        struct request *r = &requests[i];
        r->pool = &pools[i % setup.pools];
        r->easy = new_easy(r, headers);
        r->pool->loop->requests[r->pool->loop->requests_len++] = r;
    }
    return loops;
}

static void perform(struct loop *loops, size_t loops_len, long number)
{
    pthread_t *threads = zeroed(loops_len, sizeof *threads);
    struct tally tally = {0};

    atomic_store(&left, number);
    uint64_t begun_ns = now_ns();
    for (size_t i = 1; i < loops_len; i++) {
        if (pthread_create(&threads[i], NULL, run, &loops[i]) != 0)
            die("pthread_create", "no thread");
    }
    run(&loops[0]);
    for (size_t i = 1; i < loops_len; i++)
        pthread_join(threads[i], NULL);
    uint64_t elapsed_ns = now_ns() - begun_ns;
    for (size_t i = 0; i < loops_len; i++)
        tally_add(&tally, &loops[i].tally);
    say_tally(&tally, elapsed_ns);
    free(threads);
}

int main(int argc, char **argv)
{
    long cpus = argc > 1 ? strtol(argv[1], NULL, 10) : 1, number;

    if (cpus < 1)
        die("usage", "client CPUS");
    http2 = argc > 2 && strcmp(argv[2], "http2") == 0;
    curl_global_init(CURL_GLOBAL_ALL);
    setup = hear_setup();
    if (setup.pipelining > 1 && !http2) {
        say(json_pack("{s:s}", "unsupported", "libcurl does not pipeline since its release 7.65"));
        return 0;
    }
    size_t loops_len = (size_t)(cpus < setup.pools ? cpus : setup.pools);
    struct loop *loops = open_loops(loops_len);
    say(json_pack("{s:b}", "ready", 1));
    while ((number = hear_order()) >= 0)
        perform(loops, loops_len, number);
    return 0;
}
