//! The send times of an open loop: arrivals over stages of a rate.
//!
//! How it works: arrivals are drawn on a transformed time axis on which the rate is 1 per unit.
//! Constant arrivals are at 1, 2, 3, …; Poisson arrivals are sums of exponential steps. The inverse
//! of the rate's integral turns units into nanoseconds. Steps, ramps and both kinds of arrivals
//! thus share one code path. Nothing is queued: a late arrival is still the next one drawn, however
//! late.

use super::mix::mix64;
use super::origins::Places;

/// A stretch of time in which a quantity changes linearly from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The duration, in ns.
    pub ns: u64,
    /// The value at the beginning.
    pub from: f64,
    /// The value at the end.
    pub to: f64,
}

impl Stage {
    fn seconds(&self) -> f64 {
        self.ns as f64 / NS_PER_S
    }

    /// The integral of the quantity over the whole stage, in units · s.
    fn area(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.seconds()
    }

    /// The number of seconds after which the integral reaches `area`.
    fn seconds_to(&self, area: f64) -> f64 {
        if area <= 0.0 {
            return 0.0;
        }
        let slope = (self.to - self.from) / self.seconds().max(f64::MIN_POSITIVE);
        // Solves from·t + slope·t²/2 = area in the form that avoids cancellation.
        let root = (self.from * self.from + 2.0 * slope * area).max(0.0).sqrt();
        let divisor = self.from + root;
        if divisor > 0.0 { (2.0 * area / divisor).min(self.seconds()) } else { self.seconds() }
    }

    /// The same as [`Stage::seconds_to`], in ns.
    fn ns_to(&self, area: f64) -> u64 {
        (self.seconds_to(area) * NS_PER_S) as u64
    }
}

const NS_PER_S: f64 = 1e9;
/// The maximum number of random arrivals drawn in one counting pass, over all threads. Drawing them
/// takes less than a heartbeat of 10 ms. A pass runs four times a second, so this covers two
/// million requests per second.
const DRAWN_MOST: u64 = 1 << 19;

/// The value of a staged quantity at `elapsed_ns`. After the last stage its end value holds.
#[must_use]
pub fn value_at(stages: &[Stage], elapsed_ns: u64) -> f64 {
    let mut before_ns = 0u64;
    for stage in stages {
        let into_ns = elapsed_ns.saturating_sub(before_ns);
        if into_ns < stage.ns {
            let part = into_ns as f64 / stage.ns as f64;
            return stage.from + (stage.to - stage.from) * part;
        }
        before_ns = before_ns.saturating_add(stage.ns);
    }
    stages.last().map_or(0.0, |stage| stage.to)
}

/// The spacing of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Even spacing.
    Constant,
    /// Exponential gaps, drawn from this seed.
    Poisson {
        /// The same seed gives the same arrivals.
        seed: u64,
    },
}

/// The arrivals of one thread, in order of time.
#[derive(Clone, Debug)]
pub struct Schedule {
    stages: Vec<Stage>,
    /// The index of the stage that the next arrival is in, and the ns and units before that stage.
    stage: usize,
    before_ns: u64,
    before_units: f64,
    /// The next arrival, in units.
    unit: f64,
    /// The number of the next arrival among those of all threads and origins. In a constant
    /// schedule it is also the arrival's unit: computed, not summed, so that no rounding error
    /// accumulates.
    number: u64,
    /// The number of the next arrival among those of all threads.
    turn: u64,
    threads: u64,
    /// The places of this origin's arrivals among those of all origins, if there are several.
    places: Option<Places>,
    chance: Option<Chance>,
    next_ns: Option<u64>,
}

impl Schedule {
    /// The arrivals of thread `thread` of `threads`: every `threads`-th arrival of the schedule
    /// that a single thread would have. All threads together send exactly what the seed decides.
    #[must_use]
    pub fn new(stages: &[Stage], arrivals: Arrivals, thread: u32, threads: u32) -> Self {
        Schedule::of_origin(stages, arrivals, thread, threads, None)
    }

    /// The same for one of several origins: only the arrivals at its places.
    #[must_use]
    pub fn of_origin(
        stages: &[Stage],
        arrivals: Arrivals,
        thread: u32,
        threads: u32,
        places: Option<Places>,
    ) -> Self {
        let turn = u64::from(thread);
        let chance = match arrivals {
            Arrivals::Constant => None,
            Arrivals::Poisson { seed } => Some(Chance::new(seed)),
        };
        let mut schedule = Schedule {
            stages: stages.to_vec(),
            stage: 0,
            before_ns: 0,
            before_units: 0.0,
            unit: 0.0,
            number: places.as_ref().map_or(turn, |places| places.place(turn)),
            turn,
            threads: u64::from(threads.max(1)),
            places,
            chance,
            next_ns: None,
        };
        schedule.unit = match &mut schedule.chance {
            None => schedule.number as f64,
            Some(chance) => chance.sum(0.0, schedule.number + 1),
        };
        schedule.next_ns = schedule.place();
        schedule
    }

    /// The time of the next arrival, in ns since the start; none when the stages are over.
    #[inline]
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Advances to the arrival after the next.
    #[inline]
    pub fn advance(&mut self) {
        let before = self.number;
        self.turn += self.threads;
        self.number = self.number_of(self.turn);
        self.unit = match &mut self.chance {
            None => self.number as f64,
            Some(chance) => chance.sum(self.unit, self.number - before),
        };
        self.next_ns = self.place();
    }

    /// Skips the arrivals before `until_ns`, beginning with the next, and returns how many they
    /// are. Random arrivals are drawn one by one only up to `DRAWN_MOST`, which is more than can be
    /// sent meanwhile. The rest is counted as their average number.
    pub fn skip_until(&mut self, until_ns: u64) -> u64 {
        let (mut skipped, mut drawn) = (0, 0);
        while self.next_ns.is_some_and(|next_ns| next_ns < until_ns) {
            let leaps = self.chance.is_none() || drawn >= DRAWN_MOST;
            let leapt = if leaps { self.leap_to_last_before(until_ns) } else { 0 };
            self.advance();
            skipped += leapt + 1;
            drawn += self.threads;
        }
        skipped
    }

    /// Advances to the last arrival of this stage before `until_ns`, taking every gap as the mean
    /// gap, and returns how many were passed over. Drawing the arrivals of an unreachably high rate
    /// one by one would take longer than the stage lasts.
    fn leap_to_last_before(&mut self, until_ns: u64) -> u64 {
        let mut step = 1;
        while self.is_before(step, until_ns) {
            step *= 2;
        }
        let mut leap = 0;
        while step > 1 {
            step /= 2;
            leap += if self.is_before(leap + step, until_ns) { step } else { 0 };
        }
        self.unit = self.unit_further(leap);
        self.turn += leap * self.threads;
        self.number = self.number_of(self.turn);
        self.next_ns = self.place();
        leap
    }

    /// Whether the arrival `further` steps ahead is in this stage and before `until_ns`.
    fn is_before(&self, further: u64, until_ns: u64) -> bool {
        let Some(stage) = self.stages.get(self.stage) else { return false };
        let into = self.unit_further(further) - self.before_units;
        into < stage.area() && self.before_ns + stage.ns_to(into) < until_ns
    }

    /// The position, in units, of the arrival `further` steps ahead, taking every gap as the mean
    /// gap.
    fn unit_further(&self, further: u64) -> f64 {
        self.unit + (self.number_of(self.turn + further * self.threads) - self.number) as f64
    }

    /// The number, among the arrivals of all threads and origins, of this thread's arrival `turn`.
    fn number_of(&self, turn: u64) -> u64 {
        self.places.as_ref().map_or(turn, |places| places.place(turn))
    }

    /// The time of the next arrival in ns; moves on to its stage. None when the stages are over.
    fn place(&mut self) -> Option<u64> {
        loop {
            let stage = self.stages.get(self.stage)?;
            let into = self.unit - self.before_units;
            if into < stage.area() {
                return Some(self.before_ns + stage.ns_to(into));
            }
            self.before_units += stage.area();
            self.before_ns += stage.ns;
            self.stage += 1;
        }
    }
}

/// A small seeded generator (`xorshift64*`, Vigna 2016). Arrivals need only 53 uniform bits.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        // The mixing keeps the streams of close seeds apart. A state of 0 would stay 0.
        Chance(mix64(seed).max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns `from` plus `steps` exponential steps. They are added one by one, so that every
    /// thread computes bit-identical arrivals.
    fn sum(&mut self, from: f64, steps: u64) -> f64 {
        (0..steps).fold(from, |unit, _| unit + self.exponential())
    }

    /// Draws an exponentially distributed value with mean 1.
    fn exponential(&mut self) -> f64 {
        // In (0, 1], because the logarithm of 0 is not finite.
        let even = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -even.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origins;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn stage(seconds: u64, from: f64, to: f64) -> Stage {
        Stage { ns: seconds * S, from, to }
    }

    fn all(stages: &[Stage], arrivals: Arrivals, thread: u32, threads: u32) -> Vec<u64> {
        drawn(Schedule::new(stages, arrivals, thread, threads))
    }

    fn drawn(mut schedule: Schedule) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(ns) = schedule.next_ns() {
            times.push(ns);
            schedule.advance();
        }
        times
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_and_none_is_lost() {
        let times = all(&[stage(2, 1000.0, 1000.0)], Arrivals::Constant, 0, 1);
        assert_eq!(times.len(), 2000);
        let off = times.iter().enumerate().map(|(k, ns)| ns.abs_diff(k as u64 * 1_000_000)).max();
        assert!(off.is_some_and(|ns| ns <= 1), "{off:?}");
    }

    #[test]
    fn a_ramp_reaches_its_end_and_sends_its_area() {
        let times = all(&[stage(10, 0.0, 100.0)], Arrivals::Constant, 0, 1);
        assert_eq!(times.len(), 500);
        let first_half = times.iter().filter(|ns| **ns < 5 * S).count();
        assert_eq!(first_half, 125);
    }

    #[test]
    fn a_stage_of_silence_is_passed_over() {
        let stages = [stage(1, 10.0, 10.0), stage(5, 0.0, 0.0), stage(1, 10.0, 10.0)];
        let times = all(&stages, Arrivals::Constant, 0, 1);
        assert_eq!(times.len(), 20);
        assert!(times[9] < S && times[10] >= 6 * S, "{:?}", &times[9..11]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential_and_the_seed_decides() {
        let arrivals = Arrivals::Poisson { seed: 7 };
        let times = all(&[stage(100, 1000.0, 1000.0)], arrivals, 0, 1);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "spread {}", variance.sqrt() / mean);
        assert_eq!(times, all(&[stage(100, 1000.0, 1000.0)], arrivals, 0, 1));
        let other = Arrivals::Poisson { seed: 8 };
        assert_ne!(times[..10], all(&[stage(1, 1000.0, 1000.0)], other, 0, 1)[..10]);
    }

    #[test]
    fn random_bits_are_those_of_xorshift64_star() {
        // The values of Rosetta Code, "Pseudo-random numbers/Xorshift star", for the state 1234567.
        let mut chance = Chance(1_234_567);
        for upper in [3_540_625_527, 2_750_739_987, 4_037_983_143, 1_993_361_440, 3_809_424_708] {
            assert_eq!(chance.next() >> 32, upper);
        }
    }

    #[test]
    fn the_first_random_arrival_comes_after_a_gap() {
        for seed in 0..100 {
            let times = all(&[stage(1, 10.0, 10.0)], Arrivals::Poisson { seed }, 0, 1);
            assert!(times.first() > Some(&0), "seed {seed}");
        }
    }

    #[test]
    fn an_arrival_at_the_very_end_of_what_is_skipped_is_not_skipped() {
        for from in 0..5 {
            let mut schedule = Schedule::new(&[stage(9, 1.0, 1.0)], Arrivals::Constant, 0, 1);
            assert_eq!(schedule.skip_until(from * S), from);
            assert_eq!(schedule.next_ns(), Some(from * S));
        }
    }

    #[test]
    fn values_between_stages_are_on_the_line() {
        let stages = [stage(10, 500.0, 500.0), stage(30, 1000.0, 20_000.0)];
        let cases = [(0, 500.0), (10 * S, 1000.0), (25 * S, 10_500.0), (99 * S, 20_000.0)];
        for (elapsed_ns, expected) in cases {
            assert!((value_at(&stages, elapsed_ns) - expected).abs() < 1e-6, "at {elapsed_ns}");
        }
    }

    #[test]
    fn what_a_rate_beyond_all_reach_asks_for_is_counted_without_drawing_it() {
        let stages = [stage(3600, 1e9, 1e9), stage(1, 5.0, 5.0)];
        let mut schedule = Schedule::new(&stages, Arrivals::Constant, 1, 3);
        assert_eq!(schedule.skip_until(3600 * S), 3_600_000_000_000 / 3);
        assert_eq!(schedule.skip_until(u64::MAX), 2);
        assert_eq!(schedule.next_ns(), None);
    }

    #[test]
    fn of_random_arrivals_beyond_all_reach_as_many_are_counted_as_there_are_on_average() {
        let stages = [stage(3600, 1e9, 1e9), stage(1, 5.0, 5.0)];
        let mut schedule = Schedule::new(&stages, Arrivals::Poisson { seed: 7 }, 1, 3);
        let mean = 3_600_000_000_000 / 3;
        let counted: u64 = (1..=4).map(|quarter| schedule.skip_until(quarter * 900 * S)).sum();
        assert!(counted.abs_diff(mean) < 10_000, "{counted}");
        assert!(schedule.next_ns().is_none_or(|next_ns| next_ns >= 3600 * S));
        schedule.skip_until(u64::MAX);
        assert_eq!(schedule.next_ns(), None);
    }

    #[test]
    fn random_arrivals_at_a_rate_that_can_be_sent_are_counted_one_by_one() {
        let stages = [stage(4, 1e6, 1e6)];
        let arrivals = Arrivals::Poisson { seed: 7 };
        let mut schedule = Schedule::new(&stages, arrivals, 0, 1);
        let counted: u64 = (1..=16).map(|quarter| schedule.skip_until(quarter * S / 4)).sum();
        assert_eq!(counted, all(&stages, arrivals, 0, 1).len() as u64);
    }

    proptest! {
        #[test]
        fn threads_together_have_the_arrivals_that_one_would_have(
            rates in prop::collection::vec((1u64..4, 0.0f64..300.0, 0.0f64..300.0), 1..4),
            seed in any::<Option<u64>>(),
            threads in 1u32..12,
            requests in 0u64..2000,
        ) {
            let stages: Vec<Stage> =
                rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
            let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
            let whole = all(&stages, arrivals, 0, 1);
            let shares: Vec<Vec<u64>> =
                (0..threads).map(|thread| all(&stages, arrivals, thread, threads)).collect();
            let mut merged = shares.concat();
            merged.sort_unstable();
            prop_assert_eq!(&merged, &whole);
            // The first so many of all are the first of each thread, as many as its share says.
            let most = requests.min(whole.len() as u64);
            for (thread, mine) in shares.iter().enumerate() {
                let share = crate::share(most, u64::from(threads), thread as u64) as usize;
                let dealt = whole[..most as usize].iter().skip(thread).step_by(threads as usize);
                prop_assert!(mine[..share].iter().eq(dealt), "thread {}", thread);
            }
        }

        #[test]
        fn origins_together_have_the_arrivals_that_one_would_have(
            weights in prop::collection::vec(1u32..20, 1..6),
            seed in any::<Option<u64>>(),
            threads in 1u32..5,
            requests in 0u64..800,
        ) {
            let stages = [stage(2, 0.0, 300.0), stage(1, 500.0, 500.0)];
            let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
            let whole = all(&stages, arrivals, 0, 1);
            let targets: Vec<_> = weights.iter().copied().enumerate().collect();
            let origins = Origins::new(&targets).expect("origins");
            let (mut merged, mut first) = (Vec::new(), Vec::new());
            for origin in 0..origins.count() {
                let places = origins.places(origin);
                let mut own = Vec::new();
                for thread in 0..threads {
                    let places = Some(places.clone());
                    let schedule = Schedule::of_origin(&stages, arrivals, thread, threads, places);
                    own.extend(drawn(schedule));
                }
                own.sort_unstable();
                first.extend(own.iter().copied().take(places.among(requests) as usize));
                merged.extend(own);
            }
            merged.sort_unstable();
            prop_assert_eq!(&merged, &whole);
            // A number of requests is divided as the arrivals are: the first so many of all.
            first.sort_unstable();
            prop_assert_eq!(&first[..], &whole[..whole.len().min(requests as usize)]);
        }

        #[test]
        fn arrivals_never_go_back_in_time(
            rates in prop::collection::vec((1u64..5, 0.0f64..500.0, 0.0f64..500.0), 1..5),
            seed in any::<Option<u64>>(),
            threads in 1u32..4,
        ) {
            let stages: Vec<Stage> =
                rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
            let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
            let end_ns: u64 = stages.iter().map(|stage| stage.ns).sum();
            for thread in 0..threads {
                let times = all(&stages, arrivals, thread, threads);
                prop_assert!(times.is_sorted());
                prop_assert!(times.iter().all(|ns| *ns <= end_ns));
            }
        }

        #[test]
        fn skipping_counts_what_drawing_would_draw(rate in 1.0f64..2000.0, cut_ms in 0u64..3000) {
            let stages = [stage(2, rate, rate)];
            let mut schedule = Schedule::new(&stages, Arrivals::Constant, 0, 1);
            let before = all(&stages, Arrivals::Constant, 0, 1);
            let expected = before.iter().filter(|ns| **ns < cut_ms * 1_000_000).count() as u64;
            prop_assert_eq!(schedule.skip_until(cut_ms * 1_000_000), expected);
        }

        #[test]
        fn skipping_goes_where_drawing_would(
            rates in prop::collection::vec((1u64..5, 0.0f64..500.0, 0.0f64..500.0), 1..5),
            seed in any::<Option<u64>>(),
            threads in 1u32..4,
            cuts_ms in prop::collection::vec(0u64..20_000, 1..4),
        ) {
            let stages: Vec<Stage> =
                rates.iter().map(|(s, from, to)| stage(*s, *from, *to)).collect();
            let arrivals = seed.map_or(Arrivals::Constant, |seed| Arrivals::Poisson { seed });
            let mut skipping = Schedule::new(&stages, arrivals, threads - 1, threads);
            let mut drawing = skipping.clone();
            for cut_ms in cuts_ms {
                let mut drawn = 0;
                while drawing.next_ns().is_some_and(|ns| ns < cut_ms * 1_000_000) {
                    drawing.advance();
                    drawn += 1;
                }
                prop_assert_eq!(skipping.skip_until(cut_ms * 1_000_000), drawn);
                prop_assert_eq!(skipping.next_ns(), drawing.next_ns());
            }
        }
    }
}
