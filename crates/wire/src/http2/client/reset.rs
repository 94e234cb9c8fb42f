//! Streams that we have reset: the peer may have sent on them before it knew.
//!
//! How it works: behind the resets goes a PING. When it is acknowledged, the peer has read the resets before it, and
//! everything that it sent on those streams has come.

use std::collections::VecDeque;

use crate::http2::frame::{ErrorCode, write_ping, write_reset};

/// What is in our PINGs.
const PING: [u8; 8] = *b"trueload";
/// Streams that are remembered while a peer does not acknowledge a PING: the newest ones.
const KEPT_MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Resets {
    /// In the order in which they were reset.
    streams: VecDeque<u32>,
    /// How many of them, the first ones, a PING is under way for.
    asked: usize,
}

impl Resets {
    /// Resets a stream that the peer may still send on.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode, output: &mut Vec<u8>) {
        write_reset(output, stream, code);
        if self.streams.len() == KEPT_MOST {
            self.streams.pop_front();
            self.asked = self.asked.saturating_sub(1);
        }
        self.streams.push_back(stream);
    }

    /// Whether what comes on a stream may have been sent before its peer knew of the reset.
    pub(super) fn may_be_late(&self, stream: u32) -> bool {
        self.streams.contains(&stream)
    }

    /// Sends a PING behind resets that none is under way for.
    #[inline]
    pub(super) fn ask(&mut self, output: &mut Vec<u8>) {
        if self.asked == 0 && !self.streams.is_empty() {
            self.asked = self.streams.len();
            write_ping(output, PING, false);
        }
    }

    /// A PING was acknowledged; false: it is none of ours.
    pub(super) fn acknowledged(&mut self, payload: [u8; 8]) -> bool {
        if payload != PING || self.asked == 0 {
            return false;
        }
        self.streams.drain(..std::mem::take(&mut self.asked));
        true
    }
}
