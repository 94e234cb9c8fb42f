/* Records when each TCP segment with data passed the loopback device, by the kernel's clock.
 *
 * witness PORT PACKETS FILE creates a ring (AF_PACKET, TPACKET_V3) with room for PACKETS segments to or from PORT,
 * prints "ready", and sleeps until its input ends. The kernel fills the ring meanwhile. The program reads nothing until
 * the end, so that it takes no CPU time from the programs being measured. Then it writes the segments to FILE, each as
 * a `struct segment`, and prints the numbers written, seen and dropped as JSON. Each time is that at which the sender's
 * call put the segment on the device. Only headers are kept. Needs root (CAP_NET_RAW); IPv4 only.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The IP and TCP headers without options. Only their fields are read, and the filter passes only packets that have
 * them. */
enum { HEAD_BYTES = 40, BLOCK_BYTES = 1 << 18, BLOCKS_LEAST = 16 };
/* Maximum size of a segment in the ring: ring header, address and packet headers, all aligned. TPACKET_V3 frames are
 * as long as they need to be, but the nominal frame size must still divide a block. */
enum { SLOT_BYTES = 192, FRAME_BYTES = 256 };
/* The kernel hands over a block that is not full after this time. The last block of a run always needs that. */
enum { RETIRE_MS = 200 };

/* Little-endian, as bench/witness.py reads it. `length` is that of the data, at most 65,535. */
struct segment {
    uint64_t ns;
    uint32_t sequence;
    uint16_t client_port;
    uint16_t length;
    uint8_t from_server;
    uint8_t unused[7];
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Attaches a filter that passes TCP segments with data, to or from the port. */
static void listen_to(int fd, unsigned port) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), /* the protocol */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 13),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* X: the length of the IP header */
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 2, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 8),
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 12), /* the length of the TCP header, in words, in the upper four bits */
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
        BPF_STMT(BPF_MISC | BPF_TAX, 0), /* X: the length of both headers */
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, HEAD_BYTES),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0)
        fail("the filter");
}

static int opened(unsigned port) {
    /* Not bound to a protocol yet, or the ring would keep packets that come before the filter is attached. */
    int fd = socket(AF_PACKET, SOCK_DGRAM, 0), version = TPACKET_V3, on = 1;
    if (fd < 0)
        fail("a packet socket (it takes root)");
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0)
        fail("TPACKET_V3");
    /* Makes the kernel stamp segments when they are put on the device, not when they reach the ring. */
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0)
        fail("times");
    listen_to(fd, port);
    return fd;
}

static char *ring_of(int fd, unsigned blocks) {
    struct tpacket_req3 how = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = blocks,
        .tp_frame_size = FRAME_BYTES,
        .tp_frame_nr = blocks * (BLOCK_BYTES / FRAME_BYTES),
        .tp_retire_blk_tov = RETIRE_MS,
    };
    if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &how, sizeof how) < 0)
        fail("the ring");
    char *ring = mmap(NULL, (size_t)blocks * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        fail("the ring's memory");
    return ring;
}

/* On loopback, a socket for one protocol gets each packet once, on input. A socket for all protocols gets it twice. */
static void begin(int fd) {
    struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
    where.sll_ifindex = if_nametoindex("lo");
    if (bind(fd, (struct sockaddr *)&where, sizeof where) < 0)
        fail("the loopback device");
}

static struct segment read_segment(const struct tpacket3_hdr *packet, unsigned port) {
    const uint8_t *ip = (const uint8_t *)packet + packet->tp_net;
    const unsigned ip_bytes = (ip[0] & 15) * 4;
    const uint8_t *tcp = ip + ip_bytes;
    const unsigned total = ip[2] << 8 | ip[3], tcp_bytes = (tcp[12] >> 4) * 4;
    const unsigned from = tcp[0] << 8 | tcp[1], to = tcp[2] << 8 | tcp[3];
    return (struct segment){
        .ns = packet->tp_sec * 1000000000ULL + packet->tp_nsec,
        .sequence = (uint32_t)tcp[4] << 24 | tcp[5] << 16 | tcp[6] << 8 | tcp[7],
        .client_port = from == port ? to : from,
        .length = total - ip_bytes - tcp_bytes,
        .from_server = from == port,
    };
}

/* Writes a block's segments and returns their number. */
static unsigned long write_block(const struct tpacket_block_desc *block, unsigned port, FILE *out) {
    const unsigned count = block->hdr.bh1.num_pkts;
    const char *at = (const char *)block + block->hdr.bh1.offset_to_first_pkt;
    for (unsigned number = 0; number < count; number++) {
        const struct tpacket3_hdr *packet = (const struct tpacket3_hdr *)at;
        struct segment segment = read_segment(packet, port);
        if (fwrite(&segment, sizeof segment, 1, out) != 1)
            fail("writing");
        at += packet->tp_next_offset;
    }
    return count;
}

/* Waits until the kernel has handed over the block that it was filling. Then writes all blocks up to the first that
 * the kernel still owns, and returns the number of segments. */
static unsigned long write_all(char *ring, unsigned blocks, unsigned port, FILE *out) {
    unsigned long written = 0;
    usleep(3 * RETIRE_MS * 1000);
    for (unsigned at = 0; at < blocks; at++) {
        struct tpacket_block_desc *block = (struct tpacket_block_desc *)(ring + (size_t)at * BLOCK_BYTES);
        if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            break;
        written += write_block(block, port, out);
    }
    return written;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: witness PORT PACKETS FILE\n");
        return 2;
    }
    const unsigned port = strtoul(argv[1], NULL, 10);
    const unsigned long packets = strtoul(argv[2], NULL, 10);
    const unsigned blocks = BLOCKS_LEAST + packets / (BLOCK_BYTES / SLOT_BYTES - 2);
    FILE *out = fopen(argv[3], "wb");
    if (!out)
        fail(argv[3]);
    int fd = opened(port);
    char *ring = ring_of(fd, blocks);
    begin(fd);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    unsigned long written = write_all(ring, blocks, port, out);
    struct tpacket_stats_v3 told = {0};
    socklen_t size = sizeof told;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &told, &size) < 0)
        fail("statistics");
    if (fclose(out) != 0)
        fail("writing");
    printf("{\"written\": %lu, \"heard\": %u, \"dropped\": %u}\n", written, told.tp_packets, told.tp_drops);
    return 0;
}
