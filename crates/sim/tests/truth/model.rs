//! Servers whose delays are known, and the truth about a load on one, computed without the generator.
//!
//! The truth is a queue: requests in the order of their schedule, each sent as soon as its time has
//! come and one of the connections is free. It must not know the generator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// From one end to the other.
pub const ONE_WAY_NS: u64 = 20_000;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// How long a request takes at the server.
#[derive(Clone, Copy, Debug)]
pub enum Delay {
    Constant(u64),
    Uniform(u64, u64),
    /// By its mean.
    Exponential(u64),
    /// One request in so many takes so long, the others the constant.
    OneIn(u64, u64, u64),
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub delay: Delay,
    /// It does nothing from here to there.
    pub frozen: Option<(u64, u64)>,
}

impl Model {
    pub fn of(delay: Delay) -> Self {
        Model { delay, frozen: None }
    }

    /// When the request with this number, which came at `at_ns`, is done.
    pub fn done_ns(&self, number: u64, at_ns: u64) -> u64 {
        let done_ns = at_ns + self.delay.ns(number);
        match self.frozen {
            Some((from_ns, to_ns)) if at_ns < to_ns && done_ns > from_ns => {
                done_ns + to_ns - at_ns.max(from_ns)
            }
            _ => done_ns,
        }
    }
}

impl Delay {
    fn ns(self, number: u64) -> u64 {
        match self {
            Delay::Constant(ns) => ns,
            Delay::Uniform(least, most) => least + (even(number) * (most - least) as f64) as u64,
            Delay::Exponential(mean) => (-(1.0 - even(number)).ln() * mean as f64) as u64,
            Delay::OneIn(every, ns, _) if number % every == every / 2 => ns,
            Delay::OneIn(_, _, others) => others,
        }
    }
}

/// Evenly in [0, 1), decided by the number (SplitMix64, Steele et al. 2014).
fn even(number: u64) -> f64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// What is to come out of an open loop.
#[derive(Debug)]
pub struct Truth {
    /// From the schedule to the last byte, sorted.
    pub response_ns: Vec<u64>,
    /// From the send to the last byte, sorted.
    pub service_ns: Vec<u64>,
    pub sent_ns: Vec<u64>,
    pub unsent: u64,
}

/// The truth about `arrivals_ns` over so many connections, one request in flight on each.
pub fn truth(model: &Model, arrivals_ns: &[u64], connections: usize, window_ns: u64) -> Truth {
    let mut free: BinaryHeap<Reverse<u64>> = (0..connections).map(|_| Reverse(0)).collect();
    let mut truth =
        Truth { response_ns: Vec::new(), service_ns: Vec::new(), sent_ns: Vec::new(), unsent: 0 };
    for (number, scheduled_ns) in arrivals_ns.iter().enumerate() {
        let Reverse(free_ns) = free.pop().expect("a connection");
        let sent_ns = free_ns.max(*scheduled_ns);
        if sent_ns >= window_ns {
            truth.unsent += 1;
            free.push(Reverse(free_ns));
            continue;
        }
        let done_ns = model.done_ns(number as u64, sent_ns + ONE_WAY_NS) + ONE_WAY_NS;
        free.push(Reverse(done_ns));
        truth.response_ns.push(done_ns - scheduled_ns);
        truth.service_ns.push(done_ns - sent_ns);
        truth.sent_ns.push(sent_ns);
    }
    truth.response_ns.sort_unstable();
    truth.service_ns.sort_unstable();
    truth
}

/// The value that a part of the sorted values does not pass.
pub fn quantile(sorted: &[u64], part: f64) -> u64 {
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}
