//! The flow of answers through a window: answers per part of it, and moments without an answer.
//!
//! How it works: parts and moments are [`Cells`], so that those of several threads align.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cells::Cells;
use crate::work::{PART_SHIFT, PARTS_MOST, WorkReport};
use crate::{Backlog, Sparse, Work, index};

/// The maximum number of moments.
const MOMENTS_MOST: usize = 1 << 20;
/// The shortest moment is 2^16 ns, 65 us. No caller asks for gaps shorter than a few of these.
const MOMENT_SHIFT: u32 = 16;
/// A gap of fewer moments is not reported, because its length is known only to within one moment.
const GAP_MOMENTS_MIN: usize = 4;

/// The flow of answers through a window.
#[derive(Clone, Debug)]
pub struct Flow {
    parts: Cells<u64>,
    /// Whether an answer came in each moment.
    moments: Cells<bool>,
    /// The times during which answers were worked on.
    pub work: Work,
    /// Answers that came while this phase was the current one, including its drain.
    pub came: u64,
    /// From this time on, in ns since the start, too few requests were left to keep all slots busy.
    ended_ns: Option<u64>,
}

/// The flow of answers through the window. Answers to requests of the phase before count, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Flow")]
pub struct FlowReport {
    /// The time from the start of the window for which there was enough to send on all connections,
    /// in ns.
    pub whole_ns: u64,
    /// The length of each part of the window, in ns.
    pub part_ns: u64,
    /// The number of good answers in each part, up to the last part with any.
    pub answered: Vec<u64>,
    /// Stretches in which no thread received an answer, as a sparse histogram of their lengths (see
    /// `TargetCounts`). Stretches in which the engine itself was paused are left out.
    pub gaps: Sparse,
    /// The backlog of an open loop; null for a closed loop.
    pub backlog: Option<Backlog>,
    /// The time during which the server worked on answers.
    #[serde(default)]
    pub work: WorkReport,
    /// Good answers that came while this phase was the current one, including its drain.
    #[serde(default)]
    pub came: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            parts: Cells::of(PART_SHIFT, PARTS_MOST),
            moments: Cells::of(MOMENT_SHIFT, MOMENTS_MOST),
            work: Work::default(),
            came: 0,
            ended_ns: None,
        }
    }
}

impl Flow {
    /// Notes `count` successful answers at `since_ns` after the start.
    #[inline]
    pub fn note(&mut self, since_ns: u64, count: u64) {
        *self.parts.at(since_ns) += count;
        *self.moments.at(since_ns) = true;
    }

    /// Excludes a stretch in which the generator itself was the reason for missing answers. It does
    /// not count as a gap of the server.
    pub fn excuse(&mut self, from_ns: u64, to_ns: u64) {
        *self.moments.at(to_ns) = true;
        let [from, to] = [from_ns, to_ns].map(|ns| (ns >> self.moments.shift) as usize);
        self.moments.values[from.min(to)..to].fill(true);
    }

    /// Ends the window when too few requests are left to keep all slots busy. Later flow is not
    /// judged. Returns whether this is the first call.
    pub fn end(&mut self, since_ns: u64) -> bool {
        let first = self.ended_ns.is_none();
        if first {
            self.ended_ns = Some(since_ns);
            self.work.end(since_ns);
        }
        first
    }

    /// Adds what another thread has seen of the same window.
    pub fn merge(&mut self, other: &Flow) {
        self.parts.merge(&other.parts);
        self.moments.merge(&other.moments);
        self.work.merge(&other.work);
        self.came += other.came;
        self.ended_ns = [self.ended_ns, other.ended_ns].into_iter().flatten().min();
    }

    /// The length of each part, in ns.
    pub fn part_ns(&self) -> u64 {
        1 << self.parts.shift
    }

    /// The number of answers by part, up to the last part with any.
    pub fn answered(&self) -> &[u64] {
        &self.parts.values
    }

    /// The length of the part of a window in which there was enough to send for all slots, in ns.
    pub fn whole_ns(&self, window_ns: u64) -> u64 {
        self.ended_ns.map_or(window_ns, |ended_ns| ended_ns.min(window_ns))
    }

    /// The stretches without an answer in the first `until_ns` of the window, by [`index`] of their
    /// length.
    pub fn gaps(&self, until_ns: u64) -> Sparse {
        let (until, mut since) = ((until_ns >> self.moments.shift) as usize, 0);
        let mut gaps = Sparse::new();
        for moment in 0..=until {
            if moment == until || self.moments.values.get(moment) == Some(&true) {
                if moment - since >= GAP_MOMENTS_MIN {
                    // The answers at both ends came somewhere within their moments, on average half
                    // a moment from the gap each.
                    let gap_ns = (moment - since + 1) as u64 * (1 << self.moments.shift);
                    *gaps.entry(index(gap_ns)).or_default() += 1;
                }
                since = moment + 1;
            }
        }
        gaps
    }

    /// The report about a window of this length.
    pub fn report(self, window_ns: u64, backlog: Option<Backlog>) -> FlowReport {
        let whole_ns = self.whole_ns(window_ns);
        FlowReport {
            whole_ns,
            part_ns: self.part_ns(),
            gaps: self.gaps(whole_ns),
            answered: self.parts.values,
            backlog,
            work: self.work.report(),
            came: self.came,
        }
    }
}

crate::merge::own!(Flow);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    /// An answer each 200 us, but for those in the ranges.
    fn answering(window_ns: u64, frozen: &[(u64, u64)]) -> Flow {
        let mut flow = Flow::default();
        for at_ns in (0..window_ns).step_by(MS as usize / 5) {
            if !frozen.iter().any(|(from_ns, to_ns)| (*from_ns..*to_ns).contains(&at_ns)) {
                flow.note(at_ns, 1);
            }
        }
        flow
    }

    /// How many gaps are at least so long.
    fn longer(gaps: &Sparse, than_ns: u64) -> u64 {
        gaps.range(index(than_ns)..).map(|(_, count)| count).sum()
    }

    #[test]
    fn a_window_has_hundreds_of_parts_however_long_it_is() {
        for window_ns in [3 * MS, 10 * MS, 500 * MS, 5 * S, 60 * S, 7 * S + 1, 86_400 * S] {
            let mut flow = Flow::default();
            (0..10_000).for_each(|part| flow.note(window_ns / 10_000 * part, 1));
            let parts = flow.answered().len();
            assert!((PARTS_MOST / 2..=PARTS_MOST).contains(&parts), "{window_ns} ns: {parts}");
            assert_eq!(flow.answered().iter().sum::<u64>(), 10_000, "{window_ns} ns");
        }
    }

    #[test]
    fn the_gaps_are_those_in_which_no_answer_came() {
        let frozen = [(300 * MS, 600 * MS), (3300 * MS, 3600 * MS), (4900 * MS, 5 * S)];
        let flow = answering(5 * S, &frozen);
        let gaps = flow.gaps(5 * S);
        assert_eq!((longer(&gaps, 295 * MS), longer(&gaps, 305 * MS)), (2, 0), "{gaps:?}");
        assert_eq!((longer(&gaps, 97 * MS), longer(&gaps, MS)), (3, 3), "{gaps:?}");
        let before = flow.gaps(4800 * MS);
        assert_eq!(longer(&before, MS), 2, "before the last: {before:?}");
        let amid = flow.gaps(4950 * MS);
        assert_eq!((longer(&amid, 49 * MS), longer(&amid, 52 * MS)), (3, 2), "{amid:?}");
    }

    #[test]
    fn a_gap_is_one_only_where_no_thread_had_an_answer() {
        let mut one = answering(S, &[(100 * MS, 300 * MS), (600 * MS, 700 * MS)]);
        one.merge(&answering(S, &[(200 * MS, 400 * MS)]));
        one.merge(&Flow::default());
        let gaps = one.gaps(S);
        assert_eq!((longer(&gaps, MS), longer(&gaps, 98 * MS)), (1, 1), "{gaps:?}");
        assert_eq!(longer(&gaps, 102 * MS), 0, "{gaps:?}");
        assert_eq!(one.answered().iter().sum::<u64>(), 5 * (700 + 800));
    }

    #[test]
    fn what_is_our_own_doing_is_no_gap() {
        let mut flow = answering(S, &[(100 * MS, 300 * MS), (600 * MS, 700 * MS), (900 * MS, S)]);
        flow.excuse(100 * MS, 300 * MS);
        flow.excuse(890 * MS, S);
        let gaps = flow.gaps(S);
        assert_eq!((longer(&gaps, MS), longer(&gaps, 98 * MS)), (1, 1), "{gaps:?}");
        assert_eq!(flow.answered().iter().sum::<u64>(), 5 * 600, "nor is it an answer");
    }

    #[test]
    fn a_window_is_whole_until_the_first_thread_has_no_more_to_send() {
        let (mut one, mut two) = (Flow::default(), Flow::default());
        assert_eq!(one.whole_ns(S), S);
        one.end(500);
        one.end(700);
        two.end(400);
        one.merge(&two);
        assert_eq!((one.whole_ns(S), one.whole_ns(300)), (400, 300));
    }

    proptest! {
        // Each case fills a million moments three times over, which takes a debug build 0.4 s.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn cells_of_two_threads_are_those_of_one(
            mut times_ns in prop::collection::vec((0u64..200 * S, any::<bool>()), 1..200),
            seen_ns in 0u64..200 * S,
        ) {
            times_ns.sort_unstable();
            let [mut whole, mut one, mut two] = [0; 3].map(|_| Flow::default());
            for (at_ns, first) in &times_ns {
                whole.note(*at_ns, 1);
                if *first { one.note(*at_ns, 1) } else { two.note(*at_ns, 1) }
            }
            one.merge(&two);
            prop_assert_eq!(one.part_ns(), whole.part_ns());
            prop_assert_eq!(one.answered(), whole.answered());
            prop_assert_eq!(one.gaps(seen_ns), whole.gaps(seen_ns));
        }
    }
}
