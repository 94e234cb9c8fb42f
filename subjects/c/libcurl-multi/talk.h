/*
 * The protocol between trueload and a client in C. The setup and the orders come on stdin, and the result of each
 * order goes to stdout as a line of JSON.
 *
 * jansson reads the setup strictly. Each thread gathers its results in its own tally; the tallies are added up when
 * all threads have ended. This file must not use an HTTP library.
 */
#ifndef TALK_H
#define TALK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CLASSES_MAX = 16,              /* more than the program has names of classes */
    LATENCIES_FIRST = 1024,        /* room in a tally, doubled whenever it is full */
    ORDER_BYTES_MAX = 64,
};

/* The first line: `concurrency` requests at once, over `pools` client objects with `pool_size` connections each. */
struct setup {
    const char *url;
    int concurrency, pools, pool_size, timeout_ms, pipelining, keep_alive;
};

/* The results of an order in one thread. Only answered requests have latencies. */
struct tally {
    uint64_t *latencies_ns;
    size_t ok, room;
    const char *classes[CLASSES_MAX];   /* names that live as long as the program */
    json_int_t failed[CLASSES_MAX];
};

static inline void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void *zeroed(size_t count, size_t size)
{
    void *all = calloc(count, size);

    if (!all)
        die("memory", "there is no more");
    return all;
}

/* ---- output ---- */

static inline void say(json_t *line)
{
    if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0 || putchar('\n') == EOF || fflush(stdout) != 0)
        die("stdout", "it takes nothing");
    json_decref(line);
}

static inline void tally_ok(struct tally *t, uint64_t latency_ns)
{
    if (t->ok == t->room) {
        t->room = t->room ? t->room * 2 : LATENCIES_FIRST;
        t->latencies_ns = realloc(t->latencies_ns, t->room * sizeof *t->latencies_ns);
        if (!t->latencies_ns)
            die("memory", "there is no more");
    }
    t->latencies_ns[t->ok++] = latency_ns;
}

static inline void tally_failed(struct tally *t, const char *class, json_int_t count)
{
    size_t i = 0;

    while (t->classes[i] && strcmp(t->classes[i], class) != 0)
        i++;
    if (i + 1 >= CLASSES_MAX)
        die("classes", "there are more than expected");
    t->classes[i] = class;
    t->failed[i] += count;
}

/* Adds `part` and empties it. */
static inline void tally_add(struct tally *t, struct tally *part)
{
    for (size_t i = 0; i < part->ok; i++)
        tally_ok(t, part->latencies_ns[i]);
    for (size_t i = 0; part->classes[i]; i++)
        tally_failed(t, part->classes[i], part->failed[i]);
    free(part->latencies_ns);
    memset(part, 0, sizeof *part);
}

static inline int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns a percentile of the latencies (nearest rank), in microseconds. */
static inline double at(const struct tally *t, size_t percent)
{
    return (double)t->latencies_ns[(percent * t->ok + 99) / 100 - 1] / 1e3;
}

static inline void say_tally(struct tally *t, uint64_t elapsed_ns)
{
    json_t *failed = json_object(), *figures = json_null();

    for (size_t i = 0; t->classes[i]; i++)
        json_object_set_new(failed, t->classes[i], json_integer(t->failed[i]));
    if (t->ok) {
        qsort(t->latencies_ns, t->ok, sizeof *t->latencies_ns, by_size);
        figures = json_pack("{s:f, s:f, s:f, s:f}", "p50", at(t, 50), "p90", at(t, 90), "p99", at(t, 99), "max", at(t, 100));
    }
    say(json_pack("{s:I, s:o, s:f, s:o}", "ok", (json_int_t)t->ok, "failed", failed,
                  "elapsed_s", (double)elapsed_ns / 1e9, "latency_us", figures));
    free(t->latencies_ns);
    memset(t, 0, sizeof *t);
}

/* ---- input ---- */

/* Reads the setup from the first line; ends the program if it is invalid. Its url lives as long as the program. */
static inline struct setup hear_setup(void)
{
    struct setup s;
    json_error_t error;
    char *line = NULL;
    size_t room = 0;

    if (getline(&line, &room, stdin) < 0)
        die("no setup", "there is no line");
    json_t *given = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (!given || json_unpack_ex(given, &error, JSON_STRICT, "{s:s, s:i, s:i, s:i, s:i, s:i, s:b}",
                                 "url", &s.url, "concurrency", &s.concurrency, "pools", &s.pools,
                                 "pool_size", &s.pool_size, "timeout_ms", &s.timeout_ms,
                                 "pipelining", &s.pipelining, "keep_alive", &s.keep_alive) != 0)
        die("no setup", error.text);
    if (s.concurrency < 1 || s.pools < 1 || s.pool_size < 1)
        die("no setup", "concurrency, pools and pool_size are at least 1");
    free(line);
    return s;
}

/* Returns the number of requests of the next order, or -1 at the end of the input. */
static inline long hear_order(void)
{
    char line[ORDER_BYTES_MAX], more;
    long number;

    if (!fgets(line, sizeof line, stdin))
        return -1;
    if (sscanf(line, "go %9ld %c", &number, &more) != 1 || number < 0)
        die("no order", line);
    return number;
}

#endif
