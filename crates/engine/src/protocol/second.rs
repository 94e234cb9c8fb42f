//! The protocol's series of a phase over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::Packed;

use super::packed;

/// Some seconds of a phase, by the time of settling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Second {
    /// Seconds since the start of the phase.
    pub t_s: u32,
    /// How many seconds: a power of two, the same for all entries of a series.
    #[serde(default = "one")]
    pub width_s: u32,
    /// Ended well.
    pub ok: u64,
    /// Ended badly.
    pub failed: u64,
    /// Latencies of those that ended well: the count of each index, in order, as HdrHistogram V2 has counts (zigzag
    /// LEB128, where a negative number is so many empty ones); in base64.
    #[serde(with = "packed")]
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
}

fn one() -> u32 {
    1
}
