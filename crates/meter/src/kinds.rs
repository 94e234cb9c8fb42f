//! The distinct kinds of answer, each with its length, a sketch of its bytes and its count.
//!
//! The first few kinds are distinguished by length and sketch. Further kinds, such as those of a
//! page with a clock, are counted by length only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of kinds that are distinguished. A server that switches to another answer
/// produces two or three kinds. A page with varying content produces as many as there are answers.
const KINDS_MOST: usize = 8;

/// Answers whose bodies have the same length and sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The length of their bodies, in bytes.
    pub bytes: u64,
    /// A sketch of their bodies, in hex. The fewer bytes differ between two bodies, the more of its
    /// eight bytes are equal.
    #[serde(with = "hex")]
    #[schemars(with = "String")]
    pub sketch: u64,
    /// The number of these answers.
    pub count: u64,
    /// The number of answers to the same request, on the same thread, that came before the first of
    /// these.
    pub before: u64,
}

/// Answers of further kinds whose body lengths have the same number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherKinds {
    /// The number of bits of their body length: 0 for an empty body, 1 for 1 byte, 2 for 2 or 3
    /// bytes, and so on.
    pub bits: u32,
    /// The number of these answers.
    pub count: u64,
    /// The number of answers to the same request, on the same thread, that came before the first of
    /// these.
    pub before: u64,
}

/// The kinds of answer to one request, by the content of their bodies. Empty if each body is
/// compared with an expected one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// The first kinds, in the order in which they came. At most 8 are distinguished.
    known: Vec<Kind>,
    /// Answers of all further kinds, counted by body length only.
    other: Vec<OtherKinds>,
    /// The index in `known` of the kind seen last.
    #[serde(skip)]
    last: usize,
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
        } else {
            let bits = bit_length(bytes);
            match self.other.binary_search_by_key(&bits, |others| others.bits) {
                Ok(place) => self.other[place].count += count,
                Err(place) => {
                    let before = self.sum();
                    self.other.insert(place, OtherKinds { bits, count, before });
                }
            }
        }
    }

    /// The index of this kind among those that are distinguished.
    fn place(&self, bytes: u64, sketch: u64) -> Option<usize> {
        self.known.iter().position(|kind| (kind.bytes, kind.sketch) == (bytes, sketch))
    }

    fn sum(&self) -> u64 {
        let known: u64 = self.known.iter().map(|kind| kind.count).sum();
        known + self.other.iter().map(|others| others.count).sum::<u64>()
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
                let bits = bit_length(kind.bytes);
                self.add_others(OtherKinds { bits, count: kind.count, before: kind.before });
            }
        }
        other.other.iter().for_each(|others| self.add_others(*others));
    }

    fn add_others(&mut self, others: OtherKinds) {
        match self.other.binary_search_by_key(&others.bits, |mine| mine.bits) {
            Ok(place) => {
                let mine = &mut self.other[place];
                mine.count += others.count;
                mine.before = mine.before.min(others.before);
            }
            Err(place) => self.other.insert(place, others),
        }
    }

    /// Whether no body was looked at.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The kinds that are counted individually.
    pub fn known(&self) -> &[Kind] {
        &self.known
    }
}

crate::merge::own!(Kinds);

fn bit_length(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

/// A sketch as 16 hex digits: JSON's readers take numbers for floating-point ones of 53 bits.
mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
    pub(super) fn serialize<S: Serializer>(sketch: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{sketch:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
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
        let others = |bits, count, before| OtherKinds { bits, count, before };
        assert_eq!(kinds.other, [others(0, 20, 1_000), others(6, 992, 8)]);
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
        let others = OtherKinds { bits: 5, count: 15, before: 5 };
        assert_eq!((one.known.len(), one.other), (8, vec![others]));
    }
}
