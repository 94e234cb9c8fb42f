//! Closed loops whose number of connections follows stages.

use std::sync::Arc;

use trueload_engine::generator::{ByLength, Lateness};
use trueload_load::{Load, Stage, value_at};

use super::model::{Delay, MS, Model, S};
use super::play::{Play, Played, play};
use super::stage;

/// The engine looks at stages of connections at its heartbeat (10 ms).
const LOOK_NS: u64 = 10 * MS;

fn staged(stages: &[Stage], seconds: u64, depth: usize) -> Played {
    let model = Model::of(Delay::Constant(3 * MS));
    let load = Load::Closed { active: Arc::from(stages) };
    play(&Play { depth, ..Play::new(model, load, seconds * S, 20) })
}

#[test]
fn no_more_connections_send_than_their_stage_allows() {
    let stages = [stage(2, 5.0, 5.0), stage(4, 0.0, 20.0), stage(2, 20.0, 3.0), stage(1, 0.0, 0.0)];
    for depth in [1, 4] {
        let played = staged(&stages, 9, depth);
        played.adds_up();
        for sent in &played.sent {
            let allowed = value_at(&stages, sent.at_ns).round() as u32;
            assert!(sent.slot < allowed, "at {} ns: slot {}", sent.at_ns, sent.slot);
        }
    }
}

#[test]
fn a_connection_takes_part_as_soon_as_its_stage_allows_it() {
    let stages = [stage(10, 0.0, 10.0)];
    let played = staged(&stages, 10, 1);
    for slot in 0..10 {
        // The ramp passes slot + 1/2, which rounds up to one more.
        let due_ns = u64::from(slot) * S + S / 2;
        let first = played.sent.iter().find(|sent| sent.slot == slot).map(|sent| sent.at_ns);
        let late_ns = first.and_then(|at_ns| at_ns.checked_sub(due_ns));
        assert!(
            late_ns.is_some_and(|ns| ns <= 2 * LOOK_NS),
            "slot {slot} sends first at {first:?}"
        );
    }
}

#[test]
fn a_connection_that_had_to_pause_goes_on_however_short_the_pause() {
    let brief = Stage { ns: 6 * MS, from: 1.0, to: 1.0 };
    let stages = [Stage { ns: 502 * MS, from: 5.0, to: 5.0 }, brief, stage(1, 5.0, 5.0)];
    let played = staged(&stages, 1, 1);
    let late = played.sent.iter().filter(|sent| sent.at_ns > 600 * MS);
    let mut slots: Vec<u32> = late.map(|sent| sent.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots, [0, 1, 2, 3, 4]);
}

#[test]
fn over_a_long_way_a_request_in_1250_is_held_back_which_shows_in_no_latency() {
    let (way_ns, delay_ns, connections, window_ns) = (MS, 3 * MS, 20, 20 * S);
    let answer_ns = delay_ns + 2 * way_ns;
    let load = Load::Closed { active: Vec::new().into() };
    let play_over = |one_way_ns| {
        let model = Model::of(Delay::Constant(answer_ns - 2 * one_way_ns));
        let it = Play::new(model, load.clone(), window_ns, connections);
        // Answers wait a moment to be read, as on any machine.
        let played = play(&Play { one_way_ns, send_cost_ns: 2_000, ..it });
        played.adds_up();
        let longest = |slot| {
            let sent = played.sent.iter().filter(move |sent| sent.slot == slot);
            let at_ns: Vec<u64> = sent.map(|sent| sent.at_ns).collect();
            let pauses = at_ns.windows(2).map(|pair| pair[1] - pair[0]);
            pauses.filter(|ns| *ns > answer_ns + MS).collect::<Vec<_>>()
        };
        let held: Vec<u64> = (0..connections).flat_map(longest).collect();
        assert!(played.latency().max() < answer_ns + MS / 10, "{}", played.latency().max());
        (held, played.done().meter.ok)
    };
    let (held, ok) = play_over(way_ns);
    assert!((40..=90).contains(&held.len()), "{} of {ok}", held.len());
    let off = |ns: &u64| ns.abs_diff(answer_ns + answer_ns * 5 / 4);
    assert!(held.iter().all(|ns| off(ns) < MS / 10), "{held:?}");
    let (none, most) = play_over(20_000);
    assert_eq!(none, [] as [u64; 0], "on one machine nobody gains by guessing");
    assert!(ok <= most && ok as f64 >= 0.9985 * most as f64, "{ok} of {most}");
}

#[test]
fn the_time_that_a_phase_used_is_what_the_driver_says_of_its_thread() {
    let played = staged(&[], 2, 1);
    // Before the phase it only connects.
    let (used, in_all) = (played.done().used, played.used());
    let near = |seen: u64, all: u64| seen <= all && all - seen <= all / 20;
    assert!(used.cpu_ns > 0 && near(used.cpu_ns, in_all.cpu_ns), "{used:?} of {in_all:?}");
    assert!(near(used.wanted_ns, in_all.wanted_ns), "{used:?} of {in_all:?}");
}

#[test]
fn a_generator_that_was_stopped_says_for_how_long_and_how_many_requests_waited() {
    for (ms, connections, delay_ms) in
        [(2, 64, 5), (9, 64, 5), (50, 64, 5), (95, 1000, 100), (5, 1, 1)]
    {
        let load = Load::Closed { active: Vec::new().into() };
        let model = Model::of(Delay::Constant(delay_ms * MS));
        let mut it = Play::new(model, load, S, connections);
        let quiet = play(&it);
        assert_eq!(quiet.done().lateness, Lateness::default(), "{ms} ms");
        it.generator_stalls = Some((S / 2, S / 2 + ms * MS));
        let played = play(&it);
        played.adds_up();
        let stalls: Vec<_> = played.done().lateness.stopped.seen().collect();
        let [stall] = stalls[..] else { panic!("{ms} ms: {stalls:?}") };
        assert!(stall.ns.abs_diff(ms * MS) <= MS / 2, "{ms} ms: {stall:?}");
        assert_eq!((stall.count, stall.requests), (1, u64::from(connections)), "{ms} ms");
        assert_eq!(played.done().lateness.queued, ByLength::default(), "{ms} ms");
    }
}
