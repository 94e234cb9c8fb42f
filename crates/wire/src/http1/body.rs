//! Bodies: counted, chunked (RFC 9112 §7.1) or until the peer closes.
//!
//! How it works: an automaton that hands out content as slices of the input. A chunk-size line must
//! match the grammar without its "bad whitespace", which a sender must not generate.
//!
//! Must not know: the head that came before, beyond how it frames the body.

use super::fields::{Fields, expect_lf, not_text};
use super::head::Framed;
use super::limits::ParseError::{self, Framing};
use super::limits::{Scan, scan_within};
use super::text::{is_text, is_token};
use crate::coding::Coding;
use crate::message::Limits;

const BAD_SIZE: ParseError = Framing("the chunk size is not hexadecimal");
const BAD_EXTENSION: ParseError = Framing("a malformed chunk extension");

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Whole,
    Counted,
    UntilClose,
    ChunkLine(Line),
    ChunkData,
    ChunkCr,
    ChunkLf,
    Trailers,
}

/// A position in `1*HEXDIG *( ";" token [ "=" ( token / quoted-string ) ] ) CRLF`, the chunk-size
/// line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    SizeStart,
    Size,
    NameStart,
    Name,
    ValueStart,
    Value,
    Quoted,
    Escaped,
    QuoteEnd,
    Lf,
}

/// Takes an answer as it is read.
pub trait Sink {
    /// Takes the next slice of the content, which has this coding.
    fn content(&mut self, slice: &[u8], coding: Coding);

    /// Called when a chunk ends with the last slice.
    #[inline]
    fn end_chunk(&mut self) {}

    /// Takes the next bytes of a head. `status` is known when its empty line has come.
    #[inline]
    fn head(&mut self, _part: &[u8], _status: Option<u16>) {}

    /// Takes the next bytes of the trailers; `whole` when their empty line has come.
    #[inline]
    fn trailers(&mut self, _part: &[u8], _whole: bool) {}
}

impl<F: FnMut(&[u8])> Sink for F {
    #[inline]
    fn content(&mut self, slice: &[u8], _coding: Coding) {
        self(slice);
    }
}

/// The automaton over one body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body {
    step: Step,
    /// The bytes so far of the chunk-size line or of the trailers.
    used: u32,
    /// The remaining content bytes of the body or of the chunk; the chunk size while it is being
    /// read.
    left: u64,
    /// The content bytes so far.
    pub(crate) total: u64,
}

impl Body {
    pub(crate) fn new(framed: Framed) -> Self {
        let (step, left) = match framed {
            Framed::Empty | Framed::Length(0) => (Step::Whole, 0),
            Framed::Length(length) => (Step::Counted, length),
            Framed::Chunked => (Step::ChunkLine(Line::SizeStart), 0),
            Framed::UntilClose => (Step::UntilClose, 0),
        };
        Self { step, used: 0, left, total: 0 }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.step == Step::Whole
    }

    pub(crate) fn is_until_close(&self) -> bool {
        self.step == Step::UntilClose
    }

    /// Reads the body. `fields` is the automaton for its trailers.
    pub(crate) fn scan(
        &mut self,
        bytes: &[u8],
        fields: &mut Fields,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Scan {
        let mut at = 0;
        loop {
            if self.step == Step::Whole {
                return Ok(Some(at));
            }
            let rest = &bytes[at..];
            let Some(&first) = rest.first() else { return Ok(None) };
            at += match self.step {
                Step::Whole => 0,
                Step::Counted | Step::ChunkData | Step::UntilClose => {
                    self.content(rest, fields.facts.coding, sink)
                }
                Step::ChunkLine(_) => self.chunk_line(rest, fields, limits)?,
                Step::ChunkCr if first == b'\r' => self.go(Step::ChunkLf),
                Step::ChunkLf if first == b'\n' => self.go(Step::ChunkLine(Line::SizeStart)),
                Step::ChunkCr | Step::ChunkLf => {
                    return Err(Framing("the chunk data is not followed by CRLF"));
                }
                Step::Trailers => self.trailers(rest, fields, limits, sink)?,
            };
        }
    }

    /// Sets the step and takes one byte.
    fn go(&mut self, step: Step) -> usize {
        self.step = step;
        1
    }

    fn content(&mut self, rest: &[u8], coding: Coding, sink: &mut impl Sink) -> usize {
        let take = match self.step {
            Step::UntilClose => rest.len(),
            _ => usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len()),
        };
        sink.content(&rest[..take], coding);
        self.total += take as u64;
        if self.step != Step::UntilClose {
            self.left -= take as u64;
            if self.left == 0 {
                let chunked = self.step == Step::ChunkData;
                self.step = if chunked { Step::ChunkCr } else { Step::Whole };
                if chunked {
                    sink.end_chunk();
                }
            }
        }
        take
    }

    fn chunk_line(
        &mut self,
        rest: &[u8],
        fields: &mut Fields,
        limits: &Limits,
    ) -> Result<usize, ParseError> {
        let mut used = self.used;
        let too_long = "a chunk-size line is too long";
        let taken = scan_within(rest, &mut used, limits.chunk_line_bytes, too_long, |window| {
            for (at, &byte) in window.iter().enumerate() {
                if self.line_byte(byte)? {
                    return Ok(Some(at + 1));
                }
            }
            Ok(None)
        })?;
        self.used = used;
        let Some(taken) = taken else { return Ok(rest.len()) };
        self.used = 0;
        if self.left == 0 {
            fields.begin_trailers();
            self.step = Step::Trailers;
        } else {
            self.step = Step::ChunkData;
        }
        Ok(taken)
    }

    /// Processes a byte of the line and returns whether it ends the line.
    fn line_byte(&mut self, byte: u8) -> Result<bool, ParseError> {
        let Step::ChunkLine(line) = self.step else { return Ok(true) };
        let next = match (line, byte) {
            (Line::SizeStart | Line::Size, _) if byte.is_ascii_hexdigit() => {
                self.size_digit(byte)?;
                Line::Size
            }
            (Line::SizeStart, _) => return Err(BAD_SIZE),
            (Line::Lf, _) => {
                expect_lf(byte)?;
                return Ok(true);
            }
            (Line::Quoted, b'"') => Line::QuoteEnd,
            (Line::Quoted, b'\\') => Line::Escaped,
            (Line::Quoted | Line::Escaped, _) if is_text(byte) => Line::Quoted,
            (Line::Quoted | Line::Escaped, _) => return Err(not_text(byte)),
            (Line::NameStart | Line::Name, _) if is_token(byte) => Line::Name,
            (Line::ValueStart | Line::Value, _) if is_token(byte) => Line::Value,
            (Line::Name, b'=') => Line::ValueStart,
            (Line::ValueStart, b'"') => Line::Quoted,
            (Line::NameStart | Line::ValueStart, _) => return Err(BAD_EXTENSION),
            (_, b';') => Line::NameStart,
            (_, b'\r') => Line::Lf,
            (_, b' ' | b'\t') => return Err(Framing("whitespace in a chunk-size line")),
            (_, b'\n') => return Err(not_text(byte)),
            (Line::Size, _) => return Err(BAD_SIZE),
            _ => return Err(BAD_EXTENSION),
        };
        self.step = Step::ChunkLine(next);
        Ok(false)
    }

    fn size_digit(&mut self, byte: u8) -> Result<(), ParseError> {
        if self.left >> 60 != 0 {
            return Err(Framing("the chunk size is 2^64 or more"));
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        self.left = self.left << 4 | u64::from(digit);
        Ok(())
    }

    fn trailers(
        &mut self,
        rest: &[u8],
        fields: &mut Fields,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Result<usize, ParseError> {
        let too_long = "the trailers are too long";
        let taken = scan_within(rest, &mut self.used, limits.trailer_bytes, too_long, |window| {
            fields.scan(window, limits.header_count, true)
        })?;
        if taken.is_some() {
            self.step = Step::Whole;
        }
        let len = taken.unwrap_or(rest.len());
        sink.trailers(&rest[..len], taken.is_some());
        Ok(len)
    }
}
