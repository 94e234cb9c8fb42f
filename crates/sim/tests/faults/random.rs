//! Peers that nobody thought of: scripts put together at random from the table's own pieces.
//!
//! Nothing is known of what must come out of such a run, but the laws of the design.

use std::sync::Arc;

use proptest::prelude::*;

use super::how::{Cut, How};
use super::table::{Case, Out, Protocol, Step};
use super::{LATENCY_NS, check_laws, play};

/// Whole answers, odd ones, broken ones, and parts of answers.
const PIECES: [&[u8]; 29] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\n\r\nhello",
    b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhullo",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConte",
    b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    b"HTTP/1.2 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 5, 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nConnection: x,\r\n\tclose\r\nContent-Length:\r\n 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-A: b\r\n ",
    b"llo",
    b"H",
    b"\r\n",
];

fn piece() -> impl Strategy<Value = Step> {
    // The first pieces are whole answers: they are drawn more often, so that runs get somewhere.
    let index = prop_oneof![3 => 0..7usize, 2 => 0..PIECES.len()];
    (index, 1..=3usize).prop_map(|(index, times)| Step::Send(PIECES[index].into(), times))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..=4usize).prop_map(Step::Read),
        8 => piece(),
        2 => (0..=250u64).prop_map(Step::Wait),
        2 => Just(Step::Fin),
        2 => Just(Step::Rst),
        1 => Just(Step::Hold),
        1 => (1..=30u64).prop_map(|ms| Step::Drip(ms, PIECES[0].into())),
    ]
}

fn script() -> impl Strategy<Value = Arc<[Step]>> {
    let never = prop_oneof![Just(Step::Refuse), Just(Step::Drop), Just(Step::Unroutable)];
    // A script that goes on for ever waits for a request each time around.
    let looping = prop::collection::vec(step(), 0..5).prop_map(|mut steps| {
        steps.insert(0, Step::Read(1));
        steps.push(Step::Again);
        steps
    });
    prop_oneof![
        1 => never.prop_map(|step| vec![step]),
        4 => prop::collection::vec(step(), 0..8),
        5 => looping,
    ]
    .prop_map(Arc::from)
}

fn case() -> impl Strategy<Value = Case> {
    let method = prop_oneof![4 => Just("GET"), 1 => Just("HEAD"), 2 => Just("POST")];
    let load = (1..=3u32, 0..=12u64, 1..=5usize, any::<bool>());
    let expect = prop_oneof![Just(None), Just(Some("hello".to_owned()))];
    (prop::collection::vec(script(), 1..5), method, load, expect).prop_map(
        |(scripts, method, (connections, requests, depth, close), expect_body)| Case {
            name: "at random".to_owned(),
            protocol: Protocol::Http,
            half_close: false,
            scripts,
            method: method.to_owned(),
            body: (method == "POST").then(|| "name=value".to_owned()),
            expect_status: Vec::new(),
            expect_body,
            connections,
            requests,
            depth,
            close,
            timeout_ms: 200,
            tls: None,
            apart: None,
            out: Out::default(),
        },
    )
}

fn over_tls() -> impl Strategy<Value = Case> {
    case().prop_map(|case| Case { tls: Some("good".to_owned()), ..case })
}

fn how() -> impl Strategy<Value = How> {
    let cut = prop_oneof![
        Just(Cut::Whole),
        Just(Cut::Bytes),
        any::<u64>().prop_map(Cut::Random),
        any::<u64>().prop_map(Cut::Batch),
    ];
    let latency_ns = prop_oneof![Just(0), Just(LATENCY_NS), 0..20_000_000u64];
    let room = prop_oneof![2 => Just(usize::MAX), 1 => 1..200usize];
    let choices = (cut, latency_ns, any::<bool>(), any::<bool>(), room);
    choices.prop_map(|(cut, latency_ns, timers_first, several, room)| How {
        cut,
        latency_ns,
        timers_first,
        several,
        room,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_against_every_peer(case in case(), how in how()) {
        let seen = play(&case, how).map_err(TestCaseError::fail)?;
        check_laws(&case, &seen).map_err(|law| TestCaseError::fail(format!("{law}: {seen:?}")))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_against_every_peer_that_speaks_tls(case in over_tls(), how in how()) {
        // A part of a record has left, and says nothing yet: who answers to it does so before the request has come.
        let how = How { room: usize::MAX, ..how };
        let seen = play(&case, how).map_err(TestCaseError::fail)?;
        check_laws(&case, &seen).map_err(|law| TestCaseError::fail(format!("{law}: {seen:?}")))?;
    }
}
