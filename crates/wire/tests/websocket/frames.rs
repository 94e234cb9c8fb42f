//! Tables of frames: what is received, whole, byte by byte, and cut at each place.

use trueload_wire::websocket::{Error, Event, Kind, Limits, Receiver, Role, Scratch, mask, send};

use super::common::{SMALL, cut, receive};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The same frames as a client sends them; the lengths have to be of the short form.
fn masked(frames: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = frames;
    while let [first, second, after @ ..] = rest {
        out.extend_from_slice(&[*first, second | 0x80]);
        out.extend_from_slice(&KEY);
        let (payload, after) = after.split_at(usize::from(*second).min(after.len()));
        let at = out.len();
        out.extend_from_slice(payload);
        mask::apply(&mut out[at..], KEY, 0);
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// Each of `expected` is the beginning of what both ends receive, in every split.
fn check(sentence: &str, frames: &[u8], expected: &[&str]) {
    let to_server = masked(frames);
    for (role, bytes) in [(Role::Client, frames), (Role::Server, &to_server)] {
        check_role(sentence, bytes, role, expected);
    }
}

fn check_role(sentence: &str, bytes: &[u8], role: Role, expected: &[&str]) {
    let whole = receive([bytes], role, &SMALL);
    let as_expected = whole.lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    let lines = &whole.lines;
    assert!(
        lines.len() == expected.len() && as_expected,
        "{sentence}: told {expected:?}, heard {lines:?}"
    );
    let slow = receive(bytes.chunks(1), role, &SMALL);
    assert_eq!(slow.lines, whole.lines, "{sentence}: byte by byte");
    for at in 0..bytes.len() {
        let split = receive(cut(bytes, &[at]), role, &SMALL);
        assert_eq!(split.lines, whole.lines, "{sentence}: cut at {at}");
    }
}

#[test]
fn messages_are_received_whole_and_in_order() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 13] = [
        ("nothing", b"", &["done"]),
        ("a text", b"\x81\x05Hello", &["text \"Hello\"", "done"]),
        ("an empty text", b"\x81\0", &["text \"\"", "done"]),
        ("binary", b"\x82\x02\xff\x00", &["binary [ff, 00]", "done"]),
        ("three", b"\x81\x01a\x82\x01b\x81\x01c", &["text \"a\"", "binary [62]", "text \"c\"", "done"]),
        ("in two parts", b"\x01\x03Hel\x80\x02lo", &["text \"Hello\"", "done"]),
        ("in three parts", b"\x02\x01a\x00\x01b\x80\x01c", &["binary [61, 62, 63]", "done"]),
        ("in empty parts", b"\x01\0\x00\0\x80\0", &["text \"\"", "done"]),
        ("one behind parts", b"\x01\x01a\x80\0\x81\x01b", &["text \"a\"", "text \"b\"", "done"]),
        ("a character in parts", b"\x01\x01\xc3\x80\x01\xa9", &["text \"é\"", "done"]),
        ("cut in its head", b"\x81", &["truncated"]),
        ("cut in its payload", b"\x81\x05Hel", &["truncated"]),
        ("cut between its parts", b"\x01\x03Hel", &["truncated"]),
    ];
    for (sentence, frames, expected) in table {
        check(sentence, frames, expected);
    }
}

#[test]
fn control_frames_are_received_where_they_stand() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 8] = [
        ("a ping", b"\x89\x02hi", &["ping [68, 69]", "done"]),
        ("an empty ping", b"\x89\0", &["ping []", "done"]),
        ("a pong", b"\x8a\x01x", &["pong [78]", "done"]),
        ("between parts", b"\x01\x01a\x89\x01p\x80\x01b", &["ping [70]", "text \"ab\"", "done"]),
        ("two between parts", b"\x01\x01a\x89\0\x8a\0\x80\0", &["ping []", "pong []", "text \"a\"", "done"]),
        ("within a character", b"\x01\x01\xc3\x89\x01\xff\x80\x01\xa9", &["ping [ff]", "text \"é\"", "done"]),
        ("a close between parts", b"\x01\x01a\x88\0\x80\0", &["close None", "closed"]),
        ("a ping behind a close", b"\x88\0\x89\0", &["close None", "closed"]),
    ];
    for (sentence, frames, expected) in table {
        check(sentence, frames, expected);
    }
}

#[test]
fn a_close_says_why_in_codes_that_may_be_sent() {
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1011, 1012, 1014, 3000, 3999, 4000, 4999] {
        let mut frame = Vec::new();
        send::close(&mut frame, Some(code), "why", None);
        check("a code", &frame, &[&format!("close Some({code}) \"why\""), "closed"]);
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        let mut frame = Vec::new();
        send::close(&mut frame, Some(code), "", None);
        check("a wrong code", &frame, &["websocket: a close has a code that must not be sent"]);
    }
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 5] = [
        ("without a code", b"\x88\0", &["close None \"\"", "closed"]),
        ("half a code", b"\x88\x01\x03", &["websocket: a close has half a code"]),
        ("without a reason", b"\x88\x02\x03\xe8", &["close Some(1000) \"\"", "closed"]),
        ("a bad reason", b"\x88\x03\x03\xe8\xff", &["websocket payload: the reason of a close"]),
        ("half a character", b"\x88\x03\x03\xe8\xc3", &["websocket payload: the reason of a close"]),
    ];
    for (sentence, frames, expected) in table {
        check(sentence, frames, expected);
    }
}

#[test]
fn frames_that_must_not_be_are_refused() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 12] = [
        ("RSV1", b"\x81\0\xc1\0", &["text \"\"", "websocket: a reserved bit is set"]),
        ("RSV2 on a ping", b"\xa9\0", &["websocket: a reserved bit is set"]),
        ("RSV3 on a part", b"\x01\0\x90\0", &["websocket: a reserved bit is set"]),
        ("opcode 3", b"\x83\0", &["websocket: an unknown opcode"]),
        ("opcode 11 between parts", b"\x01\0\x8b\0", &["websocket: an unknown opcode"]),
        ("half a ping", b"\x09\0", &["websocket: a control frame is fragmented"]),
        ("a long ping", &[0x89, 126, 0, 126], &["websocket: a control frame has more than 125"]),
        ("a continuation of nothing", b"\x80\0", &["websocket: a continuation where no"]),
        ("a part of nothing", b"\x00\x01a", &["websocket: a continuation where no"]),
        ("a continuation of a whole", b"\x81\x01a\x80\0", &["text \"a\"", "websocket: a continuation"]),
        ("a text within a text", b"\x01\x01a\x81\x01b", &["websocket: a message begins within"]),
        ("a part of another", b"\x01\x01a\x02\x01b", &["websocket: a message begins within"]),
    ];
    for (sentence, frames, expected) in table {
        if sentence == "a long ping" {
            check_role(sentence, frames, Role::Client, expected);
        } else {
            check(sentence, frames, expected);
        }
    }
    let hello = b"\x81\x05Hello";
    check_role("masked", &masked(hello), Role::Client, &["websocket: a server's frame is masked"]);
    check_role("unmasked", hello, Role::Server, &["websocket: a client's frame is not masked"]);
}

#[test]
fn a_text_is_refused_at_the_byte_that_spoils_it() {
    #[rustfmt::skip]
    let table: [(&str, &[u8], &[&str]); 7] = [
        ("a lone byte", b"\x81\x01\xff", &["websocket payload: a text is not UTF-8"]),
        ("half a character", b"\x81\x01\xc3", &["websocket payload: a text is not UTF-8"]),
        ("half a character in parts", b"\x01\x01\xc3\x80\0", &["websocket payload: a text is not"]),
        ("a surrogate", b"\x81\x03\xed\xa0\x80", &["websocket payload: a text is not"]),
        ("in its first part", b"\x01\x01\xff\x80\0", &["websocket payload: a text is not"]),
        ("in its last part", b"\x01\x01a\x80\x01\xff", &["websocket payload: a text is not"]),
        ("not binary", b"\x82\x01\xff", &["binary [ff]", "done"]),
    ];
    for (sentence, frames, expected) in table {
        check(sentence, frames, expected);
    }
    // The message goes on, the frame too, and nothing else comes: reported without waiting for
    // either.
    for spoiled in [&b"\x01\x05a\xf4\x90"[..], b"\x81\x7e\x02\0\xce\xba\xed\xa0"] {
        let lines = receive([spoiled], Role::Client, &SMALL).lines;
        assert_eq!(lines, ["websocket payload: a text is not UTF-8"]);
    }
}

#[test]
fn a_message_beyond_the_cap_is_refused_before_memory_is_taken() {
    let long = |len: u64| [&[0x82, 127][..], &len.to_be_bytes()].concat();
    for (sentence, bytes) in [
        ("2^63", long(1 << 63)),
        ("2^63 - 1", long((1 << 63) - 1)),
        ("2^64 - 1", long(u64::MAX)),
        ("a byte too many", vec![0x82, 126, 3, 233]),
        ("parts", [&[0x02, 126, 3, 232][..], &[0; 1000], &[0x80, 1]].concat()),
    ] {
        let outcome = receive([&bytes[..]], Role::Client, &SMALL);
        assert_eq!(outcome.lines, ["limit: a message is too long"], "{sentence}");
        let slow = receive(bytes.chunks(1), Role::Client, &SMALL);
        assert_eq!(slow.lines, outcome.lines, "{sentence}");
        assert!(slow.held_bytes_max < 4096, "{sentence}: {} bytes held", slow.held_bytes_max);
    }
    let just = [&[0x02, 126, 3, 231][..], &[0; 999], &[0x80, 1, 0]].concat();
    assert_eq!(
        receive([&just[..]], Role::Client, &SMALL).lines.len(),
        2,
        "the cap itself is allowed"
    );
}

#[test]
fn an_announced_length_takes_no_memory() {
    let limits = Limits::default();
    let mut receiver = Receiver::new(Role::Client);
    let announced = [0x82, 127, 0, 0, 0, 0, 1, 0, 0, 0, 7];
    let fed = receiver.feed(&announced, &limits, &mut Scratch::default(), &mut |_| {});
    assert_eq!(fed, Ok(()));
    assert!(receiver.buffered_bytes() < 8192, "16 MiB announced, one byte come");
    let fed = receiver.feed(&[0; 10_000], &limits, &mut Scratch::default(), &mut |_| {});
    assert_eq!(fed, Ok(()));
    assert!((10_001..30_000).contains(&receiver.buffered_bytes()), "what has come is held");
}

#[test]
fn a_message_in_one_read_is_not_copied() {
    let mut wire = b"\x89\0".to_vec();
    send::message(&mut wire, Kind::Text, &[b'x'; 300], None);
    let range = wire.as_ptr_range();
    let mut received = 0;
    let mut receiver = Receiver::new(Role::Client);
    let fed = receiver.feed(&wire, &SMALL, &mut Scratch::default(), &mut |event| {
        if let Event::Message { payload, .. } = event {
            assert!(range.contains(&payload.as_ptr()), "a slice of what was fed");
            received += payload.len();
        }
    });
    assert_eq!((fed, received), (Ok(()), 300));
}

#[test]
fn a_connection_without_a_partial_message_is_small() {
    assert!(size_of::<Receiver>() <= 16);
}

#[test]
fn each_error_has_its_close_code() {
    for (error, code) in
        [(Error::Protocol(""), 1002), (Error::Payload(""), 1007), (Error::Limit(""), 1009)]
    {
        assert_eq!(error.close_code(), code);
    }
}
