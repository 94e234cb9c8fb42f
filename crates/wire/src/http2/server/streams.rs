//! The open streams of a server, and what is known of the others.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::http2::window::{ReceiveWindow, SendWindow};

/// The number of our latest resets that are remembered. What still comes on those streams was sent
/// before the peer knew.
const RESETS_MOST: usize = 128;
/// The number of ranges of skipped stream numbers that are remembered.
const SKIPS_MOST: usize = 16;

/// The state of an open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The request is still arriving.
    Reading,
    /// The request is complete and has not been answered.
    Waiting,
    /// Part of the answer has been sent.
    Answering,
}

/// One open stream.
#[derive(Debug)]
pub(super) struct Stream<M> {
    pub(super) phase: Phase,
    /// The caller's value for the head of the request.
    pub(super) made: M,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// The length of the body, if the head announced it, and the bytes that have come.
    pub(super) length: Option<u64>,
    pub(super) received: u64,
    /// The output that waits for a window, and whether it ends the stream.
    pub(super) rest: Cow<'static, [u8]>,
    pub(super) rest_ends: bool,
}

impl<M> Stream<M> {
    /// Notes that so many bytes of the waiting output were sent.
    pub(super) fn advance(&mut self, len: usize) {
        match &mut self.rest {
            Cow::Borrowed(rest) => *rest = &rest[len..],
            Cow::Owned(rest) => drop(rest.drain(..len)),
        }
    }
}

/// A hasher for stream numbers. A peer cannot choose them freely, because they must rise.
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
        // Multiplying by the golden ratio spreads neighbours far apart, in the high bits too.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// The state of a stream that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// It has not begun.
    Idle,
    /// It can never begin, because a later stream has begun.
    Skipped,
    /// We reset it recently.
    ResetByUs,
    /// It has ended.
    Closed,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams<M> {
    pub(super) open: HashMap<u32, Stream<M>, BuildHasherDefault<ByNumber>>,
    /// The highest stream number that has begun.
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

    /// Begins a stream, whose number is odd and higher than those before.
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

    /// Notes that we reset a stream.
    pub(super) fn note_reset(&mut self, stream: u32) {
        if self.resets.len() == RESETS_MOST {
            self.resets.pop_front();
        }
        self.resets.push_back(stream);
    }

    /// The state of a stream that is not open.
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
