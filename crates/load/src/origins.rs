//! The division of a load over several origins by weight: a pure function of the weights.
//!
//! Origins take turns in a repeating order, like the requests of a [`Mix`]. Arrivals and requests
//! follow this order, so their shares are exact. Connections follow it too, except that the first
//! turns of all origins come first. Every origin thus gets a connection, and adding connections
//! takes none away from an origin.

use std::sync::Arc;

use super::mix::{Mix, common_divisor};

/// The turns of one origin, or of one of those that share a load, in a repeating order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The places of the origin's turns in the first cycle.
    first: Arc<[u32]>,
    cycle: u64,
}

/// Every `of`-th turn from `index` on.
impl From<(u64, u64)> for Places {
    fn from((index, of): (u64, u64)) -> Self {
        Places { first: [index as u32].into(), cycle: of }
    }
}

impl Places {
    /// The turns at these places of each cycle. None if they are not in rising order within it, or
    /// if there are none.
    pub fn new(first: &[u32], cycle: u64) -> Option<Self> {
        let rising = first.is_sorted_by(|one, next| one < next);
        let within = first.last().is_some_and(|last| u64::from(*last) < cycle);
        (rising && within).then(|| Places { first: first.into(), cycle })
    }

    /// The places of one thread, if several threads take these places in turn.
    pub fn of_thread(&self, thread: u32, threads: u32) -> Self {
        let turns = (0..self.in_a_cycle()).map(|nth| u64::from(thread + nth * threads));
        let first = turns.map(|turn| self.place(turn) as u32).collect();
        Places { first, cycle: self.cycle * u64::from(threads) }
    }

    /// The same in a cycle that ends sooner; none if it ends before the first of these turns.
    pub fn within(&self, cycle: u32) -> Option<Self> {
        let those = self.first.partition_point(|place| *place < cycle);
        Places::new(&self.first[..those], u64::from(cycle))
    }

    /// The number of these turns in a cycle.
    pub fn in_a_cycle(&self) -> u32 {
        self.first.len() as u32
    }

    /// The turns of some requests of a mix; none if it has no turn of theirs.
    pub(crate) fn of_mix(mix: &Mix, chosen: impl Fn(usize) -> bool) -> Option<Self> {
        let cycle = mix.turns();
        let first: Vec<u32> =
            (0..cycle as u32).filter(|turn| chosen(mix.pick(u64::from(*turn)))).collect();
        (!first.is_empty()).then(|| Places { first: first.into(), cycle })
    }

    /// The place of the origin's `turn`-th turn (from 0) among the turns of all origins.
    #[inline]
    pub fn place(&self, turn: u64) -> u64 {
        if let [only] = *self.first {
            return turn * self.cycle + u64::from(only);
        }
        let turns = self.first.len() as u64;
        turn / turns * self.cycle + u64::from(self.first[(turn % turns) as usize])
    }

    /// The number of the first `total` turns that belong to this origin.
    pub fn among(&self, total: u64) -> u64 {
        let rest = total % self.cycle;
        let begun = self.first.partition_point(|place| u64::from(*place) < rest);
        total / self.cycle * self.first.len() as u64 + begun as u64
    }
}

/// Several origins that share a load.
#[derive(Clone, Debug)]
pub struct Origins {
    places: Box<[Places]>,
    /// For each origin, the rank of its first turn among the first turns of all origins.
    ranks: Box<[u32]>,
    /// For each origin, the positions of its further turns among all further turns of the first
    /// cycle.
    further: Box<[Box<[u32]>]>,
}

impl Origins {
    /// Builds the order for targets, each given as the number of its origin and its weight. None if
    /// there is no such order (see [`Mix::new`]) or if an origin has no target.
    pub fn new(targets: &[(usize, u32)]) -> Option<Self> {
        let common = targets.iter().map(|(_, weight)| *weight).reduce(common_divisor)?.max(1);
        let mut weights = vec![0u64; targets.iter().map(|(origin, _)| origin + 1).max()?];
        for (origin, weight) in targets {
            weights[*origin] += u64::from(weight / common);
        }
        let weights: Vec<u32> =
            weights.into_iter().map(u32::try_from).collect::<Result<_, _>>().ok()?;
        let order = Mix::new(&weights)?;
        let mut places = vec![Vec::new(); weights.len()];
        let mut ranks = vec![0; weights.len()];
        let mut further = vec![Vec::new(); weights.len()];
        let mut met = 0;
        for place in 0..order.turns() as u32 {
            let origin = order.pick(u64::from(place));
            if places[origin].is_empty() {
                ranks[origin] = met;
                met += 1;
            } else {
                further[origin].push(place - met);
            }
            places[origin].push(place);
        }
        let cycle = order.turns();
        let places = places.into_iter().map(|first| Places { first: first.into(), cycle });
        Some(Origins {
            places: places.collect(),
            ranks: ranks.into(),
            further: further.into_iter().map(Vec::into_boxed_slice).collect(),
        })
    }

    /// The number of origins.
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// The turns of an origin.
    pub fn places(&self, origin: u32) -> &Places {
        &self.places[origin as usize]
    }

    /// The fraction of a quantity that belongs to an origin, 0 to 1.
    pub fn part(&self, origin: u32) -> f64 {
        let places = self.places(origin);
        places.first.len() as f64 / places.cycle as f64
    }

    /// The number of `total` connections that belong to an origin. At least one, if `total` is at
    /// least the number of origins.
    pub fn connections(&self, total: u32, origin: u32) -> u32 {
        let (index, places) = (origin as usize, self.places(origin));
        if u64::from(total) >= places.cycle {
            return places.among(u64::from(total)) as u32;
        }
        let further = total.saturating_sub(self.count());
        let begun = self.further[index].partition_point(|turn| *turn < further);
        u32::from(self.ranks[index] < total) + begun as u32
    }

    /// The number of `total` connections that belong to the origins before this one.
    pub fn connections_before(&self, total: u32, origin: u32) -> u32 {
        (0..origin).map(|before| self.connections(total, before)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(weights: &[u32]) -> Origins {
        let targets: Vec<_> = weights.iter().copied().enumerate().collect();
        Origins::new(&targets).expect("weights that can be had")
    }

    fn connections(weights: &[u32], total: u32) -> Vec<u32> {
        let origins = of(weights);
        (0..origins.count()).map(|origin| origins.connections(total, origin)).collect()
    }

    #[test]
    fn connections_go_by_weight_and_each_origin_has_one() {
        for (weights, total, dealt) in [
            (&[1, 1][..], 2, &[1, 1][..]),
            (&[3, 1], 4, &[3, 1]),
            (&[3, 1], 64, &[48, 16]),
            (&[3, 1], 2, &[1, 1]),
            (&[1, 999], 2, &[1, 1]),
            (&[1, 999], 10, &[1, 9]),
            (&[1, 999], 1000, &[1, 999]),
            (&[2, 1, 1], 7, &[3, 2, 2]),
            (&[5, 3, 2], 1, &[1, 0, 0]),
            (&[5, 3, 2], 0, &[0, 0, 0]),
        ] {
            assert_eq!(connections(weights, total), dealt, "{total} by {weights:?}");
        }
    }

    #[test]
    fn an_origin_has_the_weights_of_all_its_targets() {
        let most = u32::MAX;
        let origins = Origins::new(&[(0, most), (1, most), (0, most), (2, most)]).expect("origins");
        let dealt: Vec<_> = (0..3).map(|origin| origins.connections(8, origin)).collect();
        assert_eq!(dealt, [4, 2, 2]);
        assert_eq!(origins.part(0), 0.5);
    }

    #[test]
    fn what_has_no_order_is_none() {
        for targets in [&[][..], &[(0, 0)], &[(1, 1)], &[(0, 1), (2, 1)], &[(0, 1 << 20), (1, 1)]] {
            assert!(Origins::new(targets).is_none(), "{targets:?}");
        }
    }

    #[test]
    fn places_are_in_rising_order_within_their_cycle() {
        for (first, cycle, legal) in [
            (&[0, 2][..], 3, true),
            (&[2], 3, true),
            (&[], 3, false),
            (&[0, 3], 3, false),
            (&[2, 0], 3, false),
            (&[1, 1], 3, false),
        ] {
            assert_eq!(Places::new(first, cycle).is_some(), legal, "{first:?} of {cycle}");
        }
        let places = Places::new(&[0, 2], 3).expect("places");
        assert_eq!(places.of_thread(0, 2), Places::new(&[0, 3], 6).expect("places"));
        assert_eq!(places.of_thread(1, 2), Places::new(&[2, 5], 6).expect("places"));
        assert_eq!(places.within(2), Places::new(&[0], 2));
        assert_eq!(places.of_thread(1, 2).within(2), None);
    }

    proptest! {
        #[test]
        fn engines_and_their_threads_share_every_turn(
            owners in proptest::collection::vec(0u32..4, 1..12), threads in 1u32..4, turns in 0u64..200,
        ) {
            let mut all = Vec::new();
            for owner in 0..4 {
                let own: Vec<u32> =
                    (0..).zip(&owners).filter(|(_, of)| **of == owner).map(|(at, _)| at).collect();
                let Some(places) = Places::new(&own, owners.len() as u64) else { continue };
                for thread in 0..threads {
                    let places = places.of_thread(thread, threads);
                    all.extend((0..places.among(turns)).map(|turn| places.place(turn)));
                }
            }
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..turns));
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_between_the_origins(
            weights in proptest::collection::vec(1u32..100, 1..12), total in 0u32..5000,
        ) {
            let origins = of(&weights);
            let numbers = 0..origins.count();
            let dealt = connections(&weights, total);
            prop_assert_eq!(dealt.iter().sum::<u32>(), total);
            prop_assert_eq!(origins.connections_before(total, origins.count()), total);
            let requests = numbers.map(|origin| origins.places(origin).among(u64::from(total)));
            prop_assert_eq!(requests.sum::<u64>(), u64::from(total));
        }

        #[test]
        fn each_has_a_connection_and_otherwise_its_share(
            weights in proptest::collection::vec(1u32..100, 1..12), more in 0u32..5000,
        ) {
            let total = weights.len() as u32 + more;
            let sum = weights.iter().sum::<u32>();
            for (count, weight) in connections(&weights, total).into_iter().zip(&weights) {
                prop_assert!(count >= 1);
                let share = f64::from(total) * f64::from(*weight) / f64::from(sum);
                // Whoever has one for being there takes it from the others.
                prop_assert!(f64::from(count) <= share + 1.5, "{count} of {share}");
                prop_assert!(f64::from(count) + weights.len() as f64 >= share, "{count} of {share}");
            }
        }

        #[test]
        fn one_more_connection_takes_none_away(
            weights in proptest::collection::vec(1u32..30, 1..8), total in 0u32..500,
        ) {
            let (now, then) = (connections(&weights, total), connections(&weights, total + 1));
            prop_assert!(now.iter().zip(&then).all(|(now, then)| now <= then));
        }

        #[test]
        fn every_turn_is_that_of_one_origin(
            weights in proptest::collection::vec(1u32..30, 1..8), cycles in 1u64..4,
        ) {
            let origins = of(&weights);
            let mut all = Vec::new();
            for origin in 0..origins.count() {
                let places = origins.places(origin);
                let turns = places.among(cycles * places.cycle);
                all.extend((0..turns).map(|turn| places.place(turn)));
            }
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..cycles * origins.places(0).cycle));
        }
    }
}
