//! The distinct kinds of answer, each with its length, a sketch of its bytes and its count.
//!
//! The first few kinds are distinguished by length and sketch. Further kinds, such as those of a
//! page with a clock, are counted by length only.

use std::collections::BTreeMap;

/// The maximum number of kinds that are distinguished. A server that switches to another answer
/// produces two or three kinds. A page with varying content produces as many as there are answers.
const KINDS_MOST: usize = 8;

/// Answers with the same length and sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// The length of their bodies.
    pub bytes: u64,
    /// The sketch of their bodies.
    pub sketch: u64,
    /// The number of such answers.
    pub count: u64,
    /// The number of answers that came before the first of them.
    pub before: u64,
}

/// Answers of further kinds whose body lengths have the same number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// The number of such answers.
    pub count: u64,
    /// The number of answers that came before the first of them.
    pub before: u64,
}

/// The kinds of answer to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// The distinguished kinds, in the order in which they first came.
    known: Vec<Kind>,
    /// The index in `known` of the kind seen last.
    last: usize,
    /// All other answers. The key is the number of bits of the body length: 0 for an empty body, 1
    /// for 1 byte, 2 for 2 or 3 bytes.
    other: BTreeMap<u8, Others>,
}

impl Kinds {
    /// Records `count` consecutive answers with this body length and sketch.
    #[inline]
    pub fn record(&mut self, bytes: u64, sketch: u64, count: u64) {
        match self.known.get_mut(self.last) {
            Some(kind) if (kind.bytes, kind.sketch) == (bytes, sketch) => kind.count += count,
            _ => self.record_another(bytes, sketch, count),
        }
    }

    fn record_another(&mut self, bytes: u64, sketch: u64, count: u64) {
        if let Some(place) = self.place(bytes, sketch) {
            self.known[place].count += count;
            self.last = place;
        } else if self.known.len() < KINDS_MOST {
            let before = self.sum();
            self.last = self.known.len();
            self.known.push(Kind { bytes, sketch, count, before });
        } else if let Some(others) = self.other.get_mut(&bit_length(bytes)) {
            others.count += count;
        } else {
            let before = self.sum();
            self.other.insert(bit_length(bytes), Others { count, before });
        }
    }

    /// The index of this kind among those that are distinguished.
    fn place(&self, bytes: u64, sketch: u64) -> Option<usize> {
        self.known.iter().position(|kind| (kind.bytes, kind.sketch) == (bytes, sketch))
    }

    fn sum(&self) -> u64 {
        let known: u64 = self.known.iter().map(|kind| kind.count).sum();
        known + self.other.values().map(|others| others.count).sum::<u64>()
    }

    /// Adds the kinds of another thread.
    pub fn merge(&mut self, other: &Kinds) {
        for kind in &other.known {
            if let Some(place) = self.place(kind.bytes, kind.sketch) {
                let mine = &mut self.known[place];
                mine.count += kind.count;
                mine.before = mine.before.min(kind.before);
            } else if self.known.len() < KINDS_MOST {
                self.known.push(*kind);
            } else {
                self.add_others(bit_length(kind.bytes), kind.count, kind.before);
            }
        }
        for (bits, others) in &other.other {
            self.add_others(*bits, others.count, others.before);
        }
    }

    fn add_others(&mut self, bits: u8, count: u64, before: u64) {
        let mine = self.other.entry(bits).or_insert(Others { count: 0, before });
        mine.count += count;
        mine.before = mine.before.min(before);
    }

    /// The kinds that are counted individually.
    #[must_use]
    pub fn known(&self) -> &[Kind] {
        &self.known
    }

    /// All other answers, by the number of bits of the body length.
    #[must_use]
    pub fn other(&self) -> &BTreeMap<u8, Others> {
        &self.other
    }
}

fn bit_length(bytes: u64) -> u8 {
    (u64::BITS - bytes.leading_zeros()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(kinds: &Kinds) -> Vec<(u64, u64, u64)> {
        kinds.known.iter().map(|kind| (kind.bytes, kind.count, kind.before)).collect()
    }

    #[test]
    fn answers_are_counted_by_kind_and_a_kind_knows_how_many_came_before_it() {
        let mut kinds = Kinds::default();
        for (bytes, sketch, count) in [(13, 7, 1), (13, 7, 999), (0, 0, 10), (13, 8, 1), (0, 0, 5)]
        {
            kinds.record(bytes, sketch, count);
        }
        assert_eq!(counts(&kinds), [(13, 1000, 0), (0, 15, 1000), (13, 1, 1010)]);
        assert!(kinds.other.is_empty());
    }

    #[test]
    fn beyond_a_few_kinds_answers_are_counted_by_their_length() {
        let mut kinds = Kinds::default();
        (0..1_000).for_each(|sketch| kinds.record(40, sketch, 1));
        (0..10).for_each(|sketch| kinds.record(0, 5_000 + sketch, 2));
        assert_eq!(kinds.known.len(), KINDS_MOST);
        let others = |count, before| Others { count, before };
        assert_eq!(kinds.other, BTreeMap::from([(0, others(20, 1_000)), (6, others(992, 8))]));
        // Those that are known stay known.
        kinds.record(40, 3, 1);
        assert_eq!(kinds.known[3].count, 2);
    }

    #[test]
    fn kinds_of_threads_are_added_up() {
        let (mut one, mut two) = (Kinds::default(), Kinds::default());
        one.record(13, 7, 100);
        one.record(0, 0, 1);
        two.record(0, 0, 50);
        two.record(13, 7, 2);
        two.record(99, 9, 1);
        one.merge(&two);
        assert_eq!(counts(&one), [(13, 102, 0), (0, 51, 0), (99, 1, 52)]);
        let mut many = Kinds::default();
        (100..120).for_each(|sketch| many.record(20, sketch, 1));
        one.merge(&many);
        let others = Others { count: 15, before: 5 };
        assert_eq!((one.known.len(), &one.other), (8, &BTreeMap::from([(5, others)])));
    }
}
