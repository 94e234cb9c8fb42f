//! Broadcasts within one batch of events: they leave together, as one shared segment, and the
//! receipts follow.

use std::sync::Arc;

use trueload_drive::Token;
use trueload_wire::websocket::{Kind, send};

use super::hub::Segment;

/// A larger round leaves before its batch is over.
const ROUND_BYTES: usize = 256 * 1024;

/// Broadcasts, and what their senders get after them.
#[derive(Debug, Default)]
pub(super) struct Round {
    number: u32,
    frames: Vec<u8>,
    messages: u64,
    /// The connection of each receipt, and the end of its bytes in `behind`.
    receipts: Vec<(Token, usize)>,
    behind: Vec<u8>,
}

/// What the senders of a round that is over get after it.
#[derive(Debug, Default)]
pub(super) struct EndedRound {
    receipts: Vec<(Token, usize)>,
    behind: Vec<u8>,
}

impl EndedRound {
    /// The connections and their bytes, in order.
    pub(super) fn receipts(&self) -> impl Iterator<Item = (Token, &[u8])> {
        let mut from = 0;
        self.receipts.iter().map(move |&(token, to)| {
            let bytes = &self.behind[from..to];
            from = to;
            (token, bytes)
        })
    }
}

impl Round {
    /// The number of this round; never 0.
    pub(super) fn number(&self) -> u32 {
        self.number + 1
    }

    /// Adds a message to all.
    pub(super) fn broadcast(&mut self, kind: Kind, payload: &[u8]) {
        send::message(&mut self.frames, kind, payload, None);
        self.messages += 1;
    }

    /// Adds bytes to one connection, to be sent after the broadcasts.
    pub(super) fn behind(&mut self, token: Token, bytes: &[u8]) {
        self.behind.extend_from_slice(bytes);
        self.receipts.push((token, self.behind.len()));
    }

    /// Whether nothing waits to leave.
    pub(super) fn is_empty(&self) -> bool {
        self.messages == 0 && self.receipts.is_empty()
    }

    /// Whether so much waits that it should leave now.
    pub(super) fn is_large(&self) -> bool {
        self.frames.len() >= ROUND_BYTES
    }

    /// Ends the round; returns what goes to all, and what goes out after it.
    pub(super) fn end(&mut self) -> (Segment, EndedRound) {
        let segment = Segment { frames: Arc::from(&self.frames[..]), messages: self.messages };
        let ended = EndedRound {
            receipts: std::mem::take(&mut self.receipts),
            behind: std::mem::take(&mut self.behind),
        };
        self.frames.clear();
        give_back(&mut self.frames);
        self.messages = 0;
        self.number = (self.number + 1) % (u32::MAX - 1);
        (segment, ended)
    }

    pub(super) fn take_back(&mut self, mut ended: EndedRound) {
        ended.receipts.clear();
        ended.behind.clear();
        give_back(&mut ended.behind);
        self.receipts = ended.receipts;
        self.behind = ended.behind;
    }
}

/// Buffers that one message has made larger than this are not kept.
const KEPT_BYTES: usize = 1024 * 1024;

/// Frees a large buffer; a smaller one is kept for reuse.
pub(super) fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_leaves_once_and_each_gets_what_is_its_own() {
        let mut round = Round::default();
        let first = round.number();
        assert!(round.is_empty());
        round.broadcast(Kind::Text, b"a");
        let [seven, nine] = [7, 9].map(|index| Token { index, generation: 0 });
        round.behind(seven, b"one");
        round.broadcast(Kind::Binary, b"b");
        round.behind(nine, b"");
        round.behind(seven, b"two");
        let (segment, ended) = round.end();
        assert_eq!((&*segment.frames, segment.messages), (&b"\x81\x01a\x82\x01b"[..], 2));
        let receipts: Vec<_> = ended.receipts().collect();
        assert_eq!(receipts, [(seven, &b"one"[..]), (nine, b""), (seven, b"two")]);
        round.take_back(ended);
        assert!(round.is_empty() && round.number() != first);
    }
}
