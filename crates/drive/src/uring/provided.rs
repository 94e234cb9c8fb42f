//! A ring of buffers that the kernel fills: its places, which the kernel reads.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::memory::Mapping;
use super::queue::Queue;

/// The places of one group of buffers.
///
/// Invariant: they are dropped after the kernel has let go of the group.
#[derive(Debug)]
pub(super) struct Provided {
    shared: Mapping,
    /// The number of places: a power of two.
    places: u16,
    tail: u16,
}

impl Provided {
    /// Places without a buffer.
    pub(super) fn new(places: u16) -> io::Result<Self> {
        let shared = Mapping::new(usize::from(places) * size_of::<BufRingEntry>())?;
        Ok(Provided { shared, places, tail: 0 })
    }

    /// Makes them a group of this queue's.
    pub(super) fn register(&self, queue: &impl Queue, group: u16, flags: u16) -> io::Result<()> {
        let address = self.start().as_ptr() as u64;
        // SAFETY: the places outlive the group (the invariant), and zeroes are valid entries.
        #[allow(unsafe_code)]
        unsafe {
            queue.register_buf_ring(address, self.places, group, flags)
        }
    }

    fn start(&self) -> NonNull<BufRingEntry> {
        self.shared.start().cast()
    }

    /// Provides a buffer once [`Provided::publish`] is called.
    pub(super) fn provide(&mut self, id: u16, buffer: NonNull<u8>, len: usize) {
        let place = usize::from(self.tail & (self.places - 1));
        // SAFETY: the place is inside the mapping; the kernel reads it only up to the published
        // tail, and so does not read this one now.
        #[allow(unsafe_code)]
        let entry = unsafe { self.start().add(place).as_mut() };
        entry.set_addr(buffer.as_ptr() as u64);
        entry.set_len(len as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    pub(super) fn publish(&self) {
        // SAFETY: the tail lies in the first entry of live places; only we write it, and all
        // accesses are atomic.
        #[allow(unsafe_code)]
        let tail = unsafe { &*BufRingEntry::tail(self.start().as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Bytes that the kernel has written to a buffer.
///
/// Invariant: it writes there again only when they are given back. The driver, which owns the
/// memory, does that once, when it has handled the completion.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

impl Written {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: see the invariant.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}
