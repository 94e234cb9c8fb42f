//! The streams of one connection, found by number in constant time, however many there were before.
//!
//! How it works: the n-th stream of a client has the number 2n + 1. It is stored in a ring, at n
//! modulo the ring's size. The ring grows to the largest number of streams that were open at once.
//! A stalled stream may still be open when its place is needed again. It then moves to a short
//! queue beside the ring. All streams in the queue are older than all in the ring. Requests that
//! the peer does not permit yet wait in order, without a number.
//!
//! Must not know: frames, and why a stream ends.

use crate::message::Location;
use std::collections::VecDeque;

use crate::coding::Coding;
use crate::content::BodyCheck;
use crate::exchange::{Ending, Outcome};
use crate::http2::window::{ReceiveWindow, SendWindow};

/// The maximum number of streams on a connection: their numbers have 31 bits.
const STREAMS_MOST: u32 = 1 << 30;

/// The value for an answer without an announced length.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The index of the client stream with this number; none if the number is not a client's.
#[inline]
pub(super) fn nth_of(stream: u32) -> Option<u32> {
    (stream % 2 == 1).then_some(stream / 2)
}

/// A request that was sent, and its answer as far as it has come.
#[derive(Debug)]
pub(super) struct Stream<T> {
    pub(super) tag: T,
    /// The index n of the stream, whose number is 2n + 1.
    pub(super) nth: u32,
    /// The status of the final answer; 0 before its head.
    pub(super) status: u16,
    /// The number of interim answers (1xx).
    pub(super) interim: u8,
    /// Whether part of the answer has come.
    pub(super) begun: bool,
    /// The time when the answer began.
    pub(super) first_byte_ns: u64,
    /// The missing bytes of the announced length; [`UNKNOWN`] if none was announced.
    pub(super) left: u64,
    /// The coding of its content.
    pub(super) coding: Coding,
    /// The amount that the peer may send.
    pub(super) receive: ReceiveWindow,
    /// The amount that we may send.
    pub(super) send: SendWindow,
    /// The bytes of the request's body that were sent, and those still to be sent.
    pub(super) sent: u64,
    pub(super) unsent: u64,
    pub(super) body: BodyCheck,
    /// Where the answer leads, if it is a redirect and redirects are followed.
    pub(super) location: Option<Box<Location>>,
}

impl<T: Copy> Stream<T> {
    pub(super) fn out_of_time(&self, now_ns: u64) -> Outcome<T> {
        let half_way = self.begun || self.unsent > 0;
        let ending = if half_way { Ending::TimeoutTotal } else { Ending::TimeoutFirstByte };
        Outcome::unanswered(self.tag, ending, now_ns)
    }
}

/// The requests that were asked on a connection and have not ended.
#[derive(Debug)]
pub(super) struct Streams<T> {
    /// The size is a power of two, or zero.
    ring: Vec<Option<Stream<T>>>,
    /// Displaced streams, in order; all older than those in the ring.
    displaced: VecDeque<Stream<T>>,
    /// The number of streams opened so far.
    next: u32,
    /// No stream in the ring has a lower index.
    oldest: u32,
    open: usize,
    waiting: VecDeque<T>,
}

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Streams {
            ring: Vec::new(),
            displaced: VecDeque::new(),
            next: 0,
            oldest: 0,
            open: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl<T: Copy> Streams<T> {
    /// Resets for a fresh connection; the allocated memory is kept.
    pub(super) fn reset(&mut self) {
        self.ring.iter_mut().for_each(|place| *place = None);
        self.displaced.clear();
        self.waiting.clear();
        (self.next, self.oldest, self.open) = (0, 0, 0);
    }

    #[inline]
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The number of requests that have no stream yet.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(super) fn was_opened(&self, nth: u32) -> bool {
        nth < self.next
    }

    /// The index of the stream that is opened next.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    #[inline]
    pub(super) fn exhausted(&self) -> bool {
        self.next >= STREAMS_MOST
    }

    /// The number of further requests that may be asked.
    #[inline]
    pub(super) fn left(&self) -> usize {
        ((STREAMS_MOST - self.next) as usize).saturating_sub(self.waiting.len())
    }

    pub(super) fn wait(&mut self, tag: T, count: usize) {
        self.waiting.extend(std::iter::repeat_n(tag, count));
    }

    /// Removes the request that has waited longest.
    #[inline]
    pub(super) fn next_waiting(&mut self) -> Option<T> {
        self.waiting.pop_front()
    }

    pub(super) fn drain_waiting(&mut self) -> impl Iterator<Item = T> + '_ {
        self.waiting.drain(..)
    }

    /// Opens the next stream, with these send and receive windows and `unsent` bytes of body.
    /// Returns its index.
    #[inline]
    pub(super) fn begin(&mut self, tag: T, send: u32, receive: u32, unsent: u64) -> u32 {
        if self.open == self.ring.len() {
            self.grow();
        }
        let nth = self.next;
        self.next += 1;
        let place = self.place(nth);
        // Written in place: a stream is large to move.
        let displaced = self.ring[place].is_some();
        self.displaced.extend(self.ring[place].take_if(|_| displaced));
        self.ring[place] = Some(Stream {
            tag,
            nth,
            status: 0,
            interim: 0,
            begun: false,
            first_byte_ns: 0,
            left: UNKNOWN,
            coding: Coding::default(),
            receive: ReceiveWindow::new(receive),
            send: SendWindow::new(send),
            sent: 0,
            unsent,
            body: BodyCheck::default(),
            location: None,
        });
        if displaced {
            self.skip_ended();
        }
        self.open += 1;
        nth
    }

    #[inline]
    pub(super) fn get_mut(&mut self, nth: u32) -> Option<&mut Stream<T>> {
        if self.at(nth).is_some() {
            let place = self.place(nth);
            return self.ring[place].as_mut();
        }
        self.displaced_mut(nth)
    }

    #[cold]
    fn displaced_mut(&mut self, nth: u32) -> Option<&mut Stream<T>> {
        let place = self.displaced.binary_search_by_key(&nth, |stream| stream.nth).ok()?;
        self.displaced.get_mut(place)
    }

    #[inline]
    pub(super) fn remove(&mut self, nth: u32) -> Option<Stream<T>> {
        let found = if self.at(nth).is_some() {
            let place = self.place(nth);
            let found = self.ring[place].take();
            if nth == self.oldest {
                self.skip_ended();
            }
            found
        } else {
            let place = self.displaced.binary_search_by_key(&nth, |stream| stream.nth).ok()?;
            self.displaced.remove(place)
        };
        self.open -= usize::from(found.is_some());
        found
    }

    /// The open stream that was opened first.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&Stream<T>> {
        self.displaced.front().or_else(|| self.at(self.oldest))
    }

    /// The tag of the oldest request that has not ended.
    #[inline]
    pub(super) fn oldest_tag(&self) -> Option<&T> {
        self.oldest().map(|stream| &stream.tag).or(self.waiting.front())
    }

    /// The indices of the open streams from this one on, in order.
    pub(super) fn numbers_from(&self, nth: u32) -> Vec<u32> {
        let of_ring = (self.oldest..self.next).filter_map(|nth| self.at(nth));
        let all = self.displaced.iter().chain(of_ring).map(|stream| stream.nth);
        all.filter(|one| *one >= nth).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<T>> {
        self.displaced.iter_mut().chain(self.ring.iter_mut().flatten())
    }

    /// Passes the tags to `change`, the newest first, until it returns false.
    #[inline]
    pub(super) fn change_newest(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        for tag in self.waiting.iter_mut().rev() {
            if !change(tag) {
                return;
            }
        }
        for nth in (self.oldest..self.next).rev() {
            let place = self.place(nth);
            if let Some(stream) = self.ring[place].as_mut().filter(|stream| stream.nth == nth)
                && !change(&mut stream.tag)
            {
                return;
            }
        }
        for stream in self.displaced.iter_mut().rev() {
            if !change(&mut stream.tag) {
                return;
            }
        }
    }

    /// The place of a stream in the ring; beyond any if the ring is empty.
    #[inline]
    fn place(&self, nth: u32) -> usize {
        nth as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    fn at(&self, nth: u32) -> Option<&Stream<T>> {
        self.ring.get(self.place(nth))?.as_ref().filter(|stream| stream.nth == nth)
    }

    #[inline]
    fn skip_ended(&mut self) {
        while self.oldest < self.next && self.at(self.oldest).is_none() {
            self.oldest += 1;
        }
    }

    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(1);
        let mut ring = Vec::new();
        ring.resize_with(size, || None);
        let before = std::mem::replace(&mut self.ring, ring);
        for stream in before.into_iter().flatten() {
            let place = self.place(stream.nth);
            self.ring[place] = Some(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn streams_are_found_by_their_numbers_whatever_else_has_ended(
            steps in prop::collection::vec((0..5_u8, any::<prop::sample::Index>()), 1..400),
        ) {
            let (mut streams, mut model) = (Streams::default(), BTreeMap::new());
            for (step, which) in steps {
                if step < 3 {
                    let nth = streams.begin(model.len(), 0, 0, 0);
                    prop_assert_eq!(model.insert(nth, model.len()), None);
                } else if !model.is_empty() {
                    // The newest half, so that old ones are displaced.
                    let place = model.len() / 2 + which.index(model.len().div_ceil(2));
                    let nth = *model.keys().nth(place.min(model.len() - 1)).expect("one");
                    let ended = streams.remove(nth).map(|stream| stream.tag);
                    prop_assert_eq!(ended, model.remove(&nth));
                    prop_assert!(streams.get_mut(nth).is_none() && streams.remove(nth).is_none());
                }
                prop_assert_eq!(streams.open(), model.len());
                prop_assert_eq!(streams.oldest().map(|one| one.nth), model.keys().next().copied());
                prop_assert_eq!(streams.numbers_from(0), model.keys().copied().collect::<Vec<_>>());
                let mut tags = Vec::new();
                streams.change_newest(|tag| {
                    tags.push(*tag);
                    true
                });
                prop_assert_eq!(tags, model.values().rev().copied().collect::<Vec<_>>());
                for (nth, tag) in &model {
                    prop_assert_eq!(streams.get_mut(*nth).map(|one| one.tag), Some(*tag));
                }
                let most = model.len().max(1).next_power_of_two();
                prop_assert!(streams.ring.len() <= 512.max(most));
            }
        }
    }

    #[test]
    fn a_ring_is_no_larger_than_most_streams_at_once() {
        let mut streams = Streams::default();
        let stalled = streams.begin('s', 0, 0, 0);
        for _ in 0..1000 {
            let nth = streams.begin('x', 0, 0, 0);
            assert!(streams.remove(nth).is_some());
        }
        assert_eq!((streams.ring.len(), streams.oldest().map(|one| one.nth)), (2, Some(stalled)));
        streams.reset();
        assert_eq!((streams.open(), streams.begin('y', 0, 0, 0)), (0, 0));
    }

    // A thousand connections with ten streams each are to take 15 % of what h2load takes.
    #[test]
    fn a_stream_takes_little_memory() {
        let bytes = size_of::<Option<Stream<[u64; 5]>>>();
        assert!(bytes <= 176, "a stream takes {bytes} bytes");
    }
}
