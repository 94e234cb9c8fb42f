//! The engine's message when it is ready to begin.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::Class;

use super::{AddressPlan, Tls};

/// Connected or listening.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Engine's clock.
    pub at_ns: u64,
    /// Server: the address it listens on.
    pub listen: Option<AddressPlan>,
    /// Generator: connections asked for.
    pub requested: u32,
    /// Generator: connections established.
    pub established: u32,
    /// Generator: what the attempts that failed met, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Generator: the address that answered first.
    pub address: Option<AddressPlan>,
    /// Generator: from the first attempt to the last connection that was established.
    #[serde(default)]
    pub set_up_ns: u64,
    /// Generator: by how much its resident memory, but for its code, has grown over the set-up.
    #[serde(default)]
    pub grown_bytes: u64,
    /// What carries the sockets: `epoll` or `io_uring`.
    #[serde(default)]
    pub driver: String,
    /// Why that is not what was asked for, or null.
    #[serde(default)]
    pub driver_note: Option<String>,
    /// Generator: why attempts failed, the first of each class, where more is known than the class. May quote the peer.
    #[serde(default)]
    pub reasons: BTreeMap<Class, String>,
    /// Generator: what the first TLS handshake agreed on; null without TLS.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Server: the certificate made at the start, in PEM.
    #[serde(default)]
    pub certificate: Option<String>,
}
