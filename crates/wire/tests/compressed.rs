//! Compressed answers over both versions of HTTP: they are compared, and read for their parts, as
//! what they mean, and fail as what they are if that cannot be known.

use std::cell::RefCell;
use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use trueload_wire::exchange::{Ending, Exchange, Outcome};
use trueload_wire::http1::client::Client;
use trueload_wire::message::{self, Event, Rules};
use trueload_wire::parts::{End, Kind, Rule, Streaming};

use super::http2::peer::Peer;
use super::http2::play::Play;

/// What is wanted of all answers, and what was noted of their parts.
struct Book {
    rules: Rules,
    rule: Option<Rule>,
    at_ns: u64,
    parts: RefCell<Vec<(u64, u64)>>,
}

impl Book {
    fn expecting(body: &[u8]) -> Self {
        let rules = Rules { body: Some(body.to_vec()), ..Rules::default() };
        Book { rules, rule: None, at_ns: 0, parts: RefCell::default() }
    }

    fn streaming(kind: Kind, end: Option<&str>) -> Self {
        let end = end.map(|text| End::Content { text: text.to_owned() });
        let rule = Some(Rule { kind, end, stall_ns: None });
        Book { rules: Rules::default(), rule, at_ns: 0, parts: RefCell::default() }
    }
}

impl<T> message::Book<T> for Book {
    fn rules_of(&self, _: &T) -> &Rules {
        &self.rules
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        self.rule.as_ref().map(|rule| Streaming { rule, at_ns: self.at_ns })
    }

    fn note(&self, _: &T, event: Event<'_>) {
        if let Event::Parts(arrived) = event {
            let new = u64::from(arrived.is_first || arrived.gap_ns.is_some());
            self.parts.borrow_mut().push((self.at_ns, new + arrived.together));
        }
    }
}

/// An answer: its codings in fields of their own, and its body in the frames or chunks it comes in.
struct Answer<'a> {
    status: &'a str,
    codings: &'a [&'a str],
    body: &'a [Vec<u8>],
}

impl Answer<'_> {
    fn over_http1(&self) -> Vec<Vec<u8>> {
        let lines = self.codings.iter().map(|value| format!("Content-Encoding: {value}\r\n"));
        let lines: String = lines.collect();
        let head =
            format!("HTTP/1.1 {} X\r\n{lines}Transfer-Encoding: chunked\r\n\r\n", self.status);
        let chunks = self
            .body
            .iter()
            .map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
        [head.into_bytes()].into_iter().chain(chunks).chain([b"0\r\n\r\n".to_vec()]).collect()
    }

    fn over_http2(&self, stream: u32) -> Vec<Vec<u8>> {
        let status = [(":status", self.status)];
        let codings = self.codings.iter().map(|value| ("content-encoding", *value));
        let fields: Vec<_> = status.into_iter().chain(codings).collect();
        let frames = self.body.iter().map(|chunk| Peer::default().data(stream, chunk, false).0);
        let head = Peer::default().headers(stream, &fields, false).0;
        let end = Peer::default().data(stream, b"", true).0;
        [head].into_iter().chain(frames).chain([end]).collect()
    }
}

/// How one request after another ends over HTTP/1, whose answers come in these reads.
fn over_http1(book: &mut Book, reads: &[Vec<u8>], requests: u64) -> Vec<Ending> {
    let (mut client, mut heads) = (Client::default(), Vec::new());
    let mut endings = Vec::new();
    (0..requests).for_each(|tag| client.ask(tag));
    for (at_ns, bytes) in (1..).zip(reads) {
        book.at_ns = at_ns;
        client.handle_input(at_ns, bytes, book, &mut heads, &mut |one: Outcome<u64>| {
            endings.extend(std::iter::repeat_n(one.ending, one.count));
        });
    }
    endings
}

fn over_http2(book: &mut Book, reads: &[Vec<u8>], requests: usize) -> Vec<Ending> {
    let mut play = Play::asked(requests);
    let mut endings = Vec::new();
    for (at_ns, bytes) in (1..).zip(reads) {
        book.at_ns = at_ns;
        play.client.handle_input(at_ns, bytes, book, &mut play.sent, &mut |one| {
            endings.push(one.ending);
        });
    }
    endings
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

/// As Brotli's encoder writes it: it is too short to become shorter.
const OK_BR: &[u8] = b"\x8b\x05\x80{\"ok\": true}\x03";

/// 65 MiB of zeros, with a window of 16 MiB.
const BOMB_BR: &[u8] =
    b"\xcf\xff\xff\x7f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x9f\xff\xff\xff\xf0\x4f\x00\xc4\x61\
    \x01\x80\xee\xfd\x3f\xff\xff\xff\xe1\x9f\x00\x88\xc3\x22\x00\xdd\xfb\x7f\xfe\xff\xff\xc3\x3f\
    \x01\x10\x87\x05\x00\xba\xf7\xff\xf5\xff\xff\xf8\x27\x00\xe2\xb0\x00\x40\xf7\xfe\x01";

/// The parts of a Brotli stream of three events, which is flushed behind each.
fn flushed_br() -> Vec<Vec<u8>> {
    let parts: [&[u8]; 4] = [
        b"\x0b\x04\x80data: a\n\n",
        b"\x40\x00\x80\x5f\x4a\x41\xac\x08\xd1\x24\x18\x30",
        b"\x68\x00\x80\x5f\x52\x61\xab\x2b\x09\x50\x44\x93\x70\x49\x31\xf8\x31\x00",
        b"\x03",
    ];
    parts.map(<[u8]>::to_vec).into()
}

/// The parts of a gzip stream that is flushed behind each, as servers flush it.
fn flushed(parts: &[&str]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut all = Vec::new();
    for part in parts {
        encoder.write_all(part.as_bytes()).expect("memory");
        encoder.flush().expect("memory");
        all.push(std::mem::take(encoder.get_mut()));
    }
    all.push(encoder.finish().expect("memory"));
    all
}

/// How two equal answers end: each in one read, each cut at every place, and over both versions.
fn check(book: impl Fn() -> Book, answer: &Answer<'_>, ending: Ending, sentence: &str) {
    let (one, other) = (answer.over_http1().concat(), answer.over_http2(1).concat());
    let both = [answer.over_http2(1).concat(), answer.over_http2(3).concat()].concat();
    assert_eq!(over_http1(&mut book(), &[one.repeat(2)], 2), [ending; 2], "{sentence}, whole");
    assert_eq!(over_http2(&mut book(), &[both], 2), [ending; 2], "{sentence}, HTTP/2");
    for cut in 0..=one.len() {
        let reads = [one[..cut].to_vec(), one[cut..].to_vec()];
        assert_eq!(over_http1(&mut book(), &reads, 1), [ending], "{sentence}, cut at {cut}");
    }
    for cut in 0..=other.len() {
        let reads = [other[..cut].to_vec(), other[cut..].to_vec()];
        let endings = over_http2(&mut book(), &reads, 1);
        assert_eq!(endings, [ending], "{sentence}, HTTP/2 cut at {cut}");
    }
}

#[test]
fn an_expected_body_is_compared_with_what_a_compressed_one_means() {
    let expected = b"{\"ok\": true}";
    let (same, other) = (gzip(expected), gzip(b"{\"ok\": false}"));
    let (head, tail) = same.split_at(11);
    for (sentence, status, codings, body, ending) in [
        ("gzip", "200", &["gzip"][..], vec![same.clone()], Ending::Ok),
        ("in two chunks", "200", &["gzip"], vec![head.to_vec(), tail.to_vec()], Ending::Ok),
        ("deflate", "200", &["deflate"], vec![zlib(expected)], Ending::Ok),
        ("in capitals, in a list", "200", &["identity , GZIP"], vec![same.clone()], Ending::Ok),
        ("two, in a list", "200", &["gzip, deflate"], vec![same.clone()], Ending::Encoded),
        ("two, in two fields", "200", &["gzip", "gzip"], vec![gzip(&same)], Ending::Encoded),
        ("none", "200", &["identity"], vec![expected.to_vec()], Ending::Ok),
        ("none, as gzip", "200", &[], vec![same.clone()], Ending::Mismatch),
        ("other content", "200", &["gzip"], vec![other], Ending::Mismatch),
        ("nothing", "200", &["gzip"], vec![], Ending::Mismatch),
        ("no gzip at all", "200", &["gzip"], vec![expected.to_vec()], Ending::Encoded),
        ("cut", "200", &["gzip"], vec![head.to_vec()], Ending::Encoded),
        ("br", "200", &["br"], vec![OK_BR.to_vec()], Ending::Ok),
        (
            "br in two chunks",
            "200",
            &["br"],
            vec![OK_BR[..9].into(), OK_BR[9..].into()],
            Ending::Ok,
        ),
        ("br, cut", "200", &["br"], vec![OK_BR[..15].into()], Ending::Encoded),
        ("br with more behind it", "200", &["br"], vec![OK_BR.into(), vec![3]], Ending::Encoded),
        ("no br at all", "200", &["br"], vec![same.clone()], Ending::Encoded),
        ("zstd", "200", &["zstd"], vec![same.clone()], Ending::Encoded),
        ("no token", "200", &["gzip deflate"], vec![same.clone()], Ending::Encoded),
        ("a long name", "200", &["gzip-but-of-another-kind"], vec![same], Ending::Encoded),
        ("zstd of an error", "500", &["zstd"], vec![b"?".to_vec()], Ending::Status),
    ] {
        let answer = Answer { status, codings, body: &body };
        check(|| Book::expecting(expected), &answer, ending, sentence);
    }
}

#[test]
fn the_parts_of_a_compressed_stream_are_those_of_its_content() {
    let events = flushed(&["data: a\n\n", "data: b\n\n", "data: [DONE]\n\n"]);
    let lines = flushed(&["{}\n{", "}\n", "end\n"]);
    let (cut, events_br) = (events[..2].to_vec(), flushed_br());
    let cut_br = events_br[..2].to_vec();
    for (sentence, kind, end, codings, body, ending) in [
        ("events", Kind::Sse, Some("[DONE]"), "gzip", &events, Ending::Ok),
        ("lines", Kind::Jsonl, Some("end"), "gzip", &lines, Ending::Ok),
        ("chunks", Kind::Chunks, Some("data: [DONE]\n\n"), "gzip", &events, Ending::Ok),
        ("br", Kind::Sse, Some("[DONE]"), "br", &events_br, Ending::Ok),
        ("no br", Kind::Sse, None, "br", &events, Ending::Encoded),
        ("a cut stream", Kind::Sse, None, "gzip", &cut, Ending::Encoded),
        ("a cut stream of br", Kind::Sse, None, "br", &cut_br, Ending::Encoded),
    ] {
        let answer = Answer { status: "200", codings: &[codings], body };
        check(|| Book::streaming(kind, end), &answer, ending, sentence);
        if ending == Ending::Ok {
            let (mut one, mut other) = (Book::streaming(kind, end), Book::streaming(kind, end));
            over_http1(&mut one, &answer.over_http1(), 1);
            over_http2(&mut other, &answer.over_http2(1), 1);
            for book in [one, other] {
                assert_eq!(*book.parts.borrow(), [(2, 1), (3, 1)], "{sentence}: with their reads");
            }
        }
    }
}

#[test]
fn a_body_that_decodes_to_too_much_is_not_decoded_to_its_end() {
    for (coding, bomb) in [("gzip", gzip(&vec![0; 65 << 20])), ("br", BOMB_BR.to_vec())] {
        let answer = Answer { status: "200", codings: &[coding], body: &[bomb] };
        let endings = over_http1(&mut Book::expecting(b""), &answer.over_http1(), 1);
        assert_eq!(endings, [Ending::Encoded], "{coding}");
    }
}

#[test]
fn what_is_not_needed_is_not_decoded() {
    let book = || Book { rule: None, ..Book::streaming(Kind::Sse, None) };
    let answer = Answer { status: "200", codings: &["zstd"], body: &[b"no such thing".to_vec()] };
    check(book, &answer, Ending::Ok, "fingerprint");
}
