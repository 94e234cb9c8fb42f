//! How far the clock of an engine is ahead of ours. By the rule of the front (`engines/clock.py`):
//! an answer was made somewhere between the question and its arrival, so the offset is known to half
//! of that time (Cristian 1989). Between questions clocks drift apart. Pure.

use std::collections::VecDeque;

const READINGS_MOST: usize = 64; // 16 s at four per second
/// In so many ns two clocks drift apart by at most 1 ns: quartz is within 50 ppm each.
const DRIFT_NS_PER_NS: u64 = 10_000;

/// A question and its answer: our clock at both, and the engine's in between.
#[derive(Clone, Copy, Debug)]
struct Reading {
    asked_ns: u64,
    answered_ns: u64,
    theirs_ns: u64,
}

impl Reading {
    fn half_ns(self) -> u64 {
        self.answered_ns.saturating_sub(self.asked_ns) / 2
    }

    fn bound_ns(self, now_ns: u64) -> u64 {
        self.half_ns() + 1 + now_ns.saturating_sub(self.answered_ns) / DRIFT_NS_PER_NS
    }
}

/// An engine's lead over our clock, give or take the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) ahead_ns: i64,
    pub(super) bound_ns: u64,
}

impl Offset {
    /// Converts a time of the engine's clock to ours.
    pub(super) fn to_ours(self, theirs_ns: u64) -> u64 {
        theirs_ns.saturating_add_signed(-self.ahead_ns)
    }
}

/// The clock readings of one engine.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    readings: VecDeque<Reading>,
}

impl Comparison {
    /// Adds one answer.
    pub(super) fn add(&mut self, asked_ns: u64, answered_ns: u64, theirs_ns: u64) {
        if self.readings.len() == READINGS_MOST {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { asked_ns, answered_ns, theirs_ns });
    }

    /// How many answers are known.
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// The best known offset at a time of our clock; none before the first answer.
    pub(super) fn offset(&self, now_ns: u64) -> Option<Offset> {
        let best = self.readings.iter().min_by_key(|reading| reading.bound_ns(now_ns))?;
        let middle_ns = best.asked_ns + best.half_ns();
        let ahead_ns = best.theirs_ns.wrapping_sub(middle_ns) as i64;
        Some(Offset { ahead_ns, bound_ns: best.bound_ns(now_ns) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_bound_whatever_the_ways_take(
            ahead_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in prop::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), 1..100),
        ) {
            let mut comparison = Comparison::default();
            let mut now_ns = 2_000_000_000_000;
            for (there_ns, back_ns) in ways {
                let theirs_ns = (now_ns + there_ns).saturating_add_signed(ahead_ns);
                comparison.add(now_ns, now_ns + there_ns + back_ns, theirs_ns);
                now_ns += 250_000_000;
            }
            let found = comparison.offset(now_ns).expect("it was asked");
            prop_assert!(found.ahead_ns.abs_diff(ahead_ns) <= found.bound_ns, "{found:?}");
            let later_ns = now_ns.saturating_add_signed(ahead_ns);
            prop_assert!(found.to_ours(later_ns).abs_diff(now_ns) <= found.bound_ns);
        }
    }

    #[test]
    fn without_an_answer_there_is_no_offset() {
        assert_eq!(Comparison::default().offset(7), None);
    }
}
