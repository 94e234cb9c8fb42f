//! One ring: submissions, completions, its buffers, and its table of direct descriptors.
//!
//! All unsafe code for submitting is here: code that submits an operation on memory promises to
//! keep that memory until the completion.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use libc::msghdr;

use super::buffers::{Buffers, GROUP};
use super::queue::{Kernel, Queue};

/// The groups of buffers for messages, beside [`GROUP`] for streams.
pub(super) const DATAGRAMS_GROUP: u16 = 1;
pub(super) const STAMPED_GROUP: u16 = 2;
/// Completions taken at once: they share one reading of the clock, and the sends that they cause
/// take memory until they are handed over. One more system call costs nothing beside so many.
const BATCH_MOST: usize = 1024;
// A position among completions taken at once has 16 bits; some may have been taken before the wait.
const _: () = assert!(2 * BATCH_MOST <= u16::MAX as usize);

/// The kind of an operation; with the number of its socket it travels through the kernel as user
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    Recv = 1,
    Send,
    Connect,
    Accept,
    Waker,
    OtherRing,
    Ignored,
    /// A receive on a datagram socket.
    Datagrams,
    /// A send of datagrams; its number is its place among all of them.
    SendDatagrams,
    /// A datagram socket is ready for use.
    Ready,
    /// A receive with arrival times.
    RecvStamped,
}

impl Op {
    #[inline]
    pub(super) fn about(self, index: u32) -> u64 {
        (self as u64) << 32 | u64::from(index)
    }

    #[inline]
    pub(super) fn of(user_data: u64) -> (Op, u32) {
        let op = match user_data >> 32 {
            1 => Op::Recv,
            2 => Op::Send,
            3 => Op::Connect,
            4 => Op::Accept,
            5 => Op::Waker,
            6 => Op::OtherRing,
            8 => Op::Datagrams,
            9 => Op::SendDatagrams,
            10 => Op::Ready,
            11 => Op::RecvStamped,
            _ => Op::Ignored,
        };
        (op, user_data as u32)
    }
}

/// A socket's descriptor: the process's own, or a place in a ring's table.
#[derive(Debug)]
pub(super) enum Handle {
    Plain(OwnedFd),
    /// Both: its place in the table is the socket's number.
    Known(OwnedFd),
    Direct(u32),
}

impl Handle {
    #[inline]
    fn target(&self, index: u32) -> (i32, Flags) {
        match self {
            Handle::Plain(fd) => (fd.as_raw_fd(), Flags::empty()),
            Handle::Known(_) => (index as i32, Flags::FIXED_FILE),
            Handle::Direct(place) => (*place as i32, Flags::FIXED_FILE),
        }
    }

    /// The process's own descriptor.
    pub(super) fn own(&self) -> Option<&OwnedFd> {
        match self {
            Handle::Plain(fd) | Handle::Known(fd) => Some(fd),
            Handle::Direct(_) => None,
        }
    }
}

/// A ring of one thread. The kernel's side is dropped before the buffers that it fills.
pub(super) struct Ring<K: Kernel> {
    pub(super) queue: K::Queue,
    pub(super) buffers: Buffers,
    /// Operations that found the submission queue full, in order.
    backlog: VecDeque<squeue::Entry>,
    /// Places of the table that were never used, and places that are free again.
    fresh_places: Range<u32>,
    free_places: Vec<u32>,
    /// The kernel supports a [`WaitPolicy`] (Linux 6.12).
    pub(super) has_min_wait: bool,
}

/// The number of completions to wait for, and how long one of them may wait for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitPolicy {
    pub(super) least: usize,
    /// After this time a single one is enough; 0 for no such time.
    pub(super) within_us: u32,
}

impl<K: Kernel> Ring<K> {
    /// Creates a ring; the thread that enables it owns it. It fails if the kernel has no rings,
    /// forbids them, or lacks what this driver builds on (Linux 6.1).
    pub(super) fn new(kernel: &K) -> io::Result<Self> {
        let queue = kernel.queue()?;
        let buffers = Buffers::register(&queue)?;
        let has_min_wait = queue.waits_for_several();
        let (backlog, fresh_places, free_places) = (VecDeque::new(), 0..0, Vec::new());
        Ok(Ring { queue, buffers, backlog, fresh_places, free_places, has_min_wait })
    }

    /// Creates a table of direct descriptors, at most as many as the limit of open files. The first
    /// `known` places are for the sockets with these numbers.
    pub(super) fn make_table(&mut self, places: u32, known: u32) -> io::Result<()> {
        self.queue.register_files_sparse(places)?;
        self.fresh_places = known..places;
        Ok(())
    }

    /// Puts a descriptor into the place with its socket's number, where an operation finds it at
    /// less cost.
    pub(super) fn get_to_know(&mut self, fd: &OwnedFd, index: u32) -> io::Result<()> {
        self.queue.register_file(index, fd.as_raw_fd())
    }

    /// Moves a descriptor into the table; gives it back if there is no room.
    pub(super) fn adopt(&mut self, fd: OwnedFd) -> Result<Handle, OwnedFd> {
        let free = self.free_places.pop().or_else(|| self.fresh_places.next());
        let Some(place) = free else { return Err(fd) };
        match self.queue.register_file(place, fd.as_raw_fd()) {
            Ok(()) => Ok(Handle::Direct(place)),
            Err(_) => {
                self.free_places.push(place);
                Err(fd)
            }
        }
    }

    /// Closes the descriptor of the socket with this number, on which nothing is in flight.
    pub(super) fn close(&mut self, handle: Handle, index: u32) {
        let clear = |place| self.queue.register_file(place, -1).is_ok();
        match handle {
            Handle::Plain(_) => {}
            Handle::Known(_) => drop(clear(index)),
            // A place that cannot be cleared is not used again.
            Handle::Direct(place) if clear(place) => self.free_places.push(place),
            Handle::Direct(_) => {}
        }
    }

    /// Hands over the queued operations, and waits for completions, at most until the timeout. With
    /// a backlog it does not wait: an operation that has not been submitted cannot complete.
    pub(super) fn wait(&mut self, timeout_ns: Option<u64>, policy: WaitPolicy) -> io::Result<()> {
        if !self.backlog.is_empty() || timeout_ns == Some(0) {
            return self.poll();
        }
        settled(self.queue.wait(policy.least, policy.within_us, timeout_ns))
    }

    /// Hands over the queued operations and fetches completions, without waiting.
    pub(super) fn poll(&mut self) -> io::Result<()> {
        loop {
            settled(self.queue.poll())?;
            if !self.refill() {
                return Ok(());
            }
        }
    }

    /// Hands over the queued operations, if there are any.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        while self.queue.queued() > 0 {
            settled(self.queue.submit())?;
            if !self.refill() {
                break;
            }
        }
        Ok(())
    }

    /// Returns an error once the kernel has lost completions of this ring.
    pub(super) fn check_losses(&mut self) -> io::Result<()> {
        losses(self.queue.lost())
    }

    /// Takes completions, at most a batch of them.
    #[inline]
    pub(super) fn drain(&mut self, batch: &mut Vec<cqueue::Entry>) {
        self.queue.drain(batch, BATCH_MOST);
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        if !self.backlog.is_empty() || !self.enqueue(entry) {
            self.push_later(entry);
        }
    }

    /// Appends to the submission queue; false if it is full.
    #[inline]
    fn enqueue(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: an operation's memory outlives it. Each caller of `push` keeps what its operation
        // points to until the completion, and the backlog holds only operations that have not been
        // submitted.
        #[allow(unsafe_code)]
        unsafe {
            self.queue.push(entry)
        }
    }

    /// Queues an operation that found the queue full: submitting makes room. If the kernel takes
    /// nothing, the backlog keeps the operation, and the next wait submits it or returns the error.
    #[cold]
    fn push_later(&mut self, entry: &squeue::Entry) {
        self.backlog.push_back(entry.clone());
        let _ = self.submit();
    }

    /// Moves operations from the backlog to the submission queue; true if at least one found room.
    fn refill(&mut self) -> bool {
        let before = self.backlog.len();
        while let Some(entry) = self.backlog.pop_front() {
            if !self.enqueue(&entry) {
                self.backlog.push_front(entry);
                break;
            }
        }
        self.backlog.len() < before
    }

    /// Receives from a socket until cancelled.
    pub(super) fn recv(&mut self, handle: &Handle, index: u32) {
        let (fd, flags) = handle.target(index);
        let entry = opcode::RecvMulti::new(Fd(fd), GROUP).build();
        let select = Flags::BUFFER_SELECT;
        self.push(&entry.flags(flags | select).user_data(Op::Recv.about(index)));
    }

    /// Receives once from a socket, at most so many bytes.
    pub(super) fn recv_piece(&mut self, handle: &Handle, index: u32, most: usize) {
        let (fd, flags) = handle.target(index);
        let len = most.min(i32::MAX as usize) as u32;
        let entry = opcode::Recv::new(Fd(fd), std::ptr::null_mut(), len).buf_group(GROUP).build();
        let select = Flags::BUFFER_SELECT;
        self.push(&entry.flags(flags | select).user_data(Op::Recv.about(index)));
    }

    /// Receives from a socket as [`Ring::recv`] does, with arrival times. `wanted` must stay where
    /// it is until the completion.
    pub(super) fn recv_stamped(&mut self, handle: &Handle, index: u32, wanted: *const msghdr) {
        let (fd, flags) = handle.target(index);
        let group = STAMPED_GROUP;
        let entry = opcode::RecvMsgMulti::new(Fd(fd), wanted, group).build();
        self.push(&entry.flags(flags).user_data(Op::RecvStamped.about(index)));
    }

    /// Sends; the bytes must stay where they are until the completion.
    ///
    /// `MSG_WAITALL` is not used. With it, the kernel would send the rest of a short send by
    /// itself. If the peer reset in the middle, it would only report how much had left. The error
    /// would be spent then, and the next send and receive would report a close.
    #[inline]
    pub(super) fn send(&mut self, handle: &Handle, index: u32, bytes: &[u8]) {
        let (fd, flags) = handle.target(index);
        let message = rustix::net::SendFlags::NOSIGNAL.bits() as i32;
        let len = bytes.len().min(i32::MAX as usize) as u32;
        let entry = opcode::Send::new(Fd(fd), bytes.as_ptr(), len).flags(message).build();
        self.push(&entry.flags(flags).user_data(Op::Send.about(index)));
    }

    /// Receives from a datagram socket until cancelled; `wanted` must stay where it is until the
    /// completion.
    pub(super) fn recv_messages(&mut self, fd: &OwnedFd, index: u32, wanted: *const msghdr) {
        let fd = Fd(fd.as_raw_fd());
        let entry = opcode::RecvMsgMulti::new(fd, wanted, DATAGRAMS_GROUP).build();
        self.push(&entry.user_data(Op::Datagrams.about(index)));
    }

    /// Sends datagrams; what the header points to must stay where it is until the completion.
    #[inline]
    pub(super) fn send_message(&mut self, fd: &OwnedFd, place: u32, header: *const msghdr) {
        let entry = opcode::SendMsg::new(Fd(fd.as_raw_fd()), header).build();
        self.push(&entry.user_data(Op::SendDatagrams.about(place)));
    }

    /// Submits an operation that completes at once.
    pub(super) fn announce(&mut self, op: Op, index: u32) {
        self.push(&opcode::Nop::new().build().user_data(op.about(index)));
    }

    /// Ends our side; its completion comes as that of a send.
    pub(super) fn end_sending(&mut self, handle: &Handle, index: u32) {
        const WRITE: i32 = 1; // SHUT_WR
        let (fd, flags) = handle.target(index);
        let entry = opcode::Shutdown::new(Fd(fd), WRITE).build();
        self.push(&entry.flags(flags).user_data(Op::Send.about(index)));
    }

    /// Connects; the address must stay where it is until the completion.
    pub(super) fn connect(&mut self, handle: &Handle, index: u32, to: &socket2::SockAddr) {
        let (fd, flags) = handle.target(index);
        let entry = opcode::Connect::new(Fd(fd), to.as_ptr().cast(), to.len()).build();
        self.push(&entry.flags(flags).user_data(Op::Connect.about(index)));
    }

    /// Accepts connections until cancelled.
    pub(super) fn accept(&mut self, listener: &OwnedFd) {
        let flags = rustix::net::SocketFlags::CLOEXEC.bits() as i32;
        let entry = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).flags(flags).build();
        self.push(&entry.user_data(Op::Accept.about(0)));
    }

    /// Completes each time the descriptor becomes readable.
    pub(super) fn watch(&mut self, fd: &OwnedFd, op: Op) {
        const READABLE: u32 = 1; // POLLIN
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), READABLE).multi(true).build();
        self.push(&entry.user_data(op.about(0)));
    }

    /// Ends an operation early: its completion comes soon.
    pub(super) fn cancel(&mut self, op: Op, index: u32) {
        let entry = opcode::AsyncCancel::new(op.about(index)).build();
        let quiet = Flags::SKIP_SUCCESS;
        self.push(&entry.flags(quiet).user_data(Op::Ignored.about(0)));
    }
}

impl<K: Kernel> fmt::Debug for Ring<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = self.free_places.len() + self.fresh_places.len();
        out.debug_struct("Ring").field("free_places", &free).finish_non_exhaustive()
    }
}

impl<K: Kernel> Drop for Ring<K> {
    fn drop(&mut self) {
        // Nothing may fill buffers that are about to be freed. Cancelling every receive would do
        // it, too, but each cancel looks at all of them: 20 s at 100,000 connections.
        self.queue.unregister_buf_ring(GROUP);
        self.queue.unregister_buf_ring(DATAGRAMS_GROUP);
        self.queue.unregister_buf_ring(STAMPED_GROUP);
    }
}

/// The descriptor in the result of an accept, for the code that handles its completion.
pub(super) fn received_fd(result: i32) -> OwnedFd {
    // SAFETY: the kernel opens one descriptor for each completion of an accept and names it nowhere
    // else. Each completion is handled once, so this is its only owner.
    #[allow(unsafe_code)]
    unsafe {
        OwnedFd::from_raw_fd(result)
    }
}

/// The error for `count` lost completions. A completion that finds the queue full waits in the
/// kernel's memory (`IORING_FEAT_NODROP`). The kernel drops and counts only those for which it has
/// no memory. Then it is unknown what was sent or received, so the run has no result.
fn losses(count: u32) -> io::Result<()> {
    match count {
        0 => Ok(()),
        _ => Err(io::Error::other(format!("io_uring: out of memory, {count} completions lost"))),
    }
}

/// Treats an interrupted wait, a timeout, or a lack of room for completions as success: the ring
/// has not failed.
fn settled(submitted: io::Result<usize>) -> io::Result<()> {
    // A wait returns this once completions were lost (`IO_CHECK_CQ_DROPPED_BIT`).
    const EBADR: i32 = 53;
    const ETIME: i32 = 62;
    const EBUSY: i32 = 16;
    const EAGAIN: i32 = 11;
    const EINTR: i32 = 4;
    match submitted {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(ETIME | EBUSY | EAGAIN | EINTR) => Ok(()),
            Some(EBADR) => Err(io::Error::other("io_uring: out of memory, completions lost")),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::{COMPLETIONS, SUBMISSIONS};
    use super::*;
    use crate::kernel::Linux;

    // A ring that is not enabled takes no submission: the queue fills and cannot be emptied.
    #[test]
    fn operations_that_find_no_room_are_submitted_later_in_order() {
        const OPERATIONS: u64 = 3 * SUBMISSIONS as u64 + 7;
        let mut ring = Ring::new(&Linux).expect("a ring");
        for number in 0..OPERATIONS {
            ring.push(&opcode::Nop::new().build().user_data(number));
        }
        assert!(ring.poll().is_err(), "the error that keeps them from the kernel is returned");
        ring.queue.enable().expect("this thread owns it");
        ring.poll().expect("it takes submissions now");
        let mut batch = Vec::new();
        while ring.queue.completed() > 0 {
            ring.drain(&mut batch);
        }
        let numbers: Vec<u64> = batch.iter().map(cqueue::Entry::user_data).collect();
        assert_eq!(numbers, (0..OPERATIONS).collect::<Vec<_>>());
    }

    #[test]
    fn completions_that_find_no_room_are_taken_over_later() {
        const OPERATIONS: u64 = 2 * COMPLETIONS as u64 + 7;
        let mut ring = Ring::new(&Linux).expect("a ring");
        ring.queue.enable().expect("this thread owns it");
        for number in 0..OPERATIONS {
            ring.push(&opcode::Nop::new().build().user_data(number));
        }
        let mut batch = Vec::new();
        loop {
            ring.poll().expect("it takes submissions");
            if ring.queue.completed() == 0 {
                break;
            }
            ring.drain(&mut batch);
        }
        let numbers: Vec<u64> = batch.iter().map(cqueue::Entry::user_data).collect();
        assert_eq!(numbers, (0..OPERATIONS).collect::<Vec<_>>());
        assert!(ring.check_losses().is_ok());
    }

    #[test]
    fn lost_completions_are_an_error_and_those_that_wait_are_not() {
        assert!(losses(0).is_ok());
        assert!(losses(3).is_err_and(|error| error.to_string().contains("3 completions lost")));
        for (errno, fails) in [(53, true), (16, false), (62, false), (9, true)] {
            let settled = settled(Err(io::Error::from_raw_os_error(errno)));
            assert_eq!(settled.is_err(), fails, "errno {errno}");
        }
    }

    #[test]
    fn a_ring_does_not_wait_while_operations_have_not_been_submitted() {
        let mut ring = Ring::new(&Linux).expect("a ring");
        for number in 0..=u64::from(SUBMISSIONS) {
            ring.push(&opcode::Nop::new().build().user_data(number));
        }
        ring.queue.enable().expect("this thread owns it");
        let all = SUBMISSIONS as usize + 1;
        ring.wait(None, WaitPolicy { least: all, within_us: 0 }).expect("it takes them");
        assert_eq!(ring.queue.completed(), all);
    }
}
