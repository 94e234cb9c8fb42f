//! Clients that ask for much and read nothing: what waits for them is bounded, and they get all of
//! it once they read.

use trueload_drive::{PeerClose, Program};
use trueload_engine::protocol::FaultsPlan;
use trueload_wire::http2::frame::{
    ErrorCode, PREFACE, write_block, write_reset, write_window_update,
};
use trueload_wire::http2::hpack::literal;
use trueload_wire::http2::settings;

use super::get;
use super::world::{MS, TOKEN, World};

/// What a driver reads at once, at most.
const READ: usize = 8 * 1024;
/// A driver stops reading when more than this is unsent; the reads of its batch still come.
const DRIVER_STOPS: usize = 256 * 1024;
const READS_OF_A_BATCH: usize = 3;
/// The law: a connection takes no more, whatever its client sends and does not read.
const MOST: usize = 1024 * 1024;

fn unread(world: &World) -> usize {
    world.wire.sent.iter().map(|sent| sent.bytes.len()).sum()
}

/// Sends what `next` makes, as long as a driver would read it.
fn flood(world: &mut World, mut next: impl FnMut() -> Vec<u8>) {
    world.wire.stuck = Some(TOKEN.index);
    let mut last_reads = READS_OF_A_BATCH;
    for _ in 0..60 {
        let mut read = next();
        while read.len() < READ - 1024 {
            read.extend(next());
        }
        world.receive(&read);
        world.pass(world.wire.now_ns + MS);
        let stops = !world.wire.held.is_empty() || unread(world) > DRIVER_STOPS;
        last_reads -= usize::from(stops);
        if last_reads == 0 || world.is_closed() || !world.wire.ended.is_empty() {
            return;
        }
    }
}

/// Reads all that was sent, again and again, until nothing more comes.
fn read_all(world: &mut World) -> Vec<u8> {
    let mut bytes = Vec::new();
    world.wire.stuck = None;
    while !world.wire.sent.is_empty() {
        world.wire.stuck = Some(TOKEN.index);
        let sent = world.wire.take_sent();
        sent.iter().for_each(|sent| bytes.extend_from_slice(&sent.bytes));
        if std::mem::take(&mut world.wire.held).is_empty() {
            world.pass(world.wire.now_ns + MS);
        } else {
            world.server.handle_drained(&mut world.wire, world.conn);
        }
        assert!(unread(world) <= MOST, "{} bytes at once", unread(world));
    }
    bytes
}

fn post(path: &str, body: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; body]].concat()
}

#[test]
fn answers_that_nobody_reads_wait_for_their_client_over_http_1() {
    let chunked =
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    for (sentence, request) in [
        ("the most frequent answer", get("/", "")),
        ("a larger one", get("/perf", "")),
        ("a large one", get("/bytes/65536", "")),
        ("none", get("/unknown", "")),
        ("only a head", b"HEAD /bytes/65536 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a stream", get("/stream/200/0", "")),
        ("lines", get("/stream/200/0/jsonl", "")),
        ("a redirect", get("/redirect/3", "")),
        ("a short wait", get("/wait/1", "")),
        ("several kinds", [get("/bytes/65536", ""), get("/stream/9/0", ""), get("/", "")].concat()),
        ("uploads", post("/bytes/65536", 20_000)),
        ("chunked uploads", chunked.to_vec()),
        ("uploads that wait for leave", get("/", "Expect: 100-continue\r\n")),
    ] {
        let mut world = World::recording();
        flood(&mut world, || request.clone());
        assert!(unread(&world) <= MOST, "{sentence}: {} bytes wait", unread(&world));
        if world.is_closed() {
            assert!(sentence == "a short wait", "{sentence}: the client may still read");
            continue;
        }
        let bytes = read_all(&mut world);
        let heads = str::from_utf8(&bytes).expect("ASCII").matches("HTTP/1.1 ").count();
        let seen = world.mark();
        assert_eq!((seen.requests, seen.answered), (seen.requests, seen.requests), "{sentence}");
        assert!(heads as u64 >= seen.requests && seen.requests > 4, "{sentence}: {heads}");
    }
}

#[test]
fn who_ends_or_resets_while_answers_wait_is_forgotten() {
    for ended in [PeerClose::Fin, PeerClose::Reset] {
        let mut world = World::recording();
        flood(&mut world, || get("/bytes/65536", ""));
        world.server.handle_end(&mut world.wire, world.conn, ended);
        world.pass(1000 * MS);
        let seen = world.mark();
        assert_eq!(seen.requests, seen.answered + seen.aborted, "{ended:?}");
        assert_eq!(seen.connections.now, 0);
    }
}

#[test]
fn a_fault_waits_for_its_client_too() {
    for plan in [
        FaultsPlan { slow_share: 1.0, slow_ns: 1, ..FaultsPlan::default() },
        FaultsPlan { error_share: 1.0, ..FaultsPlan::default() },
        FaultsPlan { stall_share: 1.0, stall_ns: Some(1), ..FaultsPlan::default() },
    ] {
        let mut world = World::failing(plan);
        flood(&mut world, || get("/bytes/65536", ""));
        assert!(unread(&world) <= MOST, "{plan:?}: {} bytes wait", unread(&world));
        read_all(&mut world);
        let seen = world.mark();
        assert_eq!(seen.answered, seen.requests, "{plan:?}");
    }
}

fn headers(stream: u32, path: &str, end: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", path)] {
        literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    write_block(&mut out, stream, &block, end, 16_384);
    out
}

fn reset(stream: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_reset(&mut out, stream, ErrorCode::Cancel);
    out
}

fn set(parameters: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    settings::write(&mut out, parameters);
    out
}

fn update(stream: u32, by: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_window_update(&mut out, stream, by);
    out
}

/// A frame of any type.
fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, 0]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A connection over HTTP/2 whose client has windows of this size, for streams and as a whole.
fn opened(window: u32) -> World {
    let mut world = World::of_http2(1000, None);
    let all = update(0, (1 << 31) - 1 - 65_535);
    world.receive(&[PREFACE.to_vec(), set(&[(4, window)]), all].concat());
    world.wire.take_sent();
    world
}

const LARGEST: u32 = (1 << 31) - 1;

#[test]
fn answers_that_nobody_reads_wait_for_their_client_over_http_2() {
    type Next = fn(u32) -> Vec<u8>;
    let both = |nth, path: &str| [headers(nth, path, true), reset(nth)].concat();
    let cases: [(&str, u32, Next); 14] = [
        ("small answers", LARGEST, |nth| headers(nth, "/", true)),
        ("large answers", LARGEST, |nth| headers(nth, "/bytes/65536", true)),
        ("large answers without a window", 0, |nth| headers(nth, "/bytes/65536", true)),
        ("streams", LARGEST, |nth| headers(nth, "/stream/200/0", true)),
        ("streams without a window", 0, |nth| headers(nth, "/stream/200/0", true)),
        ("waits", LARGEST, |nth| headers(nth, "/wait/1", true)),
        ("PING", LARGEST, |_| frame(6, 0, &[0; 8])),
        ("SETTINGS", LARGEST, |_| set(&[])),
        ("PRIORITY", LARGEST, |_| frame(2, 1, &[0, 0, 0, 3, 0])),
        ("PRIORITY of itself", LARGEST, |nth| {
            frame(2, nth, &[&nth.to_be_bytes()[..], &[0]].concat())
        }),
        ("unknown frames", LARGEST, |_| frame(99, 0, &[0; 100])),
        ("uploads", LARGEST, |nth| {
            [headers(nth, "/bytes/65536", false), frame(0, nth, &[0; 9000]), reset(nth)].concat()
        }),
        ("bodies of no stream", LARGEST, |nth| {
            [headers(nth, "/", true), frame(0, nth, b"x")].concat()
        }),
        ("no fields", LARGEST, |nth| {
            let mut out = Vec::new();
            write_block(&mut out, nth, &[], true, 16_384);
            out
        }),
    ];
    let resets: [(&str, u32, &str); 5] = [
        ("large answers", LARGEST, "/bytes/65536"),
        ("large answers without a window", 0, "/bytes/65536"),
        ("streams", LARGEST, "/stream/200/0"),
        ("streams without a window", 0, "/stream/200/0"),
        ("waits", LARGEST, "/wait/3600000"),
    ];
    let play = |sentence: String, window, next: &dyn Fn(u32) -> Vec<u8>| {
        let (mut world, mut nth) = (opened(window), 0);
        flood(&mut world, || {
            nth += 1;
            next(2 * nth - 1)
        });
        assert!(unread(&world) <= MOST, "{sentence}: {} bytes wait", unread(&world));
        if world.wire.ended.is_empty() && !world.is_closed() {
            read_all(&mut world);
        }
        let seen = world.mark();
        let left = u64::from(seen.open_requests.now);
        assert_eq!(seen.requests, seen.answered + seen.aborted + seen.dropped + left, "{sentence}");
    };
    for (sentence, window, next) in cases {
        play(sentence.to_owned(), window, &next);
    }
    for (sentence, window, path) in resets {
        play(format!("{sentence}, reset at once"), window, &|nth| both(nth, path));
    }
}

#[test]
fn windows_that_open_for_all_streams_at_once_release_what_the_client_reads() {
    let mut world = opened(0);
    for nth in 0..300 {
        world.receive(&headers(1 + 2 * nth, "/bytes/65536", true));
    }
    world.wire.take_sent();
    world.wire.stuck = Some(TOKEN.index);
    world.receive(&set(&[(4, LARGEST)]));
    assert!(unread(&world) <= MOST, "{} bytes wait", unread(&world));
    let bytes = read_all(&mut world);
    assert!(bytes.len() > 300 * 65_536, "all of it comes: {} bytes", bytes.len());
}

#[test]
fn output_that_cannot_wait_ends_the_connection_calmly() {
    let mut world = opened(LARGEST);
    world.wire.stuck = Some(TOKEN.index);
    let pings = frame(6, 0, &[0; 8]).repeat(READ / 17);
    for nth in 0..100 {
        if world.wire.ended.is_empty() {
            world.receive(&[headers(1 + 2 * nth, "/", true), pings.clone()].concat());
        }
    }
    assert!(!world.wire.ended.is_empty() && unread(&world) <= MOST, "{}", unread(&world));
    let last = world.wire.sent.last().expect("GOAWAY").bytes.clone();
    assert!(last.ends_with(b"output is not read"), "{last:?}");
}

#[test]
fn waits_that_were_reset_are_forgotten() {
    let mut world = opened(LARGEST);
    for nth in 0..9_000 {
        let stream = 1 + 2 * nth;
        world.receive(&[headers(stream, "/wait/3600000", true), reset(stream)].concat());
    }
    world.pass(1000 * MS);
    let text = format!("{:?}", world.server);
    let waits = text.matches("Wait {").count();
    assert!(waits < 2048, "{waits} waits for streams that are gone");
}
