//! Replays bytes at a parser and writes down what was received, so that tables and properties can
//! compare it.
//!
//! Each message is one line; the last line says how it ended: `framing: …`, `limit: …`, `unsolicited`, `truncated`, or
//! `done` when the bytes ended between two messages.

#![allow(dead_code, reason = "each fuzz target uses its part")]

use trueload_wire::http1::repeat::{Repeated, RequestMemory};
use trueload_wire::http1::request::{FedRequest, RequestParser};
use trueload_wire::http1::response::{Fed, HeadMemory, Response, ResponseParser};
use trueload_wire::message::Limits;

/// What is awaited from the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) responses: usize,
    pub(crate) head_request: bool,
    pub(crate) limits: Limits,
}

pub(crate) const LIMITS: Limits = Limits {
    head_bytes: 256 * 1024,
    header_count: 4096,
    chunk_line_bytes: 16 * 1024,
    trailer_bytes: 64 * 1024,
    informational: 100,
};

/// Caps that short inputs meet.
pub(crate) const SMALL: Limits = Limits {
    head_bytes: 60,
    header_count: 3,
    chunk_line_bytes: 8,
    trailer_bytes: 12,
    informational: 2,
};

pub(crate) const ONE: Asked = Asked { responses: 1, head_request: false, limits: LIMITS };

/// What was received, and the most bytes that the parser held meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) lines: Vec<String>,
    pub(crate) held_bytes_max: usize,
}

impl Outcome {
    fn end(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

/// Feeds the pieces and then the peer's FIN.
pub(crate) fn responses<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, asked: Asked) -> Outcome {
    responses_remembering(pieces, asked, None)
}

/// As [`responses`], by a parser that may have read the head before.
pub(crate) fn responses_remembering<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    asked: Asked,
    mut memory: Option<&mut HeadMemory>,
) -> Outcome {
    let mut parser = ResponseParser::default();
    let mut outcome = Outcome::default();
    let mut body = Vec::new();
    for mut piece in pieces {
        loop {
            if outcome.lines.len() == asked.responses && !piece.is_empty() {
                return outcome.end("unsolicited");
            }
            let mut sink = |slice: &[u8]| body.extend_from_slice(slice);
            let memory = memory.as_deref_mut();
            let Asked { head_request, ref limits, .. } = asked;
            let fed = parser.feed_remembering(piece, head_request, limits, memory, &mut sink);
            outcome.held_bytes_max = outcome.held_bytes_max.max(parser.buffered_bytes());
            match fed {
                Err(error) => {
                    let again = parser.feed(b"H", asked.head_request, &asked.limits, &mut |_| {});
                    assert_eq!(again, Err(error), "a refusal stays");
                    assert_eq!(parser.end(), None, "a refused response is not ended by FIN");
                    let cut = String::from_utf8_lossy(&body).into_owned();
                    return outcome.end(format!("{error} after {cut:?}"));
                }
                Ok((consumed, Fed::Partial)) => {
                    assert_eq!(consumed, piece.len(), "a partial response takes all");
                    break;
                }
                Ok((consumed, Fed::Complete(response))) => {
                    assert!(consumed <= piece.len());
                    assert!(!parser.started(), "the next response has not begun");
                    outcome.lines.push(line(response, &body));
                    body.clear();
                    piece = &piece[consumed..];
                }
            }
            if piece.is_empty() {
                break;
            }
        }
    }
    let started = parser.started();
    match parser.end() {
        Some(response) => {
            assert!(!response.keep_alive);
            outcome.lines.push(line(response, &body));
            outcome.end("done")
        }
        None if started => {
            outcome.end(format!("truncated after {:?}", String::from_utf8_lossy(&body)))
        }
        None => outcome.end("done"),
    }
}

fn line(response: Response, body: &[u8]) -> String {
    assert_eq!(response.body_bytes, body.len() as u64);
    let link = if response.keep_alive { "keep" } else { "close" };
    format!("{} {link} {:?}", response.status, String::from_utf8_lossy(body))
}

/// Whole, in every split and by a parser that read it before: each of `expected` begins the line
/// that was received.
pub(crate) fn check_response(sentence: &str, bytes: &[u8], asked: Asked, expected: &[&str]) {
    let whole = responses([bytes], asked);
    let as_expected = whole.lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    assert!(
        whole.lines.len() == expected.len() && as_expected,
        "{sentence}: told {expected:?}, heard {:?}",
        whole.lines
    );
    let mut memory = HeadMemory::default();
    for places in splits(bytes) {
        let again = responses_remembering([bytes], asked, Some(&mut memory));
        assert_eq!(again.lines, whole.lines, "{sentence}: heard before");
        let split = responses(cut(bytes, &places), asked);
        assert_eq!(split.lines, whole.lines, "{sentence}: cut at {places:?}");
        assert!(split.held_bytes_max <= 24, "{sentence}: a response is never buffered");
    }
}

/// Feeds the pieces, and reads request after request.
pub(crate) fn requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Outcome {
    requests_remembering(pieces, limits, &mut RequestMemory::default())
}

/// As [`requests`], by a reader that may have read a request before.
pub(crate) fn requests_remembering<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    memory: &mut RequestMemory<String>,
) -> Outcome {
    let mut parser = RequestParser::default();
    let mut outcome = Outcome::default();
    for mut piece in pieces {
        while !piece.is_empty() {
            if let Some(Repeated { count, len, made }) = memory.recognise(&parser, piece) {
                outcome.lines.extend(vec![made; count]);
                piece = &piece[len..];
                continue;
            }
            let awaited = !parser.started();
            match parser.feed(piece, limits) {
                Err(error) => {
                    assert_eq!(parser.feed(b"G", limits), Err(error), "a refusal stays");
                    return outcome.end(error.to_string());
                }
                Ok((consumed, FedRequest::Partial)) => {
                    assert_eq!(consumed, piece.len(), "a partial request takes all");
                    piece = &[];
                }
                Ok((consumed, FedRequest::ExpectsContinue)) => {
                    outcome.lines.push("continue?".into());
                    piece = &piece[consumed..];
                }
                Ok((consumed, FedRequest::Complete(request))) => {
                    let version = if request.http10 { "1.0" } else { "1.1" };
                    let link = if request.keep_alive { "keep" } else { "close" };
                    let line = format!(
                        "{} {} {version} {link} {}",
                        request.method, request.target, request.body_bytes
                    );
                    if awaited {
                        memory.remember(&piece[..consumed], line.clone());
                    }
                    outcome.lines.push(line);
                    piece = &piece[consumed..];
                }
            }
            outcome.held_bytes_max = outcome.held_bytes_max.max(parser.buffered_bytes());
        }
    }
    let end = if parser.started() { "truncated" } else { "done" };
    outcome.end(end)
}

/// Cuts `bytes` at every place in `cuts` (each modulo the length).
pub(crate) fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}

/// Whole, byte by byte, at each single place, and in seeded random splits.
pub(crate) fn splits(bytes: &[u8]) -> Vec<Vec<usize>> {
    let mut splits = vec![vec![], (0..bytes.len()).collect()];
    splits.extend((0..bytes.len().min(2000)).map(|at| vec![at]));
    let mut seed = 7_u64;
    let mut random = || {
        // Knuth's MMIX generator; the high bits are the good ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for pieces in 2..12 {
        splits.push((0..pieces).map(|_| random()).collect());
    }
    splits
}
