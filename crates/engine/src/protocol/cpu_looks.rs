//! The protocol's looks at the speed of a CPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The speed of one CPU over time, measured by repeating the same short work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuLooks {
    /// The number of the CPU.
    pub cpu: u32,
    /// The time from one measurement to the next, in ns.
    pub every_ns: u64,
    /// The time that the work took at each measurement, in ns; 0 if none was made.
    pub work_ns: Vec<u32>,
}
