//! A bit set of small numbers.

/// A set of receivers, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    #[inline]
    fn place(number: u32) -> (usize, u64) {
        ((number >> 6) as usize, 1 << (number & 63))
    }

    /// Adds a number; false if it was already in the set.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = Bits::place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Removes a number; false if it was not in the set.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = Bits::place(number);
        let Some(word) = self.words.get_mut(word) else { return false };
        let there = *word & bit != 0;
        *word &= !bit;
        there
    }

    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        let (word, bit) = Bits::place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Assigns `these` minus `those`.
    pub(super) fn assign_difference(&mut self, these: &Bits, those: &Bits) {
        self.words.clone_from(&these.words);
        self.words.iter_mut().zip(&those.words).for_each(|(mine, theirs)| *mine &= !theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u32]) -> Bits {
        let mut bits = Bits::default();
        numbers.iter().for_each(|number| assert!(bits.insert(*number), "{number} is new"));
        bits
    }

    #[test]
    fn a_number_is_there_from_when_it_is_entered_until_it_is_taken_out() {
        let mut bits = of(&[200, 0, 63, 64]);
        assert_eq!(bits.words.len(), 4, "a bit for each number up to the greatest");
        assert!(!bits.insert(63) && bits.remove(63) && !bits.remove(63));
        let there: Vec<u32> = (0..400).filter(|number| bits.contains(*number)).collect();
        assert_eq!(there, [0, 64, 200]);
    }

    #[test]
    fn a_difference_has_what_only_the_first_has() {
        let mut bits = of(&[5]);
        bits.assign_difference(&of(&[1, 2, 200]), &of(&[2, 3]));
        let there: Vec<u32> = (0..400).filter(|number| bits.contains(*number)).collect();
        assert_eq!(there, [1, 200]);
    }
}
