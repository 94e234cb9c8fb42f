//! The protocol's looks at the speed of CPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was seen of a CPU: the same short work, over and over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuLooks {
    /// Its number.
    pub cpu: u32,
    /// From one look to the next.
    pub every_ns: u64,
    /// How long the work took at each; 0 where none was taken.
    pub work_ns: Vec<u32>,
}
