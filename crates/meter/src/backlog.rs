//! What an open loop had scheduled and was not yet answered, at both ends of its window, and how long the requests took that
//! each quarter of the schedule asked for: in a queue that grows the late ones take longer, in a pipe that fills they do not.

/// The parts of a schedule.
const QUARTERS: usize = 4;

/// The backlog of an open loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Unanswered at the window's beginning: left by the phase before.
    pub at_start: u64,
    /// Unanswered at its end, or when the last one was sent.
    pub at_end: u64,
    quarter_ns: u64,
    /// By the time of the schedule: how many were answered, and the sum of their latencies.
    latencies: [(u64, u64); QUARTERS],
}

impl Backlog {
    /// That of an open loop whose schedule is so long, with so many requests open at its beginning.
    #[must_use]
    pub fn of(span_ns: u64, at_start: u64) -> Self {
        let quarter_ns = span_ns.div_ceil(QUARTERS as u64).max(1);
        Backlog { at_start, quarter_ns, ..Backlog::default() }
    }

    /// So many requests that were due at this time since the start were answered after so long.
    #[inline]
    pub fn note(&mut self, scheduled_ns: u64, latency_ns: u64, count: u64) {
        let quarter = (scheduled_ns / self.quarter_ns.max(1)).min(QUARTERS as u64 - 1);
        let (answered, sum_ns) = &mut self.latencies[quarter as usize];
        *answered += count;
        *sum_ns += latency_ns * count;
    }

    /// Answers to what each quarter of the schedule asked for.
    #[must_use]
    pub fn answered(&self) -> Vec<u64> {
        self.latencies.iter().map(|(answered, _)| *answered).collect()
    }

    /// The sums of their latencies.
    #[must_use]
    pub fn latency_sum_ns(&self) -> Vec<u64> {
        self.latencies.iter().map(|(_, sum_ns)| *sum_ns).collect()
    }

    /// Adds that of another thread.
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
}
