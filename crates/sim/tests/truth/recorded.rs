//! Recorded traffic: sent at its recorded times, each request once.

use std::sync::Arc;

use trueload_load::{Load, Recording, Stop};

use super::model::{Delay, MS, Model, S};
use super::open::check_sends;
use super::play::{Play, play};

/// From here on the check `send-lag` warns.
const LAG_WARN_NS: u64 = 250_000;

/// Times with bursts, requests at the same time, and silence.
fn recorded_ns() -> Vec<u64> {
    let burst = |at_ns: u64, count: u64, gap_ns: u64| (0..count).map(move |k| at_ns + k * gap_ns);
    let parts =
        [burst(0, 1, 0), burst(S, 200, MS / 10), burst(2 * S, 8, 0), burst(9 * S, 50, 7 * MS)];
    parts.into_iter().flatten().collect()
}

fn recording(at_ns: &[u64]) -> Arc<Recording> {
    let recording = Recording::new(at_ns.to_vec(), vec![0; at_ns.len()]);
    Arc::new(recording.expect("a recording"))
}

#[test]
fn at_any_speed_and_on_any_number_of_threads_the_sends_are_at_the_recorded_times() {
    for speed in [1, 10] {
        for threads in [1, 3] {
            let at_ns: Vec<u64> = recorded_ns().into_iter().map(|ns| ns / speed).collect();
            let load = Load::Recorded { recording: recording(&at_ns), from_ns: 0 };
            let model = Model::of(Delay::Constant(MS));
            let stop = Stop::Requests(at_ns.len() as u64);
            let played = play(&Play { stop, threads, ..Play::new(model, load, S, 300) });
            let what = format!("{speed}x on {threads} threads");
            check_sends(&what, &played, &at_ns);
            let lag_ns = played.send_lag().max();
            assert!(lag_ns < LAG_WARN_NS, "{what}: {lag_ns} ns late");
        }
    }
}

#[test]
fn what_comes_after_the_warm_up_is_the_rest_and_ends_with_its_last_answer() {
    let all_ns = recorded_ns();
    let rest_ns: Vec<u64> = all_ns.iter().filter(|ns| **ns >= 2 * S).map(|ns| ns - 2 * S).collect();
    let load = Load::Recorded { recording: recording(&all_ns), from_ns: 2 * S };
    let model = Model::of(Delay::Constant(50 * MS));
    let stop = Stop::Requests(rest_ns.len() as u64);
    let played = play(&Play { stop, ..Play::new(model, load, S, 100) });
    played.adds_up();
    check_sends("the rest", &played, &rest_ns);
    let done = played.done();
    let window_ns = done.stopped_ns - done.started_ns;
    let last_ns = rest_ns.last().expect("a last one") + 50 * MS;
    assert!((last_ns..last_ns + MS).contains(&window_ns), "{window_ns}");
    assert_eq!((done.meter.scheduled, done.meter.unsent()), (rest_ns.len() as u64, 0));
}

#[test]
fn a_server_that_is_too_slow_is_sent_everything_and_its_latency_counts_from_the_recorded_time() {
    let at_ns: Vec<u64> = (0..20).map(|k| k * MS).collect();
    let load = Load::Recorded { recording: recording(&at_ns), from_ns: 0 };
    let stop = Stop::Requests(20);
    let model = Model::of(Delay::Constant(100 * MS));
    let played = play(&Play { stop, ..Play::new(model, load, S, 1) });
    played.adds_up();
    assert_eq!(played.done().meter.ok, 20);
    // The last is answered after twenty times 100 ms, and was due after 19 ms.
    let latest_ns = played.latency().max();
    assert!(latest_ns.abs_diff(2_000 * MS - 19 * MS) < 10 * MS, "{latest_ns}");
}
