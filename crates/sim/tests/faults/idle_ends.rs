//! Idle connections that the server ends, with a 408 or without: no fault of the server's, whatever the request meets that
//! crosses it. What else it sends unasked is one.

use super::bodies::{ends, send};
use super::crossings::seen_of;
use super::table::Step;
use super::{MS, Seen};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow";
const UNTIL_END: &[u8] =
    b"HTTP/1.0 408 Request Time-out\r\nConnection: close\r\n\r\n<html>slow</html>";
const BARE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";

/// Requests come at 0 s, 0.5 s and so on, the last of seven at 3 s, and each 5 s from then on.
const QUIET_MS: u64 = 5_000;

fn answers(count: usize) -> Vec<Step> {
    (0..count).flat_map(|_| [Step::Read(1), send(OK)]).collect()
}

/// Nine requests, seven of them in a row; behind these the server does this on the first connection, and answers on the next.
fn seen(does: &[Step]) -> Seen {
    seen_of("GET", 9, &[&[answers(7), does.to_vec()].concat(), &answers(9)])
}

#[test]
fn an_idle_connection_that_the_server_ends_is_counted_and_no_failure() {
    let wait = Step::Wait(1_000);
    let halves = |bytes: &[u8]| [send(&bytes[..20]), Step::Wait(200), send(&bytes[20..])];
    for (sentence, does) in [
        ("a 408 and a close", vec![wait.clone(), send(TIMEOUT), Step::Fin]),
        ("a 408 whose body lasts until the close", vec![wait.clone(), send(UNTIL_END), Step::Fin]),
        ("a 408 that does not say that it closes", vec![wait.clone(), send(BARE), Step::Fin]),
        ("a 408, and no close", vec![wait.clone(), send(TIMEOUT), Step::Hold]),
        ("a 408 and a reset", vec![wait.clone(), send(TIMEOUT), Step::Rst]),
        ("a close", vec![wait.clone(), Step::Fin]),
        ("a reset", vec![wait.clone(), Step::Rst]),
        ("a 408 in pieces", [&[wait.clone()][..], &halves(TIMEOUT), &[Step::Fin]].concat()),
        ("a 408 byte by byte", vec![wait, Step::Drip(3, TIMEOUT.into()), Step::Fin]),
    ] {
        let seen = seen(&does);
        assert_eq!((ends(&seen), seen.stale), ((9, vec![]), 0), "{sentence}: {seen:?}");
        assert_eq!((seen.idle_closed.count, seen.dropped), (1, 0), "{sentence}");
        assert!((1_000..1_500).contains(&(seen.idle_closed.after_ns / MS)), "{sentence}: {seen:?}");
    }
}

#[test]
fn what_else_the_server_sends_unasked_is_unsolicited() {
    let wait = Step::Wait(1_000);
    let twice = [TIMEOUT, BARE].concat();
    for (sentence, bytes) in [
        ("an answer", OK),
        ("a 400", &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..]),
        ("a part of a 408", &TIMEOUT[..12]),
        ("two 408s", &twice),
        ("a byte", b"H"),
        ("no HTTP", b"bye"),
    ] {
        let seen = seen(&[wait.clone(), send(bytes), Step::Fin]);
        assert_eq!(ends(&seen), (8, vec![("unsolicited", 1)]), "{sentence}: {seen:?}");
        assert_eq!(seen.idle_closed.count, 0, "{sentence}");
    }
    // It was never more.
    let seen = seen(&[wait, send(&TIMEOUT[..12]), Step::Hold]);
    assert_eq!(ends(&seen), (8, vec![("unsolicited", 1)]), "held back: {seen:?}");
}

#[test]
fn a_408_answers_the_request_that_it_came_to() {
    for bytes in [TIMEOUT, UNTIL_END, BARE] {
        let seen = seen(&[Step::Read(1), Step::Wait(200), send(bytes), Step::Fin]);
        assert_eq!(ends(&seen), (8, vec![("status", 1)]), "{seen:?}");
        assert_eq!((seen.stale, seen.idle_closed.count), (0, 0), "{seen:?}");
    }
}

#[test]
fn a_request_that_crosses_the_end_of_its_idle_connection_is_sent_again() {
    // The request leaves at 3 s + 5 s; what it crosses is sent before it can have been there.
    let crossing = Step::Wait(QUIET_MS);
    for (sentence, does, resets) in [
        ("a 408 and a close", vec![crossing.clone(), send(TIMEOUT), Step::Fin], 0),
        ("a 408 and a reset", vec![crossing.clone(), send(TIMEOUT), Step::Rst], 0),
        ("a close", vec![crossing.clone(), Step::Fin], 0),
        ("a reset", vec![crossing, Step::Rst], 1),
    ] {
        let seen = seen(&does);
        assert_eq!(ends(&seen), (9, vec![]), "{sentence}: {seen:?}");
        assert!(seen.stale <= 1 && seen.stale_resets <= resets, "{sentence}: {seen:?}");
        assert_eq!(seen.stale + seen.idle_closed.count, 1, "{sentence}: {seen:?}");
    }
}

#[test]
fn a_408_that_a_kept_connection_meets_is_stale_where_its_idle_time_explains_it() {
    let gave_up = [send(TIMEOUT), Step::Fin];
    for (sentence, method, answered, expected) in [
        // Seven requests half a second apart, the eighth behind five seconds of quiet.
        ("idle for longer than any that was answered", "GET", 7, (9, vec![], 1)),
        ("idle as others were", "GET", 3, (8, vec![("status", 1)], 0)),
        ("not to be sent twice", "POST", 7, (8, vec![("status", 1)], 0)),
    ] {
        let does = [answers(answered), vec![Step::Read(1)], gave_up.to_vec()].concat();
        let seen = seen_of(method, 9, &[&does, &answers(9)]);
        let found = (ends(&seen).0, ends(&seen).1, seen.stale);
        assert_eq!(found, expected, "{sentence}: {seen:?}");
    }
}

#[test]
fn a_connection_that_is_ended_before_its_first_request_was_idle_or_dropped() {
    // It is opened again at once, and the request behind five seconds of quiet is the next one.
    for (wait_ms, idle, dropped) in [(0, 0, 1), (50, 0, 1), (200, 1, 0), (900, 1, 0), (1_500, 1, 0)]
    {
        let ends_it = [Step::Wait(1_000), Step::Fin];
        let first = [answers(7), ends_it.to_vec()].concat();
        let unused = [Step::Wait(wait_ms), Step::Fin];
        let seen = seen_of("GET", 9, &[&first, &unused, &answers(9)]);
        assert_eq!(ends(&seen), (9, vec![]), "{wait_ms} ms: {seen:?}");
        let found = (seen.idle_closed.count, seen.dropped);
        assert_eq!(found, (1 + idle, dropped), "{wait_ms} ms: {seen:?}");
    }
}

#[test]
fn a_first_request_that_meets_the_end_of_its_connection_is_empty_unless_others_were_ended_idle() {
    let ends_it = |how: &Step| [answers(7), vec![Step::Wait(1_000), how.clone()]].concat();
    let met = |how: &Step| vec![Step::Read(1), how.clone()];
    for (how, class) in [(Step::Fin, "empty"), (Step::Rst, "reset")] {
        let explained = seen_of("GET", 9, &[&ends_it(&Step::Fin), &met(&how), &answers(9)]);
        assert_eq!((ends(&explained), explained.stale), ((9, vec![]), 1), "{explained:?}");
        let alone = seen_of("GET", 9, &[&met(&how), &answers(9)]);
        assert_eq!((ends(&alone), alone.stale), ((8, vec![(class, 1)]), 0), "{alone:?}");
    }
}
