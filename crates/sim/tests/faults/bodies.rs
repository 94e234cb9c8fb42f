//! Requests with large bodies, at sockets that take little of them at a time.
//!
//! However many are in flight, their bytes are held once; what is copied to wait for the socket is bounded. What the peer
//! sends in the middle of a body ends requests as it does behind one.

use std::sync::Arc;

use super::how::{Cut, How};
use super::table::{Case, Out, Protocol, Step};
use super::{Seen, WHOLE, check_laws, play};

const BODY_BYTES: usize = 300_000;
/// What one connection may have copied to wait for its socket: what is sealed, and what is sealed at once beyond it.
const COPIED_MOST: usize = 200 * 1024;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
const CLOSING: &[u8] =
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

pub fn send(bytes: &[u8]) -> Step {
    Step::Send(bytes.into(), 1)
}

pub fn case(depth: usize, scripts: &[&[Step]]) -> Case {
    Case {
        name: "a large body".to_owned(),
        protocol: Protocol::Http,
        half_close: false,
        scripts: scripts.iter().map(|script| Arc::from(*script)).collect(),
        method: "POST".to_owned(),
        body: Some("b".repeat(BODY_BYTES)),
        expect_status: Vec::new(),
        expect_body: None,
        connections: 1,
        requests: depth as u64,
        depth,
        close: false,
        timeout_ms: 2_000,
        tls: None,
        apart: None,
        out: Out::default(),
    }
}

/// Every way to carry a case: plain and over TLS, the request alone and one of several, at sockets of all sizes.
fn each_way(case: &Case, mut look: impl FnMut(&str, &Seen)) {
    for (tls, several) in [(false, false), (false, true), (true, false), (true, true)] {
        for (room, cut) in [(usize::MAX, Cut::Whole), (40_000, Cut::Whole), (70_000, Cut::Bytes)] {
            let case = Case { tls: tls.then(|| "good".to_owned()), ..case.clone() };
            let how = How { several, room, cut, ..WHOLE };
            let which = format!("tls {tls}, {how:?}");
            let seen = play(&case, how).unwrap_or_else(|wrong| panic!("{which}: {wrong}"));
            check_laws(&case, &seen).unwrap_or_else(|law| panic!("{which}: {law}: {seen:?}"));
            assert!(seen.copied_most <= COPIED_MOST, "{which}: {seen:?}");
            look(&format!("{which}: {seen:?}"), &seen);
        }
    }
}

/// Successes, and failures by class.
pub fn ends(seen: &Seen) -> (u64, Vec<(&str, u64)>) {
    let failed = seen.failed.iter().map(|(class, count)| (class.as_str(), *count));
    (seen.ok, failed.filter(|(_, count)| *count > 0).collect())
}

#[test]
fn what_waits_for_a_socket_does_not_grow_with_the_depth() {
    for depth in [1, 4, 16] {
        let script = [Step::Read(1), send(OK), Step::Again];
        let case = Case { requests: 32, connections: 2, ..case(depth, &[&script]) };
        each_way(&case, |which, seen| {
            assert_eq!(ends(seen), (32, vec![]), "{which}");
            assert_eq!((seen.requests_at_peer, seen.reconnects), (32, 0), "{which}");
        });
    }
}

#[test]
fn each_connection_of_its_own_takes_one_body() {
    let script = [Step::Read(1), send(OK), Step::Fin];
    let case = Case { close: true, requests: 6, connections: 2, ..case(4, &[&script]) };
    each_way(&case, |which, seen| assert_eq!(ends(seen), (6, vec![]), "{which}"));
}

#[test]
fn an_answer_before_its_body_is_read_is_an_answer_and_the_rest_of_the_body_still_comes() {
    let script = [Step::Head, send(TOO_LARGE), Step::Read(1), Step::Again];
    each_way(&case(4, &[&script]), |which, seen| {
        assert_eq!(ends(seen), (0, vec![("status", 4)]), "{which}");
        assert_eq!((seen.requests_at_peer, seen.reconnects), (4, 0), "{which}");
    });
}

#[test]
fn a_refusal_that_closes_in_the_middle_of_a_body_leaves_those_behind_it_unanswered() {
    for end in [Step::Fin, Step::Rst, Step::Hold] {
        let script = [Step::Head, send(CLOSING), end];
        each_way(&case(4, &[&script]), |which, seen| {
            assert_eq!(ends(seen), (0, vec![("closed_pipelined", 3), ("status", 1)]), "{which}");
        });
    }
}

#[test]
fn what_may_be_sent_again_behind_such_a_refusal_is() {
    let (refuses, answers) =
        ([Step::Head, send(CLOSING), Step::Fin], [Step::Read(1), send(OK), Step::Again]);
    let case = Case { method: "PUT".to_owned(), ..case(4, &[&refuses, &answers]) };
    each_way(&case, |which, seen| {
        assert_eq!(ends(seen), (3, vec![("status", 1)]), "{which}");
        assert_eq!((seen.stale, seen.reconnects), (3, 1), "{which}");
    });
}

#[test]
fn a_reset_in_the_middle_of_a_body_is_one_for_all() {
    let script = [Step::Head, Step::Rst];
    each_way(&case(4, &[&script]), |which, seen| {
        assert_eq!(ends(seen), (0, vec![("reset", 4)]), "{which}");
    });
}

#[test]
fn a_reset_behind_an_early_answer_leaves_that_one_its_status() {
    let script = [Step::Head, send(TOO_LARGE), Step::Wait(1), Step::Rst];
    each_way(&case(4, &[&script]), |which, seen| {
        assert_eq!(ends(seen), (0, vec![("reset", 3), ("status", 1)]), "{which}");
    });
}

#[test]
fn a_close_in_the_middle_of_a_body_is_empty_and_closed() {
    let script = [Step::Head, Step::Fin];
    each_way(&case(4, &[&script]), |which, seen| {
        assert_eq!(ends(seen), (0, vec![("closed_pipelined", 3), ("empty", 1)]), "{which}");
    });
}

#[test]
fn an_answer_to_a_request_that_waits_behind_a_body_is_unsolicited() {
    let script = [Step::Head, send(OK), send(OK), send(OK)];
    let case = case(3, &[&script]);
    for tls in [None, Some("good".to_owned())] {
        let case = Case { tls, ..case.clone() };
        let seen = play(&case, How { room: 40_000, ..WHOLE }).expect("it ends");
        check_laws(&case, &seen).expect("the laws");
        // The third waits in whole, so that its answer is none; it costs the one before, as what is behind it does.
        let ends = ends(&seen);
        assert_eq!(ends, (1, vec![("closed_pipelined", 1), ("unsolicited", 1)]), "{seen:?}");
    }
}
