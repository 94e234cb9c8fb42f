//! Connections on which nothing more is asked: who ends them, and how long that takes.

use super::bodies::{case, ends, send};
use super::how::{Cut, How};
use super::table::{Case, Step};
use super::{LATENCY_NS, MS, Seen, WHOLE, check_laws, play};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const OK_CLOSING: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
const REQUESTS: u64 = 60;
const CONNECTIONS: u32 = 2;
/// Bytes are looked for so long behind an answer (design §7).
const LOOKED_FOR_MS: u64 = 50;

/// A connection per request; the peers of the first connections follow the first scripts.
fn closing(scripts: &[&[Step]]) -> Case {
    Case {
        method: "GET".to_owned(),
        body: None,
        close: true,
        requests: REQUESTS,
        connections: CONNECTIONS,
        ..case(1, scripts)
    }
}

/// A connection per request, each answered and then as `then` has it, plain and over TLS.
fn each_way(answer: &[u8], then: &[Step], look: impl Fn(&str, &Seen)) {
    for (tls, cut) in [
        (None, Cut::Whole),
        (None, Cut::Bytes),
        (Some("good"), Cut::Whole),
        (Some("good"), Cut::Bytes),
    ] {
        let script = [&[Step::Read(1), send(answer)], then].concat();
        let case = Case { tls: tls.map(str::to_owned), ..closing(&[&script]) };
        let seen = play(&case, How { cut, ..WHOLE }).expect("an end");
        let which = format!("{answer:?} and {then:?}, tls {tls:?}, {cut:?}: {seen:?}");
        check_laws(&case, &seen).unwrap_or_else(|law| panic!("{which}: {law}"));
        assert_eq!(ends(&seen), (REQUESTS, vec![]), "{which}");
        look(&which, &seen);
    }
}

#[test]
fn a_peer_that_leaves_the_end_to_us_is_waited_for_once() {
    for answer in [OK, OK_CLOSING] {
        each_way(answer, &[Step::ReadEnd, Step::Fin], |which, seen| {
            assert!(seen.took_ns < 2 * LOOKED_FOR_MS * MS, "{which}");
            assert_eq!(seen.ended_by_us, REQUESTS - u64::from(CONNECTIONS), "{which}");
        });
    }
}

#[test]
fn a_peer_that_closes_by_itself_is_not_hurried() {
    for answer in [OK, OK_CLOSING] {
        each_way(answer, &[Step::Wait(5), Step::Fin], |which, seen| {
            assert_eq!(seen.ended_by_us, 0, "{which}");
        });
    }
}

#[test]
fn a_peer_that_was_only_slow_at_first_is_known_by_an_end_that_comes_with_an_answer() {
    let slow = [Step::Read(1), send(OK), Step::Hold];
    let prompt = [Step::Read(1), send(OK), Step::Fin];
    let case = closing(&[&slow, &slow, &prompt]);
    let seen = play(&case, WHOLE).expect("an end");
    check_laws(&case, &seen).unwrap_or_else(|law| panic!("{law}: {seen:?}"));
    assert_eq!((ends(&seen), seen.ended_by_us), ((REQUESTS, vec![]), 0), "{seen:?}");
}

#[test]
fn a_peer_that_ends_nothing_is_waited_for_behind_its_answer_and_behind_our_end_and_then_reset() {
    for answer in [OK, OK_CLOSING] {
        each_way(answer, &[Step::Hold], |which, seen| {
            // Ends as they come, the two waits, and what comes of being played byte by byte.
            assert!(seen.took_ns < 3 * LOOKED_FOR_MS * MS, "{which}");
            let connections = u64::from(CONNECTIONS);
            // The first was waited for behind its answer alone.
            assert_eq!(seen.unended, REQUESTS - connections, "{which}");
            assert_eq!(seen.reset_by_us, seen.unended, "{which}");
            assert_eq!(seen.ended_by_us, connections, "{which}");
        });
    }
}

#[test]
fn a_peer_that_ends_nothing_among_others_that_do_is_not_waited_for_each_time() {
    let (prompt, led) =
        ([Step::Read(1), send(OK), Step::Fin], [Step::Read(1), send(OK), Step::ReadEnd, Step::Fin]);
    let never = [Step::Read(1), send(OK), Step::Hold];
    for others in [&prompt[..], &led[..]] {
        let scripts: Vec<&[Step]> =
            (0..REQUESTS).map(|which| if which % 2 == 0 { others } else { &never[..] }).collect();
        let case = closing(&scripts);
        let seen = play(&case, WHOLE).expect("an end");
        check_laws(&case, &seen).unwrap_or_else(|law| panic!("{law}: {seen:?}"));
        assert_eq!(ends(&seen), (REQUESTS, vec![]), "{seen:?}");
        // Waited for each time, one connection in two would take 50 ms on one of two slots.
        assert!(seen.took_ns < 7 * LOOKED_FOR_MS * MS, "{seen:?}");
    }
}

#[test]
fn while_a_connection_is_being_ended_no_request_is_permitted_on_it() {
    for then in [&[Step::Wait(5), Step::Fin][..], &[Step::ReadEnd, Step::Fin], &[Step::Hold]] {
        each_way(OK, then, |which, seen| {
            // A way there and back to the answer, of which some milliseconds more follow to the end.
            let answered_ns = REQUESTS * 2 * LATENCY_NS;
            assert!(seen.permitted_ns <= i128::from(answered_ns + answered_ns / 100), "{which}");
        });
    }
}

#[test]
fn what_a_peer_sends_when_we_have_ended_our_side_was_not_asked_for() {
    let script = [Step::Read(1), send(OK), Step::ReadEnd, send(OK), Step::Fin];
    let case = Case { requests: 6, connections: 1, ..closing(&[&script]) };
    let seen = play(&case, WHOLE).expect("an end");
    check_laws(&case, &seen).unwrap_or_else(|law| panic!("{law}: {seen:?}"));
    assert_eq!(ends(&seen), (1, vec![("unsolicited", 5)]), "{seen:?}");
}
