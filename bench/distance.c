/* How far apart two CPUs are: what it costs to hand a cache line over from one to the other, and back.
 *
 * distance CPU CPU: prints the median of the rounds' means, in ns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A round is short against what a host takes a CPU away for: few of them meet that, and the median none. */
enum { ROUNDS = 21, HANDOVERS = 1000 };

static _Atomic int turn __attribute__((aligned(64)));

static void keep_to(const char *cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(cpu), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static void *hand_back(void *cpu) {
    keep_to(cpu);
    for (int i = 0; i < ROUNDS * HANDOVERS; i++) {
        while (turn != 1) {
        }
        turn = 0;
    }
    return NULL;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int by_size(const void *one, const void *two) {
    double left = *(const double *)one, right = *(const double *)two;
    return (left > right) - (left < right);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: distance CPU CPU\n");
        return 2;
    }
    double means_ns[ROUNDS];
    pthread_t other;
    keep_to(argv[1]);
    if (pthread_create(&other, NULL, hand_back, argv[2]) != 0) {
        fprintf(stderr, "no thread\n");
        return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double began_ns = now_ns();
        for (int i = 0; i < HANDOVERS; i++) {
            turn = 1;
            while (turn != 0) {
            }
        }
        means_ns[round] = (now_ns() - began_ns) / HANDOVERS;
    }
    pthread_join(other, NULL);
    qsort(means_ns, ROUNDS, sizeof *means_ns, by_size);
    printf("%.0f\n", means_ns[ROUNDS / 2]);
    return 0;
}
