//! Echo over a plain byte stream: what is sent must come back unchanged and in order.
//!
//! How it works: a run has a payload that is cut into messages of one size. Each connection sends
//! them in turn, over and over, so a late, duplicated or guessed echo differs from the expected
//! one. Nothing is copied: input is compared with the payload in place. The first byte that differs
//! ends the message and the connection, because the start of the next message can no longer be
//! known.

use std::ops::Range;
use std::sync::Arc;

use crate::exchange::{Asked, Disposition, Ending, InOrder, Outcome, PeerClose};

/// The messages that all connections of a run send in turn. All have the same size.
#[derive(Clone, Debug)]
pub struct Messages {
    bytes: Arc<[u8]>,
    size: usize,
}

impl Messages {
    /// Cuts a payload into messages of `size` bytes. None if `size` does not divide the payload's
    /// length, or if the payload is empty.
    pub fn new(bytes: Arc<[u8]>, size: usize) -> Option<Self> {
        let even = size > 0 && !bytes.is_empty() && bytes.len().is_multiple_of(size);
        even.then_some(Messages { bytes, size })
    }

    /// The size of one message in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The payload that the ranges refer to.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// The number of messages before the first one is sent again.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// The message at this offset.
    #[inline]
    pub fn at(&self, offset: usize) -> &[u8] {
        &self.bytes[offset..offset + self.size]
    }

    /// The offset of the message that follows the one at `offset`.
    #[inline]
    pub fn after(&self, offset: usize) -> usize {
        let next = offset + self.size;
        if next == self.bytes.len() { 0 } else { next }
    }

    /// Reports the position of the next `count` messages from `offset` on, in as few pieces as
    /// possible, and advances the offset past them.
    #[inline]
    pub fn take(&self, offset: &mut usize, count: usize, mut piece: impl FnMut(Range<usize>)) {
        let mut left = count * self.size;
        while left > 0 {
            let end = self.bytes.len().min(*offset + left);
            piece(*offset..end);
            left -= end - *offset;
            *offset = if end == self.bytes.len() { 0 } else { end };
        }
    }
}

/// The machine of one connection. `T` is what the caller knows about a request.
#[derive(Debug)]
pub struct Client<T> {
    asked: Asked<T>,
    /// The offsets of the message to be sent next and of the message expected back next.
    to_send: usize,
    to_come: usize,
    /// The number of bytes of the expected message that have come.
    matched: usize,
    first_byte_ns: u64,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client { asked: Asked::default(), to_send: 0, to_come: 0, matched: 0, first_byte_ns: 0 }
    }
}

impl<T: Copy + PartialEq> Client<T> {
    /// Reports the position of the next `count` messages to be sent.
    #[inline]
    pub fn take(&mut self, messages: &Messages, count: usize, piece: impl FnMut(Range<usize>)) {
        messages.take(&mut self.to_send, count, piece);
    }

    /// Handles input. Each request that it ends is passed to `on_outcome`, in order.
    #[inline]
    pub fn handle_input(
        &mut self,
        now_ns: u64,
        mut bytes: &[u8],
        messages: &Messages,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        while !bytes.is_empty() {
            if self.asked.awaited().is_none() {
                return self.asked.end_unsent(now_ns, on_outcome);
            }
            let missing = &messages.at(self.to_come)[self.matched..];
            let (now, later) = bytes.split_at(bytes.len().min(missing.len()));
            if self.matched == 0 {
                self.first_byte_ns = now_ns;
            }
            if now != &missing[..now.len()] {
                self.settle(Ending::Mismatch, on_outcome);
                let rest = Ending::ClosedPipelined;
                self.asked.end_all(now_ns, rest, rest, on_outcome);
                return Disposition::Broken;
            }
            self.matched += now.len();
            if self.matched == messages.size() {
                self.matched = 0;
                self.to_come = messages.after(self.to_come);
                self.settle(Ending::Ok, on_outcome);
            }
            bytes = later;
        }
        Disposition::Open
    }

    /// Handles the end of the peer's side: every outstanding request ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        self.asked.end(now_ns, end, self.matched > 0, on_outcome);
    }

    #[inline]
    fn settle(&mut self, ending: Ending, on_outcome: &mut impl FnMut(Outcome<T>)) {
        let Some(tag) = self.asked.answer() else { return };
        on_outcome(Outcome::answered(tag, ending, self.first_byte_ns));
    }
}

impl<T: Copy + PartialEq + 'static> InOrder for Client<T> {
    type Tag = T;

    #[inline]
    fn asked(&self) -> &Asked<T> {
        &self.asked
    }

    #[inline]
    fn asked_mut(&mut self) -> &mut Asked<T> {
        &mut self.asked
    }

    fn has_begun(&self) -> bool {
        self.matched > 0
    }
}
