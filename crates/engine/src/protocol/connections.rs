//! The engine's report about the connections of a phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::{Class, IdleClosed};

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
    pub failed: BTreeMap<Class, u64>,
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
    pub reasons: BTreeMap<Class, String>,
    /// `ipv4`, `ipv6` or `unix`.
    pub family: String,
}
