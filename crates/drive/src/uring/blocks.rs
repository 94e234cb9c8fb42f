//! Buffers for messages: each receive fills one of them with a block and the kernel's report about
//! it.
//!
//! Buffers are used whole. If they were filled bit by bit, a block that met the end of one would be
//! cut short, or find no room for its report. When they run out, twice as many are provided, up to
//! a cap. All of them are one stretch of memory. Only the kernel touches it, and this thread between
//! a completion and giving the buffer back. A part that is never filled takes no memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue::{self, buffer_select};
use io_uring::types::BufRingEntry;

use super::memory::Mapping;
use super::queue::Kernel;
use super::ring::{DATAGRAMS_GROUP, Ring, STAMPED_GROUP};

/// The purpose of a group of these buffers, and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    group: u16,
    /// The most buffers there can be: a power of two. When they run out, receives begin anew after
    /// the batch.
    places: u16,
    /// Initial number of buffers.
    first: u16,
    /// Bytes of each buffer.
    bytes: usize,
}

/// For datagrams: each buffer holds the largest block and the kernel's report about it.
pub(super) const DATAGRAMS: Shape =
    Shape { group: DATAGRAMS_GROUP, places: 512, first: 512, bytes: 64 * 1024 + 4096 };
/// For streams received with arrival times: a longer part comes in several pieces. The buffers are
/// used in turn, so each takes at least a page of memory. If all connections are watched, hundreds
/// may have bytes at once, and a receive that begins anew costs more than one that goes on.
pub(super) const STAMPED: Shape =
    Shape { group: STAMPED_GROUP, places: 1024, first: 64, bytes: 16 * 1024 };

/// The buffers of one ring.
///
/// Invariant: none of its memory is unmapped before it is dropped, which its owner does after the
/// rings. Between its provision and its completion only the kernel writes to a buffer.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The places, which the kernel reads.
    shared: Mapping,
    memory: Mapping,
    shape: Shape,
    tail: u16,
    /// The number of buffers so far.
    provided: u16,
    /// A receive has found no buffer.
    pub(super) ran_out: bool,
}

/// A buffer that the kernel has filled, until it is given back.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    len: usize,
    id: u16,
}

impl Blocks {
    /// Provides the first buffers to a ring.
    pub(super) fn register<K: Kernel>(ring: &Ring<K>, shape: Shape) -> io::Result<Self> {
        let Shape { group, places, first, bytes } = shape;
        let shared = Mapping::new(usize::from(places) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(places) * bytes)?;
        let (tail, provided, ran_out) = (0, 0, false);
        let mut blocks = Blocks { shared, memory, shape, tail, provided, ran_out };
        ring.register_blocks(blocks.places().as_ptr() as u64, places, group)?;
        blocks.grow(first);
        Ok(blocks)
    }

    /// Provides more buffers if a batch has run out of them. Its own are given back by now.
    pub(super) fn grow_if_short(&mut self) {
        if std::mem::take(&mut self.ran_out) {
            self.grow((2 * self.provided).min(self.shape.places));
        }
    }

    /// Provides buffers until there are so many.
    fn grow(&mut self, count: u16) {
        (self.provided..count).for_each(|id| self.provide(id));
        self.provided = count;
        self.publish();
    }

    /// The buffer that a completion has filled, if any.
    #[inline]
    pub(super) fn take(&self, entry: &cqueue::Entry) -> Option<Block> {
        let id = buffer_select(entry.flags())?;
        let len = usize::try_from(entry.result()).unwrap_or(0).min(self.shape.bytes);
        Some(Block { start: self.start(id), len, id })
    }

    /// Gives a buffer back to the kernel.
    #[inline]
    pub(super) fn put_back(&mut self, block: &Block) {
        self.provide(block.id);
        self.publish();
    }

    fn places(&self) -> NonNull<BufRingEntry> {
        self.shared.start().cast()
    }

    fn start(&self, id: u16) -> NonNull<u8> {
        // SAFETY: the id is reduced below the number of places, so the result is inside the
        // mapping.
        #[allow(unsafe_code)]
        unsafe {
            self.memory.start().add(usize::from(id % self.shape.places) * self.shape.bytes)
        }
    }

    fn provide(&mut self, id: u16) {
        let place = usize::from(self.tail & (self.shape.places - 1));
        // SAFETY: the place is inside the mapping; the kernel reads it only up to the published
        // tail, and so does not read this one now.
        #[allow(unsafe_code)]
        let entry = unsafe { self.places().add(place).as_mut() };
        entry.set_addr(self.start(id).as_ptr() as u64);
        entry.set_len(self.shape.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies in the first entry of live places; only we write it, and all
        // accesses are atomic.
        #[allow(unsafe_code)]
        let tail = unsafe { &*BufRingEntry::tail(self.places().as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Block {
    /// The bytes that were filled in; valid until the block is given back.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the kernel has written these bytes, and writes here again only when the buffer is
        // provided anew (the invariant of `Blocks`). The driver, which owns the memory, does that
        // once, when it has handled the completion.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Linux;
    use crate::uring::queue::Queue as _;

    #[test]
    fn buffers_that_run_out_double_up_to_a_cap() {
        let ring = Ring::new(&Linux).expect("a ring");
        ring.queue.enable().expect("this thread owns it");
        let mut blocks = Blocks::register(&ring, STAMPED).expect("buffers");
        blocks.grow_if_short();
        assert_eq!(blocks.provided, STAMPED.first);
        for expected in [128, 256, 512, 1024, 1024] {
            blocks.ran_out = true;
            blocks.grow_if_short();
            assert_eq!((blocks.provided, blocks.ran_out), (expected, false));
        }
        drop(ring);
    }
}
