//! Outcomes that are entered together.

use trueload_wire::exchange::Outcome;

use crate::generator::slot::Tag;

/// Consecutive requests that ended alike: under pipelining most do, and they are entered together.
#[derive(Debug)]
pub(in crate::generator) struct Row {
    /// The last requests that ended alike.
    last: Option<Outcome<Tag>>,
    /// Each request is entered on its own.
    apart: bool,
}

impl Row {
    pub(in crate::generator) fn new(apart: bool) -> Self {
        Row { last: None, apart }
    }

    /// Adds outcomes; returns the earlier ones if these are not alike.
    #[inline]
    pub(in crate::generator) fn add(&mut self, outcome: Outcome<Tag>) -> Option<Outcome<Tag>> {
        match &mut self.last {
            Some(last) if !self.apart && *last == (Outcome { count: last.count, ..outcome }) => {
                last.count += outcome.count;
                None
            }
            last => last.replace(outcome),
        }
    }

    /// The outcomes that have not been returned yet.
    #[inline]
    pub(in crate::generator) fn end(self) -> Option<Outcome<Tag>> {
        self.last
    }
}
