//! What the deliveries of one phase came to.

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
    /// Every delivery, from the send of its message, in ns.
    pub(super) delivery: Lazy,
    /// One value a message, in ns: its receivers at these ranks, see [`super::marks`].
    pub(super) ranked: [Lazy; 4],
}

impl Deliveries {
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

    /// Adds another thread's or host's deliveries.
    pub fn merge(&mut self, other: &Deliveries) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.duplicate += other.duplicate;
        self.out_of_order += other.out_of_order;
        self.delivery.add(&other.delivery);
        let ranked = self.ranked.iter_mut().zip(&other.ranked);
        ranked.for_each(|(mine, theirs)| mine.add(theirs));
    }
}
