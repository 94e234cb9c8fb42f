//! The rows of data that requests take: which one follows from a request's number.

use std::sync::Arc;

use trueload_load::{Mix, Places, RowOrder, Takers};

use crate::data::{DataUse, Row, Rows};

/// Data, and the requests that take a row of it each.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    rows: Arc<Rows>,
    order: RowOrder,
    takers: Takers,
    /// For each target: whether it takes rows.
    takes: Box<[bool]>,
}

impl Taking {
    /// The rows for the targets of a mix that take any; none if no target does.
    pub(super) fn of(
        (rows, order): (Arc<Rows>, RowOrder),
        takes: Box<[bool]>,
        mix: &Mix,
        places: Option<Places>,
        part: Places,
    ) -> Option<Self> {
        let takers = Takers::of(mix, |target| takes[target], places, part)?;
        Some(Taking { rows, order, takers, takes })
    }

    /// The row of the request with this number, which is of this target.
    #[inline]
    pub(super) fn row(&self, target: usize, number: u64) -> Row<'_> {
        if !self.takes[target] {
            return Row::default();
        }
        self.row_at(self.takers.turn(number))
    }

    /// The row of a turn among those of all engines.
    #[inline]
    pub(super) fn row_at(&self, turn: u64) -> Row<'_> {
        self.rows.row(self.order.row(turn, self.rows.count()))
    }

    /// The number of requests for which there are rows.
    pub(super) fn requests(&self) -> u64 {
        self.takers.requests(self.order, self.rows.count())
    }

    /// What has been taken, when so many requests have been numbered.
    pub(super) fn taken(&self, requests: u64, spent: bool) -> DataUse {
        DataUse { rows: self.rows.count(), taken: self.takers.taken(requests), spent }
    }
}
