//! One ring: submissions, completions, its buffers, and its table of direct descriptors.
//!
//! Everything unsafe about submitting is here: whoever submits an operation on memory
//! promises to keep that memory until the completion.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use io_uring::squeue::Flags;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use super::buffers::{Buffers, GROUP};

/// Operations handed over at once.
const SUBMISSIONS: u32 = 1024;
/// Completions that find room without a detour.
const COMPLETIONS: u32 = 8192;
/// Completions taken over at once: with one reading of the clock, and until the sends that they lead to are handed over,
/// which take memory meanwhile. A system call more is nothing beside so many.
const BATCH_MOST: usize = 1024;
// A place among those taken over at once has 16 bits.
const _: () = assert!(BATCH_MOST <= u16::MAX as usize);
/// Asks the kernel for completions, without waiting.
const GET_EVENTS: u32 = 1;

/// What an operation was, and whose: travels through the kernel as user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    Recv = 1,
    Send,
    Connect,
    Accept,
    Bell,
    Stir,
    Ignored,
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
            5 => Op::Bell,
            6 => Op::Stir,
            _ => Op::Ignored,
        };
        (op, user_data as u32)
    }
}

/// A socket's descriptor: the process's own, or a place in a ring's table.
#[derive(Debug)]
pub(super) enum Handle {
    Plain(OwnedFd),
    /// Both: in the table its place has the number of the socket's.
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

/// A ring of one thread. The kernel's side goes before the buffers that it fills.
pub(super) struct Ring {
    ring: IoUring,
    pub(super) buffers: Buffers,
    /// Places of the table that were never used, and those that are free again.
    fresh_places: Range<u32>,
    free_places: Vec<u32>,
    /// The kernel knows of a [`Patience`] (Linux 6.12).
    pub(super) has_patience: bool,
}

/// For how many completions to wait, and for how long one of them may wait for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    pub(super) least: usize,
    /// After this any one will do; 0 for no such time.
    pub(super) within_us: u32,
}

impl Ring {
    /// A ring that the thread which calls [`Ring::enable`] will own.
    ///
    /// # Errors
    /// When the kernel has no rings, forbids them, or lacks what this driver builds on (Linux 6.1).
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .dontfork()
            .build(SUBMISSIONS)?;
        refuse_unusable(&ring)?;
        let buffers = Buffers::register(&ring)?;
        let has_patience = ring.params().is_feature_min_timeout();
        Ok(Ring { ring, buffers, fresh_places: 0..0, free_places: Vec::new(), has_patience })
    }

    /// Makes the calling thread the owner.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()
    }

    /// Grants itself a table of direct descriptors, as many as the limit of open files at most; the first `known` places
    /// are those of sockets with their numbers.
    pub(super) fn make_table(&mut self, places: u32, known: u32) -> io::Result<()> {
        self.ring.submitter().register_files_sparse(places)?;
        self.fresh_places = known..places;
        Ok(())
    }

    /// Puts a descriptor into the place of its socket's number, where an operation finds it for less.
    pub(super) fn get_to_know(&mut self, fd: &OwnedFd, index: u32) -> io::Result<()> {
        self.ring.submitter().register_files_update(index, &[fd.as_raw_fd()]).map(drop)
    }

    /// A cleared place lets go of its file at once (Linux 6.13; this tells 6.15). Before, it waited for all that was in
    /// flight, of other sockets as well.
    pub(super) fn lets_go(&self) -> bool {
        self.ring.params().is_feature_no_iowait()
    }

    /// Moves a descriptor into the table; gives it back when there is no room.
    pub(super) fn adopt(&mut self, fd: OwnedFd) -> Result<Handle, OwnedFd> {
        let free = self.free_places.pop().or_else(|| self.fresh_places.next());
        let Some(place) = free else { return Err(fd) };
        match self.ring.submitter().register_files_update(place, &[fd.as_raw_fd()]) {
            Ok(_) => Ok(Handle::Direct(place)),
            Err(_) => {
                self.free_places.push(place);
                Err(fd)
            }
        }
    }

    /// Closes a descriptor on which nothing is in flight, that of the socket with this number.
    pub(super) fn close(&mut self, handle: Handle, index: u32) {
        let clear = |place| self.ring.submitter().register_files_update(place, &[-1]).is_ok();
        match handle {
            Handle::Plain(_) => {}
            Handle::Known(_) => drop(clear(index)),
            // A place that cannot be cleared is not used again.
            Handle::Direct(place) if clear(place) => self.free_places.push(place),
            Handle::Direct(_) => {}
        }
    }

    /// Writes to an event descriptor when it has something to do. (Watching the ring itself is of no
    /// use: under `DEFER_TASKRUN` it becomes readable only when its owner has entered it.)
    pub(super) fn stirs(&self, fd: &OwnedFd) -> io::Result<()> {
        self.ring.submitter().register_eventfd(fd.as_raw_fd())
    }

    /// Hands over what is queued, and waits for completions, at most until the timeout.
    pub(super) fn wait(&self, timeout_ns: Option<u64>, patience: Patience) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let Patience { least, within_us } = patience;
        let args = SubmitArgs::new().min_wait_usec(within_us);
        let submitted = match timeout_ns {
            Some(0) => return self.poll(),
            Some(ns) => {
                let (sec, nsec) = (ns / 1_000_000_000, ns % 1_000_000_000);
                let timespec = Timespec::new().sec(sec).nsec(nsec as u32);
                submitter.submit_with_args(least, &args.timespec(&timespec))
            }
            None => submitter.submit_with_args(least, &args),
        };
        settled(submitted)
    }

    /// Hands over what is queued and takes what has completed, without waiting.
    pub(super) fn poll(&self) -> io::Result<()> {
        // SAFETY: no argument is passed; the submissions were vouched for when they were queued.
        #[allow(unsafe_code)]
        let submitted = unsafe {
            let queued = self.ring.submission_shared().len() as u32;
            self.ring.submitter().enter::<()>(queued, 0, GET_EVENTS, None)
        };
        settled(submitted)
    }

    /// Hands over what is queued.
    pub(super) fn submit(&self) -> io::Result<()> {
        settled(self.ring.submit())
    }

    /// How many completions there are to take over.
    pub(super) fn completed(&mut self) -> usize {
        self.ring.completion().len()
    }

    /// Takes over completions, a batch of them at most.
    #[inline]
    pub(super) fn drain(&mut self, batch: &mut Vec<cqueue::Entry>) {
        batch.extend(self.ring.completion().by_ref().take(BATCH_MOST));
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: each caller below keeps what its operation points to until the completion.
        #[allow(unsafe_code)]
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // Full: handing over makes room. What fails here is told by the next wait.
            if self.ring.submit().is_err() && self.poll().is_err() {
                return;
            }
        }
    }

    /// Hears a socket until told otherwise.
    pub(super) fn recv(&mut self, handle: &Handle, index: u32) {
        let (fd, flags) = handle.target(index);
        let entry = opcode::RecvMulti::new(Fd(fd), GROUP).build();
        let select = Flags::BUFFER_SELECT;
        self.push(&entry.flags(flags | select).user_data(Op::Recv.about(index)));
    }

    /// Sends; the bytes must stay where they are until the completion.
    ///
    /// Not by `MSG_WAITALL`: the kernel would send the rest of a short send by itself, and when the peer resets in the
    /// middle, tell only how much had left. The error is spent then, and the next send and receive tell of a close.
    #[inline]
    pub(super) fn send(&mut self, handle: &Handle, index: u32, bytes: &[u8]) {
        let (fd, flags) = handle.target(index);
        let message = rustix::net::SendFlags::NOSIGNAL.bits() as i32;
        let len = bytes.len().min(i32::MAX as usize) as u32;
        let entry = opcode::Send::new(Fd(fd), bytes.as_ptr(), len).flags(message).build();
        self.push(&entry.flags(flags).user_data(Op::Send.about(index)));
    }

    /// Ends our side; the completion comes as that of a send.
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

    /// Accepts until told otherwise.
    pub(super) fn accept(&mut self, listener: &OwnedFd) {
        let flags = rustix::net::SocketFlags::CLOEXEC.bits() as i32;
        let entry = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).flags(flags).build();
        self.push(&entry.user_data(Op::Accept.about(0)));
    }

    /// Tells each time the descriptor becomes readable.
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

impl fmt::Debug for Ring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = self.free_places.len() + self.fresh_places.len();
        out.debug_struct("Ring")
            .field("fd", &self.ring.as_raw_fd())
            .field("free_places", &free)
            .finish()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Nothing may still fill buffers that are about to be freed. (To cancel every receive would do
        // it, too, but looks at all of them for each: 20 s at 100,000 connections.)
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}

/// The descriptor that an accept has received.
pub(super) fn received_fd(result: i32) -> OwnedFd {
    // SAFETY: the kernel has just made it for us, and told nobody else.
    #[allow(unsafe_code)]
    unsafe {
        OwnedFd::from_raw_fd(result)
    }
}

/// A filter of system calls may let a ring be made and not be used: better known now than in mid-run.
fn refuse_unusable(ring: &IoUring) -> io::Result<()> {
    match ring.submit() {
        // What the kernel itself says: the ring is not enabled yet.
        Err(error) if Errno::from_io_error(&error) != Some(Errno::BADFD) => Err(error),
        _ => Ok(()),
    }
}

/// Being interrupted, late, or short of room for completions is no failure of the ring.
fn settled(submitted: io::Result<usize>) -> io::Result<()> {
    const ETIME: i32 = 62;
    const EBUSY: i32 = 16;
    const EAGAIN: i32 = 11;
    const EINTR: i32 = 4;
    match submitted {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(ETIME | EBUSY | EAGAIN | EINTR) => Ok(()),
            _ => Err(error),
        },
    }
}
