//! The engine's reports about connections: when it is ready, and of a phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::{Class, IdleClosed};

use super::{AddressPlan, Tls};

/// A generator is connected, or a server listens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// The time of this line, on the engine's clock.
    pub at_ns: u64,
    /// Server: the address that it listens on.
    pub listen: Option<AddressPlan>,
    /// Generator: the number of connections asked for.
    pub requested: u32,
    /// Generator: the number of connections established.
    pub established: u32,
    /// Generator: attempts that failed, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Generator: the first address that answered.
    pub address: Option<AddressPlan>,
    /// Generator: the time from the first attempt to the last established connection, in ns.
    #[serde(default)]
    pub set_up_ns: u64,
    /// Generator: the growth of its resident memory during the set-up, without its code, in bytes.
    #[serde(default)]
    pub grown_bytes: u64,
    /// What carries the sockets: `epoll` or `io_uring`.
    #[serde(default)]
    pub driver: String,
    /// The reason why this is not the driver that was asked for; null if it is.
    #[serde(default)]
    pub driver_note: Option<String>,
    /// Generator: details of failed attempts, the first of each class, if more is known than the
    /// class. The text may quote the peer.
    #[serde(default)]
    pub reasons: BTreeMap<Class, String>,
    /// Generator: the result of the first TLS handshake; null without TLS.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Server: the certificate that it made at the start, in PEM.
    #[serde(default)]
    pub certificate: Option<String>,
}

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
