//! Frames: each type, each mistake, and the same in any split.

use proptest::prelude::*;

use super::*;
use crate::http2::frame;
use crate::http2::settings;
use crate::http2::violation::Scope;

/// What was received, with the parts of each DATA frame put together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Received {
    Frame(String),
    Data { stream: u32, len: u32, bytes: Vec<u8>, end_stream: bool },
    Refused(Violation),
}

fn receive(reader: &mut Reader, input: &[u8], received: &mut Vec<Received>) -> bool {
    let mut rest = input;
    loop {
        match reader.next(&mut rest) {
            Ok(None) => {
                assert!(rest.is_empty(), "everything is taken");
                return true;
            }
            Ok(Some(Piece::Frame(frame))) => received.push(Received::Frame(format!("{frame:?}"))),
            Ok(Some(Piece::Data(Data { stream, begins, bytes, end_stream, .. }))) => {
                if let Some(len) = begins {
                    received.push(Received::Data {
                        stream,
                        len,
                        bytes: Vec::new(),
                        end_stream: false,
                    });
                }
                let Some(Received::Data { stream: of, bytes: all, end_stream: ended, .. }) =
                    received.last_mut()
                else {
                    panic!("a part without a beginning");
                };
                assert_eq!((*of, *ended), (stream, false));
                all.extend_from_slice(bytes);
                *ended = end_stream;
            }
            Err(violation) => {
                received.push(Received::Refused(violation));
                if violation.scope == Scope::Connection {
                    return false;
                }
            }
        }
    }
}

fn receive_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Received> {
    let (mut reader, mut received) = (Reader::default(), Vec::new());
    let mut parts = parts.into_iter();
    let _ = parts.all(|part| receive(&mut reader, part, &mut received));
    received
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Header { len: payload.len() as u32, kind, flags, stream }.bytes().to_vec();
    out.extend_from_slice(payload);
    out
}

/// A frame of each type, some padded, one with a mistake that ends a stream.
fn frames() -> Vec<u8> {
    let mut out = Vec::new();
    settings::write(&mut out, &[(4, 100), (1, 0)]);
    frame::write_settings_ack(&mut out);
    out.extend(frame(Kind::HEADERS, flags::PADDED | flags::PRIORITY, 1, b"\x02\0\0\0\x03\x10abPP"));
    out.extend(frame(Kind::CONTINUATION, flags::END_HEADERS, 1, b"cd"));
    out.extend(frame(Kind::DATA, flags::PADDED, 1, b"\x03bodyPPP"));
    out.extend(frame(Kind::DATA, 0, 1, b""));
    out.extend(frame(Kind::DATA, flags::PADDED | flags::END_STREAM, 1, b"\x01P"));
    frame::write_data(&mut out, 3, b"more", true);
    frame::write_window_update(&mut out, 0, 7);
    out.extend(frame(Kind::WINDOW_UPDATE, 0, 3, &[0; 4]));
    out.extend(frame(Kind(77), 0xff, 0, b"what"));
    frame::write_ping(&mut out, *b"12345678", true);
    frame::write_reset(&mut out, 5, ErrorCode::Cancel);
    out.extend(frame(Kind::PRIORITY, 0, 5, b"\x80\0\0\x05\0"));
    out.extend(frame(Kind::PUSH_PROMISE, flags::PADDED, 5, b"\x01\0\0\0\x02xyP"));
    frame::write_goaway(&mut out, 9, ErrorCode::NoError, "bye");
    out
}

#[test]
fn every_type_is_read_without_its_padding() {
    let received = receive_parts([&frames()[..]]);
    let found: Vec<String> = received.iter().map(|received| format!("{received:?}")).collect();
    let expected = [
        "Settings([0, 4, 0, 0, 0, 100, 0, 1, 0, 0, 0, 0])",
        "SettingsAck",
        "Headers { stream: 1, end_stream: false, end_block: false, depends_on: Some(3), part: [97, 98] }",
        "Continuation { stream: 1, end_block: true, part: [99, 100] }",
        "Data { stream: 1, len: 8, bytes: [98, 111, 100, 121], end_stream: false }",
        "Data { stream: 1, len: 0, bytes: [], end_stream: false }",
        "Data { stream: 1, len: 2, bytes: [], end_stream: true }",
        "Data { stream: 3, len: 4, bytes: [109, 111, 114, 101], end_stream: true }",
        "WindowUpdate { stream: 0, by: 7 }",
        "Refused(Violation { scope: Stream(3), code: ProtocolError, why: \"WINDOW_UPDATE of 0\" })",
        "Unknown",
        "Ping { ack: true, payload: [49, 50, 51, 52, 53, 54, 55, 56] }",
        "Reset { stream: 5, code: Cancel }",
        "Priority { stream: 5, depends_on: 5 }",
        "Push { stream: 5, promised: 2, end_block: false, part: [120, 121] }",
        "GoAway { last: 9, code: NoError }",
    ];
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}: {expected}");
    }
}

#[test]
fn a_split_never_changes_what_is_received() {
    let wire = frames();
    let whole = receive_parts([&wire[..]]);
    for cut in 0..=wire.len() {
        assert_eq!(receive_parts([&wire[..cut], &wire[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(receive_parts(wire.chunks(1)), whole, "byte by byte");
}

#[test]
fn a_frame_that_cannot_be_is_refused_with_the_code_of_the_rfc() {
    use ErrorCode::{FrameSizeError, ProtocolError};
    let padded = flags::PADDED;
    let cases: [(&str, Vec<u8>, ErrorCode); 21] = [
        ("a long frame", frame(Kind(99), 0, 0, &[0; 16_385]), FrameSizeError),
        ("a short PING", frame(Kind::PING, 0, 0, &[0; 7]), FrameSizeError),
        ("a long PING", frame(Kind::PING, 0, 0, &[0; 9]), FrameSizeError),
        ("PING of a stream", frame(Kind::PING, 0, 1, &[0; 8]), ProtocolError),
        ("a short RST_STREAM", frame(Kind::RST_STREAM, 0, 1, &[0; 3]), FrameSizeError),
        ("RST_STREAM of none", frame(Kind::RST_STREAM, 0, 0, &[0; 4]), ProtocolError),
        ("half a parameter", frame(Kind::SETTINGS, 0, 0, &[0; 5]), FrameSizeError),
        ("an ACK with more", frame(Kind::SETTINGS, flags::ACK, 0, &[0; 6]), FrameSizeError),
        ("SETTINGS of a stream", frame(Kind::SETTINGS, 0, 1, b""), ProtocolError),
        ("a short GOAWAY", frame(Kind::GOAWAY, 0, 0, &[0; 7]), FrameSizeError),
        ("GOAWAY of a stream", frame(Kind::GOAWAY, 0, 1, &[0; 8]), ProtocolError),
        ("a short WINDOW_UPDATE", frame(Kind::WINDOW_UPDATE, 0, 1, &[1; 3]), FrameSizeError),
        ("no window at all", frame(Kind::WINDOW_UPDATE, 0, 0, &[0; 4]), ProtocolError),
        ("HEADERS of none", frame(Kind::HEADERS, 0, 0, b"\x82"), ProtocolError),
        ("CONTINUATION of none", frame(Kind::CONTINUATION, 0, 0, b"\x82"), ProtocolError),
        ("DATA of none", frame(Kind::DATA, 0, 0, b"a"), ProtocolError),
        ("PRIORITY of none", frame(Kind::PRIORITY, 0, 0, &[0; 5]), ProtocolError),
        ("padded DATA without a byte", frame(Kind::DATA, padded, 1, b""), FrameSizeError),
        ("padding as long as DATA", frame(Kind::DATA, padded, 1, b"\x03ab"), ProtocolError),
        ("padding as long as HEADERS", frame(Kind::HEADERS, padded, 1, b"\x02a"), ProtocolError),
        (
            "no room for a priority",
            frame(Kind::HEADERS, flags::PRIORITY, 1, b"1234"),
            FrameSizeError,
        ),
    ];
    for (sentence, wire, code) in cases {
        let whole = receive_parts([&wire[..]]);
        let [Received::Refused(violation)] = &whole[..] else { panic!("{sentence}: {whole:?}") };
        assert_eq!((violation.scope, violation.code), (Scope::Connection, code), "{sentence}");
        assert_eq!(receive_parts(wire.chunks(1)), whole, "{sentence}, byte by byte");
    }
    let short = frame(Kind::PRIORITY, 0, 3, &[0; 4]);
    let received = receive_parts([&short[..], &frame(Kind::SETTINGS, 0, 0, b"")]);
    let [Received::Refused(violation), Received::Frame(_)] = &received[..] else {
        panic!("{received:?}")
    };
    assert_eq!((violation.scope, violation.code), (Scope::Stream(3), FrameSizeError));
}

#[test]
fn only_what_is_cut_is_copied_and_only_as_long_as_it_is_cut() {
    let mut reader = Reader::default();
    let data = frame(Kind::DATA, 0, 1, &[b'a'; 16_000]);
    let headers = frame(Kind::HEADERS, 0, 1, &[b'a'; 16_000]);
    let mut received = Vec::new();
    for cut in [0, 1, 100, 15_000] {
        assert!(receive(&mut reader, &data[..cut], &mut received));
        assert!(receive(&mut reader, &data[cut..], &mut received));
        assert!(!reader.is_within_frame());
    }
    assert!(receive(&mut reader, &headers, &mut received));
    assert!(reader.heap_bytes() < 100, "{} bytes", reader.heap_bytes());
    assert!(receive(&mut reader, &headers[..9], &mut received));
    assert!(reader.is_within_frame());
    assert!(receive(&mut reader, &headers[9..], &mut received));
    assert!(!reader.is_within_frame());
    assert_eq!(received.len(), 6);
}

#[test]
fn a_longer_payload_is_taken_once_the_peer_was_told_so() {
    let long = frame(Kind::DATA, 0, 1, &[0; 20_000]);
    let (mut reader, mut received) = (Reader::default(), Vec::new());
    reader.frame_bytes = 20_000;
    assert!(receive(&mut reader, &long, &mut received));
    reader.frame_bytes = 19_999;
    assert!(!receive(&mut reader, &long, &mut received));
}

proptest! {
    #[test]
    fn any_input_is_read_the_same_in_any_split(
        noise in prop::collection::vec((0..12_u8, any::<u8>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..20)), 0..12),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut wire = Vec::new();
        for (kind, flags, stream, payload) in noise {
            wire.extend(frame(Kind(kind), flags, stream, &payload));
        }
        for (at, byte) in changes {
            if !wire.is_empty() {
                let at = at.index(wire.len());
                wire[at] = byte;
            }
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|cut| &wire[cut[0]..cut[1]]);
        prop_assert_eq!(receive_parts(parts), receive_parts([&wire[..]]));
    }
}
