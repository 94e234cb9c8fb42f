//! Which client of a broadcast sends next.

use crate::generator::slot::NEVER;

/// Inputs handled on one reading of the clock. Deliveries to thousands of clients come in one
/// batch, and the last read in it would seem as early as the first.
const INPUTS_PER_CLOCK: u32 = 16;
/// Clients send their heartbeats in this many groups, spread over the interval.
pub(super) const HEARTBEAT_GROUPS: u32 = 64;

/// The state of the turns: which client sends next.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The next sender.
    next: u32,
    inputs: u32,
    /// The next group to send its heartbeat, and when.
    pub(super) group: u32,
    pub(super) heartbeat_ns: u64,
}

impl Turns {
    /// Whether the clock is to be read before the next input.
    #[inline]
    pub(super) fn is_clock_due(&mut self) -> bool {
        self.inputs = self.inputs.wrapping_add(1);
        self.inputs.is_multiple_of(INPUTS_PER_CLOCK)
    }

    /// The time at which the next group sends its heartbeat.
    pub(super) fn heartbeat_ns(&self, every_ns: Option<u64>) -> u64 {
        if every_ns.is_some() { self.heartbeat_ns } else { NEVER }
    }

    /// Returns the next of `count` clients that can send.
    pub(super) fn next_sender(
        &mut self,
        count: u32,
        can_send: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        for _ in 0..count {
            let key = self.next % count;
            self.next = (key + 1) % count;
            if can_send(key) {
                return Some(key);
            }
        }
        None
    }
}
