//! Buffers that the kernel fills: provided once, given back after use.
//!
//! Strategy: large blocks that are filled bit by bit where the kernel can do that
//! (`IOU_PBUF_RING_INC`, Linux 6.12), so that one block takes hundreds of small answers; smaller
//! ones that are used whole where it cannot. When they run out, twice as many are provided, up to a
//! cap: a generator of small requests needs a quarter of a MiB, many bodies that stream need more.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::cqueue::{buffer_more, buffer_select};
use io_uring::types::BufRingEntry;
use io_uring::{IoUring, cqueue};

/// The one group of buffers of a ring.
pub(super) const GROUP: u16 = 0;

/// Places of the ring of buffers: blocks at most. A power of two.
const PLACES: u16 = 128;
/// Blocks at the start that are filled bit by bit; when they run out there are twice as many.
const BLOCKS: u16 = 4;
/// Bytes of such a block.
const BLOCK_BYTES: usize = 64 * 1024;
/// Blocks at the start that are used whole.
const WHOLE_BLOCKS: u16 = 64;
/// Bytes of such a block.
const WHOLE_BYTES: usize = 16 * 1024;

const INCREMENTAL: u16 = 2; // IOU_PBUF_RING_INC

/// The buffers of one ring.
#[derive(Debug)]
pub(super) struct Buffers {
    shared: NonNull<BufRingEntry>,
    tail: u16,
    blocks: Vec<Box<[u8]>>,
    /// How much of each block has been filled.
    filled: Vec<usize>,
    incremental: bool,
    /// A receive has found none.
    pub(super) ran_out: bool,
}

/// Bytes that came: where they are, until they are given back.
#[derive(Debug)]
pub(super) struct Filled {
    /// The whole block; `start..end` is what came.
    pub(super) block: Box<[u8]>,
    pub(super) start: usize,
    pub(super) end: usize,
    id: u16,
    spent: bool,
}

// SAFETY: the memory is this value's own; the kernel touches it only for the thread that enters the ring.
#[allow(unsafe_code)]
unsafe impl Send for Buffers {}

impl Buffers {
    /// Provides the first blocks to a ring.
    pub(super) fn register(ring: &IoUring) -> io::Result<Self> {
        let layout = layout();
        // SAFETY: the layout is not empty; zeroes are valid entries.
        #[allow(unsafe_code)]
        let shared = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        let Some(shared) = NonNull::new(shared) else { handle_alloc_error(layout) };
        let mut buffers = Buffers {
            shared,
            tail: 0,
            blocks: Vec::new(),
            filled: Vec::new(),
            incremental: true,
            ran_out: false,
        };
        if buffers.register_as(ring, INCREMENTAL).is_err() {
            buffers.incremental = false;
            buffers.register_as(ring, 0)?;
        }
        buffers.grow();
        Ok(buffers)
    }

    fn register_as(&self, ring: &IoUring, flags: u16) -> io::Result<()> {
        let address = self.shared.as_ptr() as u64;
        // SAFETY: the places live as long as this value, which the ring's owner drops after the ring.
        #[allow(unsafe_code)]
        unsafe {
            ring.submitter().register_buf_ring_with_flags(address, PLACES, GROUP, flags)
        }
    }

    /// Provides more blocks if there were too few for a batch, whose own are given back by now.
    pub(super) fn grow_if_short(&mut self) {
        if std::mem::take(&mut self.ran_out) {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let (bytes, least) = match self.incremental {
            true => (BLOCK_BYTES, BLOCKS),
            false => (WHOLE_BYTES, WHOLE_BLOCKS),
        };
        let first = self.blocks.len() as u16;
        let last = (2 * first).clamp(least, PLACES);
        for id in first..last {
            self.blocks.push(vec![0; bytes].into_boxed_slice());
            self.filled.push(0);
            self.provide(id);
        }
        self.publish();
    }

    /// Takes out what a completion has filled.
    #[inline]
    pub(super) fn take(&mut self, entry: &cqueue::Entry) -> Option<Filled> {
        let id = buffer_select(entry.flags())?;
        let start = self.filled[usize::from(id)];
        let end = start + usize::try_from(entry.result()).unwrap_or(0);
        let spent = !(self.incremental && buffer_more(entry.flags()));
        let block = std::mem::take(&mut self.blocks[usize::from(id)]);
        Some(Filled { block, start, end, id, spent })
    }

    /// Gives it back; a spent block goes to the kernel again.
    #[inline]
    pub(super) fn put_back(&mut self, filled: Filled) {
        let place = usize::from(filled.id);
        self.blocks[place] = filled.block;
        self.filled[place] = filled.end;
        if filled.spent {
            self.filled[place] = 0;
            self.provide(filled.id);
            self.publish();
        }
    }

    fn provide(&mut self, id: u16) {
        let block = &self.blocks[usize::from(id)];
        let place = usize::from(self.tail & (PLACES - 1));
        // SAFETY: the place is inside the allocation; the kernel reads it only up to the published tail.
        #[allow(unsafe_code)]
        let entry = unsafe { &mut *self.shared.as_ptr().add(place) };
        entry.set_addr(block.as_ptr() as u64);
        entry.set_len(block.len() as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies in the first entry of a live, page-aligned ring of buffers.
        #[allow(unsafe_code)]
        let tail = unsafe { &*BufRingEntry::tail(self.shared.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `register`.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(self.shared.as_ptr().cast(), layout());
        }
    }
}

/// A page holds the places: they are 16 bytes each.
fn layout() -> Layout {
    const PAGE: usize = 4096;
    const _: () = assert!(PLACES as usize * size_of::<BufRingEntry>() <= PAGE);
    // A page, aligned to itself, is a layout.
    Layout::from_size_align(PAGE, PAGE).unwrap_or(Layout::new::<[u64; 512]>())
}
