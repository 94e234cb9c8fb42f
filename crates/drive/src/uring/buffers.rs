//! Buffers that the kernel fills: provided once, given back after use.
//!
//! Where the kernel can do it (`IOU_PBUF_RING_INC`, Linux 6.12), large blocks are filled bit by
//! bit, so one block takes hundreds of small answers. Elsewhere smaller ones are used whole. When
//! they run out, twice as much is provided, up to a cap. A generator of small requests needs a
//! quarter of a MiB; many bodies that stream need more. The blocks that they add are larger,
//! because a receive ends with its block: the rest of a body takes another one.

use std::io;
use std::ops::Range;

use io_uring::cqueue::{self, buffer_more, buffer_select};

use super::memory::Mapping;
use super::provided::{Provided, Written};
use super::queue::Queue;

/// The buffer group that receives of a ring fill.
pub(super) const GROUP: u16 = 0;

/// Places in the ring of buffers, which is the most blocks there can be. A power of two.
const PLACES: u16 = 128;
/// Initial number of blocks that are filled bit by bit.
const BLOCKS: u16 = 4;
/// Maximum number of such blocks; together they have 8 MiB.
const BLOCKS_MOST: u16 = 66;
/// Bytes of such a block.
const BLOCK_BYTES: usize = 64 * 1024;
/// Bytes of such a block that is added later. With 64 KiB, bodies of 64 KiB took 1.5 receives each
/// instead of 1.1, and 5 % more CPU time. With 256 KiB, what is due would wait longer for one read.
const LATER_BLOCK_BYTES: usize = 128 * 1024;
/// Initial number of blocks that are used whole.
const WHOLE_BLOCKS: u16 = 64;
/// Bytes of such a block.
const WHOLE_BYTES: usize = 16 * 1024;

const INCREMENTAL: u16 = 2; // IOU_PBUF_RING_INC

/// The buffers of one ring.
///
/// Invariant: none of its memory is unmapped before it is dropped, and its owner drops it after the
/// kernel has let go of the group. Between its provision and its last completion only the kernel
/// writes to a block, and only behind `filled`.
#[derive(Debug)]
pub(super) struct Buffers {
    provided: Provided,
    blocks: Vec<Mapping>,
    /// Bytes filled in each block.
    filled: Vec<usize>,
    incremental: bool,
    /// A receive has found no buffer.
    pub(super) ran_out: bool,
}

/// Received bytes: where they are, until they are given back.
#[derive(Debug)]
pub(super) struct Filled {
    written: Written,
    id: u16,
    spent: bool,
}

impl Filled {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.written.bytes()
    }
}

impl Buffers {
    /// Provides the first blocks to a ring. It fails without rings of buffers (before Linux 5.19).
    pub(super) fn register(queue: &impl Queue) -> io::Result<Self> {
        let mut buffers = Buffers {
            provided: Provided::new(PLACES)?,
            blocks: Vec::new(),
            filled: Vec::new(),
            incremental: true,
            ran_out: false,
        };
        if buffers.provided.register(queue, GROUP, INCREMENTAL).is_err() {
            buffers.incremental = false;
            buffers.provided.register(queue, GROUP, 0)?;
        }
        buffers.grow()?;
        Ok(buffers)
    }

    /// Provides more blocks if a batch has run out of them. Its own blocks are given back by now.
    pub(super) fn grow_if_short(&mut self) {
        if std::mem::take(&mut self.ran_out) {
            // Without memory for more, the present blocks have to do.
            let _ = self.grow();
        }
    }

    fn grow(&mut self) -> io::Result<()> {
        let (ids, bytes) = next_blocks(self.incremental, self.blocks.len() as u16);
        for id in ids {
            self.blocks.push(Mapping::new(bytes)?);
            self.filled.push(0);
            self.provide(id);
        }
        Ok(())
    }

    /// Takes out the bytes that a completion has filled.
    #[inline]
    pub(super) fn take(&mut self, entry: &cqueue::Entry) -> Option<Filled> {
        let id = buffer_select(entry.flags())?;
        let block = &self.blocks[usize::from(id)];
        let filled = &mut self.filled[usize::from(id)];
        let len = usize::try_from(entry.result()).unwrap_or(0);
        assert!(len <= block.len() - *filled, "the kernel has filled more than it was given");
        // SAFETY: inside the block, or one byte behind its end, by the assertion.
        #[allow(unsafe_code)]
        let start = unsafe { block.start().add(*filled) };
        *filled += len;
        let spent = !(self.incremental && buffer_more(entry.flags()));
        Some(Filled { written: Written { start, len }, id, spent })
    }

    /// Gives the bytes back; a spent block goes to the kernel again.
    #[inline]
    pub(super) fn put_back(&mut self, filled: Filled) {
        if filled.spent {
            self.filled[usize::from(filled.id)] = 0;
            self.provide(filled.id);
        }
    }

    fn provide(&mut self, id: u16) {
        let block = &self.blocks[usize::from(id)];
        self.provided.provide(id, block.start(), block.len());
        self.provided.publish();
    }
}

/// The blocks to add to this many, and the bytes of each. They double the memory.
fn next_blocks(incremental: bool, blocks: u16) -> (Range<u16>, usize) {
    // Two of the first blocks are as large as a later one.
    let later = (2 * blocks).saturating_sub(BLOCKS / 2);
    let (last, bytes) = match (incremental, blocks) {
        (true, 0) => (BLOCKS, BLOCK_BYTES),
        (true, _) => (later.min(BLOCKS_MOST), LATER_BLOCK_BYTES),
        (false, _) => ((2 * blocks).clamp(WHOLE_BLOCKS, PLACES), WHOLE_BYTES),
    };
    (blocks..last, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_double_their_memory_up_to_8_mib_filled_bit_by_bit_and_2_mib_used_whole() {
        const KIB: usize = 1024;
        for (incremental, blocks, expected) in [
            (true, 0, (0..4, 64 * KIB)),
            (true, 4, (4..6, 128 * KIB)),
            (true, 6, (6..10, 128 * KIB)),
            (true, 34, (34..66, 128 * KIB)),
            (true, 66, (66..66, 128 * KIB)),
            (false, 0, (0..64, 16 * KIB)),
            (false, 64, (64..128, 16 * KIB)),
            (false, 128, (128..128, 16 * KIB)),
        ] {
            assert_eq!(next_blocks(incremental, blocks), expected, "{incremental}, {blocks}");
        }
    }
}
