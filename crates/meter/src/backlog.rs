//! The backlog of an open loop: requests that were scheduled and not yet answered, at both ends of
//! its window.
//!
//! It also keeps the latencies of the requests due in each quarter of the schedule. In a growing
//! queue, requests of later quarters take longer. In a pipeline that merely fills, they do not.

use crate::SumNs;

/// The number of equal parts that a schedule is divided into.
const QUARTERS: usize = 4;

/// The backlog of an open loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Requests unanswered at the beginning of the window, left over from the phase before.
    pub at_start: u64,
    /// Requests unanswered at the end of the window, or when the last request was sent.
    pub at_end: u64,
    quarter_ns: u64,
    /// For each quarter, by scheduled time: the number of answers and the sum of their latencies.
    latencies: [(u64, SumNs); QUARTERS],
}

impl Backlog {
    /// A backlog for a schedule of `span_ns`, with `at_start` requests open at its beginning.
    #[must_use]
    pub fn of(span_ns: u64, at_start: u64) -> Self {
        let quarter_ns = span_ns.div_ceil(QUARTERS as u64).max(1);
        Backlog { at_start, quarter_ns, ..Backlog::default() }
    }

    /// Notes `count` answers, with this latency, to requests due `scheduled_ns` after the start.
    #[inline]
    pub fn note(&mut self, scheduled_ns: u64, latency_ns: u64, count: u64) {
        let quarter = (scheduled_ns / self.quarter_ns.max(1)).min(QUARTERS as u64 - 1);
        let (answered, sum_ns) = &mut self.latencies[quarter as usize];
        *answered += count;
        *sum_ns += SumNs::from(latency_ns) * SumNs::from(count);
    }

    /// The number of answers to the requests of each quarter of the schedule.
    #[must_use]
    pub fn answered(&self) -> Vec<u64> {
        self.latencies.iter().map(|(answered, _)| *answered).collect()
    }

    /// The sum of latencies for each quarter, in ns.
    #[must_use]
    pub fn latency_sum_ns(&self) -> Vec<SumNs> {
        self.latencies.iter().map(|(_, sum_ns)| *sum_ns).collect()
    }

    /// Adds the backlog of another thread.
    pub fn merge(&mut self, other: &Backlog) {
        self.at_start += other.at_start;
        self.at_end += other.at_end;
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }
}

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
        assert_eq!(one.answered(), [2, 1, 0, 1]);
        assert_eq!(one.latency_sum_ns(), [10, 11, 0, 7]);
    }

    #[test]
    fn two_days_of_overload_add_up() {
        const S: u64 = 1_000_000_000;
        let seconds = 48 * 3_600;
        let mut backlog = Backlog::of(seconds * S, 0);
        // Half of 200,000 requests a second are answered: who comes last waits for a day.
        (0..seconds).for_each(|second| backlog.note(second * S, second / 2 * S, 200_000));
        let expected: SumNs = (0..seconds).map(|second| SumNs::from(second / 2 * S)).sum();
        assert_eq!(backlog.latency_sum_ns().iter().sum::<SumNs>(), 200_000 * expected);
        let before = backlog.clone();
        backlog.merge(&before);
        assert_eq!(backlog.latency_sum_ns().iter().sum::<SumNs>(), 400_000 * expected);
    }
}
