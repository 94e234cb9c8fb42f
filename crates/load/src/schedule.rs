//! The send times of an open loop: arrivals over stages of a rate.
//!
//! How it works: arrivals are drawn on a transformed time axis on which the rate is 1 per unit.
//! Constant arrivals are at 1, 2, 3, …; Poisson arrivals are sums of exponential steps. The inverse
//! of the rate's integral turns units into nanoseconds. Steps, ramps and both kinds of arrivals
//! thus share one code path. Nothing is queued: a late arrival is still the next one drawn, however
//! late.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mix::mix64;
use super::origins::Places;

/// A stretch of time in which a quantity changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StagePlan")]
pub struct Stage {
    /// Its length, in ns.
    pub ns: u64,
    /// The value at its beginning.
    pub from: f64,
    /// The value at its end.
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

/// What is left of stages from `from_ns` on.
fn stages_from(stages: &[Stage], from_ns: u64) -> Vec<Stage> {
    let mut over_ns = from_ns;
    let rest = stages.iter().filter_map(|stage| {
        let gone_ns = over_ns.min(stage.ns);
        over_ns -= gone_ns;
        let from = value_at(std::slice::from_ref(stage), gone_ns);
        (gone_ns < stage.ns).then_some(Stage { ns: stage.ns - gone_ns, from, to: stage.to })
    });
    rest.collect()
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
    /// The schedule that follows this one, and when, in ns since the start.
    then: Option<(u64, Box<Schedule>)>,
}

impl Schedule {
    /// The arrivals of thread `thread` of `threads`: every `threads`-th arrival of the schedule
    /// that a single thread would have. All threads together send exactly what the seed decides.
    pub fn new(stages: &[Stage], arrivals: Arrivals, thread: u32, threads: u32) -> Self {
        Schedule::from(stages, arrivals, thread, threads, None, 0)
    }

    /// The same from `from_ns` on, for threads that divide a schedule again then; with one of
    /// several origins, only the arrivals at its places. Even arrivals go on as before. Random ones
    /// are new ones: they have no memory, and nobody has to draw those before.
    pub fn from(
        stages: &[Stage],
        arrivals: Arrivals,
        thread: u32,
        threads: u32,
        places: Option<Places>,
        from_ns: u64,
    ) -> Self {
        let (seed, before_ns) = match arrivals {
            Arrivals::Constant => (None, 0),
            Arrivals::Poisson { seed } if from_ns > 0 => (Some(mix64(seed) ^ from_ns), from_ns),
            Arrivals::Poisson { seed } => (Some(seed), 0),
        };
        let turn = u64::from(thread);
        let mut schedule = Schedule {
            stages: stages_from(stages, before_ns),
            stage: 0,
            before_ns,
            before_units: 0.0,
            unit: 0.0,
            number: places.as_ref().map_or(turn, |places| places.place(turn)),
            turn,
            threads: u64::from(threads.max(1)),
            places,
            chance: seed.map(Chance::new),
            next_ns: None,
            then: None,
        };
        schedule.unit = match &mut schedule.chance {
            None => schedule.number as f64,
            Some(chance) => chance.sum(0.0, schedule.number + 1),
        };
        schedule.next_ns = schedule.place();
        schedule.skip_until(from_ns);
        schedule
    }

    /// The time of the next arrival, in ns since the start; none when the stages are over.
    #[inline]
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
        self.follow();
    }

    /// Hands over to another schedule: the arrivals from `at_ns` on are those of `then`, which has
    /// none before.
    pub fn hand_over(&mut self, at_ns: u64, then: Schedule) {
        match &mut self.then {
            Some((_, next)) => next.hand_over(at_ns, then),
            None => self.then = Some((at_ns, Box::new(then))),
        }
        self.follow();
    }

    /// Goes on with the schedule that follows, once its time has come.
    fn follow(&mut self) {
        let due = |(at_ns, _): &mut (u64, _)| self.next_ns.is_none_or(|next_ns| next_ns >= *at_ns);
        if let Some((_, then)) = self.then.take_if(due) {
            *self = *then;
        }
    }

    /// Skips the arrivals before `until_ns`, beginning with the next, and returns how many they
    /// are. Random arrivals are drawn one by one only up to `DRAWN_MOST`, which is more than can be
    /// sent meanwhile. The rest is counted as their average number.
    pub fn skip_until(&mut self, until_ns: u64) -> u64 {
        let (mut skipped, mut drawn) = (0, 0);
        while self.next_ns.is_some_and(|next_ns| next_ns < until_ns) {
            let leaps = self.chance.is_none() || drawn >= DRAWN_MOST;
            let own_ns = self.then.as_ref().map_or(until_ns, |(at_ns, _)| until_ns.min(*at_ns));
            let leapt = if leaps { self.leap_to_last_before(own_ns) } else { 0 };
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
mod tests;
