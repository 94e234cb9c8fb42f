//! The streams of a server that are open, and what is known of those that are not.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::http2::window::{ReceiveWindow, SendWindow};

/// Streams that we have reset are remembered so far back: what still comes on them was sent before the peer knew.
const RESETS_MOST: usize = 128;
/// Ranges of numbers that a client has left out are remembered so far back.
const SKIPS_MOST: usize = 16;

/// What a stream is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request is still coming.
    Reading,
    /// The request is whole, and has not been answered.
    Waiting,
    /// A part of the answer is out.
    Answering,
}

/// One open stream.
#[derive(Debug)]
pub(super) struct Stream<M> {
    pub(super) phase: Phase,
    /// What the caller made of its head.
    pub(super) made: M,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// Bytes of the body, where the head said so, and those that have come.
    pub(super) length: Option<u64>,
    pub(super) received: u64,
    /// What waits for a window, and whether it ends the stream.
    pub(super) rest: VecDeque<u8>,
    pub(super) rest_ends: bool,
}

/// A hasher for stream numbers, which a peer cannot choose freely: they rise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByNumber(u64);

impl Hasher for ByNumber {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        // The golden ratio: neighbours land far apart, in the high bits, too.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// What is known of a stream that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// It has not begun.
    Idle,
    /// A later one has begun, and it never can.
    Skipped,
    /// We have reset it not long ago.
    ResetByUs,
    /// It has ended.
    Closed,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams<M> {
    pub(super) open: HashMap<u32, Stream<M>, BuildHasherDefault<ByNumber>>,
    /// The highest number that has begun.
    last: u32,
    resets: VecDeque<u32>,
    skips: VecDeque<(u32, u32)>,
}

impl<M> Default for Streams<M> {
    fn default() -> Self {
        let open = HashMap::default();
        Streams { open, last: 0, resets: VecDeque::new(), skips: VecDeque::new() }
    }
}

impl<M> Streams<M> {
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// A stream begins: its number is odd, and higher than those before.
    pub(super) fn begin(&mut self, stream: u32) {
        let next = if self.last == 0 { 1 } else { self.last + 2 };
        if stream > next {
            if self.skips.len() == SKIPS_MOST {
                self.skips.pop_front();
            }
            self.skips.push_back((next, stream - 2));
        }
        self.last = stream;
    }

    /// A stream has ended because we have reset it.
    pub(super) fn note_reset(&mut self, stream: u32) {
        if self.resets.len() == RESETS_MOST {
            self.resets.pop_front();
        }
        self.resets.push_back(stream);
    }

    /// What is known of a stream that is not open.
    pub(super) fn past(&self, stream: u32) -> Past {
        if stream > self.last || stream.is_multiple_of(2) {
            Past::Idle
        } else if self.resets.contains(&stream) {
            Past::ResetByUs
        } else if self.skips.iter().any(|(from, to)| (*from..=*to).contains(&stream)) {
            Past::Skipped
        } else {
            Past::Closed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_left_out_are_told_from_those_that_ended() {
        let mut streams = Streams::<()>::default();
        assert_eq!(streams.past(1), Past::Idle);
        for stream in [5, 7, 13] {
            streams.begin(stream);
        }
        streams.note_reset(7);
        let past = |stream| streams.past(stream);
        assert_eq!([past(1), past(3), past(9), past(11)], [Past::Skipped; 4]);
        assert_eq!([past(5), past(13)], [Past::Closed; 2]);
        assert_eq!([past(2), past(15)], [Past::Idle; 2]);
        assert_eq!(past(7), Past::ResetByUs);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut streams = Streams::<()>::default();
        for nth in 0..10_000 {
            streams.begin(1 + 4 * nth);
            streams.note_reset(1 + 4 * nth);
        }
        assert_eq!((streams.resets.len(), streams.skips.len()), (RESETS_MOST, SKIPS_MOST));
        assert_eq!(streams.past(1), Past::Closed);
    }
}
