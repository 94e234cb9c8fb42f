//! A fingerprint of a body: its length and a sketch of its bytes. Equal answers have the same one,
//! so a server that begins to answer something else is detected for the cost of reading a few
//! words.
//!
//! How it works: the first 40 bytes are read, from there on 8 bytes at each power of two, and the
//! last eight. Words are added byte by byte, and the sum is rotated by one byte before each. If a
//! body differs in few bytes, few of the eight bytes of its sketch differ. How the body was split
//! into reads makes no difference.
//!
//! Must not know: what the sketch is used for, and which protocol carried the body.

use crate::ending::Ending;
use crate::parts::{Arrived, Parts, Streaming, Whole};

/// All words that begin up to this offset are read.
const DENSE_BYTES: u64 = 32;
/// The size of a word in bytes.
const WORD: u64 = 8;

/// The fingerprint of a complete body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The length in bytes.
    pub bytes: u64,
    /// The sketch: equal for equal bodies, and similar for bodies that differ in few of the bytes
    /// read.
    pub sketch: u64,
}

/// Samples a body as its slices arrive.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// The number of bytes so far.
    bytes: u64,
    /// The offset of the next word to be read.
    next: u64,
    /// The last 8 bytes so far; with fewer, the others are 0.
    last: u64,
    sketch: u64,
}

impl Sampler {
    /// Adds the next slice of the body.
    #[inline]
    pub(crate) fn add(&mut self, slice: &[u8]) {
        let end = self.bytes + slice.len() as u64;
        while self.next + WORD <= end {
            let upto = (self.next + WORD - self.bytes) as usize;
            self.sketch = folded(self.sketch, self.last_before(&slice[..upto]));
            self.next = if self.next < DENSE_BYTES { self.next + WORD } else { self.next * 2 };
        }
        self.last = self.last_before(slice);
        self.bytes = end;
    }

    /// Returns the fingerprint of the complete body and resets for the next.
    #[inline]
    pub(crate) fn finish(&mut self) -> Content {
        let Sampler { bytes, last, sketch, .. } = std::mem::take(self);
        Content { bytes, sketch: folded(sketch, last) }
    }

    /// The last 8 bytes of the body up to the end of this slice.
    #[inline]
    fn last_before(&self, slice: &[u8]) -> u64 {
        match slice.last_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => slice.iter().fold(self.last, |word, byte| word >> 8 | u64::from(*byte) << 56),
        }
    }
}

/// Compares a body with the expected one as its slices arrive. If none is expected, takes the
/// fingerprint instead. The body of a stream is also read for its parts, and has no fingerprint.
#[derive(Debug, Default)]
pub(crate) struct BodyCheck {
    matched: usize,
    differs: bool,
    sampler: Sampler,
    parts: Option<Box<Parts>>,
}

impl BodyCheck {
    #[inline]
    pub(crate) fn compare(&mut self, slice: &[u8], expected: Option<&[u8]>) {
        let Some(expected) = expected else { return self.sampler.add(slice) };
        let end = self.matched.saturating_add(slice.len());
        self.differs |= expected.get(self.matched..end) != Some(slice);
        self.matched = end;
    }

    /// Reads the next slice of a stream for its parts; `ends_chunk` says that a chunk or frame ends
    /// with it.
    #[inline]
    pub(crate) fn take_parts(&mut self, streaming: Streaming<'_>, slice: &[u8], ends_chunk: bool) {
        let rule = streaming.rule;
        let parts = self.parts.get_or_insert_with(|| Box::new(Parts::new(rule)));
        parts.take(rule, slice);
        if ends_chunk {
            parts.end_chunk(rule);
        }
    }

    /// The parts that were completed since the last call.
    #[inline]
    pub(crate) fn note_parts(&mut self, streaming: Streaming<'_>) -> Option<Arrived> {
        self.parts.as_mut()?.note(streaming)
    }

    /// The time at which the stream has stalled; none for never.
    #[inline]
    pub(crate) fn stalls_at_ns(&self) -> Option<u64> {
        self.parts.as_ref().map(|parts| parts.stalls_at_ns())
    }

    /// Ends a stream with its body, which was good otherwise: returns the parts that this
    /// completes, how its request ends, and its figures.
    pub(crate) fn end_stream(&mut self, stream: Streaming<'_>) -> (Option<Arrived>, Ending, Whole) {
        let mut parts = self.parts.take().unwrap_or_else(|| Box::new(Parts::new(stream.rule)));
        parts.end_body(stream.rule);
        (parts.note(stream), parts.ending(stream.rule), parts.whole())
    }

    /// Returns whether the whole body was the expected one, or its fingerprint if none is expected.
    /// Resets for the next body.
    #[inline]
    pub(crate) fn finish(&mut self, expected: Option<&[u8]>) -> (bool, Option<Content>) {
        let Some(expected) = expected else { return (true, Some(self.sampler.finish())) };
        let check = std::mem::take(self);
        (!check.differs && check.matched == expected.len(), None)
    }
}

/// The sketch with one more word. Each byte is added to its counterpart, without a carry to the
/// next.
#[inline]
fn folded(sketch: u64, word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let turned = sketch.rotate_left(8);
    ((turned & LOW) + (word & LOW)) ^ ((turned ^ word) & !LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(slices: &[&[u8]]) -> Content {
        let mut sampler = Sampler::default();
        slices.iter().for_each(|slice| sampler.add(slice));
        sampler.finish()
    }

    /// How many of the eight bytes of two sketches are equal.
    fn like(one: &[u8], two: &[u8]) -> u32 {
        let differing = content(&[one]).sketch ^ content(&[two]).sketch;
        differing.to_le_bytes().iter().map(|byte| u32::from(*byte == 0)).sum()
    }

    #[test]
    fn a_split_never_changes_what_a_body_is_like() {
        let body: Vec<u8> = (0..600u32).map(|at| (at * 7 + at / 13) as u8).collect();
        for len in [0, 1, 7, 8, 9, 13, 39, 40, 41, 63, 64, 65, 71, 72, 127, 200, 600] {
            let body = &body[..len];
            let whole = content(&[body]);
            assert_eq!(whole.bytes, len as u64);
            for first in 0..=len {
                let (one, rest) = body.split_at(first);
                assert_eq!(content(&[one, rest]), whole, "{len} bytes, cut at {first}");
                let (two, three) = rest.split_at(rest.len().min(3));
                assert_eq!(content(&[one, two, &[], three]), whole, "{len}, {first} and 3 more");
            }
        }
    }

    #[test]
    fn another_body_has_another_sketch() {
        let page = |filler: u8| vec![filler; 1024];
        let mut holed = page(b'x');
        holed[100..900].fill(0);
        for (sentence, one, two) in [
            ("a word", b"Hello, World!".to_vec(), b"Hello, Worle!".to_vec()),
            ("blanks", b"Hello, World!".to_vec(), b"             ".to_vec()),
            (
                "two words that changed places",
                b"12345678abcdefgh".to_vec(),
                b"abcdefgh12345678".to_vec(),
            ),
            ("one filler for another", page(b'x'), page(b'y')),
            ("a hole in the middle", page(b'x'), holed),
            ("zeroes, one more", vec![0; 3], vec![0; 4]),
        ] {
            assert_ne!(content(&[&one]), content(&[&two]), "{sentence}");
        }
    }

    #[test]
    fn a_clock_on_a_page_changes_few_bytes_of_the_sketch_and_another_page_most() {
        for (one, two, alike) in [
            ("12:34:56", "12:34:57", true),
            ("Wed, 25 Nov 2026 07:06:31 GMT", "Wed, 25 Nov 2026 07:06:32 GMT", true),
            (
                "{\"now\": 1764054391, \"host\": \"a\"}",
                "{\"now\": 1764054392, \"host\": \"a\"}",
                true,
            ),
            ("Hello, World!", "             ", false),
            ("{\"message\":\"Hello, World!\"}", "{\"error\":\"no time for that\"}", false),
            ("6fa459ea-ee8a-3ca4-894e-db77e160355e", "16fd2706-8baf-433b-82eb-8c7fada847da", false),
        ] {
            let equal = like(one.as_bytes(), two.as_bytes());
            assert_eq!(equal >= 4, alike, "{one} and {two}: {equal} of 8");
        }
    }
}
