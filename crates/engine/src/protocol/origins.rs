//! The protocol's addresses, and its messages about several origins that share one load.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_drive::Address;
use trueload_meter::Class;

use super::TlsPlan;

/// An address to connect to: `127.0.0.1:80`, `[::1]:80` or `unix:/run/app.sock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AddressPlan(#[schemars(with = "String")] pub Address);

impl TryFrom<String> for AddressPlan {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(AddressPlan)
    }
}

impl From<AddressPlan> for String {
    fn from(address: AddressPlan) -> Self {
        address.0.to_string()
    }
}

/// One of several origins (scheme, host and port). Its weight is that of its targets. Connections are dealt to
/// the origins by weight, at least one to each; so are requests of a fixed number, and arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OriginPlan {
    /// Where to connect: resolved by the front, tried in this order at the start.
    pub addresses: Vec<AddressPlan>,
    /// What TLS is set up with, or null for none.
    pub tls: Option<TlsPlan>,
}

/// The connections to one origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OriginConnections {
    /// The number of slots.
    pub requested: u32,
    /// Slots that were established at least once since the engine began.
    pub established: u32,
    /// Slots that were never established in the set-up before this phase, by the class of their
    /// failure.
    pub failed: BTreeMap<Class, u64>,
}

/// Whether a target is of the first origin.
pub(super) fn is_first(origin: &u32) -> bool {
    *origin == 0
}
