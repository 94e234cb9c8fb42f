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

use crate::coding::{Coding, Decoder};
use crate::ending::Ending;
use crate::message::{Book, Event};
use crate::parts::{Arrived, Parts, Rule, Streaming};

/// All words that begin up to this offset are read.
const DENSE_BYTES: u64 = 32;
/// The size of a word in bytes.
const WORD: u64 = 8;
/// The most content of a compressed body: one that decodes to more is not decoded further.
const DECODED_BYTES_MOST: usize = 64 << 20;

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

/// What the content of a body is needed for: it is compared with the expected one, and read for its
/// parts. The fingerprint is that of the bytes as they came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs<'a> {
    pub(crate) expected: Option<&'a [u8]>,
    pub(crate) streaming: Option<Streaming<'a>>,
}

impl Needs<'_> {
    #[inline]
    fn is_nothing(&self) -> bool {
        self.expected.is_none() && self.streaming.is_none()
    }
}

/// Checks a body as its slices arrive. If its content is not needed, takes the fingerprint instead.
#[derive(Debug, Default)]
pub(crate) struct BodyCheck {
    matched: usize,
    differs: bool,
    sampler: Sampler,
    reading: Option<Box<Reading>>,
}

/// What only streams and compressed bodies need.
#[derive(Debug, Default)]
struct Reading {
    parts: Option<Parts>,
    decoder: Option<Decoder>,
}

impl BodyCheck {
    /// Takes the next slice.
    #[inline]
    pub(crate) fn take(&mut self, slice: &[u8], coding: Coding, needs: Needs<'_>) {
        if needs.is_nothing() {
            self.sampler.add(slice);
        } else {
            self.take_read(slice, coding, needs);
        }
    }

    #[inline(never)]
    fn take_read(&mut self, slice: &[u8], coding: Coding, needs: Needs<'_>) {
        if coding == Coding::Identity {
            return self.read(slice, needs);
        }
        let decoder = &mut self.reading.get_or_insert_default().decoder;
        let decoder = decoder.take().unwrap_or_else(|| Decoder::new(coding, DECODED_BYTES_MOST));
        let decoder = decoder.decode(slice, &mut |content| self.read(content, needs));
        self.reading.get_or_insert_default().decoder = Some(decoder);
    }

    #[inline]
    fn read(&mut self, slice: &[u8], needs: Needs<'_>) {
        if let Some(Streaming { rule, .. }) = needs.streaming {
            self.parts(rule).take(rule, slice);
        }
        if let Some(expected) = needs.expected {
            let end = self.matched.saturating_add(slice.len());
            self.differs |= expected.get(self.matched..end) != Some(slice);
            self.matched = end;
        }
    }

    #[inline]
    fn parts(&mut self, rule: &Rule) -> &mut Parts {
        let reading = self.reading.get_or_insert_default();
        reading.parts.get_or_insert_with(|| Parts::new(rule))
    }

    /// Notes that a chunk or a frame ends with the last slice.
    #[inline]
    pub(crate) fn end_chunk(&mut self, rule: &Rule) {
        self.parts(rule).end_chunk(rule);
    }

    /// The parts that were completed since the last call.
    #[inline]
    pub(crate) fn note_parts(&mut self, streaming: Streaming<'_>) -> Option<Arrived> {
        self.reading.as_mut()?.parts.as_mut()?.note(streaming)
    }

    /// The time at which the stream has stalled; none for never.
    #[inline]
    pub(crate) fn stalls_at_ns(&self) -> Option<u64> {
        Some(self.reading.as_ref()?.parts.as_ref()?.stalls_at_ns())
    }

    /// Ends a complete body, and resets for the next one. `status` is that of its answer, and `tag`
    /// its request. Returns how the request ends, and the fingerprint if the content was not needed.
    // Left to itself, the compiler makes this a call, which costs more than the work in it.
    #[inline(always)]
    pub(crate) fn end<T>(
        &mut self,
        status: u16,
        book: &impl Book<T>,
        tag: &T,
    ) -> (Ending, Option<Content>) {
        let rules = book.rules_of(tag);
        let needs = Needs { expected: rules.body.as_deref(), streaming: book.streaming() };
        let ending = if !rules.accepts(status) {
            Some(Ending::Status)
        } else {
            rules.head_request.then_some(Ending::Ok)
        };
        if needs.is_nothing() {
            return (ending.unwrap_or(Ending::Ok), Some(self.sampler.finish()));
        }
        (self.end_read(ending, needs, book, tag), None)
    }

    /// Ends a body that was read. Returns how its request ends: the body decides that if there is
    /// no `ending` yet.
    #[inline(never)]
    fn end_read<T>(
        &mut self,
        ending: Option<Ending>,
        needs: Needs<'_>,
        book: &impl Book<T>,
        tag: &T,
    ) -> Ending {
        let BodyCheck { matched, differs, reading, .. } = std::mem::take(self);
        let Reading { parts, decoder } = reading.map_or_else(Reading::default, |reading| *reading);
        let is_other = |expected: &[u8]| differs || matched != expected.len();
        let of_body = if decoder.is_some_and(|decoder| !decoder.finish()) {
            Ending::Encoded
        } else if needs.expected.is_some_and(is_other) {
            Ending::Mismatch
        } else {
            Ending::Ok
        };
        let ending = ending.unwrap_or(of_body);
        let Some(streaming) = needs.streaming else { return ending };
        let mut parts = parts.unwrap_or_else(|| Parts::new(streaming.rule));
        parts.end_body(streaming.rule);
        if let Some(arrived) = parts.note(streaming)
            && matches!(ending, Ending::Ok | Ending::Mismatch)
        {
            book.note(tag, Event::Parts(arrived));
        }
        if ending != Ending::Ok {
            return ending;
        }
        let of_stream = parts.ending(streaming.rule);
        if of_stream == Ending::Ok {
            book.note(tag, Event::Stream(parts.whole()));
        }
        of_stream
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
