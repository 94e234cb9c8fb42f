//! Conversations with a server: what each frame leads to, in any split, and that every request is settled once.

use proptest::prelude::*;

use super::*;
use crate::http2::frame::{self, Header, Kind, write_data, write_reset};
use crate::http2::hpack::{Encoder, Indexing, literal};
use crate::http2::read::{Frame, Piece};

const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
const OK: &[u8] = &[0x88];

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    block
}

fn raw(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Header { len: payload.len() as u32, kind, flags, stream }.bytes().to_vec();
    out.extend_from_slice(payload);
    out
}

fn headers(stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_block(&mut out, stream, &block(fields), end_stream, 16_384);
    out
}

fn get(stream: u32) -> Vec<u8> {
    headers(stream, &GET, true)
}

fn data(stream: u32, bytes: &[u8], end_stream: bool) -> Vec<u8> {
    let mut out = Vec::new();
    write_data(&mut out, stream, bytes, end_stream);
    out
}

fn update(stream: u32, by: u32) -> Vec<u8> {
    raw(Kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

fn set(parameters: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    settings::write(&mut out, parameters);
    out
}

fn opening() -> Vec<u8> {
    [&PREFACE[..], &set(&[])].concat()
}

/// A server, the events that it has returned, and what it has sent, a line for each frame.
struct Play {
    server: Server<u8>,
    events: Vec<Event<u8>>,
    out: Vec<u8>,
    answers: bool,
    body: &'static [u8],
}

impl Play {
    /// Answers each request at once, with these bytes.
    fn answering(config: Config, body: &'static [u8]) -> Self {
        let (server, events, out) = (Server::new(config), Vec::new(), Vec::new());
        Play { server, events, out, answers: true, body }
    }

    fn waiting(config: Config) -> Self {
        Play { answers: false, ..Play::answering(config, b"") }
    }

    fn opened(mut self) -> Self {
        self.receive(&opening());
        self.out.clear();
        self
    }

    fn receive(&mut self, input: &[u8]) {
        let mut rest = input;
        let mut read = |head: RequestHead<'_>| head.target.len() as u8;
        while let Some(event) = self.server.next(&mut rest, &mut self.out, &mut read) {
            self.events.push(event);
            if let Event::Request { stream, .. } = event
                && self.answers
            {
                assert!(self.server.answer(stream, OK, self.body, &mut self.out));
            }
        }
        assert!(rest.is_empty());
    }

    /// What it has sent since it was asked last.
    fn sent(&mut self) -> Vec<String> {
        let (out, mut reader) = (std::mem::take(&mut self.out), Reader::default());
        reader.frame_bytes = 1 << 24;
        let (mut rest, mut sent) = (&out[..], Vec::new());
        while let Some(piece) = reader.next(&mut rest).expect("legal") {
            sent.push(match piece {
                Piece::Data(data) => {
                    let end = if data.end_stream { " end" } else { "" };
                    format!("DATA {} {}{end}", data.stream, data.bytes.len())
                }
                Piece::Frame(Frame::Headers { stream, end_stream, part, .. }) => {
                    let end = if end_stream { " end" } else { "" };
                    format!("HEADERS {stream} {part:02x?}{end}")
                }
                Piece::Frame(Frame::Reset { stream, code }) => format!("RST {stream} {code:?}"),
                Piece::Frame(Frame::GoAway { last, code }) => format!("GOAWAY {last} {code:?}"),
                Piece::Frame(Frame::WindowUpdate { stream, by }) => format!("UPDATE {stream} {by}"),
                Piece::Frame(frame) => format!("{frame:?}"),
            });
        }
        sent
    }

    fn broken(&self) -> bool {
        matches!(self.events.last(), Some(Event::Broken(_)))
    }
}

fn play() -> Play {
    Play::answering(Config::default(), b"hi").opened()
}

#[test]
fn requests_are_answered_on_their_streams() {
    let mut play = play();
    play.receive(&[get(1), get(3), headers(9, &[GET[0], GET[1], (":path", "/a")], true)].concat());
    let request = |stream, made| Event::Request { stream, made };
    assert_eq!(play.events, [request(1, 1), request(3, 1), request(9, 2)]);
    let expected = [
        "HEADERS 1 [88]",
        "DATA 1 2 end",
        "HEADERS 3 [88]",
        "DATA 3 2 end",
        "HEADERS 9 [88]",
        "DATA 9 2 end",
    ];
    assert_eq!(play.sent(), expected);
    assert_eq!((play.server.waiting(), play.server.is_within_request()), (0, false));
}

#[test]
fn a_request_with_a_body_or_trailers_is_told_when_it_is_whole() {
    let post = [(":method", "POST"), GET[1], GET[2], ("content-length", "5")];
    let expects = [&post[..], &[("expect", "100-continue")]].concat();
    let mut play = play();
    play.receive(&headers(1, &expects, false));
    assert_eq!(play.sent(), ["HEADERS 1 [08, 03, 31, 30, 30]"]);
    play.receive(&data(1, b"hel", false));
    assert!(play.server.is_within_request() && play.events.is_empty());
    play.receive(&[data(1, b"lo", false), headers(1, &[("checksum", "1")], true)].concat());
    play.receive(&[headers(3, &post, false), data(3, b"hello", true)].concat());
    let ids: Vec<bool> =
        play.events.iter().map(|event| matches!(event, Event::Request { .. })).collect();
    assert_eq!(ids, [true, true]);
    assert_eq!(play.sent().len(), 4);
}

#[test]
fn answers_may_come_later_and_in_any_order_and_only_once() {
    let mut play = Play::waiting(Config::default()).opened();
    play.receive(&[get(1), get(3), get(5)].concat());
    assert_eq!(play.server.waiting(), 3);
    for stream in [5, 1] {
        assert!(play.server.answer(stream, OK, b"", &mut play.out));
        assert!(!play.server.answer(stream, OK, b"", &mut play.out), "once");
    }
    play.receive(&[]);
    assert!(play.server.answer_head(3, OK, &mut play.out));
    assert!(play.server.answer_body(3, b"ab", false, &mut play.out));
    assert!(play.server.answer_body(3, b"c", true, &mut play.out));
    assert!(!play.server.answer_body(3, b"c", true, &mut play.out));
    let expected =
        ["HEADERS 5 [88] end", "HEADERS 1 [88] end", "HEADERS 3 [88]", "DATA 3 2", "DATA 3 1 end"];
    assert_eq!(play.sent(), expected);
    assert_eq!(play.server.waiting(), 0);
}

#[test]
fn a_body_leaves_as_the_windows_open() {
    let mut play = Play::answering(Config::default(), &[b'a'; 40]).opened();
    play.receive(&[set(&[(4, 10)]), get(1), get(3)].concat());
    let sent = ["SettingsAck", "HEADERS 1 [88]", "DATA 1 10", "HEADERS 3 [88]", "DATA 3 10"];
    assert_eq!(play.sent(), sent);
    play.receive(&update(3, 5));
    assert_eq!(play.sent(), ["DATA 3 5"]);
    play.receive(&set(&[(4, 4)]));
    assert_eq!(play.sent(), ["SettingsAck"], "6 bytes less than none");
    play.receive(&[update(1, 6), update(1, 1)].concat());
    assert_eq!(play.sent(), ["DATA 1 1"]);
    play.receive(&set(&[(4, 1000)]));
    assert_eq!(play.sent(), ["SettingsAck", "DATA 1 29 end", "DATA 3 25 end"]);

    let mut play = Play::answering(Config::default(), &[b'a'; 40_000]).opened();
    play.receive(&[set(&[(4, 100_000)]), get(1), get(3)].concat());
    let sent = ["SettingsAck", "HEADERS 1 [88]", "DATA 1 16384", "DATA 1 16384", "DATA 1 7232 end"];
    let more = ["HEADERS 3 [88]", "DATA 3 16384", "DATA 3 9151"];
    assert_eq!(play.sent(), [&sent[..], &more].concat(), "65,535 on the connection");
    play.receive(&[set(&[(5, 50_000)]), update(0, 50_000)].concat());
    assert_eq!(play.sent(), ["SettingsAck", "DATA 3 14465 end"]);
    play.receive(&get(5));
    assert_eq!(play.sent()[1..], ["DATA 5 35535"], "as large as the peer permits");
}

#[test]
fn bodies_that_may_leave_at_once_wait_for_room_in_the_output() {
    let mut play = Play::answering(Config::default(), &[b'a'; 40_000]).opened();
    play.receive(&[set(&[(4, 0)]), update(0, 1 << 20), get(1), get(3), get(5)].concat());
    assert!(play.server.is_waiting_to_send(5) && !play.server.is_waiting_to_send(7));
    play.out.clear();
    play.server.set_room(30_000);
    play.receive(&set(&[(4, 100_000)]));
    let sent = play.sent();
    assert_eq!(sent, ["SettingsAck", "DATA 1 16384", "DATA 3 16384"], "one frame of each in turn");
    let mut rest = Vec::new();
    while play.server.is_full() {
        play.server.go_on(&mut play.out);
        assert!(play.out.len() < 30_000 + 16_384 + 9, "one frame more than there is room for");
        rest.extend(play.sent());
    }
    let ended = rest.iter().filter(|sent| sent.ends_with("end")).count();
    assert_eq!((rest.len(), ended), (7, 3), "{rest:?}");
    assert_eq!(play.server.waiting(), 0);
}

#[test]
fn a_stream_that_is_reset_takes_what_waits_of_its_answer_along() {
    let mut play = Play::answering(Config::default(), &[b'a'; 40_000]).opened();
    play.receive(&[set(&[(4, 0)]), get(1), raw(Kind::RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat());
    play.out.clear();
    play.receive(&[set(&[(4, 100_000)]), update(0, 1 << 20)].concat());
    assert_eq!(play.sent(), ["SettingsAck"]);
}

#[test]
fn a_client_that_lets_output_pile_up_is_told_to_be_calm() {
    let mut play = play();
    play.receive(&get(1));
    play.out.clear();
    play.server.refuse_more(&mut play.out);
    assert_eq!(play.sent(), ["GOAWAY 1 EnhanceYourCalm"]);
    play.receive(&get(3));
    assert!(play.sent().is_empty());
}

#[test]
fn a_stalled_stream_holds_up_no_other() {
    let mut play = Play::answering(Config::default(), b"hi").opened();
    play.receive(&[set(&[(4, 1)]), get(1), set(&[(4, 2)])].concat());
    play.receive(&[set(&[(4, 0)]), get(3)].concat());
    play.out.clear();
    play.receive(&[update(3, 2), update(0, 1)].concat());
    assert_eq!(play.sent(), ["DATA 3 2 end"]);
}

#[test]
fn uploads_get_more_room_as_they_use_it_up_unless_they_are_to_stall() {
    let post = [(":method", "POST"), GET[1], GET[2]];
    let upload = |enlarges| {
        let config = Config { window: 20_000, enlarges, ..Config::default() };
        let mut play = Play::answering(config, b"hi").opened();
        play.receive(&[headers(1, &post, false), data(1, &[0; 16_384], false)].concat());
        play
    };
    let mut play = upload(true);
    assert_eq!(play.sent(), ["UPDATE 1 16384"]);
    play.receive(&data(1, &[0; 16_384], true));
    assert_eq!(play.events, [Event::Request { stream: 1, made: 1 }]);
    let mut play = upload(false);
    assert!(play.sent().is_empty());
    play.receive(&data(1, &[0; 16_384], true));
    assert_eq!(play.events, [Event::Malformed]);
    assert_eq!(play.sent(), ["RST 1 FlowControlError"]);
}

#[test]
fn a_connection_gets_more_room_even_for_bytes_that_nobody_wants() {
    let mut play = Play::waiting(Config { streams: 0, ..Config::default() }).opened();
    play.receive(&headers(1, &GET, false));
    let mut updates = 0;
    for _ in 0..2000 {
        play.receive(&data(1, &[0; 16_000], false));
        updates += play.sent().iter().filter(|sent| sent.starts_with("UPDATE 0")).count();
    }
    assert_eq!(updates, 3, "32 MB, told of at each half of 16 MiB");
    assert_eq!(play.events, [Event::Refused]);
}

#[test]
fn streams_above_the_limit_are_refused_and_the_others_answered() {
    let mut play = Play::waiting(Config { streams: 2, ..Config::default() }).opened();
    play.receive(&[get(1), get(3), get(5), get(7)].concat());
    assert_eq!(play.sent(), ["RST 5 RefusedStream", "RST 7 RefusedStream"]);
    assert!(play.server.answer(1, OK, b"", &mut play.out));
    play.out.clear();
    play.receive(&[get(9), get(11)].concat());
    assert_eq!(play.sent(), ["RST 11 RefusedStream"]);
    assert_eq!(play.server.waiting(), 2);
}

#[test]
fn after_goaway_what_has_begun_is_answered_and_later_streams_are_ignored() {
    let mut play = Play::waiting(Config::default()).opened();
    play.receive(&[get(1), get(3)].concat());
    play.server.go_away(&mut play.out);
    play.server.go_away(&mut play.out);
    play.receive(&[headers(5, &GET, false), data(5, b"more", true), get(7)].concat());
    assert_eq!(play.sent(), ["GOAWAY 3 NoError"]);
    assert_eq!((play.server.waiting(), play.server.is_drained()), (2, false));
    assert!(play.server.answer(3, OK, b"", &mut play.out));
    assert!(play.server.reset(1, ErrorCode::InternalError, &mut play.out));
    assert!(play.server.is_drained());
    assert_eq!(play.sent(), ["HEADERS 3 [88] end", "RST 1 InternalError"]);
}

#[test]
fn a_request_that_its_client_resets_is_gone_once() {
    let mut play = Play::waiting(Config::default()).opened();
    let mut reset = Vec::new();
    write_reset(&mut reset, 1, ErrorCode::Cancel);
    play.receive(&[get(1), reset.clone(), reset].concat());
    let expected = [Event::Request { stream: 1, made: 1 }, Event::Gone { stream: 1 }];
    assert_eq!((&play.events[..], play.server.waiting()), (&expected[..], 0));
    assert!(!play.server.answer(1, OK, b"", &mut play.out));
    assert!(play.sent().is_empty());
}

#[test]
fn a_peer_whose_table_is_smaller_is_told_that_ours_is_empty() {
    let mut play = play();
    play.receive(&[set(&[(1, 4096)]), get(1), set(&[(1, 100)]), get(3), get(5)].concat());
    let sent: Vec<String> = play.sent();
    let headers: Vec<_> = sent.iter().filter(|sent| sent.starts_with("HEADERS")).collect();
    assert_eq!(headers, ["HEADERS 1 [88]", "HEADERS 3 [20, 88]", "HEADERS 5 [88]"]);
}

#[test]
fn a_block_that_inserts_is_decoded_and_one_that_does_not_is_recognised_only_under_its_table() {
    let mut encoder = Encoder::new(4096);
    let mut request = |path: &str| {
        let mut block = Vec::new();
        for (name, value) in [GET[0], GET[1], (":path", path)] {
            encoder.field(&mut block, name.as_bytes(), value.as_bytes(), Indexing::Insert);
        }
        block
    };
    let mut play = play();
    let blocks = ["/a", "/a", "/a", "/bcd", "/bcd", "/a", "/bcd", "/a"].map(&mut request);
    for (nth, block) in blocks.iter().enumerate() {
        play.receive(&raw(Kind::HEADERS, 0x5, 1 + 2 * nth as u32, block));
    }
    let made: Vec<u8> = play
        .events
        .iter()
        .map(|event| match event {
            Event::Request { made, .. } => *made,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(made, [2, 2, 2, 4, 4, 2, 4, 2]);
    // The same bytes mean another path once something was inserted before them.
    let inserts =
        raw(Kind::HEADERS, 0x5, 101, &[&block(&GET)[..], &[0x40, 1, b'x', 1, b'y']].concat());
    play.receive(&[inserts, raw(Kind::HEADERS, 0x5, 103, &blocks[4])].concat());
    assert_eq!(play.events.last(), Some(&Event::Malformed), "two fields x: y, and no path");
}

#[test]
fn a_mistake_on_a_stream_resets_it_and_the_connection_goes_on() {
    let post = [(":method", "POST"), GET[1], GET[2], ("content-length", "3")];
    let closed = "RST 1 StreamClosed";
    let protocol = "RST 1 ProtocolError";
    let cases: [(&str, Vec<Vec<u8>>, &str); 12] = [
        (
            "an upper-case name",
            vec![headers(1, &[&GET[..], &[("A", "")]].concat(), true)],
            protocol,
        ),
        ("no path", vec![headers(1, &GET[..2], true)], protocol),
        ("no body where one was said", vec![headers(1, &post, true)], protocol),
        ("a short body", vec![headers(1, &post, false), data(1, b"ab", true)], protocol),
        ("a long body", vec![headers(1, &post, false), data(1, b"abcd", false)], protocol),
        ("trailers in the middle", vec![headers(1, &GET, false), headers(1, &[], false)], protocol),
        ("a pseudo trailer", vec![headers(1, &GET, false), headers(1, &GET[..1], true)], protocol),
        (
            "depends on itself",
            vec![raw(Kind::HEADERS, 0x25, 1, &[&[0, 0, 0, 1, 0][..], &block(&GET)].concat())],
            protocol,
        ),
        ("DATA behind the end", vec![get(1), data(1, b"x", false)], closed),
        ("HEADERS behind the end", vec![get(1), headers(1, &GET, true)], closed),
        ("a window of 0", vec![get(1), update(1, 0)], protocol),
        ("a window too large", vec![get(1), update(1, (1 << 31) - 1)], "RST 1 FlowControlError"),
    ];
    for (sentence, input, expected) in cases {
        let mut play = Play::waiting(Config::default()).opened();
        play.receive(&input.concat());
        assert_eq!(play.sent(), [expected], "{sentence}");
        assert_eq!(play.server.waiting(), 0, "{sentence}");
        // What was on its way is ignored.
        play.receive(&[data(1, b"late", false), headers(1, &[("a", "b")], true)].concat());
        play.receive(&get(3));
        assert!(play.sent().is_empty(), "{sentence}");
        assert_eq!(play.events.last(), Some(&Event::Request { stream: 3, made: 1 }), "{sentence}");
    }
}

#[test]
fn a_mistake_on_the_connection_ends_it_with_its_code() {
    use ErrorCode::{
        CompressionError, FlowControlError, FrameSizeError, ProtocolError, StreamClosed,
    };
    let open = |frames: &[Vec<u8>]| [opening(), frames.concat()].concat();
    let part = raw(Kind::HEADERS, 0x1, 1, &block(&GET));
    let cases: [(&str, Vec<u8>, ErrorCode); 20] = [
        ("HTTP/1", b"GET / HTTP/1.1\r\n\r\n".to_vec(), ProtocolError),
        ("a preface that ends wrong", [&PREFACE[..23], b"x"].concat(), ProtocolError),
        ("PING first", [&PREFACE[..], &raw(Kind::PING, 0, 0, &[0; 8])].concat(), ProtocolError),
        ("an ACK first", [&PREFACE[..], &raw(Kind::SETTINGS, 1, 0, &[])].concat(), ProtocolError),
        ("DATA on an idle stream", open(&[data(1, b"x", true)]), ProtocolError),
        ("RST on an idle stream", open(&[raw(Kind::RST_STREAM, 0, 1, &[0; 4])]), ProtocolError),
        ("a window of an idle stream", open(&[update(1, 1)]), ProtocolError),
        ("a window of 0 of an idle stream", open(&[update(1, 0)]), ProtocolError),
        ("an even number", open(&[get(2)]), ProtocolError),
        ("a lower number", open(&[get(5), get(3)]), ProtocolError),
        ("HEADERS on a closed stream", open(&[get(1), get(1)]), StreamClosed),
        ("CONTINUATION of nothing", open(&[raw(Kind::CONTINUATION, 4, 1, &[])]), ProtocolError),
        (
            "PING within a block",
            open(&[part.clone(), raw(Kind::PING, 0, 0, &[0; 8])]),
            ProtocolError,
        ),
        (
            "an unknown frame within a block",
            open(&[part.clone(), raw(Kind(50), 0, 0, b"x")]),
            ProtocolError,
        ),
        ("DATA within a block", open(&[part, data(1, b"x", true)]), ProtocolError),
        ("a push", open(&[raw(Kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2])]), ProtocolError),
        (
            "a block that cannot be decoded",
            open(&[raw(Kind::HEADERS, 5, 1, &[0x80])]),
            CompressionError,
        ),
        ("a frame that is too long", open(&[data(0, &[0; 16_385], false)]), FrameSizeError),
        (
            "a window of the connection too large",
            open(&[update(0, (1 << 31) - 1)]),
            FlowControlError,
        ),
        ("PUSH of 2", open(&[set(&[(2, 2)])]), ProtocolError),
    ];
    for (sentence, input, code) in cases {
        let mut play = Play::answering(Config::default(), b"");
        play.receive(&input);
        let sent = play.sent();
        let last = sent.last().map_or("", String::as_str);
        assert!(play.broken() && last.starts_with("GOAWAY"), "{sentence}: {sent:?}");
        assert!(last.ends_with(&format!(" {code:?}")), "{sentence}: {last}");
        play.receive(&get(99));
        assert!(play.sent().is_empty(), "{sentence}: nothing more is read");
    }
}

#[test]
fn nothing_may_be_sent_without_end() {
    let mut reset = Vec::new();
    write_reset(&mut reset, 1, ErrorCode::Cancel);
    let post = headers(3, &[(":method", "POST"), GET[1], GET[2]], false);
    for (sentence, once, flood) in [
        ("PING", vec![], raw(Kind::PING, 0, 0, &[0; 8])),
        ("SETTINGS", vec![], set(&[])),
        ("PRIORITY", vec![], raw(Kind::PRIORITY, 0, 9, &[0; 5])),
        ("unknown frames", vec![], raw(Kind(99), 0, 0, &[])),
        ("windows", vec![], update(0, 1)),
        ("empty DATA", post, data(3, b"", false)),
        ("RST_STREAM", get(1), reset),
        ("DATA on a closed stream", get(1), data(1, b"x", false)),
    ] {
        let mut play = play();
        play.receive(&once);
        let sent = (0..20_000).take_while(|_| {
            play.receive(&flood);
            !play.broken()
        });
        assert!((9_000..11_000).contains(&sent.count()), "{sentence}");
        assert!(play.sent().last().is_some_and(|sent| sent.ends_with("EnhanceYourCalm")));
    }
    let mut play = Play::waiting(Config::default()).opened();
    let resets = (0..20_000).take_while(|nth| {
        let mut frames = get(1 + 2 * nth);
        write_reset(&mut frames, 1 + 2 * nth, ErrorCode::Cancel);
        play.receive(&frames);
        !play.broken()
    });
    assert!((9_000..11_000).contains(&resets.count()), "requests that are reset at once");
    for (sentence, streams, fields) in [("refused", 0, &GET[..]), ("malformed", 9, &GET[..1])] {
        let mut play = Play::waiting(Config { streams, ..Config::default() }).opened();
        let sent = (0..20_000).take_while(|nth| {
            play.receive(&headers(1 + 2 * nth, fields, true));
            !play.broken()
        });
        assert!((9_000..11_000).contains(&sent.count()), "requests that are {sentence}");
    }
    let mut play = Play::waiting(Config::default()).opened();
    play.receive(&raw(Kind::HEADERS, 1, 1, &[]));
    let frames = (0..20_000).take_while(|_| {
        play.receive(&raw(Kind::CONTINUATION, 0, 1, &[]));
        !play.broken()
    });
    assert!(frames.count() < 100, "CONTINUATION");
}

/// A frame out of what clients send, often legal.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = || 1..12_u32;
    prop_oneof![
        4 => stream().prop_map(get),
        2 => (stream(), any::<bool>()).prop_map(|(stream, end)| headers(stream, &GET, end)),
        2 => (stream(), 0..40_usize, any::<bool>()).prop_map(|(stream, len, end)| data(stream, &vec![7; len], end)),
        2 => (0..12_u32, 0..70_000_u32).prop_map(|(stream, by)| update(stream, by)),
        1 => (1..7_u16, 0..70_000_u32).prop_map(|(parameter, value)| set(&[(parameter, value)])),
        1 => stream().prop_map(|stream| raw(Kind::RST_STREAM, 0, stream, &[0, 0, 0, 8])),
        1 => Just(raw(Kind::PING, 0, 0, &[0; 8])),
        1 => (0..12_u8, any::<u8>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, stream, payload)| {
                let mut header = Header { len: payload.len() as u32, kind: Kind::PING, flags, stream }.bytes();
                header[3] = kind;
                [&header[..], &payload].concat()
            }),
    ]
}

proptest! {
    #[test]
    fn a_split_never_changes_events_or_output_and_every_request_is_settled_once(
        frames in prop::collection::vec(any_frame(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        answers: bool,
    ) {
        let wire = [opening(), frames.concat()].concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let config = Config { streams: 3, window: 65_535, enlarges: true };
        let begin = || Play { answers, ..Play::answering(config, &[b'a'; 30_000]) };
        let (mut whole, mut parts) = (begin(), begin());
        whole.receive(&wire);
        cuts.windows(2).for_each(|cut| parts.receive(&wire[cut[0]..cut[1]]));
        prop_assert_eq!(&whole.out, &parts.out);
        prop_assert_eq!(&whole.events, &parts.events);
        let count =
            |is: fn(&Event<u8>) -> bool| whole.events.iter().filter(|event| is(event)).count();
        let requests = count(|event| matches!(event, Event::Request { .. }));
        let gone = count(|event| matches!(event, Event::Gone { .. }));
        let answered = if answers { requests } else { 0 };
        prop_assert_eq!(requests, answered + gone + whole.server.waiting());
        let mut numbers: Vec<u32> = whole.events.iter().filter_map(|event| match event {
            Event::Request { stream, .. } => Some(*stream),
            _ => None,
        }).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), requests, "told once");
    }
}
