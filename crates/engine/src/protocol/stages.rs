//! The protocol's open loop: its rate over time, and the spacing of its requests; and when a load
//! ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of time in which a quantity changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StagePlan {
    /// Its length, in ns.
    pub ns: u64,
    /// The value at its beginning.
    pub from: f64,
    /// The value at its end.
    pub to: f64,
}

/// How the requests of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsPlan {
    /// At equal intervals.
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// At the times of the plan's `replay`. `stages` then only describe the rate.
    Recorded,
}

/// When to stop sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopPlan {
    /// After this time.
    Duration {
        /// Length of the phase.
        ns: u64,
    },
    /// After this many requests, divided among the connections.
    Requests {
        /// Requests in all; sessions in all, if there is a scenario.
        count: u64,
    },
}
