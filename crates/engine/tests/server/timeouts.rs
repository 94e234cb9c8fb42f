//! Connections on which too little happens are ended, and no others.

use std::sync::Arc;

use trueload_drive::{Program, Token};
use trueload_engine::server::ConnectionLimits;
use trueload_wire::http2::frame::PREFACE;

use super::get;
use super::world::{MS, TOKEN, World};

const S: u64 = 1000 * MS;
/// The server looks every 250 ms.
const LATE: u64 = 300 * MS;

fn h2(frames: &[u8]) -> Vec<u8> {
    [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", frames].concat()
}

/// The part of HEADERS that says: a block of 3 bytes ends in another frame.
const BEGUN: &[u8] = b"\0\0\x03\x01\x01\0\0\0\x01\x82\x86\x84";

#[test]
fn a_head_that_stays_half_sent_ends_its_connection_after_a_minute() {
    let cases: [(&str, Vec<u8>, bool); 12] = [
        ("nothing", vec![], false),
        ("a letter", b"G".to_vec(), true),
        ("a request line", b"GET / HTTP/1.1\r\n".to_vec(), true),
        ("all but the last byte", b"GET / HTTP/1.1\r\nHost: x\r\n\r".to_vec(), true),
        ("a second head", [get("/", ""), b"GET /".to_vec()].concat(), true),
        ("a request", get("/", ""), false),
        ("an answer that waits", get("/wait/90000", ""), false),
        ("a body", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhal".to_vec(), false),
        ("part of the preface", PREFACE[..9].to_vec(), true),
        ("an HTTP/2 connection", h2(b""), false),
        ("fields that go on", h2(BEGUN), true),
        ("part of a frame", h2(&BEGUN[..10]), true),
    ];
    for (sentence, bytes, ends) in cases {
        let mut world = World::limited(ConnectionLimits::default());
        world.pass(S);
        world.receive(&bytes);
        world.pass(61 * S - MS);
        assert!(world.wire.ended.is_empty() && !world.is_closed(), "{sentence}");
        world.pass(61 * S + LATE);
        let ended = world.is_closed() || !world.wire.ended.is_empty();
        assert_eq!(ended, ends, "{sentence}");
        assert_eq!(world.seen().timed_out, u64::from(ends), "{sentence}");
    }
}

#[test]
fn a_head_that_goes_on_in_time_is_answered_and_the_next_has_its_own_minute() {
    let mut world = World::limited(ConnectionLimits::default());
    let request = get("/", "");
    for nth in 0..5 {
        world.receive(&request[..5]);
        world.pass((nth + 1) * 50 * S);
        world.receive(&request[5..]);
    }
    assert_eq!(world.statuses().len(), 5);
    world.receive(b"GET");
    world.pass(world.wire.now_ns + 60 * S + LATE);
    assert!(world.is_closed());
}

#[test]
fn silence_ends_a_connection_if_that_was_asked_for() {
    let idle = |idle_ns| ConnectionLimits { idle_ns, room: None };
    for (sentence, idle_ns, bytes, ends) in [
        ("nothing asked for", 0, get("/", ""), false),
        ("no byte at all", 5 * S, vec![], true),
        ("a request long ago", 5 * S, get("/", ""), true),
        (
            "half a body",
            5 * S,
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n".to_vec(),
            true,
        ),
        ("an answer that waits", 5 * S, get("/wait/60000", ""), false),
        ("a stream", 5 * S, get("/stream/10/7000", ""), false),
        ("HTTP/2", 5 * S, h2(b""), true),
    ] {
        let mut world = World::limited(idle(idle_ns));
        world.receive(&bytes);
        world.pass(5 * S - MS);
        assert!(!world.is_closed() && world.wire.ended.is_empty(), "{sentence}");
        world.pass(15 * S);
        let ended = world.is_closed() || !world.wire.ended.is_empty();
        assert_eq!(ended, ends, "{sentence}");
        assert_eq!(world.seen().timed_out, u64::from(ends), "{sentence}");
    }
    let mut world = World::limited(idle(5 * S));
    for nth in 1..10 {
        world.receive(&get("/", ""));
        world.pass(nth * 4 * S);
    }
    assert_eq!(world.statuses().len(), 9, "it was never silent for as long");
}

#[test]
fn connections_beyond_the_most_are_closed_and_counted_until_one_ends() {
    let room = Some((Arc::default(), 2));
    let mut world = World::limited(ConnectionLimits { idle_ns: 0, room });
    let token = |index| Token { index, generation: 0 };
    for index in 1..4 {
        world.server.handle_accepted(&mut world.wire, token(index));
    }
    assert_eq!(world.wire.closed, [2, 3]);
    world.receive(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(world.wire.closed, [2, 3, TOKEN.index]);
    world.server.handle_accepted(&mut world.wire, token(4));
    assert_eq!(world.wire.closed.len(), 3);
    let seen = world.seen();
    assert_eq!((seen.accepted, seen.open, seen.open_peak, seen.refused), (5, 2, 2, 2));
}
