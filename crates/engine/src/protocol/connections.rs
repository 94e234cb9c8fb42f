//! The engine's report about the connections of a phase, and how the work was spread over them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::SumNs;

use super::sum;

/// Connections of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Slots.
    pub requested: u32,
    /// Slots that were established at least once since the engine began.
    pub established: u32,
    /// What those met that were never established, by class, in the set-up before this phase.
    #[serde(default)]
    pub failed: BTreeMap<String, u64>,
    /// From the first attempt of that set-up to its last connection.
    #[serde(default)]
    pub set_up_ns: u64,
    /// Idle connections that were open when the phase stopped.
    #[serde(default)]
    pub idle_open: u32,
    /// Connections opened again during the phase.
    pub reconnects: u64,
    /// Connections that the peer closed as soon as it had taken them, with nothing asked (the first phase: and before it).
    pub dropped: u64,
    /// Connections that the peer did not end after its last answer though our side had, or which were reset at once
    /// because those before had shown that.
    #[serde(default)]
    pub unended: u64,
    /// Connections that the peer ended while they were idle.
    #[serde(default)]
    pub idle_closed: IdleClosed,
    /// Slots down for more than 1 s at a stretch without a polite close.
    pub down: u32,
    /// The longest time that an established slot could not be opened again after a loss, 0 when none.
    pub outage_ns: u64,
    /// Slots that lost their connection and then got no new one, whatever the reason.
    pub outages: u32,
    /// TLS handshakes in full (the first phase: and before it).
    #[serde(default)]
    pub handshakes_full: u64,
    /// TLS handshakes that took up an earlier session (the first phase: and before it).
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Why connections failed so far, the first of each class, where more is known than the class. May quote the peer.
    #[serde(default)]
    pub reasons: BTreeMap<String, String>,
    /// `ipv4`, `ipv6` or `unix`.
    pub family: String,
}

/// Connections that the peer ended when nothing had been outstanding on them for 100 ms, with a 408 before it or without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleClosed {
    /// How many.
    pub count: u64,
    /// The shortest time for which one had been idle; 0 when none was ended.
    pub after_ns: u64,
}

impl From<trueload_meter::IdleClosed> for IdleClosed {
    fn from(found: trueload_meter::IdleClosed) -> Self {
        IdleClosed { count: found.count, after_ns: found.after_ns }
    }
}

/// How the work was spread over the slots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    /// Slots that asked at least once.
    pub asked: u32,
    /// Slots that asked and never got a complete answer.
    pub never_answered: u32,
    /// Answers (of any status) per slot: the sum over slots that asked.
    pub answers_sum: u64,
    /// The sum of the squares of the answers per slot.
    pub answers_sum_squares: u64,
    /// The fewest answers of a slot that asked.
    pub answers_min: u64,
    /// The most.
    pub answers_max: u64,
    /// Slots by their mean service time (its index as in sparse histograms), and by about how many good answers that is of (rounded
    /// down): how many.
    #[serde(default)]
    pub means: Vec<(u32, u64, u32)>,
    /// For each slot that ever had a request outstanding for at least 1 s while 100 others or more were answered, and not only in its beginning: its longest such wait. At most 10,000.
    pub long_waits_ns: Vec<u64>,
    /// For each of those slots, in the same order: its requests that ended, and how many of its waits lasted at least 1, 2, 4, 8, 16 and 32 s;
    /// then how many connections it lost that were never answered, after a wait of at least as long.
    #[serde(default)]
    pub long_waits: Vec<Vec<u64>>,
    /// Time-integral over the window of requests that the load permitted to be outstanding: connected x depth, less refill and connect gaps and the ends of connections.
    #[serde(deserialize_with = "sum::read")]
    pub permitted_ns: SumNs,
}
