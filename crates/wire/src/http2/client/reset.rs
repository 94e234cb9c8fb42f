//! Streams that we reset, on which the peer may have sent before it knew.
//!
//! How it works: a PING follows the resets. Once it is acknowledged, the peer has read the resets
//! before it, and everything that it sent on those streams has come.

use std::collections::VecDeque;

use crate::http2::frame::{ErrorCode, write_ping, write_reset};

/// The payload of our PINGs.
const PING: [u8; 8] = *b"trueload";
/// The maximum number of streams that are remembered until a PING is acknowledged; the newest are
/// kept.
const KEPT_MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Resets {
    /// The streams in the order in which they were reset.
    streams: VecDeque<u32>,
    /// The number of the first streams that an outstanding PING covers.
    asked: usize,
}

impl Resets {
    /// Resets a stream on which the peer may still send.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode, output: &mut Vec<u8>) {
        write_reset(output, stream, code);
        if self.streams.len() == KEPT_MOST {
            self.streams.pop_front();
            self.asked = self.asked.saturating_sub(1);
        }
        self.streams.push_back(stream);
    }

    /// Whether input on a stream may have been sent before the peer knew of the reset.
    pub(super) fn may_be_late(&self, stream: u32) -> bool {
        self.streams.contains(&stream)
    }

    /// Sends a PING after resets, unless one is outstanding.
    #[inline]
    pub(super) fn ask(&mut self, output: &mut Vec<u8>) {
        if self.asked == 0 && !self.streams.is_empty() {
            self.asked = self.streams.len();
            write_ping(output, PING, false);
        }
    }

    /// Handles the acknowledgement of a PING; false if it is not ours.
    pub(super) fn acknowledged(&mut self, payload: [u8; 8]) -> bool {
        if payload != PING || self.asked == 0 {
            return false;
        }
        self.streams.drain(..std::mem::take(&mut self.asked));
        true
    }
}
