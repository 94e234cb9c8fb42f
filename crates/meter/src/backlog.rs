//! The backlog of an open loop: requests that were scheduled and not yet answered, at both ends of
//! its window.
//!
//! It also keeps the latencies of the requests due in each quarter of the schedule. In a growing
//! queue, requests of later quarters take longer. In a pipeline that merely fills, they do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SumNs;

/// The number of equal parts that a schedule is divided into.
const QUARTERS: usize = 4;

/// The backlog of an open loop: requests that were scheduled and not yet answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// Requests still unanswered when the window began, left over from the phase before.
    pub at_start: u64,
    /// Requests still unanswered at the end of the window. If the load is a number of requests:
    /// when the last one was sent.
    pub at_end: u64,
    /// The number of good answers to the requests of each quarter of the schedule.
    pub answered: Vec<u64>,
    /// The sum of the latencies of these answers for each quarter, in ns. It can exceed 64 bits.
    pub latency_sum_ns: Vec<SumNs>,
    #[serde(skip)]
    quarter_ns: u64,
}

impl Default for Backlog {
    fn default() -> Self {
        Backlog::of(0, 0)
    }
}

impl Backlog {
    /// A backlog for a schedule of `span_ns`, with `at_start` requests open at its beginning.
    pub fn of(span_ns: u64, at_start: u64) -> Self {
        let quarter_ns = span_ns.div_ceil(QUARTERS as u64).max(1);
        let (answered, latency_sum_ns) = (vec![0; QUARTERS], vec![0; QUARTERS]);
        Backlog { at_start, at_end: 0, answered, latency_sum_ns, quarter_ns }
    }

    /// Notes `count` answers, with this latency, to requests due `scheduled_ns` after the start.
    #[inline]
    pub fn note(&mut self, scheduled_ns: u64, latency_ns: u64, count: u64) {
        let quarter = (scheduled_ns / self.quarter_ns).min(QUARTERS as u64 - 1) as usize;
        self.answered[quarter] += count;
        self.latency_sum_ns[quarter] += SumNs::from(latency_ns) * SumNs::from(count);
    }
}

crate::merged! { Backlog: at_start, at_end, answered, latency_sum_ns; keeps: quarter_ns }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlogs_add_up_and_latencies_are_by_the_time_of_the_schedule() {
        let (mut one, mut two) = (Backlog::of(16_000, 1), Backlog::of(16_000, 0));
        one.note(0, 5, 2);
        one.note(99_999, 7, 1);
        two.note(4_000, 11, 1);
        (one.at_end, two.at_end) = (2, 30);
        one.merge(&two);
        assert_eq!((one.at_start, one.at_end), (1, 32));
        assert_eq!(one.answered, [2, 1, 0, 1]);
        assert_eq!(one.latency_sum_ns, [10, 11, 0, 7]);
    }

    #[test]
    fn two_days_of_overload_add_up() {
        const S: u64 = 1_000_000_000;
        let seconds = 48 * 3_600;
        let mut backlog = Backlog::of(seconds * S, 0);
        // Half of 200,000 requests a second are answered: who comes last waits for a day.
        (0..seconds).for_each(|second| backlog.note(second * S, second / 2 * S, 200_000));
        let expected: SumNs = (0..seconds).map(|second| SumNs::from(second / 2 * S)).sum();
        assert_eq!(backlog.latency_sum_ns.iter().sum::<SumNs>(), 200_000 * expected);
        let before = backlog.clone();
        backlog.merge(&before);
        assert_eq!(backlog.latency_sum_ns.iter().sum::<SumNs>(), 400_000 * expected);
    }
}
