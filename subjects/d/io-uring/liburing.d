/**
 * The part of liburing that server.d uses. It declares the layouts of the kernel and of the library, which are
 * stable, and implements in D what the library's header has inline.
 *
 * Names and contents are those of liburing.h 2.3 and linux/io_uring.h. This file must not know what the ring is used
 * for.
 */
module liburing;

import core.atomic : atomicStore, MemoryOrder;

/// linux/io_uring.h: the operations.
enum IoUringOp : ubyte
{
    pollAdd = 6,
    timeout = 11,
    accept = 13,
    asyncCancel = 14,
    send = 26,
    recv = 27,
}

enum IOSQE_BUFFER_SELECT = 1 << 5;
enum IORING_ACCEPT_MULTISHOT = 1 << 0;
enum IORING_RECV_MULTISHOT = 1 << 1;
enum IORING_CQE_F_MORE = 1 << 1;
enum IORING_CQE_BUFFER_SHIFT = 16;
enum IORING_SETUP_CQSIZE = 1 << 3;
enum IORING_SETUP_SINGLE_ISSUER = 1 << 12;
enum IORING_SETUP_DEFER_TASKRUN = 1 << 13;

extern (C):

/// A submission queue entry. `opFlags` is the kernel's union of the flags of each operation.
struct io_uring_sqe
{
    IoUringOp opcode;
    ubyte flags;
    ushort ioprio;
    int fd;
    ulong off;
    ulong addr;
    uint len;
    uint opFlags;
    ulong user_data;
    ushort buf_group;
    ushort personality;
    int file_index;
    ulong addr3;
    ulong pad;
}

/// A completion queue entry.
struct io_uring_cqe
{
    ulong user_data;
    int res;
    uint flags;
}

/// linux/io_uring.h: the parameters of a ring. Only the library uses `sq_off` and `cq_off`.
struct io_uring_params
{
    uint sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd;
    uint[3] resv;
    ulong[5] sq_off;
    ulong[5] cq_off;
}

/// A buffer in a ring of buffers. In the first one `resv` holds the ring's tail.
struct io_uring_buf
{
    ulong addr;
    uint len;
    ushort bid;
    ushort resv;
}

/// The argument that registers a ring of buffers.
struct io_uring_buf_reg
{
    ulong ring_addr;
    uint ring_entries;
    ushort bgid;
    ushort flags;
    ulong[3] resv;
}

/// liburing.h: the submission queue.
struct io_uring_sq
{
    uint* khead, ktail, kring_mask, kring_entries, kflags, kdropped, array;
    io_uring_sqe* sqes;
    uint sqe_head, sqe_tail;
    size_t ring_sz;
    void* ring_ptr;
    uint[4] pad;
}

/// liburing.h: the completion queue.
struct io_uring_cq
{
    uint* khead, ktail, kring_mask, kring_entries, kflags, koverflow;
    io_uring_cqe* cqes;
    size_t ring_sz;
    void* ring_ptr;
    uint[4] pad;
}

/// liburing.h: a ring.
struct io_uring
{
    io_uring_sq sq;
    io_uring_cq cq;
    uint flags;
    int ring_fd;
    uint features;
    int enter_ring_fd;
    ubyte int_flags;
    ubyte[3] pad;
    uint pad2;
}

static assert(io_uring_sqe.sizeof == 64 && io_uring_sqe.user_data.offsetof == 32 && io_uring_sqe.buf_group.offsetof == 40);
static assert(io_uring_cqe.sizeof == 16 && io_uring_buf.sizeof == 16 && io_uring_buf_reg.sizeof == 40);
static assert(io_uring_params.sizeof == 120 && io_uring.sizeof == 216 && io_uring.cq.offsetof == 104);

nothrow @nogc:

int io_uring_queue_init_params(uint entries, io_uring* ring, io_uring_params* params);
int io_uring_register_buf_ring(io_uring* ring, io_uring_buf_reg* registration, uint flags);
io_uring_sqe* io_uring_get_sqe(io_uring* ring);
int io_uring_submit(io_uring* ring);
int io_uring_submit_and_wait(io_uring* ring, uint count);
uint io_uring_peek_batch_cqe(io_uring* ring, io_uring_cqe** cqes, uint count);

/// Marks `count` completions as seen, so that the kernel may reuse their entries.
void io_uring_cq_advance(io_uring* ring, uint count)
{
    atomicStore!(MemoryOrder.rel)(*cast(shared(uint)*) ring.cq.khead, *ring.cq.khead + count);
}

/// Gives a buffer (back) to the kernel, which may fill it. The ring's length must be a power of two.
void io_uring_buf_ring_give(io_uring_buf[] ring, void[] buffer, ushort id)
{
    immutable tail = ring[0].resv;
    auto place = &ring[tail & (ring.length - 1)];

    place.addr = cast(size_t) buffer.ptr;
    place.len = cast(uint) buffer.length;
    place.bid = id;
    atomicStore!(MemoryOrder.rel)(*cast(shared(ushort)*)&ring[0].resv, cast(ushort)(tail + 1));
}
