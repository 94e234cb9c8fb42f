//! The distribution over time of the work on answers.
//!
//! Each answer counts once, spread evenly over the time it took. A window is credited with the
//! share of that time that lies inside it.
//!
//! How it works: time before the start is left out, and so is time after the end once that is
//! known. Most answers begin and end within one part and are counted there at once
//! ([`Work::part_at`], [`Work::note_whole`]).

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SumNs;
use crate::cells::Cells;
use crate::together::Together;

/// The maximum number of parts of a window. At least half of them are in use, unless the window is
/// very short.
pub(crate) const PARTS_MOST: usize = 256;
/// The shortest part is 2^12 ns, 4 us.
pub(crate) const PART_SHIFT: u32 = 12;

/// Answers spread over the time that they took.
#[derive(Clone, Debug)]
pub struct Work {
    parts: Cells<f64>,
    end_ns: u64,
    /// The sum of the times within the window of answers that had begun before it.
    pub before_ns: SumNs,
    /// The sum of the times after the window of answers that had begun in it.
    pub after_ns: SumNs,
    together: Together,
}

/// Answers, each spread evenly over the time from its send to its last byte. Only the part of the
/// window with enough to send on all connections is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Work")]
pub struct WorkReport {
    /// The length of each part of the window, in ns.
    pub part_ns: u64,
    /// The number of answers in each part, rounded to a millionth, up to the last part with any.
    pub answers: Vec<f64>,
    /// For answers that had begun before the window: the sum of their times inside it, in ns.
    #[serde(default)]
    pub before_ns: SumNs,
    /// For answers that had begun in the window: the sum of their times after it, in ns.
    #[serde(default)]
    pub after_ns: SumNs,
    /// Long waits and, among them, those that followed another that was as long, within a sixteenth
    /// of that length. The first pair counts waits of at least 2^23 ns (8.4 ms), each further one
    /// those of twice the length. Waits within one part are left out.
    #[serde(default)]
    pub together: Vec<(u64, u64)>,
}

impl Default for Work {
    fn default() -> Self {
        let parts = Cells::of(PART_SHIFT, PARTS_MOST);
        let together = Together::default();
        Work { parts, end_ns: u64::MAX, before_ns: 0, after_ns: 0, together }
    }
}

impl Work {
    /// Ends the window at `since_ns` after the start; time from there on is outside.
    pub fn end(&mut self, since_ns: u64) {
        if since_ns >= self.end_ns {
            return;
        }
        self.end_ns = since_ns;
        let width_ns = self.part_ns();
        let last = (since_ns / width_ns) as usize;
        self.parts.values.truncate(last + 1);
        // The part that contains the end keeps the fraction before the end.
        if let Some(count) = self.parts.values.get_mut(last) {
            *count *= (since_ns % width_ns) as f64 / width_ns as f64;
        }
    }

    /// The part that contains this time, in ns since the start; empty if the time is outside.
    pub fn part_at(&mut self, since_ns: u64) -> Range<u64> {
        if since_ns >= self.end_ns {
            return 0..0;
        }
        self.parts.at(since_ns);
        let from_ns = since_ns >> self.parts.shift << self.parts.shift;
        from_ns..(from_ns + self.part_ns()).min(self.end_ns)
    }

    /// Notes `count` answers that began and ended in the part that contains this time.
    #[inline]
    pub fn note_whole(&mut self, since_ns: u64, count: u64) {
        *self.parts.at(since_ns) += count as f64;
    }

    /// Notes `count` answers that ended at `since_ns` after the start and took `took_ns` each.
    pub fn note(&mut self, took_ns: u64, since_ns: u64, count: u64) {
        let from_ns = since_ns.saturating_sub(took_ns);
        let to_ns = since_ns.min(self.end_ns);
        if from_ns >= to_ns {
            return;
        }
        self.together.note(took_ns, since_ns, count);
        if took_ns > since_ns {
            self.before_ns += SumNs::from(count) * SumNs::from(to_ns);
        } else {
            self.after_ns += SumNs::from(count) * SumNs::from(since_ns - to_ns);
        }
        self.parts.at(to_ns - 1);
        let (shift, width_ns) = (self.parts.shift, self.part_ns());
        let each_ns = count as f64 / took_ns as f64;
        let (first, last) = ((from_ns >> shift) as usize, ((to_ns - 1) >> shift) as usize);
        for (part, sum) in (first..).zip(&mut self.parts.values[first..=last]) {
            let begin_ns = (part as u64) << shift;
            let inside_ns = to_ns.min(begin_ns + width_ns) - from_ns.max(begin_ns);
            *sum += each_ns * inside_ns as f64;
        }
    }

    /// Takes back `count` answers that turned out to have failed, from the latest parts first.
    pub fn retract(&mut self, mut count: f64) {
        for sum in self.parts.values.iter_mut().rev() {
            let less = count.min(*sum);
            (*sum, count) = (*sum - less, count - less);
        }
    }

    /// Adds the work of another thread for the same window. The window ends for both at the earlier
    /// end.
    pub fn merge(&mut self, other: &Work) {
        let mut other = other.clone();
        other.end(self.end_ns);
        self.end(other.end_ns);
        self.parts.merge(&other.parts);
        self.before_ns += other.before_ns;
        self.after_ns += other.after_ns;
        self.together.merge(&other.together);
    }

    /// The length of each part, in ns.
    pub fn part_ns(&self) -> u64 {
        1 << self.parts.shift
    }

    /// The number of answers by part, up to the last part with any.
    pub fn answers(&self) -> &[f64] {
        &self.parts.values
    }

    pub(crate) fn report(self) -> WorkReport {
        // More digits than a millionth would only make the report longer.
        let rounded = |count: f64| (count * 1e6).round() / 1e6;
        WorkReport {
            part_ns: self.part_ns(),
            answers: self.parts.values.into_iter().map(rounded).collect(),
            before_ns: self.before_ns,
            after_ns: self.after_ns,
            together: self.together.report(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn sum(work: &Work) -> f64 {
        work.answers().iter().sum()
    }

    fn until(end_ns: u64) -> Work {
        let mut work = Work::default();
        work.end(end_ns);
        work
    }

    #[test]
    fn an_answer_counts_with_the_share_of_its_time_that_lies_in_the_window() {
        for (took_ns, since_ns, share) in [
            (S, 5 * S, 1.0),
            (S, S / 4, 0.25),
            (S, 10 * S + S / 4, 0.75),
            (40 * S, 20 * S, 0.25),
            (S, 11 * S, 0.0),
            (S, 12 * S, 0.0),
            (1, 10 * S, 1.0),
            (0, 5 * S, 0.0),
        ] {
            let mut work = until(10 * S);
            work.note(took_ns, since_ns, 8);
            let found = sum(&work);
            assert!((found - 8.0 * share).abs() < 1e-6, "{took_ns} ns up to {since_ns}: {found}");
        }
    }

    #[test]
    fn what_lies_before_and_after_the_window_is_summed() {
        for (took_ns, since_ns, before_ns, after_ns) in [
            (S, 5 * S, 0, 0),
            (S, S / 4, 8 * S / 4, 0),
            (S, 10 * S + S / 4, 0, 8 * S / 4),
            (40 * S, 20 * S, 8 * 10 * S, 0),
            (S, 12 * S, 0, 0),
        ] {
            let mut work = until(10 * S);
            work.note(took_ns, since_ns, 8);
            let found = (work.before_ns, work.after_ns);
            let expected = (SumNs::from(before_ns), SumNs::from(after_ns));
            assert_eq!(found, expected, "{took_ns} ns up to {since_ns}");
        }
    }

    #[test]
    fn answers_that_keep_step_are_as_many_per_second_wherever_the_window_ends() {
        for (took_ns, window_ns) in [
            (S, 21 * S / 10),
            (22 * S / 10, 10 * S),
            (9 * S / 10, 5 * S),
            (2 * S, S),
            (S, 1000 * S),
        ] {
            let mut work = until(window_ns);
            let rounds = window_ns.div_ceil(took_ns);
            (1..=rounds).for_each(|round| work.note(took_ns, round * took_ns, 64));
            let (found, truth) = (sum(&work), 64.0 * window_ns as f64 / took_ns as f64);
            assert!((found / truth - 1.0).abs() < 1e-9, "{took_ns} of {window_ns}: {found}");
        }
    }

    #[test]
    fn a_part_is_counted_at_once_and_outside_there_is_none() {
        let mut work = until(S + 5);
        let part = work.part_at(S / 3);
        assert!(part.contains(&(S / 3)) && part.end - part.start == work.part_ns());
        work.note_whole(part.start, 7);
        assert_eq!(sum(&work), 7.0);
        assert_eq!(work.part_at(S + 4).end, S + 5, "the last one ends with the window");
        assert_eq!(work.part_at(S + 5), 0..0);
    }

    #[test]
    fn the_window_of_two_threads_ends_with_the_first() {
        let steady = |end_ns: Option<u64>| {
            let mut work = Work::default();
            (1..=1000).for_each(|at| work.note(S / 1000, at * S / 1000, 1));
            end_ns.into_iter().for_each(|end_ns| work.end(end_ns));
            work
        };
        for (one_ns, two_ns, answers) in [
            (Some(S / 2), None, 1000.0),
            (None, Some(S / 4), 500.0),
            (Some(S / 2), Some(S / 4 + 1000), 500.0),
            (None, None, 2000.0),
        ] {
            let mut one = steady(one_ns);
            one.merge(&steady(two_ns));
            assert!((sum(&one) - answers).abs() < 0.01, "{one_ns:?} and {two_ns:?}: {}", sum(&one));
        }
    }

    #[test]
    fn what_is_taken_back_is_of_the_last() {
        let mut work = until(10 * S);
        work.note(S, S, 1);
        work.note(S, 10 * S, 2);
        work.retract(1.0);
        let half = work.answers().len() / 2;
        let of = |counts: &[f64]| counts.iter().sum::<f64>();
        let (early, late) = work.answers().split_at(half);
        assert!((of(early) - 1.0).abs() < 1e-6 && (of(late) - 1.0).abs() < 1e-6);
        work.retract(5.0);
        assert!(sum(&work).abs() < 1e-6, "never less than none");
    }

    proptest! {
        #[test]
        fn how_answers_are_split_over_threads_and_parts_changes_nothing(
            answers in prop::collection::vec((1u64..20 * S, 0u64..30 * S, 1u64..5, any::<bool>()), 1..100),
            end_ns in 1u64..30 * S,
        ) {
            let [mut whole, mut one, mut two] = [(); 3].map(|()| until(end_ns));
            let mut expected = 0.0;
            for (took_ns, since_ns, count, first) in answers {
                whole.note(took_ns, since_ns, count);
                if first { one.note(took_ns, since_ns, count) } else { two.note(took_ns, since_ns, count) }
                let inside_ns = since_ns.min(end_ns).saturating_sub(since_ns.saturating_sub(took_ns));
                expected += count as f64 * inside_ns as f64 / took_ns as f64;
            }
            one.merge(&two);
            prop_assert!((sum(&whole) - expected).abs() < 1e-6);
            prop_assert!((sum(&one) - expected).abs() < 1e-6);
            prop_assert_eq!(one.part_ns(), whole.part_ns());
        }
    }
}
