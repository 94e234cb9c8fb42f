//! The seam between this driver and the kernel: a pair of queues, and what is registered with them.
//!
//! The driver is compiled for each kind of queue, so that the seam costs nothing. Beside the kernel's own there is one that
//! plays the kernel from a seed (`crate::fake`): the same operations, completed in any order that the kernel may choose.

use std::fmt::Debug;
use std::io;
use std::os::fd::{OwnedFd, RawFd};

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use rustix::io::Errno;

use crate::kernel::Linux;

/// Operations handed over at once.
pub(super) const SUBMISSIONS: u32 = 1024;
/// Completions that find room without a detour.
pub(super) const COMPLETIONS: u32 = 8192;
/// Asks the kernel for completions, without waiting.
const GET_EVENTS: u32 = 1;

/// What the driver asks of the kernel beside its queues.
pub trait Kernel: Debug {
    /// The queues of one ring.
    type Queue: Queue;

    /// Makes a ring that the thread which enables it will own.
    ///
    /// # Errors
    /// When the kernel has no rings, forbids them, or lacks what the driver builds on.
    fn queue(&self) -> io::Result<Self::Queue>;

    /// Ends our side of a connection (`shutdown(2)`).
    fn end_sending(&self, fd: &OwnedFd);
}

/// The queues of one ring, and what is registered with it.
pub trait Queue {
    /// Makes the calling thread the owner.
    ///
    /// # Errors
    /// As all of those below: what the kernel says.
    fn enable(&self) -> io::Result<()>;

    /// True if the kernel can wait for several completions, but for one of them no longer than a given time (Linux 6.12).
    fn waits_for_several(&self) -> bool;

    /// True if a cleared place of the table lets go of its file at once (Linux 6.13; this tells 6.15). Before, it waited for
    /// all that was in flight, of other sockets as well.
    fn lets_go(&self) -> bool;

    /// Grants a table of direct descriptors.
    fn register_files_sparse(&self, places: u32) -> io::Result<()>;

    /// Puts a descriptor into a place of the table, or clears it (-1).
    fn register_file(&self, place: u32, fd: RawFd) -> io::Result<()>;

    /// Has an event descriptor written to for completions.
    fn register_eventfd(&self, fd: RawFd) -> io::Result<()>;

    /// Provides a group of buffers.
    ///
    /// # Safety
    /// At `address` there are `places` entries of a ring of buffers, and they and the buffers that they name stay mapped,
    /// and are not written to, until the group is unregistered.
    #[allow(unsafe_code)]
    unsafe fn register_buf_ring(
        &self,
        address: u64,
        places: u16,
        group: u16,
        flags: u16,
    ) -> io::Result<()>;

    /// Takes a group of buffers from the kernel; nothing is written to them from then on.
    fn unregister_buf_ring(&self, group: u16);

    /// Appends an operation; false when there is no room.
    ///
    /// # Safety
    /// What the operation points to stays where it is until its completion.
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool;

    /// Operations that have not been handed over.
    fn queued(&mut self) -> usize;

    /// Hands over what is queued; how many operations were taken.
    fn submit(&mut self) -> io::Result<usize>;

    /// The same, and takes what has completed.
    fn poll(&mut self) -> io::Result<usize>;

    /// The same, and waits for so many completions. After `within_us` any one will do (0: there is no such time), and after
    /// the timeout none.
    fn wait(&mut self, least: usize, within_us: u32, timeout_ns: Option<u64>) -> io::Result<usize>;

    /// Completions to take over.
    fn completed(&mut self) -> usize;

    /// Takes over so many completions at most.
    fn drain(&mut self, batch: &mut Vec<cqueue::Entry>, most: usize);

    /// Completions that the kernel has lost.
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
        // Of a connection that is gone the next receive tells.
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
        // SAFETY: the caller promises what this function asks for: places that stay until the group is unregistered.
        unsafe { self.submitter().register_buf_ring_with_flags(address, places, group, flags) }
    }

    fn unregister_buf_ring(&self, group: u16) {
        let _ = self.submitter().unregister_buf_ring(group);
    }

    #[inline]
    #[allow(unsafe_code)]
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: the caller promises what this function asks for: that the operation's memory stays.
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
        let queued = self.submission().len() as u32;
        // SAFETY: no argument is passed, so the kernel reads only the queue, whose operations keep their memory until the
        // completion (see `Queue::push`).
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

/// A filter of system calls may let a ring be made and not be used: better known now than in mid-run.
fn refuse_unusable(ring: &IoUring) -> io::Result<()> {
    match ring.submit() {
        // What the kernel itself says: the ring is not enabled yet.
        Err(error) if Errno::from_io_error(&error) != Some(Errno::BADFD) => Err(error),
        _ => Ok(()),
    }
}
