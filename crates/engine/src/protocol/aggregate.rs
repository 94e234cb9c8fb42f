//! The messages between the front and an aggregator, an engine that starts other engines and combines
//! what they say. Engines below it are known by numbers that the front gives them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Second, Tick};

/// What an aggregator is to do. Its engines are opened later, one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AggregatePlan {
    /// Must equal [`PROTOCOL`](super::PROTOCOL).
    pub protocol: u32,
    /// If the front is silent for this long, the aggregator ends, and all engines below it.
    pub lease_ns: u64,
}

/// One more engine: a command that runs on the aggregator's machine, and speaks this protocol once
/// it has said `hello`. What it says before is relayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Its number.
    pub child: u32,
    /// The command and its arguments.
    pub argv: Vec<String>,
}

/// A line for engines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Their numbers.
    pub children: Vec<u32>,
    /// The line, without its newline.
    pub line: String,
}

/// The end of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Its number.
    pub child: u32,
    /// Kill its process; else only close its input.
    pub kill: bool,
}

/// A line of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relayed {
    /// Its number.
    pub child: u32,
    /// The line, without its newline.
    pub line: String,
    /// It is the end of a phase, and its series is in the sums that come as `seconds`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summed: bool,
}

/// An engine's process has ended, or has closed its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Its number.
    pub child: u32,
    /// Its exit code, negative for the signal that ended it; null if it still runs, or never ran.
    pub code: Option<i32>,
    /// The last part of its stderr.
    pub log: String,
}

/// An engine has not answered for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silent {
    /// Its number.
    pub child: u32,
    /// For how long.
    pub silent_ns: u64,
}

/// Engines that have answered, but have said nothing else for 2.5 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    /// The aggregator's clock.
    pub at_ns: u64,
    /// Their numbers.
    pub children: Vec<u32>,
}

/// The clocks of engines, about once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// One for each engine that has been asked often enough.
    pub clocks: Vec<ClockOf>,
}

/// How far an engine's clock is ahead of the aggregator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockOf {
    /// Its number.
    pub child: u32,
    /// Negative if it is behind.
    pub ahead_ns: i64,
    /// The offset is known to so much.
    pub bound_ns: u64,
}

/// How far engines have come in a phase, about once a second; for people who look on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standings {
    /// The phase.
    pub id: String,
    /// One for each engine with a tick in it.
    pub hosts: Vec<Standing>,
}

/// An engine's number, and of its last tick: its time on the aggregator's clock, requests that ended
/// well and that failed, open connections, and how long its busiest thread was busy, in ns.
pub type Standing = (u32, u64, u64, u64, u32, u64);

/// What an engine had told of its phases before it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Its number.
    pub child: u32,
    /// At most one tick for each second, with the latencies since the one before; of long phases
    /// fewer. Their times are on the aggregator's clock.
    pub ticks: Vec<ToldTick>,
}

/// One of these ticks, written like any other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToldTick {
    /// The tick.
    Tick(Tick),
}

/// The series of a phase, added up over engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seconds {
    /// The phase.
    pub id: String,
    /// As in a measurement.
    pub series: Vec<Second>,
}
