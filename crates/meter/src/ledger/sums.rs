//! The sums of the deliveries of one phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Entry;
use crate::Lazy;
use crate::counts::is_zero;

/// The deliveries of a broadcast in one phase: `expected = delivered + lost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliveries {
    /// The number of messages times their expected receivers: those that had joined before the
    /// send, and that we did not close.
    pub expected: u64,
    /// Deliveries that arrived in time, each counted once.
    pub delivered: u64,
    /// Deliveries that did not arrive in time.
    pub lost: u64,
    /// Deliveries that arrived again.
    pub duplicate: u64,
    /// Deliveries that arrived after a later message of the same sender.
    pub out_of_order: u64,
    /// The part of `delivered` that has no time: the send time in a message of another engine
    /// cannot be right.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untimed: u64,
    /// Timed deliveries that seem to have arrived before they were sent. Another engine sent them,
    /// and its clock is known only to within a bound. They count as taking no time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negative: u64,
    /// The longest time by which a delivery seems to have arrived too early, in ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negative_max_ns: u64,
    /// The times of these deliveries.
    pub histograms: DeliveryHistograms,
}

/// Times of deliveries in ns, from the send of a message to the receivers of this engine:
/// HdrHistogram V2, compressed, base64; null when empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryHistograms {
    /// Every delivery that is timed.
    #[schemars(with = "Option<String>")]
    pub delivery: Lazy,
    /// The first receiver of each message.
    #[schemars(with = "Option<String>")]
    pub first: Lazy,
    /// The median of all expected receivers, of messages that reached half of them.
    #[schemars(with = "Option<String>")]
    pub median: Lazy,
    /// The receiver at 95 % of all expected, of messages that reached that many.
    #[schemars(with = "Option<String>")]
    pub p95: Lazy,
    /// The last receiver, of messages that reached all.
    #[schemars(with = "Option<String>")]
    pub last: Lazy,
    /// From the first to the last receiver, of messages of other engines that reached all receivers
    /// here. If another phase follows at once, its values are in the report that is settled next.
    #[serde(default, skip_serializing_if = "Lazy::is_empty")]
    #[schemars(with = "Option<String>")]
    pub spread: Lazy,
}

impl Deliveries {
    /// Records the time of a delivery.
    #[inline]
    pub(super) fn time(&mut self, from_ns: u64, now_ns: u64) {
        let took_ns = now_ns.checked_sub(from_ns);
        let took_ns = took_ns.unwrap_or_else(|| self.note_negative(from_ns - now_ns));
        self.histograms.delivery.record(took_ns);
    }

    /// Notes that a delivery seems to have come so long before its send, and returns the time that
    /// it counts as.
    #[cold]
    fn note_negative(&mut self, early_ns: u64) -> u64 {
        self.negative += 1;
        self.negative_max_ns = self.negative_max_ns.max(early_ns);
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
}

crate::merged! {
    Deliveries: expected, delivered, lost, duplicate, out_of_order, untimed, negative, histograms;
    most: negative_max_ns
}
crate::merged! { DeliveryHistograms: delivery, first, median, p95, last, spread }

impl DeliveryHistograms {
    /// The histogram of each rank, in the order of [`super::marks`].
    pub(super) fn ranked(&mut self) -> [&mut Lazy; 4] {
        [&mut self.first, &mut self.median, &mut self.p95, &mut self.last]
    }
}
