//! The protocol's account of how answers flowed through a phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::SumNs;

use super::{Sparse, numbered, sum};

/// Answers over the window, as they came. Those to requests of the phase before that came in it count, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// For so long, from the start on, there was enough to send for all connections.
    pub whole_ns: u64,
    /// The length of each part.
    pub part_ns: u64,
    /// Good answers in each part, up to the last one that has any.
    pub answered: Vec<u64>,
    /// Stretches without any answer on any thread, less those in which the engine stood still, by their length.
    #[serde(deserialize_with = "numbered::read")]
    pub gaps: Sparse,
    /// What was left unanswered; null for a closed loop.
    pub backlog: Option<Backlog>,
    /// When answers were worked on.
    #[serde(default)]
    pub work: Work,
    /// Good answers that came while this phase was the present one, in its drain, too.
    #[serde(default)]
    pub came: u64,
}

/// Answers, each spread evenly over the time that it took, from its send to its last byte. What lies outside of the stretch
/// in which there was enough to send for all is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The length of each part.
    pub part_ns: u64,
    /// Answers in each part, to a millionth, up to the last one that has any.
    pub answers: Vec<f64>,
    /// The times within that stretch of all answers that had begun before it, summed.
    #[serde(default, deserialize_with = "sum::read")]
    pub before_ns: SumNs,
    /// The times after it of all answers that had begun in it, summed.
    #[serde(default, deserialize_with = "sum::read")]
    pub after_ns: SumNs,
}

/// What an open loop had scheduled and was not yet answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// Left by the phase before when this one began.
    pub at_start: u64,
    /// At the end of the window; of a number of requests, when the last one was sent.
    pub at_end: u64,
    /// Good answers to what each quarter of the schedule had asked for.
    pub answered: Vec<u64>,
    /// The sum of their latencies.
    #[serde(deserialize_with = "sum::read_all")]
    pub latency_sum_ns: Vec<SumNs>,
}

impl Flow {
    /// The flow of all threads.
    #[must_use]
    pub fn of(meter: &trueload_meter::Meter, window_ns: u64) -> Self {
        let flow = &meter.flow;
        let backlog = meter.backlog.as_ref().map(|backlog| Backlog {
            at_start: backlog.at_start,
            at_end: backlog.at_end,
            answered: backlog.answered(),
            latency_sum_ns: backlog.latency_sum_ns(),
        });
        let whole_ns = flow.whole_ns(window_ns);
        Flow {
            whole_ns,
            part_ns: flow.part_ns(),
            answered: flow.answered().to_vec(),
            gaps: flow.gaps(whole_ns),
            backlog,
            work: Work::of(&flow.work),
            came: flow.came,
        }
    }
}

impl Work {
    fn of(work: &trueload_meter::Work) -> Self {
        let rounded = |count: &f64| (count * 1e6).round() / 1e6;
        Work {
            part_ns: work.part_ns(),
            answers: work.answers().iter().map(rounded).collect(),
            before_ns: work.before_ns,
            after_ns: work.after_ns,
        }
    }
}
