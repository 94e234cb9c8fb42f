/* Stops a process, or keeps a CPU busy, at exact times.
 *
 * hinder stop PID AFTER FOR EVERY TIMES waits AFTER ms. Then it stops the process TIMES times, for FOR ms of every
 * EVERY ms.
 * hinder burn CPU FOR EVERY keeps a CPU busy for FOR ms of every EVERY ms.
 *
 * Both end at SIGTERM or after a minute. The process is never left stopped.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

typedef long long ns;
static const ns NS_PER_S = 1000000000, MINUTE_NS = 60000000000;
static volatile sig_atomic_t ended;

static void end(int number) {
    (void)number;
    ended = 1;
}

static ns now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_until(ns at_ns) {
    struct timespec at = {at_ns / NS_PER_S, at_ns % NS_PER_S};
    while (!ended && now_ns() < at_ns)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void stop(int pid, char **times) {
    ns at_ns = now_ns() + atof(times[0]) * 1e6, for_ns = atof(times[1]) * 1e6, every_ns = atof(times[2]) * 1e6;
    ns until_ns = at_ns + MINUTE_NS;
    for (int left = atoi(times[3]); left > 0 && !ended && at_ns < until_ns; left--, at_ns += every_ns) {
        sleep_until(at_ns);
        ns began_ns = now_ns();
        if (kill(pid, SIGSTOP) != 0)
            break;
        sleep_until(began_ns + for_ns);
        kill(pid, SIGCONT);
    }
}

static void burn(ns for_ns, ns every_ns) {
    ns at_ns = now_ns(), until_ns = at_ns + MINUTE_NS;
    for (; !ended && at_ns < until_ns; at_ns += every_ns) {
        sleep_until(at_ns);
        ns began_ns = now_ns();
        while (!ended && now_ns() < began_ns + for_ns)
            ;
    }
}

int main(int argc, char **argv) {
    struct sigaction ending = {.sa_handler = end};
    sigaction(SIGTERM, &ending, NULL);
    prctl(PR_SET_TIMERSLACK, 1);
    if (argc == 7 && strcmp(argv[1], "stop") == 0) {
        /* Real-time priority, where allowed, because other processes want the CPU, too. */
        struct sched_param first = {.sched_priority = 1};
        sched_setscheduler(0, SCHED_FIFO, &first);
        stop(atoi(argv[2]), argv + 3);
    } else if (argc == 5 && strcmp(argv[1], "burn") == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(atoi(argv[2]), &one);
        sched_setaffinity(0, sizeof one, &one);
        burn(atof(argv[3]) * 1e6, atof(argv[4]) * 1e6);
    } else {
        fprintf(stderr, "usage: hinder stop PID AFTER FOR EVERY TIMES | hinder burn CPU FOR EVERY\n");
        return 2;
    }
    return 0;
}
