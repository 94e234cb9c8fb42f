//! Buffers for messages: each receive fills one of them with a block and the kernel's report about
//! it.
//!
//! Buffers are used whole. If they were filled bit by bit, a block that met the end of one would be
//! cut short, or find no room for its report. When they run out, twice as many are provided, up to
//! a cap. All of them are one stretch of memory. Only the kernel touches it, and this thread between
//! a completion and giving the buffer back. A part that is never filled takes no memory.

use std::io;
use std::ptr::NonNull;

use io_uring::cqueue::{self, buffer_select};

use super::memory::Mapping;
use super::provided::{Provided, Written};
use super::queue::Kernel;
use super::ring::{DATAGRAMS_GROUP, Ring, STAMPED_GROUP};

/// The purpose of a group of these buffers, and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    group: u16,
    /// The most buffers there can be: a power of two. When they run out, receives begin again after
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
/// may have bytes at once, and a receive that begins again costs more than one that goes on.
pub(super) const STAMPED: Shape =
    Shape { group: STAMPED_GROUP, places: 1024, first: 64, bytes: 16 * 1024 };

/// The buffers of one ring.
///
/// Invariant: none of its memory is unmapped before it is dropped, which its owner does after the
/// rings. Between its provision and its completion only the kernel writes to a buffer.
#[derive(Debug)]
pub(super) struct Blocks {
    provided: Provided,
    memory: Mapping,
    shape: Shape,
    /// The number of buffers so far.
    count: u16,
    /// A receive has found no buffer.
    pub(super) ran_out: bool,
}

/// A buffer that the kernel has filled, until it is given back.
#[derive(Debug)]
pub(super) struct Block {
    written: Written,
    id: u16,
}

impl Blocks {
    /// Provides the first buffers to a ring.
    pub(super) fn register<K: Kernel>(ring: &Ring<K>, shape: Shape) -> io::Result<Self> {
        let Shape { group, places, first, bytes } = shape;
        let provided = Provided::new(places)?;
        let memory = Mapping::new(usize::from(places) * bytes)?;
        provided.register(&ring.queue, group, 0)?;
        let mut blocks = Blocks { provided, memory, shape, count: 0, ran_out: false };
        blocks.grow(first);
        Ok(blocks)
    }

    /// Provides more buffers if a batch has run out of them. Its own are given back by now.
    pub(super) fn grow_if_short(&mut self) {
        if std::mem::take(&mut self.ran_out) {
            self.grow((2 * self.count).min(self.shape.places));
        }
    }

    /// Provides buffers until there are so many.
    fn grow(&mut self, count: u16) {
        (self.count..count).for_each(|id| self.provide(id));
        self.count = count;
        self.provided.publish();
    }

    /// The buffer that a completion has filled, if any.
    #[inline]
    pub(super) fn take(&self, entry: &cqueue::Entry) -> Option<Block> {
        let id = buffer_select(entry.flags())?;
        let len = usize::try_from(entry.result()).unwrap_or(0).min(self.shape.bytes);
        Some(Block { written: Written { start: self.start(id), len }, id })
    }

    /// Gives a buffer back to the kernel.
    #[inline]
    pub(super) fn put_back(&mut self, block: &Block) {
        self.provide(block.id);
        self.provided.publish();
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
        self.provided.provide(id, self.start(id), self.shape.bytes);
    }
}

impl Block {
    /// The bytes that were filled in; valid until the block is given back.
    pub(super) fn bytes(&self) -> &[u8] {
        self.written.bytes()
    }
}

/// The fields of a message that the kernel is to write, for all receives.
#[derive(Debug)]
pub(super) struct Wanted(Box<libc::msghdr>);

// SAFETY: its pointers are null and stay so: the kernel reads only how much room there is.
#[allow(unsafe_code)]
unsafe impl Send for Wanted {}

impl Wanted {
    /// A name and control messages of so many bytes.
    pub(super) fn new(name_bytes: usize, control_bytes: usize) -> Self {
        // SAFETY: zeroes are a valid header: null pointers and no lengths.
        #[allow(unsafe_code)]
        let mut wanted: libc::msghdr = unsafe { std::mem::zeroed() };
        wanted.msg_namelen = name_bytes as libc::socklen_t;
        wanted.msg_controllen = control_bytes as _;
        Wanted(Box::new(wanted))
    }

    /// It stays where it is.
    pub(super) fn header(&self) -> &libc::msghdr {
        &self.0
    }
}
