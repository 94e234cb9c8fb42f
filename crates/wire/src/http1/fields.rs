//! Header and trailer lines, `name ":" OWS value OWS CRLF`, up to the empty line (RFC 9112 §5).
//!
//! How it works: an automaton over lines. It skips names and values in large steps and stores what
//! frames the body or the connection: Content-Length, Transfer-Encoding, Connection, Expect and the
//! number of Host lines; and how the content is coded. Only what a read cuts in two is copied, and no
//! more of it than the longest token looked for. A value ends where the next line begins: a line
//! that begins with whitespace continues the value before it (obs-fold, RFC 9112 §5.2). A shortcut
//! takes complete, plain lines. The automaton handles everything else, and it alone decides what is
//! refused and why.
//!
//! Must not know: which start line came before, and what the facts mean together (`head` decides).

use super::limits::ParseError::{Framing, Limit};
use super::limits::{ParseError, Scan};
use super::text::{is_named, is_text, is_token, text_end, token_end};
use crate::coding::{CONTENT_ENCODING, Coding};

const CONTROL: ParseError = Framing("a control character in a line");
const BARE_CR: ParseError = Framing("a CR without LF");
const BARE_LF: ParseError = Framing("an LF without CR");
const BAD_LENGTH: ParseError = Framing("the Content-Length is not a decimal number");
const LENGTHS_DIFFER: ParseError = Framing("two Content-Lengths that differ");
const LENGTH_OVERFLOW: ParseError = Framing("the Content-Length is 2^64 or more");
const FRAMING_TRAILER: ParseError = Framing("Content-Length or Transfer-Encoding in the trailers");
const BAD_CODING: ParseError = Framing("the Transfer-Encoding is not exactly chunked");

const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";

/// The facts about framing and connection that the header lines of one message state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) length: Option<u64>,
    /// `Transfer-Encoding: chunked`; any other coding is refused.
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    /// The number of Host lines, counted up to two.
    pub(crate) hosts: u8,
    pub(crate) coding: Coding,
}

/// The sender of the lines. Some errors that a client should tolerate from a server are refused
/// from a client (docs/method.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writer {
    #[default]
    Server,
    Client,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// The first line of a section: no value is open.
    #[default]
    LineStart,
    Name,
    In(Value),
    /// After the CR of a line.
    LineLf(Value),
    /// After the whole line: the next one may continue its value.
    NextLine(Value),
    LastLf,
}

/// A value, and the position of the automaton in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// A value of which nothing is stored.
    Text,
    Length(Length),
    List(List),
}

/// The position in an element of a Content-Length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Before,
    Digits,
    Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Connection,
    Expect,
    TransferEncoding,
    ContentEncoding,
}

/// The longest tokens looked for are `transfer-encoding` and `100-continue`.
const TOKEN_BYTES: usize = 17;

/// The beginning of a token, long enough to compare it with the tokens looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Token {
    bytes: [u8; TOKEN_BYTES],
    /// `TOKEN_BYTES + 1` if it is longer than any token looked for, or not a token.
    len: u8,
}

impl Token {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
            *place = byte;
            self.len += 1;
        } else {
            self.spoil();
        }
    }

    fn spoil(&mut self) {
        self.len = TOKEN_BYTES as u8 + 1;
    }

    /// The token; if it was too long to keep, `?`, which is no token that is looked for.
    fn text(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(b"?")
    }
}

/// The automaton over one section of header or trailer lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    step: Step,
    writer: Writer,
    /// In a list: whitespace followed the element's first bytes.
    gap: bool,
    token: Token,
    lines: u32,
    /// The element of a Content-Length that is being read.
    number: u64,
    pub(crate) facts: Facts,
}

impl Fields {
    pub(crate) fn of(writer: Writer) -> Self {
        Self { writer, ..Self::default() }
    }

    /// Starts over for the trailer section of the same message. The facts from the head stay.
    pub(crate) fn begin_trailers(&mut self) {
        *self = Self { facts: self.facts, ..Self::of(self.writer) };
    }

    /// Reads lines up to and including the empty one. Trailers are only checked for form; none is
    /// stored. Trailers that would frame a message are refused (RFC 9110 §6.5.1).
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
                Step::NextLine(value) => {
                    // The byte is only inspected here; the next step consumes it.
                    self.step = if matches!(bytes[at], b' ' | b'\t') {
                        self.fold(line_cap)?;
                        Step::In(value)
                    } else {
                        self.end_value(value)?;
                        Step::LineStart
                    };
                }
                Step::Name => at = self.name(bytes, at, trailers)?,
                Step::In(value) => {
                    if value == Value::Text {
                        at = text_end(bytes, at);
                    }
                    let Some(&byte) = bytes.get(at) else { break };
                    self.step = match byte {
                        b'\r' => Step::LineLf(value),
                        _ => Step::In(self.value_byte(value, byte)?),
                    };
                    at += 1;
                }
                Step::LineLf(value) => {
                    expect_lf(bytes[at])?;
                    at += 1;
                    self.step = Step::NextLine(value);
                }
                Step::LastLf => {
                    expect_lf(bytes[at])?;
                    return Ok(Some(at + 1));
                }
            }
        }
        Ok(None)
    }

    /// Takes a complete, legal line of the most usual form and returns its end. Otherwise nothing
    /// changes. The first byte of the next line must be available.
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
        let &[b'\r', b'\n', next] = bytes.get(cr..cr + 3)? else { return None };
        // A next line that begins with whitespace continues this line's value.
        let plain = bytes[colon] == b':' && !matches!(next, b' ' | b'\t');
        if !plain || name.is_empty() || self.lines as usize >= cap {
            return None;
        }
        if trailers && frames_a_message(name) {
            return None;
        }
        if !trailers && matches!(name[0], b'c' | b'C' | b't' | b'T' | b'h' | b'H' | b'e' | b'E') {
            self.plain_field(name, value.strip_prefix(b" ").unwrap_or(value))?;
        }
        self.lines += 1;
        Some(cr + 2)
    }

    /// Stores the facts of a plain field. `None`: it has another form than those known here, and
    /// nothing changed.
    fn plain_field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let facts = &mut self.facts;
        match name.len() {
            14 if is_named(name, b"Content-Length") => {
                // 19 digits cannot overflow.
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
            16 if is_named(name, b"Content-Encoding") => facts.coding.add(value),
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
                self.count_line(cap)?;
                self.token.len = 0;
                self.step = Step::Name;
                Ok(at)
            }
            // RFC 9112 §2.2: either refuse it or skip the line unread.
            b' ' | b'\t' => Err(Framing("the first header line begins with whitespace")),
            b':' => Err(Framing("a header name is empty")),
            b'\n' => Err(BARE_LF),
            _ => Err(Framing("an invalid character in a header name")),
        }
    }

    fn count_line(&mut self, cap: usize) -> Result<(), ParseError> {
        if self.lines as usize >= cap {
            return Err(Limit("too many header lines"));
        }
        self.lines += 1;
        Ok(())
    }

    /// Handles a continuation line, which begins with whitespace. It counts as a line; otherwise
    /// only the cap on bytes would limit folds.
    fn fold(&mut self, cap: usize) -> Result<(), ParseError> {
        if self.writer == Writer::Client {
            return Err(Framing("a folded header line in a request"));
        }
        self.count_line(cap)
    }

    fn name(&mut self, bytes: &[u8], from: usize, trailers: bool) -> Result<usize, ParseError> {
        let end = token_end(bytes, from);
        let part = &bytes[from..end];
        if end == bytes.len() {
            part.iter().for_each(|&byte| self.token.push(byte));
            return Ok(end);
        }
        match bytes[end] {
            b':' if self.token.len == 0 => self.named(part, trailers)?,
            b':' => {
                part.iter().for_each(|&byte| self.token.push(byte));
                let token = self.token;
                self.named(token.text(), trailers)?;
            }
            b' ' | b'\t' => return Err(Framing("whitespace before the colon of a header line")),
            b'\r' => return Err(Framing("a header line without a colon")),
            b'\n' => return Err(BARE_LF),
            _ => return Err(Framing("an invalid character in a header name")),
        }
        Ok(end + 1)
    }

    fn named(&mut self, name: &[u8], trailers: bool) -> Result<(), ParseError> {
        self.step = Step::In(Value::Text);
        if trailers {
            let frames = frames_a_message(name);
            return if frames { Err(FRAMING_TRAILER) } else { Ok(()) };
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.facts.hosts = (self.facts.hosts + 1).min(2);
            }
            6 if name.eq_ignore_ascii_case(b"expect") => self.begin_list(List::Expect),
            10 if name.eq_ignore_ascii_case(b"connection") => self.begin_list(List::Connection),
            14 if name.eq_ignore_ascii_case(CONTENT_LENGTH) => self.begin_length()?,
            16 if name.eq_ignore_ascii_case(CONTENT_ENCODING) => {
                self.begin_list(List::ContentEncoding);
            }
            17 if name.eq_ignore_ascii_case(TRANSFER_ENCODING) => {
                self.begin_list(List::TransferEncoding);
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_length(&mut self) -> Result<(), ParseError> {
        if self.facts.length.is_some() && self.writer == Writer::Client {
            return Err(Framing("a second Content-Length in a request"));
        }
        self.number = 0;
        self.step = Step::In(Value::Length(Length::Before));
        Ok(())
    }

    fn begin_list(&mut self, list: List) {
        self.step = Step::In(Value::List(list));
        self.begin_element();
    }

    fn begin_element(&mut self) {
        self.token.len = 0;
        self.gap = false;
    }

    /// Takes a byte of a value other than the final CR and returns the next position in the value.
    fn value_byte(&mut self, value: Value, byte: u8) -> Result<Value, ParseError> {
        match value {
            Value::Text => return Err(not_text(byte)),
            Value::Length(length) => return self.length_byte(length, byte).map(Value::Length),
            Value::List(list) => self.list_byte(list, byte)?,
        }
        Ok(value)
    }

    fn length_byte(&mut self, length: Length, byte: u8) -> Result<Length, ParseError> {
        Ok(match (length, byte) {
            (Length::Before | Length::Digits, b'0'..=b'9') => {
                let number = self.number.checked_mul(10);
                let number = number.and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
                self.number = number.ok_or(LENGTH_OVERFLOW)?;
                Length::Digits
            }
            (Length::Before, b' ' | b'\t') => Length::Before,
            (Length::Digits | Length::Behind, b' ' | b'\t') => Length::Behind,
            (Length::Digits | Length::Behind, b',') if self.writer == Writer::Server => {
                self.end_length(length)?;
                Length::Before
            }
            _ => return Err(BAD_LENGTH),
        })
    }

    /// Ends a Content-Length or an element of its list. All of a message must be the same number
    /// (RFC 9110 §8.6, RFC 9112 §6.3 item 5).
    fn end_length(&mut self, length: Length) -> Result<(), ParseError> {
        if length == Length::Before {
            return Err(BAD_LENGTH);
        }
        let number = std::mem::take(&mut self.number);
        if self.facts.length.is_some_and(|length| length != number) {
            return Err(LENGTHS_DIFFER);
        }
        self.facts.length = Some(number);
        Ok(())
    }

    fn list_byte(&mut self, list: List, byte: u8) -> Result<(), ParseError> {
        match byte {
            b',' => {
                self.element(list)?;
                self.begin_element();
            }
            b' ' | b'\t' => self.gap = self.token.len > 0,
            _ if !is_text(byte) => return Err(not_text(byte)),
            _ if self.gap => self.token.spoil(),
            _ => self.token.push(byte),
        }
        Ok(())
    }

    fn element(&mut self, list: List) -> Result<(), ParseError> {
        let token = self.token.text();
        match list {
            List::Connection if token.eq_ignore_ascii_case(b"close") => self.facts.close = true,
            List::Connection if token.eq_ignore_ascii_case(b"keep-alive") => {
                self.facts.keep_alive = true;
            }
            List::Expect if token.eq_ignore_ascii_case(b"100-continue") => {
                self.facts.expect_continue = true;
            }
            List::TransferEncoding => {
                if self.facts.chunked || !token.eq_ignore_ascii_case(b"chunked") {
                    return Err(BAD_CODING);
                }
                self.facts.chunked = true;
            }
            List::ContentEncoding => self.facts.coding.add(token),
            List::Connection | List::Expect => {}
        }
        Ok(())
    }

    fn end_value(&mut self, value: Value) -> Result<(), ParseError> {
        match value {
            Value::Text => Ok(()),
            Value::Length(length) => self.end_length(length),
            Value::List(list) => self.element(list),
        }
    }
}

/// Whether a field of this name defines where a body ends.
fn frames_a_message(name: &[u8]) -> bool {
    match name.len() {
        14 => name.eq_ignore_ascii_case(CONTENT_LENGTH),
        17 => name.eq_ignore_ascii_case(TRANSFER_ENCODING),
        _ => false,
    }
}

/// The error for a byte that is not allowed in a value, a reason or a quoted text.
pub(crate) fn not_text(byte: u8) -> ParseError {
    if byte == b'\n' { BARE_LF } else { CONTROL }
}

/// Checks that a CR is followed by LF.
pub(crate) fn expect_lf(byte: u8) -> Result<(), ParseError> {
    if byte == b'\n' { Ok(()) } else { Err(BARE_CR) }
}
