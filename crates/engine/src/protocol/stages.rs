//! The protocol's open loop: its rate over time, and the spacing of its requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of time over which a quantity goes in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StagePlan {
    /// How long.
    pub ns: u64,
    /// At its beginning.
    pub from: f64,
    /// At its end.
    pub to: f64,
}

/// How the requests of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsPlan {
    /// Evenly.
    Constant,
    /// With exponential gaps.
    Poisson,
    /// At the times of the plan's `replay`; `stages` only tell people its rate.
    Recorded,
}
