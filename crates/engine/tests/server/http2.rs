//! HTTP/2 and HTTP/1 on one port: told apart by their first bytes, answered alike, and what only HTTP/2 can do wrong.

use proptest::prelude::*;
use trueload_drive::{PeerClose, Program};
use trueload_engine::protocol::FaultsPlan;
use trueload_wire::http2::frame::{
    ErrorCode, PREFACE, write_block, write_data, write_reset, write_window_update,
};
use trueload_wire::http2::hpack::{Decoder, literal};
use trueload_wire::http2::read::{Frame, Piece, Reader};
use trueload_wire::http2::settings;

use super::world::{MS, World};

fn request(stream: u32, method: &str, path: &str, end: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    for (name, value) in [(":method", method), (":scheme", "http"), (":path", path)] {
        literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    write_block(&mut out, stream, &block, end, 16_384);
    out
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    request(stream, "GET", path, true)
}

fn reset(stream: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_reset(&mut out, stream, ErrorCode::Cancel);
    out
}

fn opening() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    settings::write(&mut out, &[]);
    out
}

fn opened(faults: Option<FaultsPlan>) -> World {
    let mut world = World::of_http2(100, faults);
    world.receive(&opening());
    world
}

/// What a server has sent, a line for each frame: of HEADERS the fields, but for the date.
fn frame_lines(bytes: &[u8]) -> Vec<String> {
    let (mut reader, mut decoder) = (Reader::default(), Decoder::default());
    let (mut rest, mut lines) = (bytes, Vec::new());
    while let Some(piece) = reader.next(&mut rest).expect("frames") {
        lines.push(match piece {
            Piece::Data(data) => {
                let text = String::from_utf8_lossy(data.bytes);
                format!("{} {text}{}", data.stream, if data.end_stream { "." } else { "" })
            }
            Piece::Frame(Frame::Headers { stream, part, end_stream, .. }) => {
                let mut line = stream.to_string();
                let mut add = |field: trueload_wire::http2::hpack::Field<'_>| {
                    if field.name != b"date" {
                        line += " ";
                        line += &String::from_utf8_lossy(field.value);
                    }
                };
                decoder.decode(part, 10_000, &mut add).expect("fields");
                line + if end_stream { "." } else { "" }
            }
            Piece::Frame(Frame::Reset { stream, code }) => format!("{stream} {code:?}"),
            Piece::Frame(Frame::GoAway { last, code }) => format!("GOAWAY {last} {code:?}"),
            Piece::Frame(Frame::Settings(_)) => "SETTINGS".into(),
            Piece::Frame(Frame::SettingsAck) => "ACK".into(),
            Piece::Frame(frame) => format!("{frame:?}"),
        });
    }
    lines
}

/// What was sent on streams.
fn answers(world: &World) -> Vec<String> {
    let lines = frame_lines(&world.wire.bytes());
    lines
        .into_iter()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect()
}

const HELLO: [&str; 2] = ["200 trueload text/plain 13", "Hello, World!."];

fn hello(stream: u32) -> [String; 2] {
    HELLO.map(|line| format!("{stream} {line}"))
}

#[test]
fn the_first_bytes_say_which_version_a_connection_speaks() {
    for cut in 0..6 {
        let mut world = World::of_http2(100, None);
        let bytes = [opening(), get(1, "/")].concat();
        world.receive(&bytes[..cut]);
        world.receive(&bytes[cut..]);
        let lines = frame_lines(&world.wire.bytes());
        assert_eq!(lines[..3], ["SETTINGS", "WindowUpdate { stream: 0, by: 16711681 }", "ACK"]);
        assert_eq!(lines[3..], hello(1), "cut at {cut}");
        let seen = world.mark();
        assert_eq!((seen.requests, seen.ok, seen.malformed), (1, 1, 0));
        assert_eq!(seen.bytes_in as usize, bytes.len());
        assert_eq!(seen.bytes_out as usize, world.wire.bytes().len());
    }
    for (text, status) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("PUT /x HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("PRO / HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("P / HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
    ] {
        for cut in 0..text.len() {
            let mut world = World::of_http2(100, None);
            world.receive(&text.as_bytes()[..cut]);
            world.receive(&text.as_bytes()[cut..]);
            assert_eq!(world.statuses(), [status], "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn a_redirect_has_its_status_and_location() {
    let mut world = opened(None);
    world.receive(&get(1, "/redirect/3/308"));
    let head = "1 308 trueload text/plain 11 /redirect/2/308";
    assert_eq!(answers(&world), [head, "1 redirected\n."]);
}

#[test]
fn a_preface_without_its_end_is_a_mistake_of_the_connection() {
    let mut world = World::of_http2(100, None);
    world.receive(b"PRI * HTTP/1.1\r\n\r\n");
    assert!(!world.wire.ended.is_empty());
    assert_eq!(
        frame_lines(&world.wire.bytes()).last().map(String::as_str),
        Some("GOAWAY 0 ProtocolError")
    );
    assert_eq!(world.mark().malformed, 1);
    world.server.handle_end(&mut world.wire, world.conn, PeerClose::Fin);
    assert!(world.is_closed());
    let seen = world.seen();
    assert_eq!((seen.accepted, seen.open), (1, 0));
}

#[test]
fn what_is_neither_version_gets_no_answer() {
    let mut world = World::of_http2(100, None);
    world.receive(b"INVALID PREFACE\r\n\r\n");
    assert!(world.is_closed() && world.wire.sent.is_empty());
    assert_eq!(world.mark().malformed, 1);
}

#[test]
fn every_path_is_answered_as_over_http1() {
    let mut world = opened(None);
    let head = request(7, "HEAD", "/", true);
    let mut post = request(9, "POST", "/perf?x", false);
    write_data(&mut post, 9, b"a body", true);
    world.receive(&[get(1, "/perf"), get(3, "/nope"), get(5, "/wait/0"), head, post].concat());
    let perf = trueload_perf();
    let expected = [
        "1 200 trueload application/json 84".into(),
        format!("1 {perf}."),
        "3 404 trueload text/plain 10".into(),
        "3 not found\n.".into(),
        "5 200 trueload text/plain 2".into(),
        "5 ok.".into(),
        "7 200 trueload text/plain 13.".into(),
        "9 200 trueload application/json 84".into(),
        format!("9 {perf}."),
    ];
    assert_eq!(answers(&world), expected);
}

#[test]
fn a_body_larger_than_the_window_ends_when_the_client_has_made_room() {
    let mut world = opened(None);
    world.receive(&[get(1, "/bytes/1024"), get(3, "/bytes/65536")].concat());
    let body = |world: &World, stream: u32| {
        let prefix = format!("{stream} x");
        let data = answers(world).into_iter().filter(|line| line.starts_with(&prefix));
        data.map(|line| line[prefix.len() - 1..].to_owned()).collect::<String>()
    };
    assert_eq!(body(&world, 1), format!("{}.", "x".repeat(1024)));
    assert_eq!(body(&world, 3).len(), 65_535 - 1024, "the window of the connection");
    let mut room = Vec::new();
    write_window_update(&mut room, 0, 1025);
    write_window_update(&mut room, 3, 1);
    world.receive(&room);
    assert_eq!(body(&world, 3), format!("{}.", "x".repeat(65_536)));
    assert_eq!(world.mark().answered, 2);
}

/// The body of `/perf` over HTTP/1.
fn trueload_perf() -> String {
    let mut world = World::of_http2(100, None);
    world.receive(b"GET /perf HTTP/1.1\r\nHost: x\r\n\r\n");
    world.sent().split_once("\r\n\r\n").expect("a body").1.to_owned()
}

#[test]
fn a_stream_that_waits_holds_up_no_other_and_leaves_at_its_time() {
    let mut world = opened(None);
    world.receive(&[get(1, "/wait/20"), get(3, "/"), get(5, "/wait/10")].concat());
    assert_eq!(answers(&world), hello(3));
    world.pass(10 * MS);
    assert_eq!(answers(&world).len(), 4);
    world.pass(20 * MS - 1);
    assert_eq!(answers(&world).len(), 4);
    world.pass(20 * MS);
    assert_eq!(answers(&world)[4..], ["1 200 trueload text/plain 2", "1 ok."]);
    let seen = world.mark();
    assert_eq!((seen.requests, seen.answered, seen.open_requests.peak), (3, 3, 2));
    assert_eq!(seen.delay_error_ns.map(|error| (error.count, error.max)), Some((2, 0)));
}

#[test]
fn a_stream_that_its_client_resets_is_aborted_and_one_that_goes_with_its_connection_too() {
    let mut world = opened(None);
    world.receive(&[get(1, "/wait/20"), get(3, "/wait/20"), get(5, "/wait/20"), reset(3)].concat());
    let seen = world.mark();
    assert_eq!((seen.aborted, seen.open_requests.now), (1, 2));
    world.pass(20 * MS - 1);
    world.server.handle_end(&mut world.wire, world.conn, PeerClose::Fin);
    world.pass(30 * MS);
    let seen = world.mark();
    assert_eq!((seen.aborted, seen.answered, seen.half_sent), (2, 0, 0));
    assert!(answers(&world).is_empty());
    let seen = world.seen();
    assert_eq!((seen.requests, seen.responses, seen.aborted, seen.waiting), (3, 0, 3, 0));
}

#[test]
fn streams_above_the_limit_are_refused_and_are_no_requests() {
    let mut world = World::of_http2(1, None);
    world.receive(&[opening(), get(1, "/wait/5"), get(3, "/"), get(5, "/")].concat());
    world.pass(5 * MS);
    let expected = ["3 RefusedStream", "5 RefusedStream", "1 200 trueload text/plain 2", "1 ok."];
    assert_eq!(answers(&world), expected);
    assert_eq!(world.mark().requests, 1);
}

#[test]
fn faults_meet_streams_and_the_connection_goes_on() {
    let plan = |fault: fn(&mut FaultsPlan)| {
        let mut plan = FaultsPlan::default();
        fault(&mut plan);
        plan
    };
    for (name, plan, expected) in [
        ("reset", plan(|plan| plan.reset_share = 1.0), vec!["1 InternalError"]),
        ("refuse", plan(|plan| plan.refuse_share = 1.0), vec!["1 RefusedStream"]),
        ("stall", plan(|plan| plan.stall_share = 1.0), vec![]),
        (
            "error",
            plan(|plan| plan.error_share = 1.0),
            vec!["1 500 trueload text/plain 6", "1 error\n."],
        ),
    ] {
        let mut world = opened(Some(plan));
        world.receive(&get(1, "/"));
        world.pass(1000 * MS);
        assert_eq!(answers(&world), expected, "{name}");
        assert!(world.wire.ended.is_empty() && !world.is_closed(), "{name}");
        let seen = world.mark();
        assert_eq!((seen.requests, seen.faults.get(name)), (1, Some(&1)), "{name}");
        let unanswered = u64::from(matches!(name, "reset" | "refuse"));
        assert_eq!((seen.dropped, seen.aborted), (unanswered, 0), "{name}");
        assert_eq!(seen.open_requests.now, u32::from(name == "stall"), "{name}");
    }
}

#[test]
fn a_slow_body_comes_in_pieces_and_holds_up_no_other() {
    let plan = FaultsPlan { slow_share: 1.0, slow_ns: 40 * MS, ..FaultsPlan::default() };
    let mut world = opened(Some(plan));
    world.receive(&[get(1, "/"), get(3, "/wait/10")].concat());
    world.pass(30 * MS);
    world.receive(&reset(3));
    world.pass(100 * MS);
    let of = |stream: &str| {
        let lines = answers(&world).into_iter();
        lines.filter_map(|line| line.strip_prefix(stream).map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(of("1 ")[1..], ["Hel", "lo,", " Wo", "rld!."]);
    assert_eq!(of("3 "), ["200 trueload text/plain 2", "o"], "reset in the middle");
    let seen = world.mark();
    assert_eq!((seen.answered, seen.aborted, seen.faults.get("slow")), (1, 1, Some(&2)));
}

#[test]
fn goaway_comes_after_so_many_requests_and_the_connection_closes_behind_their_answers() {
    let plan = FaultsPlan { goaway_after: Some(2), ..FaultsPlan::default() };
    let mut world = opened(Some(plan));
    world.receive(&[get(1, "/wait/5"), get(3, "/"), get(5, "/")].concat());
    assert!(world.wire.ended.is_empty(), "one is to be answered");
    world.pass(5 * MS);
    assert!(!world.wire.ended.is_empty() && !world.is_closed());
    world.receive(&get(7, "/"));
    world.pass(1005 * MS);
    assert!(
        world.is_closed() && world.wire.reset.is_empty(),
        "the client is heard out for a second"
    );
    let lines = frame_lines(&world.wire.bytes());
    let expected =
        [&hello(3)[..], &["1 200 trueload text/plain 2".into(), "1 ok.".into()]].concat();
    assert_eq!(answers(&world), expected);
    assert!(lines.contains(&"GOAWAY 3 NoError".to_owned()), "{lines:?}");
    let seen = world.mark();
    assert_eq!((seen.requests, seen.answered, seen.faults.get("goaway")), (2, 2, Some(&1)));
}

#[test]
fn a_connection_is_closed_after_so_many_requests_with_or_without_goaway() {
    for close_silently in [false, true] {
        let plan = FaultsPlan { close_after: Some(2), close_silently, ..FaultsPlan::default() };
        let mut world = opened(Some(plan));
        world.receive(&[get(1, "/wait/9"), get(3, "/"), get(5, "/")].concat());
        assert!(!world.wire.ended.is_empty());
        assert_eq!(answers(&world), hello(3));
        let lines = frame_lines(&world.wire.bytes());
        let goaway = lines.contains(&"GOAWAY 3 NoError".to_owned());
        assert_eq!(goaway, !close_silently, "{lines:?}");
        assert_eq!(world.mark().faults.get("close"), Some(&1));
    }
}

#[test]
fn settings_that_are_late_hold_back_everything_behind_them() {
    let plan = FaultsPlan { settings_delay_ns: 50 * MS, ..FaultsPlan::default() };
    let mut world = opened(Some(plan));
    world.receive(&get(1, "/"));
    world.pass(50 * MS - 1);
    assert!(world.wire.sent.is_empty());
    world.pass(50 * MS);
    let lines = frame_lines(&world.wire.bytes());
    assert_eq!(lines[0], "SETTINGS");
    assert_eq!(answers(&world), hello(1));
    world.receive(&get(3, "/"));
    assert_eq!(answers(&world)[2..], hello(3));
}

#[test]
fn a_window_that_stalls_stops_a_body_where_it_ends() {
    let plan = FaultsPlan { stall_window: true, ..FaultsPlan::default() };
    for (faults, updates) in [(Some(plan), false), (None, true)] {
        let mut world = opened(faults);
        let mut post = request(1, "POST", "/", false);
        for _ in 0..4 {
            write_data(&mut post, 1, &[0; 16_000], false);
        }
        for _ in 0..40 * usize::from(updates) {
            write_data(&mut post, 1, &[0; 16_000], false);
        }
        world.receive(&post);
        let lines = frame_lines(&world.wire.bytes());
        let granted = lines.iter().any(|line| line.starts_with("WindowUpdate { stream: 1"));
        assert_eq!(granted, updates);
        assert!(answers(&world).is_empty());
    }
}

proptest! {
    #[test]
    fn a_split_never_changes_what_is_answered(
        paths in prop::collection::vec(prop::sample::select(vec!["/", "/perf", "/nope", "/wait/1"]), 1..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let requests = paths.iter().enumerate().flat_map(|(nth, path)| get(1 + 2 * nth as u32, path));
        let bytes: Vec<u8> = opening().into_iter().chain(requests).collect();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let (mut whole, mut split) = (World::of_http2(100, None), World::of_http2(100, None));
        whole.receive(&bytes);
        places.windows(2).for_each(|cut| split.receive(&bytes[cut[0]..cut[1]]));
        whole.pass(20 * MS);
        split.pass(20 * MS);
        prop_assert_eq!(answers(&whole).len(), 2 * paths.len());
        prop_assert_eq!(answers(&split), answers(&whole));
        prop_assert_eq!(split.seen(), whole.seen());
    }
}

#[test]
fn the_parts_of_a_stream_are_frames_and_a_cut_resets_it_half_way() {
    let event = |number: u32| {
        let content =
            format!("{{\"choices\":[{{\"delta\":{{\"content\":\"token {number} \"}}}}]}}");
        format!("1 data: {content}\n\n")
    };
    let cut = FaultsPlan { cut_share: 1.0, ..FaultsPlan::default() };
    for (faults, end) in [
        (None, vec![event(2), "1 data: [DONE]\n\n.".to_owned()]),
        (Some(cut), vec!["1 InternalError".to_owned()]),
    ] {
        let mut world = opened(faults);
        world.receive(&get(1, "/stream/2/10"));
        world.pass(30 * MS);
        let begin = vec!["1 200 trueload text/event-stream".to_owned(), event(1)];
        assert_eq!(answers(&world), [begin, end].concat());
        let seen = world.mark();
        assert_eq!(seen.ok, u64::from(faults.is_none()));
    }
    let mut world = opened(Some(cut));
    world.receive(&get(1, "/"));
    world.pass(MS);
    let lines = ["1 200 trueload text/plain 13", "1 Hello,", "1 InternalError"];
    assert_eq!(answers(&world), lines);
}
