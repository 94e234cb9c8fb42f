/* A network path of known length: carries packets between the TUN devices of two network namespaces, with a delay.
 *
 * path NAMESPACE DEVICE NAMESPACE DEVICE MILLISECONDS delays packets by MILLISECONDS each way and keeps their order. It
 * prints `ready` when it has opened both devices, and runs until it is killed. Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

typedef long long ns;
enum { PACKETS = 8192, BYTES_MOST = 2048 };
static const ns NS_PER_S = 1000000000;

struct packet {
    ns due_ns;
    ssize_t length;
    char bytes[BYTES_MOST];
};
/* One direction: a ring of packets, all with the same delay. */
struct way {
    int from, to;
    size_t first, count;
    struct packet packets[PACKETS];
};
static struct way ways[2];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static ns now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int device(const char *name_space, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name_space);
    int space = open(path, O_RDONLY);
    if (space < 0 || setns(space, CLONE_NEWNET) < 0)
        fail(path);
    close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strncpy(wanted.ifr_name, name, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &wanted) < 0)
        fail("/dev/net/tun");
    return fd;
}

/* Takes packets into the ring. When the ring is full, packets wait in the kernel's queue. That queue drops packets when
 * it is full, as a router does. */
static void take(struct way *way, ns delay_ns) {
    while (way->count < PACKETS) {
        struct packet *last = &way->packets[(way->first + way->count) % PACKETS];
        last->length = read(way->from, last->bytes, BYTES_MOST);
        if (last->length <= 0)
            return;
        last->due_ns = now_ns() + delay_ns;
        way->count++;
    }
}

/* Forwards the packets that are due. Returns the time until the next one is due, or 1 s if there is none. */
static ns pass(struct way *way) {
    while (way->count > 0) {
        struct packet *first = &way->packets[way->first];
        ns left_ns = first->due_ns - now_ns();
        if (left_ns > 0)
            return left_ns;
        if (write(way->to, first->bytes, first->length) < 0)
            perror("a packet is lost");
        way->first = (way->first + 1) % PACKETS;
        way->count--;
    }
    return NS_PER_S;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: path NAMESPACE DEVICE NAMESPACE DEVICE MILLISECONDS\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    int one = device(argv[1], argv[2]), two = device(argv[3], argv[4]);
    ways[0].from = ways[1].to = one;
    ways[0].to = ways[1].from = two;
    ns delay_ns = atof(argv[5]) * 1e6;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        ns there_ns = pass(&ways[0]), back_ns = pass(&ways[1]);
        ns wait_ns = there_ns < back_ns ? there_ns : back_ns;
        struct timespec wait = {wait_ns / NS_PER_S, wait_ns % NS_PER_S};
        struct pollfd from[2] = {{.fd = one, .events = POLLIN}, {.fd = two, .events = POLLIN}};
        if (ppoll(from, 2, &wait, NULL) < 0)
            fail("poll");
        take(&ways[0], delay_ns);
        take(&ways[1], delay_ns);
    }
}
