//! Buffers for messages: each receive fills one of them with what the kernel tells about a block, and the block.
//!
//! They are used whole: a block that met the end of a buffer filled bit by bit would be cut short, or find no room for what
//! is told about it. All of them are one
//! stretch of memory that nobody touches but the kernel, and this thread between a completion and giving the buffer back;
//! what is never filled takes no memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue::{self, buffer_select};
use io_uring::types::BufRingEntry;

use super::memory::Mapping;
use super::queue::Kernel;
use super::ring::Ring;

/// What a group of these buffers is for, and how large it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) group: u16,
    /// How many there are: a power of two. When they run out, receives begin anew after the batch.
    places: u16,
    /// Bytes of each.
    bytes: usize,
}

/// For datagrams: each takes the largest block, and what is told about it.
pub(super) const DATAGRAMS: Shape = Shape { group: 1, places: 512, bytes: 64 * 1024 + 4096 };
/// For what streams receive with the time of its arrival: a part that is longer comes in several pieces. They are used in
/// turn, so that each takes at least a page of memory.
pub(super) const STAMPED: Shape = Shape { group: 2, places: 64, bytes: 16 * 1024 };

/// The buffers of one ring.
///
/// Invariant: nothing of it is unmapped before it is dropped, which its owner does after the rings. Between its provision
/// and its completion only the kernel writes to a buffer.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The places, which the kernel reads.
    shared: Mapping,
    memory: Mapping,
    shape: Shape,
    tail: u16,
}

/// One that the kernel has filled, until it is given back.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    len: usize,
    id: u16,
}

impl Blocks {
    /// Provides them to a ring.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub(super) fn register<K: Kernel>(ring: &Ring<K>, shape: Shape) -> io::Result<Self> {
        let Shape { group, places, bytes } = shape;
        let shared = Mapping::new(usize::from(places) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(places) * bytes)?;
        let mut blocks = Blocks { shared, memory, shape, tail: 0 };
        ring.register_blocks(blocks.places().as_ptr() as u64, places, group)?;
        (0..places).for_each(|id| blocks.provide(id));
        blocks.publish();
        Ok(blocks)
    }

    /// What a completion has filled, if it has.
    #[inline]
    pub(super) fn take(&self, entry: &cqueue::Entry) -> Option<Block> {
        let id = buffer_select(entry.flags())?;
        let len = usize::try_from(entry.result()).unwrap_or(0).min(self.shape.bytes);
        Some(Block { start: self.start(id), len, id })
    }

    /// Gives one back to the kernel.
    #[inline]
    pub(super) fn put_back(&mut self, block: &Block) {
        self.provide(block.id);
        self.publish();
    }

    fn places(&self) -> NonNull<BufRingEntry> {
        self.shared.start().cast()
    }

    fn start(&self, id: u16) -> NonNull<u8> {
        // SAFETY: an id is taken below the number of places: the result is inside the mapping.
        #[allow(unsafe_code)]
        unsafe {
            self.memory.start().add(usize::from(id % self.shape.places) * self.shape.bytes)
        }
    }

    fn provide(&mut self, id: u16) {
        let place = usize::from(self.tail & (self.shape.places - 1));
        // SAFETY: the place is inside the mapping; the kernel reads it only up to the published tail, and so does not
        // read this one now.
        #[allow(unsafe_code)]
        let entry = unsafe { self.places().add(place).as_mut() };
        entry.set_addr(self.start(id).as_ptr() as u64);
        entry.set_len(self.shape.bytes as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies in the first entry of live places; nobody but us writes it, and everybody atomically.
        #[allow(unsafe_code)]
        let tail = unsafe { &*BufRingEntry::tail(self.places().as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Block {
    /// What was filled in. Only until the block is given back.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the kernel has written these bytes, and writes here again only when the buffer is provided anew (the
        // invariant of `Blocks`): once, by the driver, which owns the memory, when it has handled the completion.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}
