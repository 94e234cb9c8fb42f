//! The protocol's counts of datagrams beside the requests that they settled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Datagrams of a phase that settled nothing, or not in their turn. A request without an answer in time is a failure of
/// class `lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Answers to requests that had been given up as lost.
    pub late: u64,
    /// Second answers to requests that had been answered.
    pub duplicated: u64,
    /// Answers that settled a request behind the answer to one sent later on the same socket.
    pub reordered: u64,
    /// Datagrams that were an answer to nothing that was sent.
    pub unsolicited: u64,
    /// Datagrams of ours that never left: they found no room, or the kernel refused them. Their requests are lost.
    pub dropped: u64,
    /// Datagrams that came and found the queue of our socket full. Their requests are lost, and not by the network.
    pub overflowed: u64,
}

impl From<trueload_meter::Datagrams> for Datagrams {
    fn from(found: trueload_meter::Datagrams) -> Self {
        let trueload_meter::Datagrams { late, duplicated, reordered, unsolicited, .. } = found;
        let (dropped, overflowed) = (found.dropped, found.overflowed);
        Datagrams { late, duplicated, reordered, unsolicited, dropped, overflowed }
    }
}
