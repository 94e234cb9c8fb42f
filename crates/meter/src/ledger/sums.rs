//! What the deliveries of one phase came to.

use super::Entry;
use crate::lazy::Lazy;

/// Deliveries of one phase: `expected = delivered + lost`.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// Messages times the receivers that were to have them.
    pub expected: u64,
    /// Had, each counted once.
    pub delivered: u64,
    /// Not had in time.
    pub lost: u64,
    /// Had again.
    pub duplicate: u64,
    /// Had after a later message of the same sender.
    pub out_of_order: u64,
    /// Of those delivered: messages of other engines, whose sends are on other clocks.
    pub untimed: u64,
    /// Every other delivery, from the send of its message, in ns.
    pub(super) delivery: Lazy,
    /// One value a message, in ns: its receivers at these ranks, see [`super::marks`].
    pub(super) ranked: [Lazy; 4],
    /// One value a message of another engine that all receivers had, in ns: from the first of them to the last.
    pub(super) spread: Lazy,
}

impl Deliveries {
    /// Adds a message of ours that is over.
    pub(super) fn add_message(&mut self, entry: &Entry) {
        self.expected += u64::from(entry.expected);
        self.delivered += u64::from(entry.delivered);
        self.lost += u64::from(entry.lost);
        self.duplicate += u64::from(entry.duplicate);
        self.out_of_order += u64::from(entry.out_of_order);
    }

    /// From the send to each receiver: HdrHistogram V2 compressed, base64; none when empty.
    #[must_use]
    pub fn delivery(&self) -> Option<String> {
        self.delivery.encoded()
    }

    /// From the send to the first receiver, in the same form.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        self.ranked[0].encoded()
    }

    /// To the median receiver of all expected, in the same form; messages that did not get so far have no value.
    #[must_use]
    pub fn median(&self) -> Option<String> {
        self.ranked[1].encoded()
    }

    /// To the receiver at 95 % of all expected, in the same form and with the same gaps.
    #[must_use]
    pub fn p95(&self) -> Option<String> {
        self.ranked[2].encoded()
    }

    /// To the last receiver, in the same form and with the same gaps.
    #[must_use]
    pub fn last(&self) -> Option<String> {
        self.ranked[3].encoded()
    }

    /// From the first receiver of a message of another engine to the last, in the same form.
    #[must_use]
    pub fn spread(&self) -> Option<String> {
        self.spread.encoded()
    }

    /// Adds another thread's or host's deliveries.
    pub fn merge(&mut self, other: &Deliveries) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.duplicate += other.duplicate;
        self.out_of_order += other.out_of_order;
        self.untimed += other.untimed;
        self.delivery.add(&other.delivery);
        self.spread.add(&other.spread);
        let ranked = self.ranked.iter_mut().zip(&other.ranked);
        ranked.for_each(|(mine, theirs)| mine.add(theirs));
    }
}
