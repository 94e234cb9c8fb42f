//! Outcomes that are entered together.

use trueload_wire::exchange::Outcome;

use crate::generator::accounting::Accounting;
use crate::generator::slot::{State, Tag};

/// Consecutive requests that ended alike: under pipelining most do, and they are entered together.
#[derive(Debug, Default)]
pub(in crate::generator) struct Row {
    /// The last requests that ended alike.
    last: Option<Outcome<Tag>>,
}

impl Row {
    /// Takes requests that ended like those before; false if these did not.
    #[inline]
    pub(in crate::generator) fn takes(&mut self, outcome: &Outcome<Tag>) -> bool {
        let Some(last) = &mut self.last else { return false };
        let alike = *last == Outcome { count: last.count, ..*outcome };
        last.count += if alike { outcome.count } else { 0 };
        alike
    }

    /// The outcomes that have not been entered yet.
    #[inline]
    pub(in crate::generator) fn rest(&self) -> Option<&Outcome<Tag>> {
        self.last.as_ref()
    }
}

impl Accounting {
    /// Begins a row with an outcome, and enters the row before. `arrived_ns` is when the answers of
    /// that row arrived, if each answer is an arrival of its own and the time is known. Not inlined:
    /// most outcomes are taken by [`Row::takes`], which has to stay small.
    #[inline(never)]
    pub(in crate::generator) fn begin_row(
        &mut self,
        row: &mut Row,
        state: &mut State,
        (now_ns, arrived_ns): (u64, Option<u64>),
        outcome: Outcome<Tag>,
    ) {
        if let Some(before) = &row.last {
            self.note_arrival(now_ns, arrived_ns, Some(before));
            self.settle(state, now_ns, before);
        }
        row.last = Some(outcome);
    }
}
