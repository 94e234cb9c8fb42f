//! Peers that end every connection are measured, but not stormed: in virtual time it shows how often they are called.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage, Stop};

use super::table::{self, Case};
use super::{MS, S, WHOLE, http_of, play, play_under, scenario_of};

/// So many fruitless connections of a slot are made without a pause, and one each 10 ms behind them.
const AT_ONCE: u64 = 100;
const PAUSE_NS: u64 = 10 * MS;

fn row(name: &str) -> Case {
    let found = table::load().into_iter().find(|case| case.name == name);
    found.expect("a row of the table")
}

#[test]
fn a_peer_that_answered_once_and_then_closes_every_connection_is_not_stormed() {
    let row = row("answered once, and then every connection closed: each request but one is empty");
    let case = Case { connections: 1, requests: 301, ..row };
    let seen = play(&case, WHOLE).expect("an end");
    assert_eq!(seen.broken, []);
    assert_eq!((seen.ok, seen.failed["empty"]), (1, 300), "{seen:?}");
    assert!(seen.took_ns >= (299 - AT_ONCE) * PAUSE_NS, "{seen:?}");
}

#[test]
fn a_peer_that_closes_connections_on_which_nothing_was_asked_is_not_stormed() {
    let case = Case {
        connections: 4,
        ..row("accepted, then closed before any byte: each request is empty")
    };
    let stage = Stage { ns: S, from: 2.0, to: 2.0 };
    let (stages, arrivals) = (Arc::from([stage]), Arrivals::Constant);
    let mut scenario = scenario_of(&case, WHOLE);
    scenario.phases[0].load = Load::Open { stages, arrivals };
    scenario.phases[0].stop = Stop::After(S);
    let seen = play_under(scenario, http_of(&case, false), &case, WHOLE).expect("an end");
    assert_eq!(seen.broken, []);
    let each = 2 + AT_ONCE + S / PAUSE_NS;
    let most = u64::from(case.connections) * each;
    assert!(seen.attempts <= most, "{} attempts, {most} at most", seen.attempts);
}
