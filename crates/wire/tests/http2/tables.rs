//! What a peer may send for three requests, on streams 1, 3 and 5 with the tags 0, 1 and 2, and how
//! they end.

use trueload_wire::exchange::{Disposition, Ending};
use trueload_wire::http2::frame::{ErrorCode, Kind, flags};

use super::peer::{OK, Peer, block};
use Disposition::{Broken, Draining, Open, Unsolicited};
use Ending::{
    Framing, H2Flow, H2FrameSize, H2Goaway, H2Protocol, H2Stream, Limit, Ok as Good, StaleGoaway,
    StaleRefused, Status,
};

/// A sentence, what the peer sends, how requests end, and what may be done then.
pub(crate) type Row = (&'static str, Peer, Vec<(usize, Ending)>, Disposition);

pub(crate) fn peer() -> Peer {
    Peer::default()
}

/// These end, and the connection goes on.
fn open(sentence: &'static str, peer: Peer, endings: &[(usize, Ending)]) -> Row {
    (sentence, peer, endings.to_vec(), Open)
}

/// These are answered well, and the connection goes on.
fn good(sentence: &'static str, peer: Peer, tags: &[usize]) -> Row {
    let endings: Vec<_> = tags.iter().map(|tag| (*tag, Good)).collect();
    (sentence, peer, endings, Open)
}

/// The first fails, and the connection goes on.
fn fails(sentence: &'static str, peer: Peer, ending: Ending) -> Row {
    (sentence, peer.answer(3), vec![(0, ending), (1, Good)], Open)
}

/// All end with their connection.
fn broken(sentence: &'static str, peer: Peer, ending: Ending) -> Row {
    (sentence, peer, all(ending), Broken)
}

/// The endings of all requests with their connection, the oldest last.
fn all(ending: Ending) -> Vec<(usize, Ending)> {
    (0..3).rev().map(|tag| (tag, ending)).collect()
}

fn draining(sentence: &'static str, peer: Peer, endings: &[(usize, Ending)]) -> Row {
    (sentence, peer, endings.to_vec(), Draining)
}

/// Bytes behind an answer: the request that was settled last is charged.
fn unsolicited(sentence: &'static str, peer: Peer, endings: &[(usize, Ending)]) -> Row {
    (sentence, peer, endings.to_vec(), Unsolicited)
}

/// Bytes in place of an answer: all end, and the one that ended last is charged.
fn instead(sentence: &'static str, peer: Peer) -> Row {
    (sentence, peer, all(H2Protocol), Unsolicited)
}

const HALF: &[(&str, &str)] = &[(":status", "200"), ("x", "y")];
const TRAILERS: &[(&str, &str)] = &[("x", "y")];
const EARLY_HINTS: &[(&str, &str)] = &[(":status", "103")];
const EMPTY: &[(&str, &str)] = &[(":status", "204")];

/// 200 with this length.
fn length(length: &str) -> [(&str, &str); 2] {
    [(":status", "200"), ("content-length", length)]
}

/// 200 and one more field.
fn with<'a>(name: &'a str, value: &'a str) -> [(&'a str, &'a str); 2] {
    [(":status", "200"), (name, value)]
}

fn good_answers() -> Vec<Row> {
    let ok = || peer().headers(1, OK, false);
    let priority = [&[0, 0, 0, 0, 9], &block(OK)[..]].concat();
    let all_flags = flags::END_HEADERS | flags::END_STREAM | flags::PRIORITY;
    let other = peer().frame(Kind(77), 255, 9, b"whatever");
    let interleaved = ok().headers(3, OK, false).data(1, b"a", false).data(3, b"b", false);
    let hints = |peer: Peer| peer.headers(1, EARLY_HINTS, false);
    vec![
        good("answers end in any order", peer().answer(5).answer(1).answer(3), &[2, 0, 1]),
        good("a body ends it", ok().data(1, b"ab", true), &[0]),
        good("bodies take turns", interleaved.data(1, b"", true).data(3, b"", true), &[0, 1]),
        open("without an end there is none", ok().data(1, b"a", false), &[]),
        open("another status", peer().headers(1, &[(":status", "500")], true), &[(0, Status)]),
        good("trailers end it", ok().data(1, b"a", false).headers(1, TRAILERS, true), &[0]),
        good("interim answers come before", hints(hints(peer())).answer(1), &[0]),
        good("a hundred interim answers", peer().times(100, hints).answer(1), &[0]),
        fails("one more", peer().times(101, hints), Limit),
        good("as announced", peer().headers(1, &length("2"), false).data(1, b"ab", true), &[0]),
        good("no content", peer().headers(1, &[EMPTY[0], ("content-length", "5")], true), &[0]),
        good("a block in pieces", peer().in_pieces(1, HALF, true, 1), &[0]),
        good("padded HEADERS", peer().padded(Kind::HEADERS, 1, &block(OK), 255), &[0]),
        good("a priority", peer().frame(Kind::HEADERS, all_flags, 1, &priority), &[0]),
        good("padded DATA", ok().padded(Kind::DATA, 1, b"ab", 9), &[0]),
        good("all of it padding", ok().padded(Kind::DATA, 1, b"", 9), &[0]),
        good("another type", other.frame(Kind::PRIORITY, 0, 7, &[0; 5]).answer(1), &[0]),
    ]
}

fn malformed_answers() -> Vec<Row> {
    let ok = || peer().headers(1, OK, false);
    let head = |fields: &[(&str, &str)]| peer().headers(1, fields, false);
    let endless = ok().data(1, b"a", false).headers(1, TRAILERS, false);
    let windows = |peer: Peer| peer.window(1, 1 << 30).window(1, 1 << 30);
    vec![
        fails("trailers without an end", endless, H2Stream),
        fails("trailers with a status", ok().headers(1, OK, true), H2Stream),
        fails("an interim answer at the end", peer().headers(1, EARLY_HINTS, true), H2Stream),
        fails("no status", head(TRAILERS), H2Stream),
        fails("a status twice", head(&[OK[0], OK[0]]), H2Stream),
        fails("an upper-case name", head(&with("X", "y")), H2Stream),
        fails("a field about the connection", head(&with("connection", "close")), H2Stream),
        fails("too short", head(&length("3")).data(1, b"ab", true), Framing),
        fails("too long", head(&length("1")).data(1, b"ab", false), Framing),
        fails("too long, at its end", head(&length("1")).data(1, b"ab", true), Framing),
        fails("a length and nothing", peer().headers(1, &length("1"), true), Framing),
        fails("no content, and some", head(EMPTY).data(1, b"a", true), Framing),
        fails("DATA before HEADERS", peer().data(1, b"a", false), H2Stream),
        fails("a reset", peer().reset(1, ErrorCode::InternalError), H2Stream),
        fails(
            "a reset in mid-body",
            ok().data(1, b"a", false).reset(1, ErrorCode::NoError),
            H2Stream,
        ),
        fails("a reset without an answer", peer().reset(1, ErrorCode::NoError), H2Stream),
        fails("refused too late", ok().reset(1, ErrorCode::RefusedStream), H2Stream),
        fails("no window for a stream", peer().window(1, 0), H2Stream),
        fails("a window beyond 31 bits", peer().window(1, (1 << 31) - 1), H2Flow),
        fails("windows that add up to that", windows(peer()), H2Flow),
        fails("the same in mid-answer", windows(ok().data(1, b"a", false)), H2Flow),
        fails("a short PRIORITY", peer().frame(Kind::PRIORITY, 0, 1, &[0; 4]), H2Stream),
    ]
}

fn streams_that_end_otherwise() -> Vec<Row> {
    let goaway = |last| peer().goaway(last, ErrorCode::NoError);
    let stale = [(1, StaleGoaway), (2, StaleGoaway)];
    let calm = peer().goaway(0, ErrorCode::EnhanceYourCalm);
    let rising = vec![(2, StaleGoaway), (1, H2Protocol), (0, H2Protocol)];
    let begun = peer().headers(5, OK, false).goaway(1, ErrorCode::NoError);
    vec![
        good("a reset behind an answer", peer().answer(1).reset(1, ErrorCode::NoError), &[0]),
        good("a window behind an answer", peer().answer(1).window(1, 5), &[0]),
        open("refused", peer().reset(3, ErrorCode::RefusedStream), &[(1, StaleRefused)]),
        draining("GOAWAY above all", goaway(5).answer(1), &[(0, Good)]),
        draining("GOAWAY", goaway(1).answer(1), &[stale[0], stale[1], (0, Good)]),
        draining("to an even number", goaway(2).answer(1), &[stale[0], stale[1], (0, Good)]),
        draining(
            "GOAWAY twice, as from a server that shuts down",
            goaway((1 << 31) - 1).answer(1).goaway(3, ErrorCode::NoError),
            &[(0, Good), (2, StaleGoaway)],
        ),
        draining("GOAWAY behind a part of an answer", begun, &[stale[0], (2, H2Goaway)]),
        good("a window that is too large, of an answer", peer().answer(1).window(1, 1 << 30), &[0]),
        ("a GOAWAY that rises", goaway(3).goaway(5, ErrorCode::NoError), rising, Broken),
        draining("too much", calm, &[(0, StaleGoaway), stale[0], stale[1]]),
    ]
}

fn blocks_that_break_all() -> Vec<Row> {
    let begun = || peer().frame(Kind::HEADERS, 0, 1, &[0x88]);
    let block = |bytes: &[u8]| peer().frame(Kind::HEADERS, 5, 1, bytes);
    let more = |peer: Peer| peer.frame(Kind::CONTINUATION, 0, 1, &[]);
    let megabyte = "\u{1}".repeat(1 << 20);
    let bomb = [&[0x88, 0x40, 1, b'x', 0x7f, 0xd1, 0x0e], &[b'y'; 2000][..], &[0xbe; 600]].concat();
    vec![
        broken("a block that does not decode", block(&[0x80]), H2Protocol),
        broken("an index beyond the tables", block(&[0xff, 0x7f]), H2Protocol),
        broken("a table beyond what we said", block(&[0x3f, 0xe2, 0x1f, 0x88]), H2Protocol),
        broken("a size in the middle", block(&[0x88, 0x20]), H2Protocol),
        broken("a block that a PING interrupts", begun().ping(false), H2Protocol),
        broken("a block that DATA interrupts", begun().data(1, b"", true), H2Protocol),
        broken("a block that another interrupts", begun().answer(3), H2Protocol),
        broken(
            "a block that an unknown frame interrupts",
            begun().frame(Kind(77), 0, 1, &[]),
            H2Protocol,
        ),
        broken(
            "a block that goes on elsewhere",
            begun().frame(Kind::CONTINUATION, 4, 3, &[]),
            H2Protocol,
        ),
        broken("CONTINUATION of nothing", more(peer()), H2Protocol),
        broken("CONTINUATION without end", begun().times(1000, more), Limit),
        broken("a list of 1 MB", peer().in_pieces(1, &with("x", &megabyte), true, 16_384), Limit),
        broken("a list of 1 MB in few bytes", block(&bomb), Limit),
        broken("padding beyond", peer().frame(Kind::HEADERS, 13, 1, &[2, 0x88]), H2Protocol),
        broken("HEADERS on no stream", peer().answer(0), H2Protocol),
    ]
}

fn frames_that_break_all() -> Vec<Row> {
    let beyond = [&[0, 0x40, 1, 0, 0, 0, 0, 0, 1][..], &[0; 16_385]].concat();
    let data = peer().headers(1, OK, false).frame(Kind::DATA, flags::PADDED, 1, &[2, 0]);
    let large = peer().window(1, 1 << 30).settings(&[(4, (1 << 30) + 65_535)]);
    let short = |kind, stream, len| peer().frame(kind, 0, stream, &vec![0; len]);
    vec![
        broken("a frame that is too long", peer().bytes(&beyond), H2FrameSize),
        broken("padding beyond DATA", data, H2Protocol),
        broken("DATA on no stream", peer().data(0, b"a", false), H2Protocol),
        broken("SETTINGS on a stream", short(Kind::SETTINGS, 1, 0), H2Protocol),
        broken("SETTINGS cut", short(Kind::SETTINGS, 0, 5), H2FrameSize),
        broken("a full ACK", peer().frame(Kind::SETTINGS, flags::ACK, 0, &[0; 6]), H2FrameSize),
        broken("a server that pushes", peer().settings(&[(2, 1)]), H2Protocol),
        broken("frames too small", peer().settings(&[(5, 16_383)]), H2Protocol),
        broken("frames too large", peer().settings(&[(5, 1 << 24)]), H2Protocol),
        broken("windows beyond 31 bits", peer().settings(&[(4, 1 << 31)]), H2Flow),
        broken("one of them beyond 31 bits", large, H2Flow),
        broken("the connection's window", peer().window(0, (1 << 31) - 1), H2Flow),
        broken("no window for the connection", peer().window(0, 0), H2Protocol),
        broken("a window cut", short(Kind::WINDOW_UPDATE, 0, 3), H2FrameSize),
        broken("a window for an idle stream", peer().window(7, 1), H2Protocol),
        broken("no window for an idle stream", peer().window(7, 0), H2Protocol),
        broken("a window for a stream of the server", peer().window(2, 1), H2Protocol),
        broken("a reset of an idle stream", peer().reset(7, ErrorCode::NoError), H2Protocol),
        broken("a reset of nothing", peer().reset(0, ErrorCode::NoError), H2Protocol),
        broken("a reset cut", short(Kind::RST_STREAM, 1, 3), H2FrameSize),
        broken("a PING cut", short(Kind::PING, 0, 7), H2FrameSize),
        broken("a PING on a stream", short(Kind::PING, 1, 8), H2Protocol),
        broken("GOAWAY cut", short(Kind::GOAWAY, 0, 7), H2FrameSize),
        broken("GOAWAY on a stream", short(Kind::GOAWAY, 1, 8), H2Protocol),
    ]
}

fn floods() -> Vec<Row> {
    let many = |step: fn(Peer) -> Peer| peer().times(1001, step);
    let reset = |peer: Peer| peer.reset(1, ErrorCode::NoError);
    let resets = peer().answer(1).times(1001, reset);
    let empty = |peer: Peer| peer.data(1, b"", false);
    let pings = |peer: Peer| peer.times(1000, |peer| peer.ping(false));
    vec![
        broken("PINGs", many(|peer| peer.ping(false)), Limit),
        broken("answers to PINGs", many(|peer| peer.ping(true)), Limit),
        broken("SETTINGS", many(|peer| peer.settings(&[])), Limit),
        broken("ACKs", many(Peer::ack), Limit),
        broken("windows", many(|peer| peer.window(0, 1)), Limit),
        broken("priorities", many(|peer| peer.frame(Kind::PRIORITY, 0, 1, &[0; 5])), Limit),
        broken("unknown frames", many(|peer| peer.frame(Kind(77), 0, 1, &[])), Limit),
        broken("empty DATA", peer().headers(1, OK, false).times(1001, empty), Limit),
        ("resets of what has ended", resets, vec![(0, Good), (2, Limit), (1, Limit)], Broken),
        good("as many, and then an answer", pings(pings(peer()).answer(1)), &[0]),
    ]
}

fn what_settles_nothing() -> Vec<Row> {
    let push =
        |stream| peer().frame(Kind::PUSH_PROMISE, flags::END_HEADERS, stream, &[0, 0, 0, 2, 0x82]);
    let reset = peer().reset(1, ErrorCode::Cancel);
    let excluded = peer().goaway(3, ErrorCode::NoError).answer(5);
    let behind = |peer: Peer| peer.answer(7);
    let two = vec![(0, Good), (2, H2Protocol), (1, H2Protocol)];
    let both = vec![(2, StaleGoaway), (1, H2Protocol), (0, H2Protocol)];
    vec![
        unsolicited("an answer twice", peer().answer(1).answer(1), &[(0, Good)]),
        unsolicited("DATA behind an answer", peer().answer(1).data(1, b"", true), &[(0, Good)]),
        unsolicited("an answer behind a reset", reset.answer(1), &[(0, H2Stream)]),
        unsolicited("an answer that GOAWAY has excluded", excluded, &[(2, StaleGoaway)]),
        instead("an answer to nothing", peer().answer(7)),
        instead("the beginning of one", peer().frame(Kind::HEADERS, 0, 7, &[0x88])),
        instead("an answer on a stream of the server", peer().answer(2)),
        instead("DATA on an idle stream", peer().data(7, b"a", false)),
        instead("DATA on a stream of the server", peer().data(2, b"a", false)),
        instead("a push", push(1)),
        instead("a push on a stream that is idle", push(7)),
        instead("a push on a stream of the server", push(2)),
        instead("an answer to nothing in mid-answer", behind(peer().headers(1, OK, false))),
        unsolicited("an answer to nothing behind an answer", behind(peer().answer(1)), &two),
        unsolicited(
            "an answer to nothing behind GOAWAY",
            behind(peer().goaway(3, ErrorCode::NoError)),
            &both,
        ),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    let tables = [
        good_answers(),
        malformed_answers(),
        streams_that_end_otherwise(),
        blocks_that_break_all(),
        frames_that_break_all(),
        floods(),
        what_settles_nothing(),
    ];
    tables.into_iter().flatten().collect()
}
