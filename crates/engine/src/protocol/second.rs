//! The protocol's series of a phase over time.

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trueload_meter::Packed;

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
    /// Latencies of those that ended well: for each value that occurred, in order, the difference of its index to the one
    /// before and its count, both as LEB128; in base64.
    #[serde(serialize_with = "write_base64", deserialize_with = "read_base64")]
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
}

fn one() -> u32 {
    1
}

/// Written as base64: an hour of seconds as JSON maps would take 100 MB in the reader.
fn write_base64<S: Serializer>(latency: &Packed, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(latency.as_bytes(), &STANDARD))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Packed, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    Packed::from_bytes(&bytes).ok_or_else(|| D::Error::custom("no packed histogram"))
}
