//! Timers with one entry per slot. Most requests are answered long before they are out of time, so
//! an entry that comes up early is put back instead of being moved on each send.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries, ordered by time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Timers {
    /// Sets a timer for `slot` at `at_ns`, unless an earlier one is set already.
    #[inline]
    pub(super) fn arm(&mut self, armed_ns: &mut u64, at_ns: u64, slot: u32) {
        if at_ns < *armed_ns {
            *armed_ns = at_ns;
            self.heap.push(Reverse((at_ns, slot)));
        }
    }

    /// The time of the next entry.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Takes an entry whose time has come.
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<(u64, u32)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
