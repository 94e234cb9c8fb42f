//! The plan of a reference server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddressPlan, DriverPlan, ServeTlsPlan, ServicePlan};

/// What one reference server is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServePlan {
    /// The version of this protocol; any other is refused.
    pub protocol: u32,
    /// Port 0 for a free one; `ready` names it. A socket file has one thread.
    pub listen: AddressPlan,
    /// What it does.
    #[serde(default, skip_serializing_if = "ServicePlan::is_plain_http")]
    pub service: ServicePlan,
    /// Threads, each with its own listening socket on the same port.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty for no pinning.
    pub cpus: Vec<u32>,
    /// What carries the sockets.
    #[serde(default)]
    pub driver: DriverPlan,
    /// For so long a thread polls before it sleeps; 0 for not at all.
    #[serde(default)]
    pub spin_ns: u64,
    /// What TLS is set up with, or null for none.
    #[serde(default)]
    pub tls: Option<ServeTlsPlan>,
}
