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
    /// Latencies of those that ended well: base64 of the counts by index, in the encoding that HdrHistogram V2 uses
    /// for counts. Each is a zigzag LEB128 number; a negative one stands for that many indices without a count.
    #[serde(with = "packed")]
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
}

fn one() -> u32 {
    1
}
