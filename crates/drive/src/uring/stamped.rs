//! The sockets that are watched for the arrival of their bytes, and what their receives need.
//!
//! A watched socket receives by multishot `recvmsg`, whose buffers have room for the kernel's stamp
//! beside the bytes. The buffers are created for the first such socket: without any, all this takes
//! a few words.

use std::os::fd::OwnedFd;

use io_uring::cqueue;

use super::blocks::{Block, Blocks, STAMPED, Wanted};
use super::queue::Kernel;
use super::ring::Ring;
use crate::Clock;
use crate::arrivals::{CONTROL_BYTES, Stamps, watch};

/// The watched sockets.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// One bit for each place of a socket, which keeps the sockets themselves small.
    watched: Vec<u64>,
    blocks: Option<Blocks>,
    wanted: Wanted,
    stamps: Stamps,
    /// The arrival time of the bytes that are being handled.
    latest_ns: Option<u64>,
}

impl Arrivals {
    pub(super) fn new() -> Self {
        let (wanted, stamps) = (Wanted::new(0, CONTROL_BYTES), Stamps::default());
        Arrivals { watched: Vec::new(), blocks: None, wanted, stamps, latest_ns: None }
    }

    /// True if the socket with this number is watched.
    #[inline]
    pub(super) fn watches(&self, index: u32) -> bool {
        let (word, bit) = place(index);
        self.watched.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Watches a socket of this ring; false if the kernel provides no buffers for it.
    pub(super) fn watch<K: Kernel>(&mut self, ring: &Ring<K>, fd: &OwnedFd, index: u32) -> bool {
        if self.blocks.is_none() {
            self.blocks = Blocks::register(ring, STAMPED).ok();
        }
        if self.blocks.is_none() {
            return false;
        }
        watch(fd);
        let (word, bit) = place(index);
        if self.watched.len() <= word {
            self.watched.resize(word + 1, 0);
        }
        self.watched[word] |= bit;
        true
    }

    /// Ends the watch of the place with this number, which its socket has left.
    #[inline]
    pub(super) fn forget(&mut self, index: u32) {
        let (word, bit) = place(index);
        if let Some(bits) = self.watched.get_mut(word) {
            *bits &= !bit;
        }
    }

    /// The fields that a receive asks for.
    pub(super) fn wanted(&self) -> &libc::msghdr {
        self.wanted.header()
    }

    /// The buffer that a completion has filled, if any.
    pub(super) fn take(&self, entry: &cqueue::Entry) -> Option<Block> {
        self.blocks.as_ref()?.take(entry)
    }

    /// Notes that a receive has found no buffer.
    pub(super) fn note_shortage(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            blocks.ran_out = true;
        }
    }

    /// Provides more buffers if a batch has run out of them.
    #[inline]
    pub(super) fn grow_if_short(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            blocks.grow_if_short();
        }
    }

    /// Gives a buffer back to the kernel.
    pub(super) fn put_back(&mut self, block: &Block) {
        if let Some(blocks) = &mut self.blocks {
            blocks.put_back(block);
        }
    }

    /// Notes the arrival time of the bytes that are handled next, from the kernel's stamp. `now_ns`
    /// is the time of the batch that they came with.
    pub(super) fn note(&mut self, clock: Clock, now_ns: u64, stamp_ns: Option<u64>) {
        let arrived_ns = |stamp_ns| self.stamps.arrived_ns(clock, now_ns, stamp_ns);
        self.latest_ns = stamp_ns.and_then(arrived_ns);
    }

    /// Forgets the arrival time of bytes that have been handled.
    pub(super) fn forget_latest(&mut self) {
        self.latest_ns = None;
    }

    /// The arrival time of the bytes that are being handled, in ns of the driver's clock.
    pub(super) fn latest_ns(&self) -> Option<u64> {
        self.latest_ns
    }
}

/// The word of a number's bit, and the bit in it.
fn place(index: u32) -> (usize, u64) {
    (index as usize / 64, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Linux;
    use crate::uring::queue::Queue as _;

    #[test]
    fn each_place_is_watched_until_its_socket_has_left_it() {
        let ring = Ring::new(&Linux).expect("a ring");
        ring.queue.enable().expect("this thread owns it");
        let mut arrivals = Arrivals::new();
        let fd = OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        for index in [0, 63, 64, 1000] {
            assert!(!arrivals.watches(index));
            assert!(arrivals.watch(&ring, &fd, index));
        }
        arrivals.forget(64);
        arrivals.forget(5000);
        let watched: Vec<u32> = (0..2000).filter(|index| arrivals.watches(*index)).collect();
        assert_eq!(watched, [0, 63, 1000]);
        drop(ring);
    }
}
