//! The distribution of work over the slots of a phase, as sums that can be added.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Merge, SumNs, index};

/// The maximum number of slow slots that are kept, the first ones entered. It covers a tenth of the
/// slots of a run with 100,000.
const LONG_WAITS_MAX: usize = 10_000;
/// The number of levels at which long waits are counted: from 1 s on, each twice the one before.
const WAIT_LEVELS: usize = 6;
/// The first level, in ns.
const LEVEL_NS: u64 = 1_000_000_000;

/// The long waits of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongWaits {
    /// The longest wait, in ns; 0 if there was none.
    pub longest_ns: u64,
    /// The number of waits that lasted at least 1 s, 2 s, 4 s and so on.
    pub at_least: [u32; WAIT_LEVELS],
    /// Connections that were never answered, by the same levels of the time waited on them.
    pub unanswered: [u32; WAIT_LEVELS],
}

impl LongWaits {
    /// Adds `count` waits of this length.
    pub fn note(&mut self, wait_ns: u64, count: u64) {
        self.longest_ns = self.longest_ns.max(wait_ns);
        add(&mut self.at_least, wait_ns, u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Counts a lost connection that was never answered after a wait of `wait_ns`.
    pub fn note_unanswered(&mut self, wait_ns: u64) {
        add(&mut self.unanswered, wait_ns, 1);
    }
}

fn add(sums: &mut [u32; WAIT_LEVELS], wait_ns: u64, count: u32) {
    for (level, sum) in sums.iter_mut().enumerate() {
        let counts = wait_ns >= LEVEL_NS << level;
        *sum = sum.saturating_add(if counts { count } else { 0 });
    }
}

/// How the work was spread over the slots that sent at least one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Slots")]
pub struct SlotSums {
    /// Slots that sent at least one request.
    pub asked: u32,
    /// Slots that sent requests and never got a complete answer.
    pub never_answered: u32,
    /// The number of complete answers of any status, over all slots.
    pub answers_sum: u64,
    /// The sum of the squares of each slot's number of answers.
    pub answers_sum_squares: u64,
    /// The fewest answers of a slot; 0 if no slot sent a request.
    pub answers_min: u64,
    /// The most answers of a slot.
    pub answers_max: u64,
    /// The slots by mean service time, as triples: its index (see `TargetCounts`), the number of
    /// good answers rounded down by at most a fifth, and the number of such slots.
    #[serde(default, with = "triples")]
    #[schemars(with = "Vec<(u32, u64, u32)>")]
    pub means: BTreeMap<(u32, u64), u32>,
    /// For each slot with long waits: its longest wait, in ns. A wait is long if a request was
    /// outstanding for at least 1 s while at least 100 others were answered. At most 10,000 slots
    /// are listed.
    pub long_waits_ns: Vec<u64>,
    /// For each of these slots, in the same order, 13 counts. The first is its requests that ended.
    /// Six count its waits of at least 1, 2, 4, 8, 16 and 32 s. Six count, by the same lengths of
    /// wait, its lost connections that were never answered.
    #[serde(default)]
    #[schemars(with = "Vec<Vec<u64>>")]
    pub long_waits: Vec<[u64; 1 + 2 * WAIT_LEVELS]>,
    /// The number of requests that the load permitted to be outstanding, integrated over the window
    /// in ns. Connections times depth, less the gaps for refills, connecting and ends of
    /// connections.
    pub permitted_ns: SumNs,
    /// Slots that were down for more than a second without an orderly close.
    #[serde(skip)]
    pub down: u32,
    /// Slots that lost their connection and then failed in an attempt at a new one.
    #[serde(skip)]
    pub outages: u32,
    /// The longest outage, in ns.
    #[serde(skip)]
    pub outage_ns: u64,
}

impl SlotSums {
    /// Enters one slot that sent requests, with its number of complete answers.
    pub fn enter(&mut self, answers: u64) {
        self.answers_min = if self.asked == 0 { answers } else { self.answers_min.min(answers) };
        self.answers_max = self.answers_max.max(answers);
        self.asked += 1;
        self.never_answered += u32::from(answers == 0);
        self.answers_sum += answers;
        let square = answers.saturating_mul(answers);
        self.answers_sum_squares = self.answers_sum_squares.saturating_add(square);
    }

    /// Enters the mean service time of one slot, from its number of good answers and the sum of
    /// their times in ns.
    pub fn enter_mean(&mut self, ok: u64, service_ns: u64) {
        if let Some(mean_ns) = service_ns.checked_div(ok) {
            *self.means.entry((index(mean_ns), at_least(ok))).or_default() += 1;
        }
    }

    /// Enters one slot with long waits, of whose requests `ended` have ended, however long they took.
    pub fn enter_slow(&mut self, waits: &LongWaits, ended: u64) {
        let levels = waits.at_least.iter().chain(&waits.unanswered);
        let mut counts = [ended; 1 + 2 * WAIT_LEVELS];
        counts[1..].iter_mut().zip(levels).for_each(|(count, level)| *count = u64::from(*level));
        self.enter_long_waits(waits.longest_ns, counts);
    }

    fn enter_long_waits(&mut self, longest_ns: u64, counts: [u64; 1 + 2 * WAIT_LEVELS]) {
        if self.long_waits.len() < LONG_WAITS_MAX {
            self.long_waits_ns.push(longest_ns);
            self.long_waits.push(counts);
        }
    }

    /// Adds the slots of another thread or host.
    pub fn merge(&mut self, other: &SlotSums) {
        if other.asked > 0 {
            let least = other.answers_min;
            self.answers_min = if self.asked == 0 { least } else { self.answers_min.min(least) };
        }
        self.answers_max = self.answers_max.max(other.answers_max);
        Merge::merge(&mut self.means, &other.means);
        self.asked += other.asked;
        self.never_answered += other.never_answered;
        self.answers_sum += other.answers_sum;
        self.answers_sum_squares =
            self.answers_sum_squares.saturating_add(other.answers_sum_squares);
        for (longest_ns, counts) in other.long_waits_ns.iter().zip(&other.long_waits) {
            self.enter_long_waits(*longest_ns, *counts);
        }
        self.down += other.down;
        self.outages += other.outages;
        self.outage_ns = self.outage_ns.max(other.outage_ns);
    }
}

crate::merge::own!(SlotSums);

/// The means as a list of triples: a JSON map has no pairs as keys.
mod triples {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    type Means = BTreeMap<(u32, u64), u32>;

    pub(super) fn serialize<S: Serializer>(means: &Means, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(means.iter().map(|((mean, answers), slots)| (mean, answers, slots)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Means, D::Error> {
        let triples = Vec::<(u32, u64, u32)>::deserialize(from)?;
        Ok(triples.into_iter().map(|(mean, answers, slots)| ((mean, answers), slots)).collect())
    }
}

/// Rounds a count down by at most a fifth; exact below 8.
fn at_least(count: u64) -> u64 {
    let shift = 61u32.saturating_sub(count.leading_zeros());
    count >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(answers: &[u64]) -> SlotSums {
        let mut sums = SlotSums::default();
        answers.iter().for_each(|&n| sums.enter(n));
        answers.iter().for_each(|&n| sums.enter_mean(n, 1_000 * n));
        sums
    }

    #[test]
    fn merged_sums_equal_the_sums_over_all_slots() {
        for all in [[3, 0, 7, 7], [3, 9, 7, 7]] {
            for cut in 0..=4 {
                let mut merged = sums(&all[..cut]);
                merged.merge(&sums(&all[cut..]));
                assert_eq!(merged, sums(&all), "cut at {cut}");
            }
        }
    }

    #[test]
    fn merged_outages_are_all_counted_and_the_longest_is_kept() {
        let of = |down, outages, outage_ns| SlotSums { down, outages, outage_ns, ..sums(&[]) };
        let mut merged = of(2, 3, 70);
        merged.merge(&of(10, 20, 60));
        assert_eq!(merged, of(12, 23, 70));
    }

    #[test]
    fn a_slot_without_an_answer_is_named() {
        let sums = sums(&[3, 0, 7]);
        assert_eq!((sums.asked, sums.never_answered), (3, 1));
        assert_eq!((sums.answers_min, sums.answers_max), (0, 7));
        assert_eq!((sums.answers_sum, sums.answers_sum_squares), (10, 58));
    }

    #[test]
    fn slots_are_told_apart_by_their_mean_and_about_how_many_answers_it_is_of() {
        let mut sums = SlotSums::default();
        for (ok, service_ns) in [(0, 0), (3, 3_000), (3, 3_001), (9, 9_000), (1_000, 9_000_000)] {
            sums.enter_mean(ok, service_ns);
        }
        let expected = [((index(1_000), 3), 2), ((index(1_000), 8), 1), ((index(9_000), 896), 1)];
        assert_eq!(sums.means, BTreeMap::from(expected));
    }

    #[test]
    fn a_count_is_rounded_down_to_within_a_fifth() {
        for count in (0..10_000).chain([u64::MAX / 3, u64::MAX]) {
            let found = at_least(count);
            assert!(found <= count && count - found <= count / 5, "{count}: {found}");
            assert!(count >= 8 || found == count, "{count}: {found}");
        }
    }

    #[test]
    fn long_waits_are_bounded() {
        let mut sums = SlotSums::default();
        (0..20_000).for_each(|_| sums.enter_slow(&LongWaits::default(), 1));
        assert_eq!([sums.long_waits_ns.len(), sums.long_waits.len()], [LONG_WAITS_MAX; 2]);
    }

    #[test]
    fn waits_are_counted_from_each_length_on() {
        let mut waits = LongWaits::default();
        for (wait_s, count) in [(1, 1), (2, 2), (5, 1), (100, 1)] {
            waits.note(wait_s * LEVEL_NS, count);
        }
        waits.note(LEVEL_NS - 1, 1);
        waits.note_unanswered(2 * LEVEL_NS);
        assert_eq!((waits.longest_ns, waits.at_least), (100 * LEVEL_NS, [5, 4, 2, 1, 1, 1]));
        assert_eq!(waits.unanswered, [1, 1, 0, 0, 0, 0]);
    }
}
