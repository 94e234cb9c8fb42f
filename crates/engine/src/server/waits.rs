//! The order in which answers are due, to the nanosecond.
//!
//! Most clients ask for the same delay, so that waits come in the order in which they fall due.
//! These are kept in a queue that is used only at its ends. Only the others pay for a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use trueload_drive::Token;

/// The first answer of a connection, or an answer of a stream, and the time at which it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) due_ns: u64,
    pub(super) index: u32,
    pub(super) generation: u32,
    /// The HTTP/2 stream that it is for; 0 for the connection.
    pub(super) stream: u32,
}

impl Wait {
    pub(super) fn of(token: Token, stream: u32, due_ns: u64) -> Self {
        Wait { due_ns, index: token.index, generation: token.generation, stream }
    }

    pub(super) fn token(&self) -> Token {
        Token { index: self.index, generation: self.generation }
    }
}

/// Waits below this number are kept, whatever has become of their connections.
const KEPT: usize = 1024;

/// All waits. A wait whose connection is gone stays until its time comes, or until such waits could
/// be the most.
#[derive(Debug, Default)]
pub(super) struct Waits {
    row: VecDeque<Wait>,
    others: BinaryHeap<Reverse<Wait>>,
    /// The number of waits that were left when those that are past were dropped.
    left: usize,
}

impl Waits {
    #[inline]
    pub(super) fn push(&mut self, wait: Wait) {
        if self.row.back().is_none_or(|last| last.due_ns <= wait.due_ns) {
            self.row.push_back(wait);
        } else {
            self.others.push(Reverse(wait));
        }
    }

    /// Drops the waits that nobody needs any more, once there are twice as many as needed the last
    /// time.
    pub(super) fn drop_past(&mut self, is_needed: impl Fn(&Wait) -> bool) {
        if self.row.len() + self.others.len() > KEPT + 2 * self.left {
            self.row.retain(&is_needed);
            self.row.shrink_to(2 * self.row.len());
            self.others.retain(|Reverse(wait)| is_needed(wait));
            self.others.shrink_to(2 * self.others.len());
            self.left = self.row.len() + self.others.len();
        }
    }

    /// The time at which the next one is due.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        let other_ns = self.others.peek().map(|Reverse(wait)| wait.due_ns);
        let row_ns = self.row.front().map(|wait| wait.due_ns);
        other_ns.into_iter().chain(row_ns).min()
    }

    /// Takes the next one that is due by now.
    #[inline]
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<Wait> {
        let next_ns = self.next_ns().filter(|next_ns| *next_ns <= now_ns)?;
        if self.row.front().is_some_and(|wait| wait.due_ns == next_ns) {
            return self.row.pop_front();
        }
        self.others.pop().map(|Reverse(wait)| wait)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait(due_ns: u64) -> Wait {
        Wait { due_ns, index: 0, generation: 0, stream: 0 }
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut waits = Waits::default();
        assert_eq!((waits.next_ns(), waits.pop_due(u64::MAX)), (None, None));
        waits.push(wait(20));
        waits.push(wait(10));
        assert_eq!((waits.next_ns(), waits.pop_due(9)), (Some(10), None));
        assert_eq!([waits.pop_due(10), waits.pop_due(10)], [Some(wait(10)), None]);
        assert_eq!([waits.pop_due(20), waits.pop_due(20)], [Some(wait(20)), None]);
    }

    proptest! {
        #[test]
        fn what_is_due_comes_in_the_order_of_its_time(
            pushed in prop::collection::vec((0..1000u64, any::<bool>()), 0..200),
        ) {
            let (mut waits, mut reference) = (Waits::default(), BinaryHeap::new());
            for (due_ns, pops) in pushed {
                waits.push(wait(due_ns));
                reference.push(Reverse(due_ns));
                if pops {
                    let popped = waits.pop_due(u64::MAX).map(|wait| wait.due_ns);
                    prop_assert_eq!(popped, reference.pop().map(|Reverse(due_ns)| due_ns));
                }
            }
            while let Some(Reverse(due_ns)) = reference.pop() {
                prop_assert_eq!(waits.pop_due(u64::MAX).map(|wait| wait.due_ns), Some(due_ns));
            }
            prop_assert_eq!(waits.next_ns(), None);
        }
    }
}
