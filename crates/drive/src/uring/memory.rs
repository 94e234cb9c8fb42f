//! Memory that the kernel writes while we may read other parts of it.
//!
//! It is mapped and used through raw pointers. A reference to all of it (a `Box`, a slice) would
//! promise the compiler that nobody else writes there. A slice exists only for bytes that a
//! completion has handed to us.

use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Zeroed pages of this process, until dropped. They begin at a page boundary, whatever the page
/// size.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pages belong to the process, not to a thread, and this value is their only owner.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes, at least one.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without a fixed address, the kernel chooses one that is not in use.
        #[allow(unsafe_code)]
        let start = unsafe { mmap_anonymous(null_mut(), len, access, MapFlags::PRIVATE)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// The address of its first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these are the owner's pages, mapped with this length in `new`. The owner keeps
        // them while the kernel may write.
        #[allow(unsafe_code)]
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The kernel refuses a ring of buffers that does not begin at a page boundary
    // (`io_register_pbuf_ring`). With pages of 16 or 64 KiB, an alignment of 4,096 is not enough.
    #[test]
    fn memory_begins_at_a_page_boundary_of_this_machine() {
        let mappings: Vec<Mapping> =
            [1, 2048, 4096, 70_000].map(|len| Mapping::new(len).expect("memory")).into();
        for mapping in &mappings {
            let address = mapping.start().as_ptr() as usize;
            assert_eq!(address % rustix::param::page_size(), 0, "{} bytes", mapping.len());
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(Mapping::new(usize::MAX / 2).is_err());
    }
}
