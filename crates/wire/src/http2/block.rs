//! Reassembly of header blocks that span several frames (RFC 9113 §6.10), with caps.
//!
//! A block that comes in one frame is passed on in place, without a copy.

use super::frame::ErrorCode;
use super::violation::Violation;

/// The maximum number of frames of a block. More frames would only delay the connection.
const FRAMES_MOST: u32 = 64;
/// The maximum size of one block before it is decoded, in bytes.
const BYTES_MOST: usize = 256 * 1024;

/// The block under construction.
#[derive(Debug, Default)]
pub struct Block {
    /// The block's stream, and whether the stream ends with it; none between blocks.
    of: Option<(u32, bool)>,
    frames: u32,
    bytes: Vec<u8>,
}

const TOO_LONG: Violation =
    Violation::of_connection(ErrorCode::EnhanceYourCalm, "a block of fields goes on without end");

impl Block {
    /// Whether only CONTINUATION may come next.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.of.is_some()
    }

    /// Begins a block that continues in the next frame.
    pub fn begin(&mut self, stream: u32, end_stream: bool, part: &[u8]) -> Result<(), Violation> {
        (self.of, self.frames) = (Some((stream, end_stream)), 0);
        self.bytes.clear();
        self.add(part)
    }

    /// Adds the next part to the block. With `last` the block is complete: returns whether the
    /// stream ends with it, and the block. It is a violation if no block of this stream is open, or
    /// if it is too long.
    pub fn go_on(
        &mut self,
        stream: u32,
        part: &[u8],
        last: bool,
    ) -> Result<Option<(bool, &[u8])>, Violation> {
        let Some((_, end_stream)) = self.of.filter(|of| of.0 == stream) else {
            return Err(Violation::protocol("CONTINUATION without a block of its stream"));
        };
        self.add(part)?;
        if !last {
            return Ok(None);
        }
        self.of = None;
        Ok(Some((end_stream, &self.bytes)))
    }

    /// The bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn add(&mut self, part: &[u8]) -> Result<(), Violation> {
        self.frames += 1;
        if self.frames > FRAMES_MOST || self.bytes.len() + part.len() > BYTES_MOST {
            return Err(TOO_LONG);
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_block_of_their_stream() {
        let mut block = Block::default();
        assert!(block.go_on(1, b"", true).is_err(), "none is open");
        assert_eq!(block.begin(1, true, b"ab"), Ok(()));
        assert!(block.is_open());
        assert_eq!(block.go_on(1, b"c", false), Ok(None));
        assert!(block.go_on(3, b"d", true).is_err(), "another stream");
        assert_eq!(block.go_on(1, b"", true), Ok(Some((true, &b"abc"[..]))));
        assert!(!block.is_open());
        assert_eq!(block.begin(3, false, b""), Ok(()));
        assert_eq!(block.go_on(3, b"x", true), Ok(Some((false, &b"x"[..]))));
    }

    #[test]
    fn neither_bytes_nor_empty_frames_may_come_without_end() {
        let mut block = Block::default();
        assert_eq!(block.begin(1, true, b""), Ok(()));
        let frames = (0..1000).take_while(|_| block.go_on(1, b"", false) == Ok(None)).count();
        assert_eq!(frames as u32, FRAMES_MOST - 1);
        assert_eq!(block.begin(1, true, &[0; 1 << 14]), Ok(()));
        let frames = (0..1000).take_while(|_| block.go_on(1, &[0; 1 << 14], false).is_ok());
        assert_eq!(frames.count(), 15);
    }
}
