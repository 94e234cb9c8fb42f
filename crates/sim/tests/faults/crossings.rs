//! Kept connections that the peer gives up while they are idle: what a request meets that is sent on one.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage};

use super::bodies::{case, ends, send};
use super::table::{Case, Step};
use super::{S, Seen, WHOLE, check_laws, http_of, play_under, scenario_of};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// One connection, asked seven times each half second and then each five seconds: so many requests.
fn seen(requests: u64, scripts: &[&[Step]]) -> Seen {
    seen_of("GET", requests, scripts)
}

/// The same, with requests of this method.
pub fn seen_of(method: &str, requests: u64, scripts: &[&[Step]]) -> Seen {
    let case = Case {
        method: method.to_owned(),
        body: None,
        requests,
        connections: 1,
        ..case(1, scripts)
    };
    let stage = |seconds: u64, rate| Stage { ns: seconds * S, from: rate, to: rate };
    let stages = Arc::from([stage(3, 2.0), stage(1_000, 0.2)]);
    let load = Load::Open { stages, arrivals: Arrivals::Constant };
    let mut scenario = scenario_of(&case, WHOLE);
    scenario.phases[0].load = load;
    let seen = play_under(scenario, http_of(&case, false), &case, WHOLE).expect("an end");
    assert_eq!(check_laws(&Case { timeout_ms: 10_000, ..case }, &seen), Ok(()), "{seen:?}");
    seen
}

fn answers(count: usize) -> Vec<Step> {
    (0..count).flat_map(|_| [Step::Read(1), send(OK)]).collect()
}

#[test]
fn a_peer_that_no_longer_knows_an_idle_connection_resets_it_and_the_request_is_stale() {
    let forgets = [answers(7), vec![Step::Read(1), Step::Rst]].concat();
    let seen = seen(9, &[&forgets, &answers(9)]);
    assert_eq!((ends(&seen), seen.stale, seen.stale_resets), ((9, vec![]), 1, 1), "{seen:?}");
}

#[test]
fn a_peer_that_resets_some_connections_as_quiet_as_others_that_it_answers_on_is_not_forgetful() {
    let resets = [answers(8), vec![Step::Read(1), Step::Rst]].concat();
    let seen = seen(10, &[&resets, &answers(9)]);
    assert_eq!((ends(&seen), seen.stale), ((9, vec![("reset", 1)]), 0), "{seen:?}");
}

#[test]
fn a_peer_that_resets_idle_connections_by_itself_may_reset_one_under_a_request() {
    // The first connection is reset a second after its answer, and the next one in the middle of the second request.
    let by_itself = [answers(7), vec![Step::Wait(1_000), Step::Rst]].concat();
    let crossed = [answers(1), vec![Step::Read(1), Step::Rst]].concat();
    let seen = seen(10, &[&by_itself, &crossed, &answers(9)]);
    assert_eq!((ends(&seen), seen.stale, seen.stale_resets), ((10, vec![]), 1, 1), "{seen:?}");
}
