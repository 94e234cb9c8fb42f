//! A simulated kernel, network and peers that drive the real load generator, all decided by one
//! seed.
//!
//! [`run`] draws a [`scenario::Scenario`] from a seed, plays it in virtual time and checks the
//! result against the laws of the design. The same seed gives the same history on every machine.
//! For that, nothing here reads a clock, uses an address, or draws a random number that does not
//! come from the seed. Must not know: how the generator works inside.

pub mod chance;
pub mod draw;
pub mod front;
pub mod history;
mod hostile;
pub mod kernel;
pub mod laws;
mod peer;
pub mod peers;
pub mod play;
pub mod scenario;

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

pub use peer::Book;
use play::{Played, play};
use scenario::Scenario;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of everything that happened; 0 after a panic.
    pub hash: u64,
    /// The laws that were broken, each with an explanation.
    pub broken: Vec<(&'static str, String)>,
    /// Number of events in the history.
    pub events: u64,
    /// Requests that succeeded, and requests that failed.
    pub requests: (u64, u64),
    /// The history, one line for each event, in order. Empty unless it was asked for.
    pub lines: Vec<String>,
}

/// Plays the scenario of a seed and checks every law.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    check(draw::scenario(seed), false)
}

/// Plays the scenario of a seed twice. If the histories differ, something depends on more than the
/// seed.
#[must_use]
pub fn run_twice(seed: u64) -> Outcome {
    let (mut once, again) = (run(seed), run(seed));
    if once.broken.is_empty() && once != again {
        let how = format!("hash {:016x}, and then {:016x}", once.hash, again.hash);
        once.broken.push(("the same seed gives the same history", how));
    }
    once
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Stops panics of this process from being printed, because a run reports its own.
pub fn keep_panics_quiet() {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|kept| *kept.borrow_mut() = Some(info.to_string()));
    }));
}

/// Plays a scenario and checks every law. With `trace` it keeps the lines of the history.
#[must_use]
pub fn check(scenario: Scenario, trace: bool) -> Outcome {
    let scenario = Arc::new(scenario);
    let played = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut played = play(&scenario, trace);
        let mut broken = laws::check(&mut played);
        broken.extend(hostile::check(scenario.seed));
        (played, broken)
    }));
    match played {
        Ok((played, broken)) => outcome(played, broken),
        Err(_) => {
            let why = PANIC.with(RefCell::take).unwrap_or_else(|| "see above".to_owned());
            let broken = vec![("nothing panics", why)];
            Outcome { hash: 0, broken, events: 0, requests: (0, 0), lines: Vec::new() }
        }
    }
}

fn outcome(played: Played, broken: Vec<(&'static str, String)>) -> Outcome {
    let meters = || played.front.done.iter().map(|reported| &reported.done.meter);
    let requests =
        (meters().map(|meter| meter.ok).sum(), meters().map(|meter| meter.failed_sum()).sum());
    let threads = played.kernels.into_iter().enumerate();
    let histories = threads.map(|(thread, kernel)| (format!("{thread}"), kernel.history));
    let (mut hash, mut events, mut lines) = (played.end_ns, 0, Vec::new());
    for (who, history) in histories.chain([("F".to_owned(), played.front.history)]) {
        hash = (hash ^ history.hash()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(31);
        events += history.events();
        let own = history.into_lines().into_iter();
        lines.extend(own.map(|(at_ns, line)| (at_ns, who.clone(), line)));
    }
    lines.sort_by_key(|(at_ns, ..)| *at_ns);
    let line = |(at_ns, who, line): (u64, String, String)| {
        format!("{:>14.3} us  {who}  {line}", (at_ns - scenario::BEGIN_NS) as f64 / 1e3)
    };
    Outcome { hash, broken, events, requests, lines: lines.into_iter().map(line).collect() }
}
