//! The bytes that are still to be sent: copied, or parts of shared bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A queue of segments, sent in order.
#[derive(Debug, Default)]
pub struct Outbox {
    segments: VecDeque<Segment>,
    len: usize,
}

/// Bytes to send. They are on the heap, and stay there when the segment itself moves.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Copied bytes, and how many of them are sent.
    Copied(Vec<u8>, usize),
    /// A part of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
}

impl Segment {
    /// The bytes that are still to be sent.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Segment::Copied(bytes, at) => &bytes[*at..],
            Segment::Shared(bytes, range) => &bytes[range.clone()],
        }
    }

    /// Notes that `sent` bytes of it have been sent.
    #[inline]
    pub(crate) fn advance(&mut self, sent: usize) {
        match self {
            Segment::Copied(_, at) => *at += sent,
            Segment::Shared(_, range) => range.start += sent,
        }
    }
}

impl Outbox {
    /// Bytes still to send.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a copy of these bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_in(bytes, Vec::new);
    }

    /// Adds a copy of these bytes. A new segment is made in the empty `buffer`.
    pub(crate) fn push_in(&mut self, bytes: &[u8], buffer: impl FnOnce() -> Vec<u8>) {
        self.len += bytes.len();
        if let Some(Segment::Copied(last, at)) = self.segments.back_mut() {
            // Compact, or a buffer that is never drained grows for ever.
            if *at > last.len() / 2 {
                last.drain(..*at);
                *at = 0;
            }
            last.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            let mut copy = buffer();
            copy.extend_from_slice(bytes);
            self.segments.push_back(Segment::Copied(copy, 0));
        }
    }

    /// Adds a part of shared bytes, which are not copied.
    pub fn push_shared(&mut self, bytes: &Arc<[u8]>, range: Range<usize>) {
        if range.start < range.end {
            self.len += range.len();
            self.segments.push_back(Segment::Shared(Arc::clone(bytes), range));
        }
    }

    /// The bytes to send next.
    pub fn front(&self) -> Option<&[u8]> {
        self.segments.front().map(Segment::bytes)
    }

    /// Notes that `sent` bytes of [`Outbox::front`] have been sent.
    pub fn advance(&mut self, sent: usize) {
        self.len -= sent;
        if let Some(front) = self.segments.front_mut() {
            front.advance(sent);
            if front.bytes().is_empty() {
                self.segments.pop_front();
            }
        }
    }

    /// Puts back a segment, to be sent next.
    pub(crate) fn push_front(&mut self, segment: Segment) {
        self.len += segment.bytes().len();
        self.segments.push_front(segment);
    }

    /// Takes out the segment to send next.
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        let segment = self.segments.pop_front()?;
        self.len -= segment.bytes().len();
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came_whatever_the_kernel_takes() {
        let shared: Arc<[u8]> = Arc::from(*b"0123456789");
        for step in 1..=7 {
            let mut outbox = Outbox::default();
            outbox.push(b"ab");
            outbox.push_shared(&shared, 2..5);
            outbox.push(b"c");
            outbox.push(b"d");
            let mut sent = Vec::new();
            while let Some(front) = outbox.front() {
                let taken = step.min(front.len());
                sent.extend_from_slice(&front[..taken]);
                outbox.advance(taken);
            }
            assert_eq!(sent, b"ab234cd", "taken {step} at a time");
            assert!(outbox.is_empty());
        }
    }

    #[test]
    fn nothing_is_no_segment() {
        let mut outbox = Outbox::default();
        outbox.push(b"");
        outbox.push_shared(&Arc::from(*b"ab"), 1..1);
        assert!(outbox.is_empty() && outbox.front().is_none() && outbox.pop().is_none());
    }

    #[test]
    fn what_has_left_is_not_held_however_long_something_waits() {
        let mut outbox = Outbox::default();
        let (mut sent, mut numbers) = (Vec::new(), (0..=255u8).cycle());
        for _ in 0..1000 {
            outbox.push(&numbers.by_ref().take(1000).collect::<Vec<_>>());
            while let Some(front) = outbox.front().filter(|front| front.len() > 100) {
                let taken = (front.len() - 100).min(300);
                sent.extend_from_slice(&front[..taken]);
                outbox.advance(taken);
            }
            let held = outbox.segments.iter().map(|segment| match segment {
                Segment::Copied(bytes, _) => bytes.len(),
                Segment::Shared(..) => 0,
            });
            assert!(held.sum::<usize>() <= 3000, "{} bytes wait", outbox.len());
        }
        sent.extend_from_slice(outbox.front().expect("some wait"));
        assert!(sent.iter().copied().eq((0..=255u8).cycle().take(1_000_000)));
    }
}
