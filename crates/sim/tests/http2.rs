//! The faults of HTTP/2: what a server does at one of nine requests, on three streams, and how they end.
//!
//! The bytes of each are also read whole and in pieces by the machine alone (`wire/tests/http2`); here the generator asks
//! again, reconnects and counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use trueload_load::{Load, Stop};
use trueload_sim::laws;
use trueload_sim::play::play;
use trueload_sim::scenario::{
    Bytes, Choice, End, Http2Manner, Http2Plan, Http2Trick as T, HttpPlan, KernelPlan, Leave, MS,
    Manner, PhasePlan, Protocol, S, Scenario, Start,
};

/// Requests that are sent, three at once.
const REQUESTS: u64 = 9;
const TIMEOUT_NS: u64 = 100 * MS;

/// What came of a run: requests that ended well, those that failed, how many were asked again, and connections.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    ok: u64,
    failed: BTreeMap<&'static str, u64>,
    stale: u64,
    attempts: u64,
}

fn scenario(method: &'static str, first: Http2Manner) -> Scenario {
    let http = HttpPlan { method, several: true, expect_body: false };
    let body_bytes = 100_000;
    let (window, connection_window) = (1000, 65_535);
    let plan = Http2Plan { http, body_bytes, window, connection_window, start: Start::Direct };
    let good = Manner::default();
    // All connections but the first are with a server that does everything right.
    let mut peers = vec![good; 1000];
    peers[0].http2 = first;
    Scenario {
        protocol: Protocol::Http2(plan),
        connections: 1,
        depth: 3,
        timeout_ns: TIMEOUT_NS,
        connect_timeout_ns: TIMEOUT_NS,
        phases: vec![PhasePlan {
            load: Load::Closed { active: Arc::default() },
            stop: Stop::Requests(REQUESTS),
            connections: 1,
            idle: 0,
            pause_ns: 0,
            not_before_ns: 2 * S,
        }],
        peers,
        ..Scenario::default()
    }
}

/// Plays it with bytes that come whole and one by one: nothing differs, and every law holds.
fn seen(scenario: &Scenario) -> Seen {
    let seen: Vec<Seen> = [64 * 1024, 1]
        .into_iter()
        .map(|read_most| {
            let kernel = KernelPlan { read_most, ..scenario.kernel.clone() };
            let mut played = play(&Arc::new(Scenario { kernel, ..scenario.clone() }), false);
            assert_eq!(laws::check(&mut played), []);
            let meter = &played.front.done[0].done.meter;
            Seen {
                ok: meter.ok,
                failed: meter.failed().map(|(class, count)| (class.name(), count)).collect(),
                stale: meter.stale,
                attempts: played.kernels[0].seen.attempts,
            }
        })
        .collect();
    let [whole, apart] = <[Seen; 2]>::try_from(seen).unwrap();
    assert_eq!(whole, apart, "byte by byte");
    whole
}

fn at_first(trick: &T) -> Http2Manner {
    Http2Manner { tricks: vec![(0, trick.clone())], ..Http2Manner::default() }
}

/// What the server does at the first request, how many are asked again, and how those end that fail.
type Row = (&'static str, T, u64, &'static [(&'static str, u64)]);

const INTERNAL_ERROR: u32 = 2;
const ENHANCE_YOUR_CALM: u32 = 11;

fn endings_of_streams() -> Vec<Row> {
    vec![
        ("a reset in mid-body without an error", T::Reset(0, 50), 0, &[("h2.stream", 1)]),
        ("a reset in mid-body", T::Reset(INTERNAL_ERROR, 50), 0, &[("h2.stream", 1)]),
        ("a reset in place of END_STREAM", T::Reset(0, 100), 0, &[("h2.stream", 1)]),
        ("a reset before the answer", T::Reset(INTERNAL_ERROR, 0), 0, &[("h2.stream", 1)]),
        ("a code that nobody knows", T::Reset(77, 0), 0, &[("h2.stream", 1)]),
        ("a refused stream", T::Refuse, 1, &[]),
        ("a stream refused in mid-answer", T::Reset(7, 50), 0, &[("h2.stream", 1)]),
        ("a stream without an answer", T::Stall(0), 0, &[("timeout.first_byte", 1)]),
        ("a stream that never ends", T::Stall(50), 0, &[("timeout.total", 1)]),
        ("a body that never ends", T::Stall(100), 0, &[("timeout.total", 1)]),
        ("a content-length above the body's", T::Length(1), 0, &[("framing", 1)]),
        ("a content-length below the body's", T::Length(-1), 0, &[("framing", 1)]),
        ("two values of content-length", T::Fields(TWO_LENGTHS), 0, &[("framing", 1)]),
        ("no :status", T::Fields(&[("x", "y")]), 0, &[("h2.stream", 1)]),
        ("a :status of two digits", T::Fields(&[(":status", "20")]), 0, &[("h2.stream", 1)]),
        (
            "an upper-case name",
            T::Fields(&[(":status", "200"), ("X", "y")]),
            0,
            &[("h2.stream", 1)],
        ),
        ("DATA before HEADERS", T::Frames(&[(0, 1, Bytes(b"hello"))]), 0, &[("h2.stream", 1)]),
        ("trailers without an end", T::Frames(OPEN_TRAILERS), 0, &[("h2.stream", 1)]),
        (
            "an answer that dribbles beyond the time-out",
            T::Dribble(5 * MS),
            0,
            &[("timeout.first_byte", 2), ("timeout.total", 1)],
        ),
        ("an answer behind the time-out", T::Late(200 * MS), 0, &[("timeout.first_byte", 1)]),
        ("interim answers without end", flood(1, 4, None, b"\x08\x03103"), 0, &[("limit", 4)]),
        (
            "a window of a stream beyond 2^31",
            T::Before(Bytes(b"\0\0\x04\x08\0\0\0\0\x01\x7f\xff\xff\xff")),
            0,
            &[("h2.flow", 1)],
        ),
    ]
}

fn endings_of_connections() -> Vec<Row> {
    vec![
        ("GOAWAY behind the first", T::GoAway(0, 0, None), 2, &[]),
        ("GOAWAY behind all", T::GoAway(9, 0, None), 0, &[]),
        ("GOAWAY twice, the second lower", T::GoAways(1, 0), 2, &[]),
        ("GOAWAY twice, the second higher", T::GoAways(0, 1), 2, &[("h2.protocol", 1)]),
        ("too much, and an end", T::GoAway(-1, ENHANCE_YOUR_CALM, Some(End::Fin)), 3, &[]),
        (
            "GOAWAY with an error, and an end",
            T::GoAway(1, INTERNAL_ERROR, Some(End::Fin)),
            1,
            &[("h2.goaway", 2)],
        ),
        ("an end in mid-answer", T::Truncate(50, End::Fin), 0, &[("truncated", 1), ("empty", 2)]),
        ("an end without an answer", T::Truncate(0, End::Fin), 0, &[("empty", 3)]),
        ("an end behind an answer", T::EndBehind(End::Fin), 2, &[]),
        ("a reset of the connection", T::Truncate(0, End::Reset), 0, &[("reset", 3)]),
        ("the same behind an answer", T::EndBehind(End::Reset), 0, &[("reset", 2)]),
        // Three are out of time, and the next three, as nothing has come since: then the connection is replaced.
        ("silence", T::Truncate(0, End::Silence), 0, &[("timeout.first_byte", 6)]),
    ]
}

fn violations() -> Vec<Row> {
    vec![
        ("an index of 0", T::Block(Bytes(b"\x80")), 0, &[("h2.protocol", 3)]),
        ("a string that ends too soon", T::Block(Bytes(b"\x88\0\x05x")), 0, &[("h2.protocol", 3)]),
        ("HTTP/1.1", T::Instead(Bytes(b"HTTP/1.1 200 OK\r\n\r\n")), 0, &[("h2.frame_size", 3)]),
        (
            "a frame that is too long",
            T::Instead(Bytes(b"\0\x40\x01\0\0\0\0\0\x01")),
            0,
            &[("h2.frame_size", 3)],
        ),
        (
            "a PING of seven bytes",
            T::Instead(Bytes(b"\0\0\x07\x06\0\0\0\0\x001234567")),
            0,
            &[("h2.frame_size", 3)],
        ),
        (
            "ENABLE_PUSH",
            T::Instead(Bytes(b"\0\0\x06\x04\0\0\0\0\0\0\x02\0\0\0\x01")),
            0,
            &[("h2.protocol", 3)],
        ),
        (
            "a MAX_FRAME_SIZE of 1",
            T::Instead(Bytes(b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\0\x01")),
            0,
            &[("h2.protocol", 3)],
        ),
        (
            "a window of 2^31 by SETTINGS",
            T::Instead(Bytes(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x80\0\0\0")),
            0,
            &[("h2.flow", 3)],
        ),
        (
            "a window beyond 2^31",
            T::Instead(Bytes(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff")),
            0,
            &[("h2.flow", 3)],
        ),
        ("more DATA than the window has room for", T::BeyondWindow, 0, &[("h2.flow", 3)]),
        (
            "padding longer than the frame",
            T::Frames(&[(1, 4, Bytes(b"\x88")), (0, 9, Bytes(b"\x09hello"))]),
            0,
            &[("h2.protocol", 3)],
        ),
        (
            "a block that is interrupted",
            T::Frames(&[(1, 0, Bytes(b"\x88")), (0, 1, Bytes(b"hello"))]),
            0,
            &[("h2.protocol", 3)],
        ),
        (
            "a frame of a type that nobody knows",
            T::Before(Bytes(b"\0\0\x01\x63\xff\0\0\0\x05a")),
            0,
            &[],
        ),
    ]
}

fn unasked() -> Vec<Row> {
    vec![
        (
            "a PUSH_PROMISE",
            T::Frames(&[(5, 4, Bytes(b"\0\0\0\x02\x82"))]),
            0,
            &[("unsolicited", 1), ("h2.protocol", 2)],
        ),
        ("two answers to one request", T::Twice, 0, &[("unsolicited", 1), ("h2.protocol", 2)]),
        ("an answer to no request", T::Elsewhere(40), 0, &[("unsolicited", 1), ("h2.protocol", 2)]),
        (
            "an answer on a stream of the server",
            T::Elsewhere(1),
            0,
            &[("unsolicited", 1), ("h2.protocol", 2)],
        ),
        (
            "DATA on a stream that is idle",
            T::Instead(Bytes(b"\0\0\x01\0\0\0\0\0\x63x")),
            0,
            &[("unsolicited", 1), ("h2.protocol", 2)],
        ),
        (
            "a reset of a stream that is idle",
            T::Instead(Bytes(b"\0\0\x04\x03\0\0\0\0\x63\0\0\0\x08")),
            0,
            &[("h2.protocol", 3)],
        ),
        (
            "a window for a stream of the server",
            T::Instead(Bytes(b"\0\0\x04\x08\0\0\0\0\x02\0\0\0\x08")),
            0,
            &[("h2.protocol", 3)],
        ),
    ]
}

fn floods() -> Vec<Row> {
    vec![
        ("PINGs without end", flood(6, 0, Some(0), b"12345678"), 0, &[("limit", 3)]),
        ("SETTINGS without end", flood(4, 0, Some(0), b""), 0, &[("limit", 3)]),
        ("CONTINUATION without end", flood(9, 0, None, b""), 0, &[("limit", 3)]),
        ("empty DATA without end", flood(0, 0, None, b""), 0, &[("limit", 3)]),
        ("PRIORITY without end", flood(2, 0, Some(3), b"\0\0\0\0\x10"), 0, &[("limit", 3)]),
        ("windows without end", flood(8, 0, Some(0), b"\0\0\0\x01"), 0, &[("limit", 3)]),
        (
            "resets without end",
            flood(3, 0, None, b"\0\0\0\x02"),
            0,
            &[("h2.stream", 1), ("limit", 3)],
        ),
    ]
}

const TWO_LENGTHS: &[(&str, &str)] =
    &[(":status", "200"), ("content-length", "5"), ("content-length", "6")];
const OPEN_TRAILERS: &[(u8, u8, Bytes)] = &[(1, 4, Bytes(b"\x88")), (1, 4, Bytes(b"\0\x01x\x01y"))];

fn flood(kind: u8, flags: u8, stream: Option<u32>, payload: &'static [u8]) -> T {
    T::Flood(kind, flags, stream, Bytes(payload))
}

/// Plays rows, and tells all that are wrong at once.
fn check(rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (sentence, trick, stale, failed) in rows {
        let seen = seen(&scenario("GET", at_first(&trick)));
        let failures: u64 = failed.iter().map(|(_, count)| count).sum();
        let failed: BTreeMap<_, _> = failed.iter().copied().collect();
        if (seen.ok, seen.stale, &seen.failed) != (REQUESTS - failures, stale, &failed) {
            wrong.push(format!("{sentence}: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_ends_a_stream_ends_its_request_alone() {
    check(endings_of_streams());
    for (sentence, trick, ..) in endings_of_streams() {
        let alone = !matches!(trick, T::Flood(..));
        let attempts = seen(&scenario("GET", at_first(&trick))).attempts;
        assert!(attempts == 1 || !alone, "{sentence}: {attempts} connections");
    }
}

#[test]
fn what_ends_a_connection_ends_each_request_once() {
    check(endings_of_connections());
}

#[test]
fn a_violation_ends_all_requests_of_its_connection_and_no_other() {
    check(violations());
    check(unasked());
}

#[test]
fn floods_are_cut_off() {
    check(floods());
}

#[test]
fn what_a_server_did_not_process_is_asked_again_whatever_its_method() {
    for (trick, stale, failed) in [
        (T::Refuse, 1, None),
        (T::GoAway(1, 0, None), 1, None),
        (T::GoAways(1, 0), 2, None),
        (T::GoAway(-1, ENHANCE_YOUR_CALM, Some(End::Fin)), 3, None),
        (T::GoAway(1, INTERNAL_ERROR, Some(End::Fin)), 1, Some(("h2.goaway", 2))),
        (T::Reset(INTERNAL_ERROR, 0), 0, Some(("h2.stream", 1))),
        (T::EndBehind(End::Fin), 0, Some(("empty", 2))),
    ] {
        let seen = seen(&scenario("POST", at_first(&trick)));
        let failures = failed.map_or(0, |(_, count)| count);
        let failed: BTreeMap<_, _> = failed.into_iter().collect();
        assert_eq!((seen.ok, seen.stale), (REQUESTS - failures, stale), "{trick:?}: {seen:?}");
        assert_eq!(seen.failed, failed, "{trick:?}");
    }
}

/// Plays a server that behaves so on every connection: how many requests end well, and how the others fail.
fn always(method: &'static str, manner: Http2Manner) -> Seen {
    always_from(Start::Direct, method, manner)
}

/// Does the same with connections that begin so.
fn always_from(start: Start, method: &'static str, manner: Http2Manner) -> Seen {
    let mut scenario = scenario(method, manner);
    scenario.peers.truncate(1);
    if let Protocol::Http2(plan) = &mut scenario.protocol {
        plan.start = start;
    }
    scenario.tls = matches!(start, Start::Negotiated(_));
    seen(&scenario)
}

#[test]
fn a_request_that_is_refused_again_and_again_is_asked_twice() {
    for method in ["GET", "POST"] {
        let tricks = (0..100).map(|number| (number, T::Refuse)).collect();
        let seen = always(method, Http2Manner { tricks, ..Http2Manner::default() });
        assert_eq!((seen.ok, seen.stale, seen.attempts), (0, REQUESTS, 1));
        assert_eq!(seen.failed, [("h2.stream", REQUESTS)].into());
    }
}

#[test]
fn a_server_that_leaves_again_and_again_is_followed() {
    for (method, warns_ns) in [("GET", None), ("GET", Some(MS)), ("POST", None), ("POST", Some(MS))]
    {
        let leaves = Some(Leave { after: 3, warns_ns, ends_ns: Some(0) });
        let seen = always(method, Http2Manner { leaves, ..Http2Manner::default() });
        assert_eq!((seen.ok, seen.failed.len()), (REQUESTS, 0), "{method}, {warns_ns:?}");
        assert!(seen.attempts >= 3, "{}", seen.attempts);
    }
}

#[test]
fn requests_wait_for_the_streams_and_windows_that_a_server_permits() {
    let small = vec![(3, 1), (4, 30_000)];
    for (sentence, settings, changes) in [
        ("one stream", small.clone(), vec![]),
        ("no stream at first", vec![(3, 0)], vec![(50 * MS, vec![(3, 2)])]),
        ("fewer in mid-run", vec![(3, 3)], vec![(MS, vec![(3, 1)])]),
        ("no window at first", vec![(4, 0)], vec![(50 * MS, small.clone())]),
        (
            "windows that become negative",
            small,
            vec![(2 * MS, vec![(4, 0)]), (9 * MS, vec![(4, 30_000)])],
        ),
    ] {
        let manner = Http2Manner { settings, changes, ..Http2Manner::default() };
        let seen = always("POST", manner);
        let well = Seen { ok: REQUESTS, failed: BTreeMap::new(), stale: 0, attempts: 1 };
        assert_eq!(seen, well, "{sentence}");
    }
}

#[test]
fn what_a_server_never_permits_is_out_of_time() {
    let never = |settings, opens_windows_ns| {
        always("POST", Http2Manner { settings, opens_windows_ns, ..Http2Manner::default() })
    };
    let no_stream = never(vec![(3, 0)], Some(0));
    assert_eq!(no_stream.failed, [("timeout.first_byte", REQUESTS)].into());
    let no_window = never(vec![(4, 1000)], None);
    assert_eq!(no_window.failed, [("timeout.total", REQUESTS)].into());
    assert_eq!((no_stream.attempts, no_window.attempts), (1, 1), "their connections live");
}

#[test]
fn a_server_that_does_not_begin_with_settings_is_no_server_of_http_2() {
    for (bytes, end, class) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], End::Fin, "h2.protocol"),
        (b"SSH-2.0-x\r\n", End::Silence, "h2.frame_size"),
        (b"", End::Silence, "timeout.first_byte"),
        (b"", End::Fin, "empty"),
        (b"", End::Reset, "reset"),
        (b"\0\0\0", End::Fin, "truncated"),
        (b"\0\0\0", End::Silence, "timeout.total"),
    ] {
        let greeting = Some((Bytes(bytes), end));
        let seen = always("GET", Http2Manner { greeting, ..Http2Manner::default() });
        assert_eq!((seen.ok, seen.stale), (0, 0));
        assert_eq!(seen.failed.keys().collect::<Vec<_>>(), [&class], "{}", bytes.escape_ascii());
    }
}

#[test]
fn settings_may_come_late() {
    let seen = always("GET", Http2Manner { settings_ns: TIMEOUT_NS / 2, ..Http2Manner::default() });
    assert_eq!((seen.ok, seen.failed.len()), (REQUESTS, 0));
}

#[test]
fn each_connection_speaks_what_its_server_chooses() {
    for method in ["GET", "POST"] {
        for choice in [Choice::Http2, Choice::Http1, Choice::Nothing] {
            let manner = Http2Manner { choice, ..Http2Manner::default() };
            let seen = always_from(Start::Negotiated(1), method, manner);
            assert_eq!((seen.ok, seen.attempts), (REQUESTS, 1), "{method}, {choice:?}");
        }
    }
}

#[test]
fn a_server_that_does_not_speak_what_it_has_chosen_is_of_no_use() {
    let http1 = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    for (choice, bytes, class) in [
        (Choice::Http2, &http1[..], "h2.protocol"),
        (Choice::Http1, settings, "framing"),
        (Choice::Nothing, settings, "framing"),
    ] {
        let reply = Some((Bytes(bytes), End::Fin));
        let manner = Http2Manner { choice, reply, ..Http2Manner::default() };
        let seen = always_from(Start::Negotiated(1), "GET", manner);
        assert_eq!(seen.failed.keys().collect::<Vec<_>>(), [&class], "{choice:?}");
    }
    let manner = Http2Manner { choice: Choice::Neither, ..Http2Manner::default() };
    let seen = always_from(Start::Negotiated(1), "GET", manner);
    assert_eq!((seen.ok, seen.failed.keys().collect::<Vec<_>>()), (0, vec![&"tls.alpn"]));
}
