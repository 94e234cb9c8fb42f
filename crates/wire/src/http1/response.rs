//! The response parser: a status line, header lines and a body. 1xx responses before the final one
//! are skipped.
//!
//! How it works: see `http1`. A byte that cannot occur at its place in a status line is refused at
//! once. A peer that speaks another protocol therefore fails as such, not by a timeout.
//!
//! Must not know: which requests are outstanding, and whether a status is expected.

use super::body::{Body, Sink};
use super::fields::Fields;
use super::head::{keeps_alive, response_body};
pub use super::limits::ParseError;
use super::limits::{Scan, scan_within};
pub use super::memory::HeadMemory;
use super::status_line::{BAD_VERSION, StatusLine};
use crate::message::Limits;

/// A complete final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, 200 to 999; values above 599 mean the same as 500 (RFC 9110 §15).
    pub status: u16,
    /// Whether another request may be sent on this connection.
    pub keep_alive: bool,
    /// The length of the decoded body.
    pub body_bytes: u64,
}

/// The result of feeding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// More bytes are needed; all given bytes were consumed.
    Partial,
    /// The response is complete.
    Complete(Response),
}

/// Where a parser is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    StatusLine,
    Fields,
    Body,
    Refused,
}

/// Reads one response after another.
#[derive(Debug, Default)]
pub struct ResponseParser {
    at: At,
    line: StatusLine,
    head_bytes: u32,
    informational: u32,
    fields: Fields,
    body: Body,
    refused: Option<Box<ParseError>>,
}

impl ResponseParser {
    /// Feeds bytes of one response and passes its decoded body to `body` as slices of `bytes`.
    /// `head_request` says that the request was HEAD; it must not change before the response is
    /// complete.
    ///
    /// Returns how many of `bytes` belong to this response, and whether it is complete. If it is,
    /// the parser awaits the next response, to which the remaining bytes belong. If the bytes
    /// cannot be a legal response, the error occurs at the same byte however the input was split.
    /// After it, every call returns the same error until [`reset`](Self::reset).
    pub fn feed(
        &mut self,
        bytes: &[u8],
        head_request: bool,
        limits: &Limits,
        body: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, Fed), ParseError> {
        self.feed_remembering(bytes, head_request, limits, None, body)
    }

    /// Like [`feed`](Self::feed), but a final head that equals the one in `memory` is not parsed
    /// again.
    #[inline]
    pub fn feed_remembering(
        &mut self,
        bytes: &[u8],
        head_request: bool,
        limits: &Limits,
        memory: Option<&mut HeadMemory>,
        body: &mut impl Sink,
    ) -> Result<(usize, Fed), ParseError> {
        let fed = self.parse(bytes, head_request, limits, memory, body);
        if let Err(error) = fed {
            self.at = At::Refused;
            self.refused.get_or_insert_with(|| Box::new(error));
        }
        fed
    }

    fn parse(
        &mut self,
        bytes: &[u8],
        head_request: bool,
        limits: &Limits,
        mut memory: Option<&mut HeadMemory>,
        sink: &mut impl Sink,
    ) -> Result<(usize, Fed), ParseError> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let taken = match self.at {
                At::Body => self.body.scan(rest, &mut self.fields, limits, sink)?,
                At::StatusLine | At::Fields => {
                    let taken = self.head(rest, limits, memory.as_deref_mut())?;
                    let (part, status) = match taken {
                        Some(taken) => (&rest[..taken], Some(self.line.status)),
                        None => (rest, None),
                    };
                    sink.head(part, status);
                    taken
                }
                At::Refused => {
                    return Err(self.refused().unwrap_or(BAD_VERSION));
                }
            };
            let Some(taken) = taken else { return Ok((bytes.len(), Fed::Partial)) };
            at += taken;
            if self.at == At::Body {
                let response = self.response(true);
                self.reset();
                return Ok((at, Fed::Complete(response)));
            }
            self.end_of_head(head_request)?;
        }
    }

    fn head(&mut self, bytes: &[u8], limits: &Limits, memory: Option<&mut HeadMemory>) -> Scan {
        let Some(memory) = memory.filter(|_| self.at == At::StatusLine && self.head_bytes == 0)
        else {
            return self.scan_head(bytes, limits);
        };
        if let Some((len, line, facts)) = memory.recognise(bytes, limits) {
            self.line = line;
            self.fields.facts = facts;
            return Ok(Some(len));
        }
        let taken = self.scan_head(bytes, limits)?;
        if let Some(taken) = taken.filter(|_| self.line.status >= 200) {
            memory.remember(&bytes[..taken], self.line, self.fields.facts, limits);
        }
        Ok(taken)
    }

    fn scan_head(&mut self, bytes: &[u8], limits: &Limits) -> Scan {
        let (state, line, fields) = (&mut self.at, &mut self.line, &mut self.fields);
        let informational = self.informational < limits.informational;
        let (used, cap, too_long) =
            (&mut self.head_bytes, limits.head_bytes, "the head is too long");
        scan_within(bytes, used, cap, too_long, |window| {
            let mut at = 0;
            if *state == At::StatusLine {
                let Some(taken) = line.scan(window, informational)? else { return Ok(None) };
                at = taken;
                *state = At::Fields;
            }
            let taken = fields.scan(&window[at..], limits.header_count, false)?;
            Ok(taken.map(|taken| at + taken))
        })
    }

    fn end_of_head(&mut self, head_request: bool) -> Result<(), ParseError> {
        let StatusLine { status, http10, .. } = self.line;
        let framed = response_body(&self.fields.facts, http10, status, head_request)?;
        if status < 200 {
            *self = Self { informational: self.informational + 1, ..Self::default() };
        } else {
            self.body = Body::new(framed);
            self.at = At::Body;
        }
        Ok(())
    }

    fn response(&self, self_delimited: bool) -> Response {
        Response {
            status: self.line.status,
            keep_alive: self_delimited && keeps_alive(&self.fields.facts, self.line.http10),
            body_bytes: self.body.total,
        }
    }

    /// Handles the peer's FIN: returns the response that it completes, if the body is delimited by
    /// it. With `None` the answer was cut off if [`started`](Self::started), and otherwise there
    /// was none. Call [`started`](Self::started) before, because this may reset the parser.
    pub fn end(&mut self) -> Option<Response> {
        let response = self.lasts_until_end().then(|| self.response(false));
        if response.is_some() {
            self.reset();
        }
        response
    }

    /// Whether the body of the response in progress is delimited by the peer's FIN.
    pub fn lasts_until_end(&self) -> bool {
        self.at == At::Body && self.body.is_until_close()
    }

    /// The status of the final response whose head is complete; none before that.
    pub fn status(&self) -> Option<u16> {
        self.has_head().then_some(self.line.status)
    }

    /// Whether any byte of the awaited response has come; a 1xx response counts.
    pub fn started(&self) -> bool {
        self.at != At::StatusLine || self.head_bytes > 0 || self.informational > 0
    }

    /// Whether the response that has begun may have this status and does not follow a 1xx response.
    pub fn may_have(&self, status: u16) -> bool {
        self.informational == 0 && self.line.may_have(status)
    }

    /// Whether the head is complete, so that only the body is missing.
    pub fn has_head(&self) -> bool {
        self.at == At::Body
    }

    /// The reason why the response was refused, if it was.
    pub fn refused(&self) -> Option<ParseError> {
        self.refused.as_deref().copied()
    }

    /// Resets everything, including a refusal.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The bytes held on the heap: only for a refusal.
    pub fn buffered_bytes(&self) -> usize {
        self.refused.as_deref().map_or(0, size_of_val)
    }
}
