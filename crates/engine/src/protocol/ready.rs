//! The engine's message when it is ready to begin.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::Class;

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
