//! Echo over a plain stream of bytes: what is sent must come back, byte by byte and in order.
//!
//! Strategy: a run has a payload that is cut into messages of one size; each connection sends them in
//! turn, over and over, so that an echo which is late, doubled or guessed differs from the one that is
//! due. Nothing is copied: what comes is compared with the payload where it lies. The first byte that
//! differs ends the message, and the connection with it, as nobody knows any more where the next
//! message begins.

use std::ops::Range;
use std::sync::Arc;

use crate::exchange::{Asked, Disposition, Ending, InOrder, Outcome, PeerEnd};

/// What all connections of a run send: messages of one size, in turn.
#[derive(Clone, Debug)]
pub struct Messages {
    bytes: Arc<[u8]>,
    size: usize,
}

impl Messages {
    /// Cuts a payload into messages of `size` bytes; none if it does not come out even, or is empty.
    #[must_use]
    pub fn new(bytes: Arc<[u8]>, size: usize) -> Option<Self> {
        let even = size > 0 && !bytes.is_empty() && bytes.len().is_multiple_of(size);
        even.then_some(Messages { bytes, size })
    }

    /// Bytes of one message.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes that ranges are of.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// How many there are before the first has its turn again.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// The message that begins at this offset.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize) -> &[u8] {
        &self.bytes[offset..offset + self.size]
    }

    /// The offset of the message behind the one at `offset`.
    #[inline]
    #[must_use]
    pub fn after(&self, offset: usize) -> usize {
        let next = offset + self.size;
        if next == self.bytes.len() { 0 } else { next }
    }

    /// Where the next `count` messages from `offset` on lie, in as few pieces as can be; moves the offset behind them.
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
    /// Where the message to be sent next lies, and the one that is to come back next.
    to_send: usize,
    to_come: usize,
    /// Bytes of it that have come.
    matched: usize,
    first_byte_ns: u64,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client { asked: Asked::default(), to_send: 0, to_come: 0, matched: 0, first_byte_ns: 0 }
    }
}

impl<T: Copy + PartialEq> Client<T> {
    /// Where the next `count` messages lie, to be sent.
    #[inline]
    pub fn take(&mut self, messages: &Messages, count: usize, piece: impl FnMut(Range<usize>)) {
        messages.take(&mut self.to_send, count, piece);
    }

    /// Bytes have come. Every request that they end is given to `on_outcome`, in order.
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

    /// The peer's side has ended; every outstanding request ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerEnd,
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

    fn reset(&mut self) {
        *self = Client::default();
    }

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
