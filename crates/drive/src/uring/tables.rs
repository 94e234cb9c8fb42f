//! The descriptors that have a place in a ring's table.
//!
//! Descriptors that come near the limit of open files move there, and each full table starts
//! another ring. Sockets that send more than once are both in the first table and open files:
//! operations find them there without counting the users of the file.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::Uring;
use super::queue::{Kernel, Queue as _};
use super::ring::{Handle, Op, Ring};
use super::sockets::{Made, Socket};

/// Descriptors left to the rest of the process: nearer to the limit, sockets move into a table.
const FDS_KEPT: u64 = 256;
/// Places of a table, at most (the kernel's own limit is a million).
const TABLE_MOST: u64 = 1 << 20;
/// Places of the first table, at most. Every run makes it: more would waste the kernel's memory.
const FIRST_TABLE_MOST: u64 = 1 << 16;

/// The number of sockets that may be known by their numbers in the first table. The rest of it is
/// for descriptors that come near the limit of open files.
fn known_most(fds_most: u64) -> u32 {
    const SHARE: u64 = 4;
    const MOST: u64 = 4096;
    (fds_most / SHARE).min(MOST) as u32
}

impl<K: Kernel> Uring<K> {
    /// Gives a descriptor its place; one that comes near the limit of open files moves into a
    /// table.
    pub(super) fn add(&mut self, fd: OwnedFd, key: u32, made: Made) -> u32 {
        let scarce = fd.as_raw_fd() as u64 + FDS_KEPT >= self.fds_most;
        let (ring, handle) = if scarce { self.adopt(fd) } else { (0, Handle::Plain(fd)) };
        self.sockets.add(Socket { handle: Some(handle), ring, key, made, ..Socket::default() })
    }

    /// Makes the first table. Without it no socket is known, and scarce descriptors go to further
    /// rings.
    pub(super) fn make_first_table(&mut self) {
        let ring = &mut self.rings[0];
        let places = self.fds_most.min(FIRST_TABLE_MOST) as u32;
        let known = if ring.queue.lets_go() { known_most(self.fds_most) } else { 0 };
        if ring.make_table(places, known).is_ok() {
            self.known_most = known;
        }
    }

    /// Gives a socket that sends again a place in the first table.
    #[cold]
    pub(super) fn get_to_know(&mut self, index: u32) {
        let socket = self.sockets.at(index);
        if !std::mem::replace(&mut socket.sent_before, true) {
            return;
        }
        let plain = socket.handle.take_if(|handle| matches!(handle, Handle::Plain(_)));
        let Some(Handle::Plain(fd)) = plain else { return };
        let known = self.rings[0].get_to_know(&fd, index).is_ok();
        socket.handle = Some(if known { Handle::Known(fd) } else { Handle::Plain(fd) });
        if !known {
            self.known_most = 0;
        }
    }

    /// Moves a descriptor into the table of a ring with room, or of a new ring; otherwise it stays
    /// an open file.
    fn adopt(&mut self, mut fd: OwnedFd) -> (u8, Handle) {
        for (at, ring) in self.rings.iter_mut().enumerate() {
            match ring.adopt(fd) {
                Ok(handle) => return (at as u8, handle),
                Err(back) => fd = back,
            }
        }
        if self.add_ring().is_err() {
            return (0, Handle::Plain(fd));
        }
        let last = self.rings.len() - 1;
        match self.rings[last].adopt(fd) {
            Ok(handle) => (last as u8, handle),
            Err(fd) => (0, Handle::Plain(fd)),
        }
    }

    fn add_ring(&mut self) -> io::Result<()> {
        if self.rings.len() > usize::from(u8::MAX) {
            return Err(Errno::MFILE.into());
        }
        let mut ring = Ring::new(&self.kernel)?;
        ring.queue.enable()?;
        ring.make_table(self.fds_most.min(TABLE_MOST) as u32, 0)?;
        // Watching the ring itself is of no use: under `DEFER_TASKRUN` it becomes readable only when
        // its owner has entered it.
        ring.queue.register_eventfd(self.other_ring.as_raw_fd())?;
        if self.rings.len() == 1 {
            self.rings[0].watch(&self.other_ring, Op::OtherRing);
        }
        self.rings.push(ring);
        Ok(())
    }
}
