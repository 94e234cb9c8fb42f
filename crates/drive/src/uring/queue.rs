//! The seam between the io_uring driver and the kernel: a pair of queues, and what is registered
//! with them.
//!
//! The driver is compiled for each kind of queue, so the seam costs nothing. Besides the kernel's
//! own there is one that simulates the kernel from a seed (`crate::fake`): the same operations,
//! completed in any order that the kernel may choose.

use std::fmt::Debug;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use rustix::io::Errno;

use crate::kernel::Linux;

/// Operations handed over at once.
pub(super) const SUBMISSIONS: u32 = 1024;
/// Completions that find room in the queue itself.
pub(super) const COMPLETIONS: u32 = 8192;
/// Asks the kernel for completions, without waiting.
const GET_EVENTS: u32 = 1;

/// What the driver needs of the kernel beside its queues.
pub trait Kernel: Debug {
    /// The queues of one ring.
    type Queue: Queue;

    /// Creates a ring; the thread that enables it owns it. It fails if the kernel has no rings,
    /// forbids them, or lacks what the driver builds on.
    fn queue(&self) -> io::Result<Self::Queue>;

    /// Ends our side of a connection (`shutdown(2)`).
    fn end_sending(&self, fd: &OwnedFd);
}

/// The queues of one ring, and what is registered with it.
pub trait Queue {
    /// Makes the calling thread the owner of the ring.
    fn enable(&self) -> io::Result<()>;

    /// True if the kernel can wait for several completions, but no longer than a given time once it
    /// has one of them (Linux 6.12).
    fn waits_for_several(&self) -> bool;

    /// True if a cleared place of the table lets go of its file at once (Linux 6.13; the feature
    /// read here came with 6.15). Before, it waited for all operations in flight, of other sockets
    /// as well.
    fn lets_go(&self) -> bool;

    /// Creates a table of direct descriptors.
    fn register_files_sparse(&self, places: u32) -> io::Result<()>;

    /// Puts a descriptor into a place of the table, or clears it (-1).
    fn register_file(&self, place: u32, fd: RawFd) -> io::Result<()>;

    /// Makes the kernel write to an event descriptor when an operation completes.
    fn register_eventfd(&self, fd: RawFd) -> io::Result<()>;

    /// Provides a group of buffers.
    ///
    /// # Safety
    /// At `address` there are `places` entries of a ring of buffers. They and the buffers that they
    /// name must stay mapped, and not be written to, until the group is unregistered.
    #[allow(unsafe_code)]
    unsafe fn register_buf_ring(
        &self,
        address: u64,
        places: u16,
        group: u16,
        flags: u16,
    ) -> io::Result<()>;

    /// Takes a group of buffers back from the kernel; nothing is written to them from then on.
    fn unregister_buf_ring(&self, group: u16);

    /// Appends an operation; false if there is no room.
    ///
    /// # Safety
    /// The memory that the operation points to must stay where it is until the completion.
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool;

    /// Number of operations that have not been handed over.
    fn queued(&mut self) -> usize;

    /// Hands over the queued operations; returns how many the kernel took.
    fn submit(&mut self) -> io::Result<usize>;

    /// Hands over the queued operations, and fetches completions without waiting. Makes no system
    /// call if there is neither.
    fn poll(&mut self) -> io::Result<usize>;

    /// Hands over the queued operations, and waits for `least` completions. After `within_us` a
    /// single one is enough (0: no such time), and after the timeout none is needed.
    fn wait(&mut self, least: usize, within_us: u32, timeout_ns: Option<u64>) -> io::Result<usize>;

    /// Number of completions in the queue.
    fn completed(&mut self) -> usize;

    /// Takes at most `most` completions.
    fn drain(&mut self, batch: &mut Vec<cqueue::Entry>, most: usize);

    /// Number of completions that the kernel has lost.
    fn lost(&mut self) -> u32;
}

impl Kernel for Linux {
    type Queue = IoUring;

    fn queue(&self) -> io::Result<Self::Queue> {
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
        Ok(ring)
    }

    fn end_sending(&self, fd: &OwnedFd) {
        // If the connection is gone, the next receive reports it.
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
    }
}

impl Queue for IoUring {
    fn enable(&self) -> io::Result<()> {
        self.submitter().register_enable_rings()
    }

    fn waits_for_several(&self) -> bool {
        self.params().is_feature_min_timeout()
    }

    fn lets_go(&self) -> bool {
        self.params().is_feature_no_iowait()
    }

    fn register_files_sparse(&self, places: u32) -> io::Result<()> {
        self.submitter().register_files_sparse(places)
    }

    fn register_file(&self, place: u32, fd: RawFd) -> io::Result<()> {
        self.submitter().register_files_update(place, &[fd]).map(drop)
    }

    fn register_eventfd(&self, fd: RawFd) -> io::Result<()> {
        self.submitter().register_eventfd(fd)
    }

    #[allow(unsafe_code)]
    unsafe fn register_buf_ring(
        &self,
        address: u64,
        places: u16,
        group: u16,
        flags: u16,
    ) -> io::Result<()> {
        // SAFETY: the caller guarantees what this function requires: places that stay until the
        // group is unregistered.
        unsafe { self.submitter().register_buf_ring_with_flags(address, places, group, flags) }
    }

    fn unregister_buf_ring(&self, group: u16) {
        let _ = self.submitter().unregister_buf_ring(group);
    }

    #[inline]
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the caller guarantees what this function requires: that the operation's memory
        // stays.
        unsafe { self.submission().push(entry).is_ok() }
    }

    #[inline]
    fn queued(&mut self) -> usize {
        self.submission().len()
    }

    #[inline]
    fn submit(&mut self) -> io::Result<usize> {
        IoUring::submit(self)
    }

    #[inline]
    fn poll(&mut self) -> io::Result<usize> {
        let (queued, has_more) = {
            let submission = self.submission();
            // The kernel sets these flags while there are completions to fetch.
            (submission.len() as u32, submission.taskrun() || submission.cq_overflow())
        };
        if queued == 0 && !has_more {
            return Ok(0);
        }
        // SAFETY: no argument is passed, so the kernel reads only the queue, whose operations keep
        // their memory until the completion (see `Queue::push`).
        #[allow(unsafe_code)]
        unsafe {
            self.submitter().enter::<()>(queued, 0, GET_EVENTS, None)
        }
    }

    #[inline]
    fn wait(&mut self, least: usize, within_us: u32, timeout_ns: Option<u64>) -> io::Result<usize> {
        let submitter = self.submitter();
        let args = SubmitArgs::new().min_wait_usec(within_us);
        match timeout_ns {
            Some(ns) => {
                let (sec, nsec) = (ns / 1_000_000_000, ns % 1_000_000_000);
                let timespec = Timespec::new().sec(sec).nsec(nsec as u32);
                submitter.submit_with_args(least, &args.timespec(&timespec))
            }
            None => submitter.submit_with_args(least, &args),
        }
    }

    #[inline]
    fn completed(&mut self) -> usize {
        self.completion().len()
    }

    #[inline]
    fn drain(&mut self, batch: &mut Vec<cqueue::Entry>, most: usize) {
        batch.extend(self.completion().by_ref().take(most));
    }

    #[inline]
    fn lost(&mut self) -> u32 {
        self.completion().overflow()
    }
}

/// Refuses a ring that cannot be used. A system call filter may allow creating a ring but not using
/// it, which is better known now than in mid-run.
fn refuse_unusable(ring: &IoUring) -> io::Result<()> {
    match ring.submit() {
        // The kernel's own answer: the ring is not enabled yet.
        Err(error) if Errno::from_io_error(&error) != Some(Errno::BADFD) => Err(error),
        _ => Ok(()),
    }
}
