//! Selects the next of several requests by weight: a pure function of the request's number.
//!
//! The requests of all threads are numbered together. Every cycle of that numbering therefore holds
//! each request exactly as often as its weight says, for any number of threads and connections.
//! Within a cycle the turns of a request are spread evenly. Random parts of a request are also
//! derived from its number, so the same seed gives the same requests.

/// A repeating order in which requests take their turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    cycle: Box<[u32]>,
}

impl Mix {
    /// The maximum number of turns in a cycle: the sum of the weights divided by their greatest
    /// common divisor.
    pub const CYCLE_MOST: u64 = 1 << 20;

    /// The order for these weights. None if there are no weights, if one is 0, or if the cycle
    /// would be longer than [`Mix::CYCLE_MOST`].
    pub fn new(weights: &[u32]) -> Option<Self> {
        let common = weights.iter().copied().reduce(common_divisor)?;
        let turns: u64 = weights.iter().map(|weight| u64::from(weight / common.max(1))).sum();
        if weights.contains(&0) || turns > Self::CYCLE_MOST {
            return None;
        }
        let weights: Vec<u64> = weights.iter().map(|weight| u64::from(weight / common)).collect();
        let mut places: Vec<(u64, usize)> = Vec::with_capacity(turns as usize);
        for (index, weight) in weights.iter().enumerate() {
            places.extend((0..*weight).map(|turn| (turn, index)));
        }
        // Turn k of weight w is ideally placed in the middle of its share of the cycle, at (k +
        // 1/2) / w.
        places.sort_by(|one, two| {
            let (one_at, two_at) =
                ((2 * one.0 + 1) * weights[two.1], (2 * two.0 + 1) * weights[one.1]);
            one_at.cmp(&two_at)
        });
        Some(Mix { cycle: places.into_iter().map(|(_, index)| index as u32).collect() })
    }

    /// The number of turns in a cycle.
    pub fn turns(&self) -> u64 {
        self.cycle.len() as u64
    }

    /// The index of the weight that request `number` belongs to.
    #[inline]
    pub fn pick(&self, number: u64) -> usize {
        self.cycle[(number % self.cycle.len() as u64) as usize] as usize
    }
}

pub(crate) fn common_divisor(one: u32, two: u32) -> u32 {
    if two == 0 { one } else { common_divisor(two, one % two) }
}

/// The largest random number: 2^53 - 1, which every JSON reader represents exactly.
pub const RANDOM_MOST: u64 = (1 << 53) - 1;

/// The `nth` random number of request `number`, from 0 to [`RANDOM_MOST`].
pub fn random(seed: u64, number: u64, nth: u32) -> u64 {
    let stirred = mix64(mix64(mix64(seed) ^ number) ^ u64::from(nth));
    stirred >> (64 - RANDOM_MOST.count_ones())
}

/// The first output of SplitMix64 (Steele, Lea, Flood 2014) for this state. Close inputs give
/// unrelated outputs.
pub(crate) fn mix64(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn order(weights: &[u32], count: u64) -> Vec<usize> {
        let mix = Mix::new(weights).expect("weights that can be had");
        (0..count).map(|number| mix.pick(number)).collect()
    }

    #[test]
    fn turns_are_spread_over_the_cycle() {
        for (weights, turns) in [
            (&[1][..], &[0, 0, 0][..]),
            (&[1, 1], &[0, 1, 0, 1]),
            (&[500, 500], &[0, 1, 0, 1]),
            (&[3, 1], &[0, 0, 1, 0, 0, 0, 1, 0]),
            (&[1, 3], &[1, 0, 1, 1]),
            (&[5, 1, 1], &[0, 0, 0, 1, 2, 0, 0]),
        ] {
            assert_eq!(order(weights, turns.len() as u64), turns, "{weights:?}");
        }
    }

    #[test]
    fn weights_that_cannot_be_had_are_none() {
        assert_eq!(Mix::new(&[]), None);
        assert_eq!(Mix::new(&[0]), None);
        assert_eq!(Mix::new(&[1, 0]), None);
        assert_eq!(Mix::new(&[u32::MAX, 1]), None);
        assert!(Mix::new(&[u32::MAX, u32::MAX]).is_some());
        assert!(Mix::new(&[1 << 19, (1 << 19) - 1, 1]).is_some());
        assert_eq!(Mix::new(&[1 << 19, 1 << 19, 1]), None);
    }

    proptest! {
        #[test]
        fn every_cycle_holds_each_as_often_as_its_weight_says(
            weights in proptest::collection::vec(1u32..50, 1..20),
            cycles in 1u64..4,
        ) {
            let common = weights.iter().copied().reduce(common_divisor).expect("a weight");
            let turns = weights.iter().map(|weight| u64::from(weight / common)).sum::<u64>();
            let picked = order(&weights, cycles * turns);
            for (index, weight) in weights.iter().enumerate() {
                let count = picked.iter().filter(|pick| **pick == index).count() as u64;
                prop_assert_eq!(count, cycles * u64::from(weight / common));
            }
        }

        #[test]
        fn whoever_has_half_of_the_turns_never_waits_for_more_than_the_others(
            others in proptest::collection::vec(1u32..10, 1..10),
        ) {
            let half: u32 = others.iter().sum();
            let weights: Vec<u32> = [half].into_iter().chain(others.iter().copied()).collect();
            let picked = order(&weights, 4 * u64::from(half));
            let longest = picked.split(|pick| *pick == 0).map(<[usize]>::len).max();
            prop_assert!(longest.is_some_and(|longest| longest <= others.len()));
        }
    }

    #[test]
    fn values_are_stirred_as_splitmix64_does() {
        // The first value of Rosetta Code, "Pseudo-random numbers/Splitmix64", for the state 1234567, and two more.
        let states = [0, 1_u64, 2].map(|steps| steps.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let drawn = states.map(|state| mix64(state.wrapping_add(1_234_567)));
        assert_eq!(drawn[0], 6_457_827_717_110_365_317);
        assert_eq!(drawn[1], 3_203_168_211_198_807_973);
        assert_eq!(drawn[2], 9_817_491_932_198_370_423);
    }

    #[test]
    fn random_numbers_depend_on_the_seed_the_request_and_the_place() {
        let mut seen = HashSet::new();
        for seed in 0..10 {
            for number in 0..100 {
                for nth in 0..10 {
                    let drawn = random(seed, number, nth);
                    assert!(drawn <= RANDOM_MOST);
                    assert_eq!(drawn, random(seed, number, nth));
                    seen.insert(drawn);
                }
            }
        }
        assert_eq!(seen.len(), 10_000, "among so few of 2^53 no two are the same");
    }
}
