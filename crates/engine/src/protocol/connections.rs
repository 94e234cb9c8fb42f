//! The engine's report about the connections of a phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::{Class, IdleClosed};

/// The connections of a phase. A slot is one of the connections asked for; it keeps its identity
/// when it reconnects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// The number of slots.
    pub requested: u32,
    /// Slots that were established at least once since the engine began.
    pub established: u32,
    /// Slots that were never established in the set-up before this phase, by the class of their
    /// failure.
    #[serde(default)]
    pub failed: BTreeMap<Class, u64>,
    /// The time from the first attempt of that set-up to its last established connection, in ns.
    #[serde(default)]
    pub set_up_ns: u64,
    /// Idle connections that were open when the phase stopped.
    #[serde(default)]
    pub idle_open: u32,
    /// Connections opened again during the phase.
    pub reconnects: u64,
    /// Connections that the peer closed soon after accepting them, before any request. The first
    /// phase also counts those before it.
    pub dropped: u64,
    /// Connections that we half-closed after the last answer and that the peer did not close. Also
    /// those that we reset at once, because earlier ones had shown that the peer does not close.
    #[serde(default)]
    pub unended: u64,
    /// Connections that the peer closed while they were idle.
    #[serde(default)]
    pub idle_closed: IdleClosed,
    /// Slots that were without a connection for more than 1 s at a stretch, not counting an orderly
    /// close.
    pub down: u32,
    /// The longest time for which an established slot could not reconnect after a loss, in ns; 0 if
    /// there was none.
    pub outage_ns: u64,
    /// Slots that lost their connection and did not get another one, for any reason.
    pub outages: u32,
    /// Full TLS handshakes. The first phase also counts those before it.
    #[serde(default)]
    pub handshakes_full: u64,
    /// TLS handshakes that resumed an earlier session. The first phase also counts those before it.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Details of connection failures so far: the first of each class, if more is known than the
    /// class. The text may quote the peer.
    #[serde(default)]
    pub reasons: BTreeMap<Class, String>,
    /// The kind of address: `ipv4`, `ipv6` or `unix`.
    pub family: String,
}
