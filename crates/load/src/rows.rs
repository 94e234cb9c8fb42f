//! Which row of data a request takes: a pure function of the request's number.
//!
//! The requests that take rows are numbered together over all threads and engines. Nothing is kept
//! about a row: its number follows from that of its request.

use super::Mix;
use super::mix::mix64;
use super::origins::Places;

/// The order in which rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// As they stand in the data, and then from the first again.
    Sequential,
    /// Each pass over the data takes every row once, in an order of its own.
    Shuffled {
        /// The same seed gives the same orders.
        seed: u64,
    },
    /// As they stand in the data, each once.
    Unique,
}

impl RowOrder {
    /// The row, of `rows`, that the `turn`-th request takes.
    #[inline]
    pub fn row(self, turn: u64, rows: u64) -> u64 {
        let rows = rows.max(1);
        match self {
            RowOrder::Sequential | RowOrder::Unique => turn % rows,
            RowOrder::Shuffled { seed } => shuffled(mix64(seed) ^ (turn / rows), turn % rows, rows),
        }
    }

    /// The number of turns that an engine has, whose turns among those of all engines these are.
    fn turns(self, rows: u64, part: &Places) -> u64 {
        match self {
            RowOrder::Unique => part.among(rows),
            RowOrder::Sequential | RowOrder::Shuffled { .. } => u64::MAX,
        }
    }
}

/// The place of `row` in a permutation of `rows` rows that the key decides.
///
/// How it works: every step maps the numbers of as many bits one to one. A result that is no row is
/// mapped again until it is one, which keeps the whole one to one. On average that takes less than
/// two rounds, as at least half of all numbers of so many bits are rows.
fn shuffled(key: u64, row: u64, rows: u64) -> u64 {
    let bits = (u64::BITS - (rows - 1).leading_zeros()).max(1);
    let mask = u64::MAX >> (u64::BITS - bits);
    let half = bits.div_ceil(2);
    let mut mapped = row;
    loop {
        for step in 0..STEPS {
            let stirred = mix64(key ^ (step << 56));
            // An odd factor, a sum and a shifted xor can each be undone.
            mapped = mapped.wrapping_mul(stirred | 1).wrapping_add(stirred >> 20) & mask;
            mapped ^= mapped >> half;
        }
        if mapped < rows {
            return mapped;
        }
    }
}

/// Steps of a shuffle: with fewer, neighbours would stay in a pattern.
const STEPS: u64 = 4;

/// The requests that take rows, among all requests of one engine.
#[derive(Clone, Debug)]
pub struct Takers {
    /// Their turns, if other requests take none.
    places: Option<Places>,
    /// The turns of this origin among those of all, if there are several: all take rows.
    among_origins: Option<Places>,
    /// The turns of this engine among those of all.
    part: Places,
}

impl Takers {
    /// The requests of a mix that take rows, at an engine that has the turns `part` of all engines.
    /// None if there are none. With several origins every request must take one.
    pub fn of(
        mix: &Mix,
        takes: impl Fn(usize) -> bool,
        among_origins: Option<Places>,
        part: impl Into<Places>,
    ) -> Option<Self> {
        let places = Places::of_mix(mix, takes)?;
        let places = (places.among(mix.turns()) < mix.turns()).then_some(places);
        Some(Takers { places, among_origins, part: part.into() })
    }

    /// The turn, among those of all engines, of the request with this number at this engine.
    #[inline]
    pub fn turn(&self, number: u64) -> u64 {
        let own = self.places.as_ref().map_or(number, |places| places.among(number));
        let turn = self.among_origins.as_ref().map_or(own, |places| places.place(own));
        self.part.place(turn)
    }

    /// The number of requests that this engine can send with `rows` rows.
    pub fn requests(&self, order: RowOrder, rows: u64) -> u64 {
        let turns = order.turns(rows, &self.part);
        if turns == u64::MAX {
            return turns;
        }
        let own = self.among_origins.as_ref().map_or(turns, |places| places.among(turns));
        self.places.as_ref().map_or(own, |places| places.place(own))
    }

    /// The number of rows taken by the first `requests` requests of this engine.
    pub fn taken(&self, requests: u64) -> u64 {
        self.places.as_ref().map_or(requests, |places| places.among(requests))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Origins, share};

    fn rows_of(order: RowOrder, turns: std::ops::Range<u64>, rows: u64) -> Vec<u64> {
        turns.map(|turn| order.row(turn, rows)).collect()
    }

    proptest! {
        #[test]
        fn a_pass_takes_every_row_once(rows in 1u64..3000, pass in 0u64..5, seed: u64) {
            for order in [RowOrder::Sequential, RowOrder::Shuffled { seed }] {
                let mut taken = rows_of(order, pass * rows..(pass + 1) * rows, rows);
                taken.sort_unstable();
                prop_assert!(taken.into_iter().eq(0..rows), "{order:?}");
            }
        }

        #[test]
        fn unique_rows_are_taken_once_over_all_engines_and_the_turns_between_take_none(
            weights in proptest::collection::vec(1u32..8, 2..6), of in 1u64..5, rows in 0u64..500,
        ) {
            let mix = Mix::new(&weights).expect("weights");
            let mut taken = Vec::new();
            for index in 0..of {
                let takers = Takers::of(&mix, |target| target != 1, None, (index, of));
                let takers = takers.expect("takers");
                let requests = takers.requests(RowOrder::Unique, rows);
                prop_assert_eq!(takers.taken(requests), share(rows, of, index));
                let takes = (0..requests).filter(|number| mix.pick(*number) != 1);
                taken.extend(takes.map(|number| takers.turn(number)));
                prop_assert!(mix.pick(requests) != 1, "the next one would take a row");
            }
            taken.sort_unstable();
            prop_assert!(taken.into_iter().eq(0..rows));
        }

        #[test]
        fn unique_rows_are_taken_once_over_all_origins(
            weights in proptest::collection::vec(1u32..8, 1..6), of in 1u64..4, rows in 0u64..500,
        ) {
            let targets: Vec<_> = weights.iter().copied().enumerate().collect();
            let origins = Origins::new(&targets).expect("origins");
            let alone = Mix::new(&[1]).expect("one");
            let mut taken = Vec::new();
            for index in 0..of {
                for origin in 0..origins.count() {
                    let places = Some(origins.places(origin).clone());
                    let takers = Takers::of(&alone, |_| true, places, (index, of)).expect("all");
                    let requests = takers.requests(RowOrder::Unique, rows);
                    taken.extend((0..requests).map(|number| takers.turn(number)));
                }
            }
            taken.sort_unstable();
            prop_assert!(taken.into_iter().eq(0..rows));
        }
    }

    #[test]
    fn passes_are_shuffled_differently_and_a_seed_repeats_them() {
        let order = RowOrder::Shuffled { seed: 7 };
        let (first, second) = (rows_of(order, 0..1000, 1000), rows_of(order, 1000..2000, 1000));
        assert_ne!(first, second);
        assert_eq!(first, rows_of(order, 0..1000, 1000));
        assert_ne!(first, rows_of(RowOrder::Shuffled { seed: 8 }, 0..1000, 1000));
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        for rows in [1000, 1024, 10_000_000] {
            let taken = rows_of(RowOrder::Shuffled { seed: 1 }, 0..1000, rows);
            let close = taken.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < rows / 100);
            let close = close.count();
            // By chance 2 % of all pairs are so close.
            assert!(close < 60, "{close} of 999 are closer than a hundredth of {rows} rows");
            let rising = taken.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert!((400..600).contains(&rising), "{rising} of 999 rise");
        }
    }

    #[test]
    fn without_a_taker_there_is_none() {
        let mix = Mix::new(&[1, 2]).expect("weights");
        assert!(Takers::of(&mix, |_| false, None, (0, 1)).is_none());
        let all = Takers::of(&mix, |_| true, None, (0, 1)).expect("all");
        assert_eq!(all.requests(RowOrder::Sequential, 3), u64::MAX);
    }
}
