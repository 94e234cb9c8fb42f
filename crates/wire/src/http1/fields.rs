//! Header and trailer lines, `name ":" OWS value OWS CRLF`, up to the empty line (RFC 9112 §5).
//!
//! How it works: an automaton over lines. It skips over names and values in one stride and keeps what frames the body
//! or the connection: Content-Length, Transfer-Encoding, Connection, Expect and the number of Host lines. Only a name
//! or a list element that is cut by the end of a read is copied, and of it no more than the longest word looked for.
//! Lines that are whole and plain are taken by a shortcut; whatever it does not take is left to the automaton, which
//! alone says what is refused and why.
//!
//! What it must not know: which start line came before, and what the facts mean together (`head` decides).

use super::limits::ParseError::{Framing, Limit};
use super::limits::{ParseError, Scan};
use super::text::{is_named, is_text, is_token, text_end, token_end};

const CONTROL: ParseError = Framing("a control character in a line");
const BARE_CR: ParseError = Framing("a CR without LF");
const BARE_LF: ParseError = Framing("an LF without CR");
const BAD_LENGTH: ParseError = Framing("the Content-Length is not a decimal number");
const LENGTH_OVERFLOW: ParseError = Framing("the Content-Length is 2^64 or more");
const BAD_CODING: ParseError = Framing("the Transfer-Encoding is not exactly chunked");

/// What the header lines of one message say about its framing and its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) length: Option<u64>,
    /// `Transfer-Encoding: chunked`; any other coding is refused.
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    /// Host lines, counted to two.
    pub(crate) hosts: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    LineStart,
    Name,
    /// A value of which nothing is kept.
    Text,
    LengthStart,
    LengthDigits,
    LengthTail,
    List(List),
    LineLf,
    LastLf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Connection,
    Expect,
    TransferEncoding,
}

/// The longest words looked for are `transfer-encoding` and `100-continue`.
const WORD_BYTES: usize = 17;

/// The beginning of a word, enough to tell whether it is one of those looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    bytes: [u8; WORD_BYTES],
    /// `WORD_BYTES + 1`: longer than any word looked for, or no word.
    len: u8,
}

impl Word {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
            *place = byte;
            self.len += 1;
        } else {
            self.spoil();
        }
    }

    fn spoil(&mut self) {
        self.len = WORD_BYTES as u8 + 1;
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// The automaton over one section of header or trailer lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    step: Step,
    /// In a list: whitespace came after the element's first bytes.
    gap: bool,
    word: Word,
    lines: u32,
    pub(crate) facts: Facts,
}

impl Fields {
    /// Starts over for another section of the same message; what the head said stays.
    pub(crate) fn begin_trailers(&mut self) {
        *self = Self { facts: self.facts, ..Self::default() };
    }

    /// Reads lines up to and with the empty one. Trailers are checked for form only: RFC 9110 §6.5.1 forbids fields
    /// that frame a message there, so none is heard.
    pub(crate) fn scan(&mut self, bytes: &[u8], line_cap: usize, trailers: bool) -> Scan {
        let mut at = 0;
        if self.step == Step::LineStart {
            while let Some(end) = self.plain_line(bytes, at, line_cap, trailers) {
                at = end;
            }
            if bytes.get(at..at + 2) == Some(b"\r\n") {
                return Ok(Some(at + 2));
            }
        }
        while at < bytes.len() {
            match self.step {
                Step::LineStart => at = self.line_start(bytes, at, line_cap)?,
                Step::Name => at = self.name(bytes, at, trailers)?,
                Step::Text => {
                    at = text_end(bytes, at);
                    if at < bytes.len() {
                        self.value_end(bytes[at])?;
                        at += 1;
                    }
                }
                Step::LengthStart | Step::LengthDigits | Step::LengthTail => {
                    self.length_byte(bytes[at])?;
                    at += 1;
                }
                Step::List(list) => {
                    self.list_byte(list, bytes[at])?;
                    at += 1;
                }
                Step::LineLf | Step::LastLf => {
                    if bytes[at] != b'\n' {
                        return Err(BARE_CR);
                    }
                    at += 1;
                    if self.step == Step::LastLf {
                        return Ok(Some(at));
                    }
                    self.step = Step::LineStart;
                }
            }
        }
        Ok(None)
    }

    /// Takes a line that is whole, legal and of the most usual form, and returns where it ends; else nothing changes.
    #[inline]
    fn plain_line(
        &mut self,
        bytes: &[u8],
        from: usize,
        cap: usize,
        trailers: bool,
    ) -> Option<usize> {
        let colon = token_end(bytes, from);
        let cr = text_end(bytes, colon.min(bytes.len()));
        let name = bytes.get(from..colon)?;
        let value = bytes.get(colon + 1..cr)?;
        let plain = bytes[colon] == b':' && bytes.get(cr..cr + 2) == Some(b"\r\n");
        if !plain || name.is_empty() || self.lines as usize >= cap {
            return None;
        }
        if !trailers && matches!(name[0], b'c' | b'C' | b't' | b'T' | b'h' | b'H' | b'e' | b'E') {
            self.plain_field(name, value.strip_prefix(b" ").unwrap_or(value))?;
        }
        self.lines += 1;
        Some(cr + 2)
    }

    /// Keeps what a plain field says; `None`: it is none of the forms known here, and nothing changed.
    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let facts = &mut self.facts;
        match name.len() {
            14 if is_named(name, b"Content-Length") => {
                // Nineteen digits cannot overflow.
                let plain = matches!(value.len(), 1..=19) && value.iter().all(u8::is_ascii_digit);
                if !plain || facts.length.is_some() {
                    return None;
                }
                let digits = value.iter().map(|digit| u64::from(digit - b'0'));
                facts.length = Some(digits.fold(0, |length, digit| length * 10 + digit));
            }
            10 if is_named(name, b"Connection") => match value {
                b"keep-alive" => facts.keep_alive = true,
                b"close" => facts.close = true,
                _ => return None,
            },
            17 if is_named(name, b"Transfer-Encoding") => {
                if facts.chunked || value != b"chunked" {
                    return None;
                }
                facts.chunked = true;
            }
            4 if is_named(name, b"Host") => facts.hosts = (facts.hosts + 1).min(2),
            6 if is_named(name, b"Expect") => return None,
            _ => {}
        }
        Some(())
    }

    fn line_start(&mut self, bytes: &[u8], at: usize, cap: usize) -> Result<usize, ParseError> {
        match bytes[at] {
            b'\r' => {
                self.step = Step::LastLf;
                Ok(at + 1)
            }
            byte if is_token(byte) => {
                if self.lines as usize >= cap {
                    return Err(Limit("too many header lines"));
                }
                self.lines += 1;
                self.word.len = 0;
                self.step = Step::Name;
                Ok(at)
            }
            b' ' | b'\t' => Err(Framing("a header line begins with whitespace")),
            b':' => Err(Framing("a header name is empty")),
            b'\n' => Err(BARE_LF),
            _ => Err(Framing("an invalid character in a header name")),
        }
    }

    fn name(&mut self, bytes: &[u8], from: usize, trailers: bool) -> Result<usize, ParseError> {
        let end = token_end(bytes, from);
        let part = &bytes[from..end];
        if end == bytes.len() {
            part.iter().for_each(|&byte| self.word.push(byte));
            return Ok(end);
        }
        match bytes[end] {
            b':' if trailers => self.step = Step::Text,
            b':' if self.word.len == 0 => self.named(part)?,
            b':' => {
                part.iter().for_each(|&byte| self.word.push(byte));
                let word = self.word;
                self.named(word.text())?;
            }
            b' ' | b'\t' => return Err(Framing("whitespace before the colon of a header line")),
            b'\r' => return Err(Framing("a header line without a colon")),
            b'\n' => return Err(BARE_LF),
            _ => return Err(Framing("an invalid character in a header name")),
        }
        Ok(end + 1)
    }

    fn named(&mut self, name: &[u8]) -> Result<(), ParseError> {
        self.step = Step::Text;
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.facts.hosts = (self.facts.hosts + 1).min(2);
            }
            6 if name.eq_ignore_ascii_case(b"expect") => self.begin_list(List::Expect),
            10 if name.eq_ignore_ascii_case(b"connection") => self.begin_list(List::Connection),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                // RFC 9110 §8.6 lets a recipient refuse repeated values, the same or not; see the rule in `http1`.
                if self.facts.length.is_some() {
                    return Err(Framing("a second Content-Length"));
                }
                self.step = Step::LengthStart;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.begin_list(List::TransferEncoding);
            }
            _ => {}
        }
        Ok(())
    }

    fn length_byte(&mut self, byte: u8) -> Result<(), ParseError> {
        self.step = match (self.step, byte) {
            (step @ (Step::LengthStart | Step::LengthTail), b' ' | b'\t') => step,
            (Step::LengthStart | Step::LengthDigits, b'0'..=b'9') => {
                let length = self.facts.length.unwrap_or(0).checked_mul(10);
                let length = length.and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
                self.facts.length = Some(length.ok_or(LENGTH_OVERFLOW)?);
                Step::LengthDigits
            }
            (Step::LengthDigits, b' ' | b'\t') => Step::LengthTail,
            (Step::LengthDigits | Step::LengthTail, b'\r') => Step::LineLf,
            _ => return Err(BAD_LENGTH),
        };
        Ok(())
    }

    fn begin_list(&mut self, list: List) {
        self.step = Step::List(list);
        self.begin_element();
    }

    fn begin_element(&mut self) {
        self.word.len = 0;
        self.gap = false;
    }

    fn list_byte(&mut self, list: List, byte: u8) -> Result<(), ParseError> {
        match byte {
            b',' => {
                self.element(list)?;
                self.begin_element();
            }
            b' ' | b'\t' => self.gap = self.word.len > 0,
            b'\r' => {
                self.element(list)?;
                self.step = Step::LineLf;
            }
            _ if !is_text(byte) => return Err(not_text(byte)),
            _ if self.gap => self.word.spoil(),
            _ => self.word.push(byte),
        }
        Ok(())
    }

    fn element(&mut self, list: List) -> Result<(), ParseError> {
        let word = self.word.text();
        match list {
            List::Connection if word.eq_ignore_ascii_case(b"close") => self.facts.close = true,
            List::Connection if word.eq_ignore_ascii_case(b"keep-alive") => {
                self.facts.keep_alive = true;
            }
            List::Expect if word.eq_ignore_ascii_case(b"100-continue") => {
                self.facts.expect_continue = true;
            }
            List::TransferEncoding => {
                if self.facts.chunked || !word.eq_ignore_ascii_case(b"chunked") {
                    return Err(BAD_CODING);
                }
                self.facts.chunked = true;
            }
            List::Connection | List::Expect => {}
        }
        Ok(())
    }

    fn value_end(&mut self, byte: u8) -> Result<(), ParseError> {
        if byte != b'\r' {
            return Err(not_text(byte));
        }
        self.step = Step::LineLf;
        Ok(())
    }
}

/// The error for a byte that cannot stand in a value, a reason or a quoted text.
pub(crate) fn not_text(byte: u8) -> ParseError {
    if byte == b'\n' { BARE_LF } else { CONTROL }
}

/// The LF that is due after a CR.
pub(crate) fn expect_lf(byte: u8) -> Result<(), ParseError> {
    if byte == b'\n' { Ok(()) } else { Err(BARE_CR) }
}
