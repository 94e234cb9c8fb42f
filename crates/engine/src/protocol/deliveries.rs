//! The protocol's results of a broadcast beside its receipts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a broadcast's messages at their receivers: `expected = delivered + lost`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliveries {
    /// Messages times the receivers whose join was confirmed before the send and whom we did not close.
    pub expected: u64,
    /// Had, each counted once.
    pub delivered: u64,
    /// Not had in time.
    pub lost: u64,
    /// Had again.
    pub duplicate: u64,
    /// Had behind a later message of the same sender.
    pub out_of_order: u64,
    /// Delivered, but without a time: another engine sent the message, and the send time in it cannot be right.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untimed: u64,
    /// Delivered and timed, but seemingly before the send: another engine sent the message, and its clock is known
    /// only to within a bound. They count as taking no time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negative: u64,
    /// The longest time by which one of them seems to have come too early.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negative_max_ns: u64,
    /// Their times.
    pub histograms: DeliveryHistograms,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Times from the send of a message. HdrHistogram V2 compressed, base64; null when empty. Receivers are those of
/// this engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryHistograms {
    /// Every delivery that is timed.
    pub delivery: Option<String>,
    /// The first receiver of each message.
    pub first: Option<String>,
    /// The median receiver, of messages that half of all expected had.
    pub median: Option<String>,
    /// The receiver at 95 %, of messages that so many had.
    pub p95: Option<String>,
    /// The last receiver, of messages that all had.
    pub last: Option<String>,
    /// From the first receiver of a message of another engine to the last here, of messages that all here had;
    /// of a phase that follows another at once, told with the one that is settled next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
}
