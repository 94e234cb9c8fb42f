//! The sums of the deliveries of one phase.

use super::Entry;
use crate::lazy::Lazy;

/// The deliveries of one phase: `expected = delivered + lost`.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// The number of messages times their expected receivers.
    pub expected: u64,
    /// Deliveries that arrived, each counted once.
    pub delivered: u64,
    /// Deliveries that did not arrive in time.
    pub lost: u64,
    /// Deliveries that arrived again.
    pub duplicate: u64,
    /// Deliveries that arrived after a later message of the same sender.
    pub out_of_order: u64,
    /// The part of `delivered` that is not timed: messages of other engines whose send time did not
    /// come with them unaltered.
    pub untimed: u64,
    /// Timed deliveries of other engines' messages that seem to have come before they were sent, as
    /// clocks are known only to within a bound. They count as taking no time.
    pub negative: u64,
    /// The longest time by which one of them seems to have come before it was sent, in ns.
    pub negative_ns_max: u64,
    /// The time from the send of a message to every delivery that is timed, in ns.
    pub(super) delivery: Lazy,
    /// One value per message and rank, in ns: from its send to the receiver of that rank among
    /// those of this engine, see [`super::marks`].
    pub(super) ranked: [Lazy; 4],
    /// One value per message of another engine that reached all receivers, in ns: from the first
    /// delivery to the last.
    pub(super) spread: Lazy,
}

impl Deliveries {
    /// Records the time of a delivery.
    #[inline]
    pub(super) fn time(&mut self, from_ns: u64, now_ns: u64) {
        let took_ns = now_ns.checked_sub(from_ns);
        let took_ns = took_ns.unwrap_or_else(|| self.note_negative(from_ns - now_ns));
        self.delivery.record(took_ns);
    }

    /// Notes that a delivery seems to have come so long before its send, and returns the time that
    /// it counts as.
    #[cold]
    fn note_negative(&mut self, early_ns: u64) -> u64 {
        self.negative += 1;
        self.negative_ns_max = self.negative_ns_max.max(early_ns);
        0
    }

    /// Adds a finished message of ours.
    pub(super) fn add_message(&mut self, entry: &Entry) {
        self.expected += u64::from(entry.expected);
        self.delivered += u64::from(entry.delivered);
        self.lost += u64::from(entry.lost);
        self.duplicate += u64::from(entry.duplicate);
        self.out_of_order += u64::from(entry.out_of_order);
    }

    /// Times from the send to each receiver: HdrHistogram V2 compressed, base64; none when empty.
    #[must_use]
    pub fn delivery(&self) -> Option<String> {
        self.delivery.encoded()
    }

    /// Times from the send to the first receiver, in the same form.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        self.ranked[0].encoded()
    }

    /// Times from the send to the median of all expected receivers, in the same form. A message
    /// that did not reach that many receivers has no value.
    #[must_use]
    pub fn median(&self) -> Option<String> {
        self.ranked[1].encoded()
    }

    /// Times from the send to the receiver at 95 % of all expected, in the same form; again without
    /// messages that did not reach that many.
    #[must_use]
    pub fn p95(&self) -> Option<String> {
        self.ranked[2].encoded()
    }

    /// Times from the send to the last receiver, in the same form; again without messages that did
    /// not reach all.
    #[must_use]
    pub fn last(&self) -> Option<String> {
        self.ranked[3].encoded()
    }

    /// Times from the first to the last receiver of messages of other engines, in the same form.
    #[must_use]
    pub fn spread(&self) -> Option<String> {
        self.spread.encoded()
    }

    /// Adds the deliveries of another thread or host.
    pub fn merge(&mut self, other: &Deliveries) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.duplicate += other.duplicate;
        self.out_of_order += other.out_of_order;
        self.untimed += other.untimed;
        self.negative += other.negative;
        self.negative_ns_max = self.negative_ns_max.max(other.negative_ns_max);
        self.delivery.add(&other.delivery);
        self.spread.add(&other.spread);
        let ranked = self.ranked.iter_mut().zip(&other.ranked);
        ranked.for_each(|(mine, theirs)| mine.add(theirs));
    }
}
