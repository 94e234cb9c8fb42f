//! A split never changes what is received: properties over legal, damaged and random bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use trueload_wire::http1::repeat::RequestMemory;
use trueload_wire::http1::response::HeadMemory;
use trueload_wire::message::Limits;

use crate::common::{Asked, LIMITS, SMALL, cut};
use crate::common::{requests, requests_remembering, responses, responses_remembering};

/// A legal response with what has to be read from it.
#[derive(Clone, Debug)]
struct Legal {
    bytes: Vec<u8>,
    line: String,
    until_close: bool,
}

fn field_lines() -> impl Strategy<Value = String> {
    let value = "[ \t]{0,2}([!-~\u{e9}]([ \t!-~]{0,20}[!-~])?)?[ \t]{0,2}";
    let name = "X-[!#$%&'*+.^_`|~0-9A-Za-z-]{0,20}";
    vec((name, value).prop_map(|(name, value)| format!("{name}:{value}\r\n")), 0..6)
        .prop_map(|lines| lines.concat())
}

/// The same for a response, where a value may go on in further lines.
fn folded_lines() -> impl Strategy<Value = String> {
    let fold = "\r\n[ \t]{1,2}([!-~]([ \t!-~]{0,8}[!-~])?)?[ \t]{0,1}";
    let line = (field_lines(), vec(fold, 0..3)).prop_map(|(lines, folds)| match lines.len() {
        0 => lines,
        len => format!("{}{}\r\n", &lines[..len - 2], folds.concat()),
    });
    vec(line, 0..3).prop_map(|lines| lines.concat())
}

/// Any case of each letter.
fn cased(text: &'static str) -> impl Strategy<Value = String> {
    vec(any::<bool>(), text.len()).prop_map(move |upper| {
        let letters = text.chars().zip(upper);
        letters
            .map(|(letter, upper)| if upper { letter.to_ascii_uppercase() } else { letter })
            .collect()
    })
}

fn chunk(data: &[u8], extension: &str) -> Vec<u8> {
    [format!("{:x}{extension}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

fn chunked(body: &[u8], size: usize, extension: &str, trailers: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = body.chunks(size).flat_map(|data| chunk(data, extension)).collect();
    bytes.extend_from_slice(format!("0{extension}\r\n{trailers}\r\n").as_bytes());
    bytes
}

fn extensions() -> impl Strategy<Value = &'static str> {
    select(&["", ";a", ";a=b", ";a=\"b;\\\"c\"", ";a;b=c"][..])
}

/// How a length is given a second time: not at all, in a list, in a line of its own; or what folds
/// behind it.
#[derive(Clone, Copy, Debug)]
enum Again {
    Once,
    Listed(&'static str),
    Line,
    Folded,
}

/// How the body is framed: the header lines, the bytes, and whether the close ends it.
fn framed(body: Vec<u8>) -> impl Strategy<Value = (String, Vec<u8>, bool)> {
    let again = prop_oneof![
        3 => Just(Again::Once),
        1 => select(&["", " ", "\r\n ", "\t\r\n\t "][..]).prop_map(Again::Listed),
        1 => Just(Again::Line),
        1 => Just(Again::Folded),
    ];
    let (counted, in_chunks, to_the_end) = (body.clone(), body.clone(), body);
    prop_oneof![
        (cased("content-length"), "[ \t]{0,2}", "0{0,3}", again).prop_map(
            move |(name, space, zeros, again)| {
                let length = counted.len();
                let more = match again {
                    Again::Once => String::new(),
                    Again::Listed(fold) => format!("{space},{fold}{length}"),
                    Again::Line => format!("\r\nContent-Length: {length}"),
                    Again::Folded => "\r\n\t".into(),
                };
                let line = format!("{name}:{space}{zeros}{length}{more}{space}\r\n");
                (line, counted.clone(), false)
            }
        ),
        (cased("transfer-encoding"), cased("chunked"), 1..40_usize, extensions(), folded_lines())
            .prop_map(move |(name, coding, size, extension, trailers)| {
                let bytes = chunked(&in_chunks, size, extension, &trailers);
                (format!("{name}: {coding}\r\n"), bytes, false)
            }),
        Just((String::new(), to_the_end, true)),
    ]
}

fn interim() -> impl Strategy<Value = String> {
    let one = (select(&[100, 102, 103, 199][..]), folded_lines())
        .prop_map(|(status, fields)| format!("HTTP/1.1 {status} \r\n{fields}\r\n"));
    vec(one, 0..3).prop_map(|ones| ones.concat())
}

fn legal() -> impl Strategy<Value = Legal> {
    let status = (200..1000_u16).prop_filter("has a body", |status| ![204, 304].contains(status));
    let body = vec(select(&b"Hi\r\n0;:"[..]), 0..200);
    let link = select(
        &[
            "",
            "close",
            "keep-alive",
            "x, Close",
            "Keep-Alive,y",
            "x,\r\n close",
            "\r\n\tclose\r\n ",
        ][..],
    );
    let version = select(&["1.1", "1.1", "1.2", "1.9"][..]);
    let head = (interim(), (version, status), "[ -~]{0,12}", folded_lines(), link);
    (head, body.prop_flat_map(|body| (Just(body.clone()), framed(body)))).prop_map(
        |(
            (interim, (version, status), reason, fields, link),
            (body, (framing, wire, until_close)),
        )| {
            let connection =
                if link.is_empty() { String::new() } else { format!("Connection: {link}\r\n") };
            let keep = !until_close && !link.to_ascii_lowercase().contains("close");
            let head = format!(
                "{interim}HTTP/{version} {status} {reason}\r\n{fields}{connection}{framing}\r\n"
            );
            let line = format!(
                "{status} {} {:?}",
                if keep { "keep" } else { "close" },
                String::from_utf8_lossy(&body)
            );
            Legal { bytes: [head.into_bytes(), wire].concat(), line, until_close }
        },
    )
}

/// A run of bytes that is put in place of another one.
fn damage() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    let odd = &b"\r\n\0\t :,;=\"\\-+0159aAfFzZ/HT\x7f\x80\xff"[..];
    let fragment = select(
        &[
            "\r\n",
            "\r\n\r\n",
            "Content-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "HTTP/1.1 100 \r\n\r\n",
            "HTTP/1.0",
            "HTTP/1.2",
            "\r\n ",
            "\r\n\t:",
            ", 5",
            "999",
            "101",
            "204",
            "0\r\n\r\n",
            "ffffffffffffffff",
        ][..],
    );
    let bytes = prop_oneof![
        2 => vec(select(odd), 0..3),
        1 => fragment.prop_map(|fragment| fragment.as_bytes().to_vec()),
    ];
    (any::<usize>(), 0..4_usize, bytes)
}

fn damaged(mut bytes: Vec<u8>, damages: Vec<(usize, usize, Vec<u8>)>) -> Vec<u8> {
    for (at, len, with) in damages {
        let from = at % (bytes.len() + 1);
        let to = (from + len).min(bytes.len());
        bytes.splice(from..to, with);
    }
    bytes
}

fn random_bytes() -> impl Strategy<Value = Vec<u8>> {
    let fragments = select(
        &[
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.",
            " ",
            "\r\n",
            "\r",
            "\n",
            "\r\n ",
            ", ",
            "2",
            ":",
            "Content-Length:",
            "Transfer-Encoding: chunked\r\n",
            "Connection: ",
            "close",
            "5",
            "0",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\n",
            "Host: h\r\n",
            "Expect: 100-continue\r\n",
            "x",
            "\0",
        ][..],
    );
    prop_oneof![
        vec(fragments, 0..20).prop_map(|fragments| fragments.concat().into_bytes()),
        vec(any::<u8>(), 0..60),
        vec(any::<u8>(), 0..40).prop_map(|tail| [b"HTTP/1.1 200 OK\r\n", &tail[..]].concat()),
    ]
}

fn caps() -> impl Strategy<Value = Limits> {
    select(&[LIMITS, SMALL][..])
}

/// Answers whose heads have the same names, and values of mostly the same length.
fn varying_head() -> impl Strategy<Value = Vec<u8>> {
    // The usual one is drawn most, so that heads in a row differ in one thing only.
    let length = prop_oneof![
        4 => Just("5"),
        1 => select(&["4", "+5", " 5", "5 ", "5,5", "5,4", "5\r\n ", "\r\n 5"][..]),
    ];
    let connection = prop_oneof![
        2 => Just("keep-alive"),
        1 => select(&["close     ", "clOse,keep", "x\r\n a:,close"][..]),
        3 => select(&["x\r\n\ta:abcdef", "x\r\n\ta:ghijkl", "x\r\n\ta:,close"][..]),
    ];
    let name = prop_oneof![4 => Just("X-Id"), 1 => select(&["X-id", "Date", "Xx:y"][..])];
    let odd = "[ -~]{3}|[a-z\t]{3}|[a-z]{4}|[a-z]\x00[a-z]|a\r\nb|[a-z]\n[a-z]|a\r\n [a-z]";
    let id = prop_oneof![4 => "[a-z]{3}", 1 => odd, 1 => "a\r\n\t[a-z]:[a-z]|\r\n "];
    let fields = (id.clone(), name, length, connection, id);
    fields.prop_map(|(first, name, length, connection, second)| {
        let lines = format!("Date: {first}\r\nContent-Length: {length}\r\n");
        let more = format!("Connection: {connection}\r\n{name}: {second}\r\n");
        format!("HTTP/1.1 200 OK\r\n{lines}{more}\r\nHello").into_bytes()
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    (1..4_usize, any::<bool>(), caps()).prop_map(|(responses, head_request, limits)| Asked {
        responses,
        head_request,
        limits,
    })
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

/// The same lines whole, byte by byte and cut at `cuts`; and a refusal at the same byte, without looking at any beyond.
fn check_responses(bytes: &[u8], asked: Asked, cuts: &[usize]) -> Result<(), TestCaseError> {
    let whole = responses([bytes], asked);
    prop_assert_eq!(&responses(bytes.chunks(1), asked).lines, &whole.lines, "byte by byte");
    let split = responses(cut(bytes, cuts), asked);
    prop_assert_eq!(&split.lines, &whole.lines, "cut at {:?}", cuts);
    prop_assert!(split.held_bytes_max <= 24);
    let mut memory = HeadMemory::default();
    for pieces in [vec![bytes], vec![bytes], cut(bytes, cuts)] {
        let again = responses_remembering(pieces, asked, Some(&mut memory));
        prop_assert_eq!(&again.lines, &whole.lines, "heard before");
    }
    if refused(&whole.lines) {
        let mut prefixes = (0..=bytes.len()).map(|end| responses([&bytes[..end]], asked).lines);
        let first = prefixes.find(|lines| refused(lines));
        prop_assert_eq!(first, Some(whole.lines), "the first prefix that is refused");
    }
    Ok(())
}

fn refused(lines: &[String]) -> bool {
    lines.last().is_some_and(|line| line.starts_with("framing") || line.starts_with("limit"))
}

fn check_requests(bytes: &[u8], limits: &Limits, cuts: &[usize]) -> Result<(), TestCaseError> {
    let whole = requests([bytes], limits);
    prop_assert_eq!(&requests(bytes.chunks(1), limits).lines, &whole.lines, "byte by byte");
    let split = requests(cut(bytes, cuts), limits);
    prop_assert_eq!(&split.lines, &whole.lines, "cut at {:?}", cuts);
    prop_assert!(split.held_bytes_max <= 2 * limits.head_bytes.min(bytes.len()) + 24);
    let mut memory = RequestMemory::default();
    for pieces in [vec![bytes], vec![bytes], cut(bytes, cuts)] {
        let again = requests_remembering(pieces, limits, &mut memory);
        prop_assert_eq!(&again.lines, &whole.lines, "heard before");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_legal_response_is_read_as_it_was_meant(legal in legal(), cuts in cuts()) {
        let asked = Asked { responses: 1, head_request: false, limits: LIMITS };
        let found = responses(cut(&legal.bytes, &cuts), asked).lines;
        prop_assert_eq!(found, [legal.line, "done".into()]);
    }

    #[test]
    fn legal_responses_in_a_row_are_read_in_order(all in vec(legal(), 1..4), cuts in cuts()) {
        let last = all.iter().position(|legal| legal.until_close).unwrap_or(all.len() - 1);
        let row = &all[..=last];
        let bytes = row.iter().flat_map(|legal| legal.bytes.clone()).collect::<Vec<u8>>();
        let expected = row.iter().map(|legal| legal.line.clone()).chain(["done".into()]);
        let asked = Asked { responses: row.len(), head_request: false, limits: LIMITS };
        prop_assert_eq!(responses(cut(&bytes, &cuts), asked).lines, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_legal_response_cut_short_is_never_whole(legal in legal(), at in any::<usize>()) {
        let bytes = &legal.bytes[..at % legal.bytes.len()];
        let asked = Asked { responses: 1, head_request: false, limits: LIMITS };
        let lines = responses([bytes], asked).lines;
        if !legal.until_close {
            let expected = if bytes.is_empty() { "done" } else { "truncated" };
            prop_assert!(lines.len() == 1 && lines[0].starts_with(expected), "{lines:?}");
        }
        prop_assert!(!refused(&lines), "a prefix of what is legal is not refused: {lines:?}");
    }

    #[test]
    fn damage_sounds_the_same_in_any_split(
        legal in vec(legal(), 1..3), damages in vec(damage(), 1..4), asked in asked(), cuts in cuts(),
    ) {
        let bytes: Vec<u8> = legal.into_iter().flat_map(|legal| legal.bytes).collect();
        let mut memory = HeadMemory::default();
        responses_remembering([&bytes[..]], asked, Some(&mut memory));
        let bytes = damaged(bytes, damages);
        let remembering = responses_remembering([&bytes[..]], asked, Some(&mut memory));
        prop_assert_eq!(remembering.lines, responses([&bytes[..]], asked).lines);
        check_responses(&bytes, asked, &cuts)?;
    }

    #[test]
    fn heads_that_vary_sound_the_same_with_a_memory_as_without(
        heads in vec(varying_head(), 2..12), damages in vec(damage(), 0..3), cuts in cuts(),
    ) {
        let asked = Asked { responses: 1, head_request: false, limits: LIMITS };
        let last = heads.len() - 1;
        let mut memory = HeadMemory::default();
        for (at, head) in heads.into_iter().enumerate() {
            let bytes = if at == last { damaged(head, damages.clone()) } else { head };
            let plain = responses([&bytes[..]], asked).lines;
            for pieces in [vec![&bytes[..]], cut(&bytes, &cuts)] {
                let remembering = responses_remembering(pieces, asked, Some(&mut memory)).lines;
                prop_assert_eq!(&remembering, &plain, "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn noise_sounds_the_same_in_any_split(bytes in random_bytes(), asked in asked(), cuts in cuts()) {
        check_responses(&bytes, asked, &cuts)?;
        check_requests(&bytes, &asked.limits, &cuts)?;
    }

    #[test]
    fn a_request_sounds_the_same_in_any_split(
        target in "/[!-~]{0,20}",
        fields in prop_oneof![3 => field_lines(), 1 => folded_lines()],
        framing in framed(b"Hello, body".to_vec()),
        expect in any::<bool>(),
        damages in vec(damage(), 0..3),
        limits in caps(),
        cuts in cuts(),
    ) {
        let expect = if expect { "Expect: 100-continue\r\n" } else { "" };
        let (framing, body, _) = framing;
        let head = format!("PUT {target} HTTP/1.1\r\nHost: h\r\n{fields}{expect}{framing}\r\n");
        let bytes = [head.as_bytes(), &body, b"GET /next HTTP/1.0\r\n\r\n"].concat();
        check_requests(&damaged(bytes, damages), &limits, &cuts)?;
    }

    #[test]
    fn requests_that_repeat_sound_the_same_with_a_memory_as_without(
        targets in vec(select(&["/", "/", "/", "/a", "/perf?x"][..]), 1..20),
        fields in select(&["", "", "Connection: close\r\n", "Expect: 100-continue\r\nContent-Length: 1\r\n"][..]),
        damages in vec(damage(), 0..3),
        cuts in cuts(),
    ) {
        let body = if fields.contains("Length") { "b" } else { "" };
        let one = |target| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}");
        let bytes = targets.into_iter().map(one).collect::<String>().into_bytes();
        check_requests(&damaged(bytes, damages), &LIMITS, &cuts)?;
    }
}
