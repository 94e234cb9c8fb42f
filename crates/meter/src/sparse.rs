//! A histogram of two digits that is small enough to send with every tick.
//!
//! Recording is one shift and one increment into a dense table. The sparse form, index to count, is
//! what is sent; it adds up over threads, seconds and hosts.

use std::collections::BTreeMap;

/// Counts by index.
pub type Sparse = BTreeMap<u32, u64>;

/// 64 steps per power of two: each at most 1.6 % wide.
const STEPS_LOG2: u32 = 6;
const SIZE: usize = ((64 - STEPS_LOG2 as usize) << STEPS_LOG2) + (1 << STEPS_LOG2);

/// The index of `value_ns`: the value itself below 128, logarithmic above.
pub fn index(value_ns: u64) -> u32 {
    let bits = 63 - (value_ns | 1).leading_zeros();
    let shift = bits.saturating_sub(STEPS_LOG2);
    (shift << STEPS_LOG2) + (value_ns >> shift) as u32
}

/// The counts in table form, from the lowest to the highest index in use. They are handed over
/// without building a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    lowest: u32,
    counts: Box<[u32]>,
}

impl Counted {
    /// Takes counts by index, in order of index.
    pub fn of(found: &[(u32, u64)]) -> Self {
        let Some(((lowest, _), (highest, _))) = found.first().zip(found.last()) else {
            return Counted::default();
        };
        let mut counts = vec![0; (highest - lowest + 1) as usize].into_boxed_slice();
        found.iter().for_each(|(index, count)| counts[(index - lowest) as usize] = *count as u32);
        Counted { lowest: *lowest, counts }
    }

    /// Iterates over index and count, in order of index, without zero counts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let all = (self.lowest..).zip(&self.counts);
        all.filter(|(_, count)| **count > 0).map(|(index, count)| (index, u64::from(*count)))
    }

    /// Converts to a map.
    pub fn sparse(&self) -> Sparse {
        self.iter().collect()
    }
}

/// The values recorded since the last [`Recent::take`].
#[derive(Debug)]
pub struct Recent {
    counts: Box<[u32]>,
    lowest: usize,
    highest: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Recent { counts: vec![0; SIZE].into_boxed_slice(), lowest: SIZE, highest: 0 }
    }
}

impl Recent {
    /// Records a value `count` times.
    #[inline]
    pub fn record(&mut self, value_ns: u64, count: u64) {
        let at = index(value_ns) as usize;
        self.counts[at] += count as u32;
        self.lowest = self.lowest.min(at);
        self.highest = self.highest.max(at);
    }

    /// Takes back one value; false if it was already taken or never recorded.
    pub fn retract(&mut self, value_ns: u64) -> bool {
        let count = &mut self.counts[index(value_ns) as usize];
        let there = *count > 0;
        *count -= u32::from(there);
        there
    }

    /// Returns what was recorded and starts afresh.
    pub fn take(&mut self) -> Counted {
        if self.lowest > self.highest {
            return Counted::default();
        }
        let used = &mut self.counts[self.lowest..=self.highest];
        let taken = Counted { lowest: self.lowest as u32, counts: Box::from(&*used) };
        used.fill(0);
        self.lowest = SIZE;
        self.highest = 0;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_grow_without_gaps_and_fit_the_table() {
        assert_eq!([index(0), index(1), index(127), index(128)], [0, 1, 127, 128]);
        assert_eq!([index(129), index(255), index(256)], [128, 191, 192]);
        assert_eq!(index(u64::MAX) as usize, SIZE - 1);
        for value in 1..100_000u64 {
            let step = index(value) - index(value - 1);
            assert!(step <= 1, "a gap below {value}");
        }
    }

    #[test]
    fn what_is_taken_is_what_was_recorded_and_the_next_take_is_empty() {
        let mut recent = Recent::default();
        for (value, count) in [(5, 2), (1_000_000, 1)] {
            recent.record(value, count);
        }
        assert!(recent.retract(5));
        assert!(!recent.retract(77));
        let expected = Sparse::from([(5, 1), (index(1_000_000), 1)]);
        assert_eq!(recent.take().sparse(), expected);
        assert_eq!(recent.take(), Counted::default());
    }
}
