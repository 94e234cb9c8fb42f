//! Random numbers from a seed, by `SplitMix64` (Steele, Lea, Flood 2014). It uses integers only, so
//! that every machine draws the same numbers.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Creates the stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// Creates an independent stream for part `number` of what this seed decides.
    #[must_use]
    pub fn part(seed: u64, number: u64) -> Self {
        let mut whole = Chance(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Chance(whole.draw())
    }

    /// Returns the next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `count` - 1; 0 when `count` is 0.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(count)) >> 64) as u64
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns true once in `count` draws, on average.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns one of several values.
    pub fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    /// Returns a number from `least` (at least 1) to `most`, spread evenly by order of magnitude.
    /// It is as likely to lie between 1 and 2 as between 1,000 and 2,000.
    pub fn scaled(&mut self, least: u64, most: u64) -> u64 {
        let doublings = most.ilog2() - least.ilog2();
        let floor = least << self.below(u64::from(doublings) + 1);
        self.between(floor, (2 * floor).min(most).max(floor)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_are_fixed() {
        let mut chance = Chance::new(0);
        // The first values of SplitMix64 with seed 0, from its authors' reference code.
        assert_eq!(chance.draw(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(chance.draw(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn a_number_between_two_bounds_reaches_both_and_passes_neither() {
        let mut chance = Chance::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| chance.between(3, 5)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&5));
        assert_eq!(chance.below(0), 0);
    }

    #[test]
    fn a_scaled_number_is_as_often_small_as_large() {
        let mut chance = Chance::new(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| chance.scaled(1, 1_000_000)).collect();
        assert!(drawn.iter().all(|number| (1..=1_000_000).contains(number)));
        let small = drawn.iter().filter(|number| **number <= 1000).count();
        assert!((4_000..6_500).contains(&small), "{small}");
    }
}
