//! Connections that are only held, beside those that send.

use std::collections::BTreeMap;
use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stop};

use super::model::{Delay, MS, Model, S};
use super::play::{Play, Played, play};
use super::{open, stage};

const CONNECTIONS: u32 = 50;
const IDLE: u32 = 40;

fn beside_idle(load: Load, stop: Stop, depth: usize) -> Played {
    let model = Model::of(Delay::Constant(3 * MS));
    play(&Play { idle: IDLE, depth, stop, ..Play::new(model, load, S, CONNECTIONS) })
}

fn closed() -> Load {
    Load::Closed { active: Arc::default() }
}

#[test]
fn idle_connections_never_send_and_are_held_to_the_end() {
    let constant = || open(&[stage(1, 2000.0, 2000.0)], Arrivals::Constant);
    let cases = [
        ("a closed loop", closed(), Stop::After(S), 1),
        ("a closed loop that pipelines", closed(), Stop::After(S), 8),
        ("a closed loop by requests", closed(), Stop::Requests(1003), 1),
        ("an open loop", constant(), Stop::After(S), 1),
        ("an open loop by requests", constant(), Stop::Requests(700), 1),
        ("an open loop that pipelines", constant(), Stop::After(S), 4),
    ];
    for (what, load, stop, depth) in cases {
        let played = beside_idle(load, stop, depth);
        played.adds_up();
        let slots: BTreeMap<u32, usize> =
            played.sent.iter().fold(BTreeMap::new(), |mut slots, sent| {
                *slots.entry(sent.slot).or_default() += 1;
                slots
            });
        let senders: Vec<u32> = slots.keys().copied().collect();
        assert_eq!(senders, (0..CONNECTIONS - IDLE).collect::<Vec<_>>(), "{what}: who sends");
        assert_eq!(played.done().idle_open, IDLE, "{what}: held");
        assert_eq!(played.done().established, CONNECTIONS, "{what}: established");
        if let Stop::Requests(count) = stop {
            assert_eq!(played.done().meter.ok, count, "{what}: every request is sent all the same");
        }
    }
}

#[test]
fn what_a_load_permits_is_counted_without_the_idle_connections() {
    for depth in [1, 8] {
        let played = beside_idle(closed(), Stop::After(S), depth);
        let permitted_ns = u64::from(CONNECTIONS - IDLE) * S * depth as u64;
        assert_eq!(played.done().meter.permitted_ns, i128::from(permitted_ns), "depth {depth}");
    }
}

#[test]
fn a_phase_in_which_all_are_idle_sends_nothing() {
    let model = Model::of(Delay::Constant(MS));
    let all = Play { idle: CONNECTIONS, ..Play::new(model, closed(), S, CONNECTIONS) };
    let played = play(&all);
    assert!(played.sent.is_empty());
    assert_eq!(played.done().idle_open, CONNECTIONS);
    assert_eq!(played.done().meter.slots.asked, 0);
}
