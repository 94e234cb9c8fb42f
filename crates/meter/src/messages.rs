//! Messages of conversations over WebSocket: how many came, how far apart, and how soon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Lazy;

/// Messages that came in conversations over WebSocket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Messages received.
    pub received: u64,
    /// Messages that no step of their conversation expected.
    pub unexpected: u64,
    /// The times from one message to the next on a connection, in ns. HdrHistogram V2, compressed,
    /// base64; null when empty.
    #[schemars(with = "Option<String>")]
    pub gap: Lazy,
    /// The times from the send of a message with a stamp to each of its deliveries, likewise.
    #[schemars(with = "Option<String>")]
    pub delivery: Lazy,
}

impl Messages {
    /// Records messages received, those among them that no step expected, their gaps, and how long
    /// those with a stamp took.
    pub fn record(
        &mut self,
        (received, unexpected): (u64, u64),
        gaps_ns: impl Iterator<Item = u64>,
        delivered_ns: impl Iterator<Item = u64>,
    ) {
        self.received += received;
        self.unexpected += unexpected;
        gaps_ns.for_each(|ns| self.gap.record(ns));
        delivered_ns.for_each(|ns| self.delivery.record(ns));
    }
}

crate::merged! { Messages: received, unexpected, gap, delivery }
