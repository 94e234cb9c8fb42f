//! What the generator reports is the truth: in virtual time, against servers whose delays are known.
//!
//! The truth is computed apart from the generator, from the schedule and the server's delays; the
//! reported percentiles must be within 2 % of it, and the sends must be those that the schedule asks
//! for, neither sooner nor more.

mod closed;
mod flow;
mod idle;
mod model;
mod open;
mod play;
mod recorded;
mod sends;
mod server;
mod start;

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Schedule, Stage};

use model::S;

/// A stage of so many seconds.
pub fn stage(seconds: u64, from: f64, to: f64) -> Stage {
    Stage { ns: seconds * S, from, to }
}

/// A load by the schedule.
pub fn open(stages: &[Stage], arrivals: Arrivals) -> Load {
    Load::Open { stages: Arc::from(stages), arrivals }
}

/// Every arrival of Poisson's, as its seed decides; constant ones are computed here again.
pub fn arrivals_ns(seconds: u64, per_s: u64, arrivals: Arrivals) -> Vec<u64> {
    if arrivals == Arrivals::Constant {
        return (0..seconds * per_s).map(|k| k * S / per_s).collect();
    }
    let rate = per_s as f64;
    let mut schedule = Schedule::new(&[stage(seconds, rate, rate)], arrivals, 0, 1);
    let next = || {
        let next_ns = schedule.next_ns();
        schedule.advance();
        next_ns
    };
    std::iter::from_fn(next).collect()
}
