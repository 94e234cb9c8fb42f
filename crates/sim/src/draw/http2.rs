//! Draws HTTP/2 requests and peers from a seed.

use crate::chance::Chance;
use crate::scenario::{
    Bytes, Choice, End, Http2Manner, Http2Plan, Http2Trick, HttpPlan, Leave, MS, Manner, Protocol,
    Start, Style, US, Version,
};

/// Draws the requests and the generator's windows.
pub(super) fn plan(chance: &mut Chance, start: &mut Chance) -> Http2Plan {
    let http = HttpPlan {
        method: chance.pick(&["GET", "GET", "GET", "HEAD", "POST", "POST"]),
        several: chance.one_in(3),
        expect_body: chance.one_in(2),
    };
    Http2Plan {
        http,
        body_bytes: match chance.below(9) {
            0..=2 => 0,
            3 => chance.scaled(1, 40_000) as usize,
            _ => chance.scaled(1, 3_000) as usize,
        },
        window: chance.pick(&[65_535, 65_535, 1 << 20, (1 << 31) - 1, 300, 5]),
        connection_window: chance.pick(&[65_535, 65_535, 1 << 20, (1 << 31) - 1]),
        start: match start.below(8) {
            0 => Start::Negotiated(start.pick(&[1, 1, 2, 100])),
            _ => Start::Direct,
        },
    }
}

/// Draws how a peer begins its connections, unless they begin with HTTP/2. `common` is its
/// behaviour over HTTP/1.1.
pub(super) fn begin(
    chance: &mut Chance,
    mut manner: Manner,
    common: Manner,
    right: bool,
    protocol: &Protocol,
) -> Manner {
    let Protocol::Http2(Http2Plan { start: Start::Negotiated(_), .. }) = protocol else {
        return manner;
    };
    let choice = chance.pick(&[Choice::Http2, Choice::Http2, Choice::Http1, Choice::Nothing]);
    let other = !right && chance.one_in(8);
    let reply = other.then(|| (Bytes(chance.pick(&[b"", HTTP1, SETTINGS, JUNK])), end(chance)));
    if choice.version() == Version::Http1 {
        let http2 = Http2Manner { choice, reply, ..Http2Manner::default() };
        return Manner { http2, ..common };
    }
    let http2 = &mut manner.http2;
    http2.choice = if !right && chance.one_in(8) { Choice::Neither } else { choice };
    http2.reply = reply;
    manner
}

/// SETTINGS without parameters.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// Adds to a peer its behaviour over HTTP/2, if that is the protocol.
pub(super) fn add(
    chance: &mut Chance,
    common: Manner,
    right: bool,
    protocol: &Protocol,
    depth: usize,
) -> Manner {
    let Protocol::Http2(plan) = protocol else { return common };
    let style = match chance.below(6) {
        // A small window would have to be enlarged too often for a large body.
        0 if !plan.http.expect_body && plan.window >= 300 => {
            Style::Large(chance.scaled(10, u64::from(plan.window).min(4_000)) as usize)
        }
        _ => Style::Length,
    };
    let mut http2 = right_manner(chance, plan, depth);
    if !right {
        for _ in 0..chance.between(0, 2) {
            http2.tricks.push((chance.scaled(1, 12) as u32 - 1, trick(chance)));
        }
        http2.greeting = chance.one_in(8).then(|| {
            let bytes = chance.pick(&[b"", HTTP1, b"SSH-2.0-x\r\n", b"\0\0\0\x04\x01", JUNK]);
            (Bytes(bytes), end(chance))
        });
        if chance.one_in(12) {
            http2.opens_windows_ns = None;
        }
        if chance.one_in(12) {
            http2.changes.push((chance.scaled(US, 20 * MS), vec![(3, 0)]));
        }
        if chance.one_in(12) {
            http2.leaves = Some(Leave {
                after: chance.scaled(1, 20) as u32,
                warns_ns: None,
                ends_ns: Some(0),
            });
        }
    }
    Manner { style, http2, tricks: Vec::new(), greeting: None, ..common }
}

/// Draws a peer that answers everything rightly, sooner or later.
fn right_manner(chance: &mut Chance, plan: &Http2Plan, depth: usize) -> Http2Manner {
    let mut settings = Vec::new();
    let least = plan.body_bytes as u64 / 8 + 1;
    let window = |chance: &mut Chance| chance.scaled(least, least * 32) as u32;
    let streams = |chance: &mut Chance| chance.pick(&[0, 1, 2, 3, 100]);
    if chance.one_in(2) {
        settings.push((3, streams(chance)));
    }
    if chance.one_in(2) {
        settings.push((4, window(chance)));
    }
    if chance.one_in(4) {
        settings.push((1, chance.pick(&[0, 100, 65_536])));
    }
    if chance.one_in(4) {
        settings.push((5, chance.pick(&[16_384, 100_000, (1 << 24) - 1])));
    }
    if chance.one_in(4) {
        settings.push((77, 1));
    }
    let mut changes = Vec::new();
    let mut at_ns = 0;
    while chance.one_in(3) {
        at_ns += chance.scaled(US, 5 * MS);
        let change = match chance.below(4) {
            0 => vec![(3, streams(chance))],
            // An initial window of 0 can make the windows of open streams negative.
            1 => vec![(4, 0)],
            2 => vec![(4, window(chance)), (3, streams(chance))],
            _ => vec![(1, chance.pick(&[0, 1000])), (6, 1000)],
        };
        changes.push((at_ns, change));
    }
    // The last SETTINGS permit at least one stream and some window.
    at_ns += chance.scaled(US, 5 * MS);
    let last = vec![(3, chance.between(1, 50) as u32), (4, window(chance))];
    let (mut leaves, mut tricks) = (None, Vec::new());
    match chance.below(6) {
        0 => leaves = Some(leave(chance, depth)),
        1 => tricks.push((depth as u32 + chance.below(9) as u32, Http2Trick::Refuse)),
        _ => {}
    }
    let changed = settings.iter().chain(changes.iter().flat_map(|(_, change)| change));
    if changed.clone().any(|(number, value)| (3..=4).contains(number) && *value == 0) {
        changes.push((at_ns, last));
    }
    Http2Manner {
        settings_ns: chance.pick(&[0, 0, 100 * US, 5 * MS]),
        settings,
        changes,
        opens_windows_ns: Some(chance.pick(&[0, 0, 100 * US])),
        varied: chance.one_in(2),
        leaves,
        tricks,
        ..Http2Manner::default()
    }
}

fn leave(chance: &mut Chance, depth: usize) -> Leave {
    let warns_ns = chance.pick(&[None, Some(500 * US), Some(u64::MAX)]);
    Leave {
        after: (depth as u64 + chance.below(30)) as u32,
        warns_ns,
        ends_ns: chance.pick(&[Some(0), Some(200 * US), None]),
    }
}

fn end(chance: &mut Chance) -> End {
    chance.pick(&[End::Fin, End::Fin, End::Reset, End::Silence])
}

const HTTP1: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
const JUNK: &[u8] = b"\x17\x99 whatever this is, it is none of the protocol's \xff\xff\xff\xff";

/// Frames that break the connection or mean nothing.
const RAW: [&[u8]; 20] = [
    HTTP1,
    JUNK,
    // Bad SETTINGS: ENABLE_PUSH = 1, MAX_FRAME_SIZE = 1, INITIAL_WINDOW_SIZE = 2^31, a length of
    // five bytes, on a stream.
    b"\0\0\x06\x04\0\0\0\0\0\0\x02\0\0\0\x01",
    b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\0\x01",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\x80\0\0\0",
    b"\0\0\x05\x04\0\0\0\0\0\0\x04\x80\0\0",
    b"\0\0\0\x04\0\0\0\0\x01",
    // A PING of seven bytes, and a PING on a stream.
    b"\0\0\x07\x06\0\0\0\0\x001234567",
    b"\0\0\x08\x06\0\0\0\0\x0112345678",
    // WINDOW_UPDATE by 0 for the connection, by too much for it, and for an idle stream.
    b"\0\0\x04\x08\0\0\0\0\0\0\0\0\0",
    b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff",
    b"\0\0\x04\x08\0\0\x7f\xff\xff\0\0\0\x05",
    // RST_STREAM on stream 0, and on an idle stream.
    b"\0\0\x04\x03\0\0\0\0\0\0\0\0\0",
    b"\0\0\x04\x03\0\0\x7f\xff\xff\0\0\0\0",
    // A GOAWAY that is too short, a CONTINUATION without a header block, a frame of 16,385 bytes,
    // and HEADERS and DATA on stream 0.
    b"\0\0\x04\x07\0\0\0\0\0\0\0\0\0",
    b"\0\0\x01\x09\x04\0\0\0\x01\x88",
    b"\0\x40\x01\0\0\0\0\0\x01",
    b"\0\0\x01\x01\x05\0\0\0\0\x88",
    b"\0\0\x01\0\x01\0\0\0\0x",
    // A frame type that RFC 9113 does not define.
    b"\0\0\x02\x63\xff\0\0\0\x05ab",
];

/// Header blocks that cannot be decoded. In order: index 0, an index beyond the tables, a table
/// that is too large, and a table size that is not at the beginning. Then an endless integer, bad
/// padding of a Huffman string, EOS in a Huffman string, and a truncated string.
const BLOCKS: [&[u8]; 8] = [
    b"\x80",
    b"\x88\xff\x80\x01",
    b"\x3f\xff\xff\x03\x88",
    b"\x88\x20",
    b"\x88\xff\xff\xff\xff\xff\xff\xff\x0f",
    b"\x88\x00\x81\x00\x01y",
    b"\x88\x00\x84\xff\xff\xff\xff\x01y",
    b"\x88\x00\x05x",
];

const FIELDS: [&[(&str, &str)]; 10] = [
    &[("x", "y")],
    &[(":status", "200"), (":status", "200")],
    &[("x", "y"), (":status", "200")],
    &[(":status", "20")],
    &[(":status", "101")],
    &[(":status", "200"), ("X", "y")],
    &[(":status", "200"), ("connection", "close")],
    &[(":status", "200"), ("transfer-encoding", "chunked")],
    &[(":status", "200"), ("content-length", "5"), ("content-length", "6")],
    &[(":status", "200"), ("x", "a\nb")],
];

/// Faulty frame sequences on a stream: the type, flags and payload of each frame.
const FRAMES: [&[(u8, u8, Bytes)]; 9] = [
    // DATA before HEADERS.
    &[(0, 1, Bytes(b"hello"))],
    // Trailers that do not end the stream, and trailers with a status.
    &[(1, 4, Bytes(b"\x88")), (1, 4, Bytes(b"\0\x01x\x01y"))],
    &[(1, 4, Bytes(b"\x88")), (1, 5, Bytes(b"\x88"))],
    // A header block that is interrupted.
    &[(1, 0, Bytes(b"\x88")), (0, 1, Bytes(b"hello"))],
    &[(1, 0, Bytes(b"\x88")), (6, 0, Bytes(b"12345678"))],
    // Padding that is longer than the frame.
    &[(1, 4, Bytes(b"\x88")), (0, 9, Bytes(b"\x09hello"))],
    &[(1, 13, Bytes(b"\x05\x88"))],
    // PUSH_PROMISE.
    &[(5, 4, Bytes(b"\0\0\0\x02\x82\x87\x84"))],
    // An interim answer that ends the stream.
    &[(1, 5, Bytes(b"\x08\x03103"))],
];

fn trick(chance: &mut Chance) -> Http2Trick {
    use Http2Trick as T;
    let percent = |chance: &mut Chance| chance.between(0, 100);
    match chance.below(26) {
        0 | 1 => T::Reset(chance.below(16) as u32, percent(chance)),
        2 | 3 => T::Refuse,
        4 | 5 => {
            let ended = chance.one_in(2).then(|| end(chance));
            T::GoAway(chance.below(7) as i32 - 4, chance.below(14) as u32, ended)
        }
        6 => T::GoAways(chance.below(7) as i32 - 4, chance.below(7) as i32 - 4),
        7 | 8 => T::Truncate(chance.between(0, 99), end(chance)),
        9 | 10 => T::EndBehind(end(chance)),
        11 => T::Length(chance.pick(&[-1, 1, 1000])),
        12 | 13 => T::Stall(percent(chance)),
        14 => T::Twice,
        15 => T::Block(Bytes(chance.pick(&BLOCKS))),
        16 => T::Fields(chance.pick(&FIELDS)),
        17 => T::Frames(chance.pick(&FRAMES)),
        18 => T::Instead(Bytes(chance.pick(&RAW))),
        19 => T::Before(Bytes(chance.pick(&RAW))),
        20 => T::Elsewhere(chance.pick(&[-4, -2, -1, 1, 2, 40])),
        21 => T::BeyondWindow,
        22 => T::Dribble(chance.scaled(US, MS)),
        23 => T::Late(chance.scaled(10 * US, 500 * MS)),
        24 => T::ReadsNothing,
        _ if chance.one_in(3) => flood(chance),
        _ => T::Stall(50),
    }
}

fn flood(chance: &mut Chance) -> Http2Trick {
    let (kind, flags, on, bytes): (u8, u8, Option<u32>, &'static [u8]) = chance.pick(&[
        (6, 0, Some(0), b"12345678"),
        (4, 0, Some(0), b""),
        (4, 1, Some(0), b""),
        (3, 0, None, b"\0\0\0\x08"),
        (0, 0, None, b""),
        (9, 0, None, b""),
        (2, 0, Some(3), b"\0\0\0\0\x10"),
        (8, 0, Some(0), b"\0\0\0\x01"),
        (7, 0, Some(0), b"\x7f\xff\xff\xff\0\0\0\0"),
        (99, 0, Some(0), b"x"),
        (1, 4, None, b"\x08\x03103"),
    ]);
    match chance.one_in(3) {
        true => Http2Trick::FloodUnread(kind, flags, on, Bytes(bytes)),
        false => Http2Trick::Flood(kind, flags, on, Bytes(bytes)),
    }
}
