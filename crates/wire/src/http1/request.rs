//! The request parser of the reference server: a request line, header lines, and a body that is
//! skipped.
//!
//! How it works: see `http1`. Method and target are borrowed from the input. They are copied only
//! if a read ends before the request does, and are then capped like the head they belong to.
//!
//! Must not know: which targets exist, and what is answered.

use super::body::Body;
use super::fields::{Fields, Writer, expect_lf};
use super::head::{keeps_alive, request_body};
pub use super::limits::ParseError;
use super::limits::ParseError::Framing;
use super::limits::{Scan, scan_within};
use super::text::{is_token, token_end};
use crate::message::Limits;

const BAD_METHOD: ParseError = Framing("the request line does not begin with a method and a space");
const BAD_TARGET: ParseError = Framing("an invalid character in the request target");
const BAD_VERSION: ParseError = Framing("the request line does not end with HTTP/1. and a digit");

/// A complete request. Its texts are borrowed from the last input or from the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `HEAD`, …; a token, in the case sent.
    pub method: &'a str,
    /// The request target as sent: visible ASCII, not empty.
    pub target: &'a str,
    /// Whether the client may send another request on this connection.
    pub keep_alive: bool,
    /// Whether the version is HTTP/1.0. Otherwise it is HTTP/1.1, or a later minor version, which
    /// is read as HTTP/1.1 (RFC 9110 §2.5).
    pub http10: bool,
    /// The length of the decoded body, which was skipped.
    pub body_bytes: u64,
}

impl<'a> Request<'a> {
    /// The path of the target, without scheme, authority and query (RFC 9112 §3.2): `/a` for `/a?b`
    /// and for `http://host/a`, `/` for `http://host`. `*` and the authority of CONNECT are
    /// returned unchanged.
    pub fn path(&self) -> &'a str {
        path_of(self.target)
    }
}

/// The path of a request target; see [`Request::path`].
pub(crate) fn path_of(target: &str) -> &str {
    let after_scheme = target.split_once("://").filter(|_| !target.starts_with('/'));
    let path = match after_scheme {
        None => target,
        Some((_, rest)) => rest.find(['/', '?']).map_or("", |at| &rest[at..]),
    };
    match path.split_once('?').map_or(path, |(path, _)| path) {
        "" => "/",
        path => path,
    }
}

/// The result of feeding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FedRequest<'a> {
    /// More bytes are needed; all given bytes were consumed.
    Partial,
    /// The head is complete, a body follows, and the client waits for `100 Continue` before it
    /// sends it. Returned once, at the end of the head; feed the remaining bytes afterwards.
    ExpectsContinue,
    /// The request is complete; its body was skipped.
    Complete(Request<'a>),
}

/// Where a parser is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    RequestLine,
    Fields,
    Body,
    Refused,
}

/// Reads one request after another.
#[derive(Debug)]
pub struct RequestParser {
    at: At,
    line: RequestLine,
    head_bytes: u32,
    fields: Fields,
    body: Body,
    /// Method and target of a request that was split, one after the other; kept until the next
    /// feed.
    aside: Vec<u8>,
    refused: Option<Box<ParseError>>,
}

impl Default for RequestParser {
    fn default() -> Self {
        RequestParser {
            at: At::default(),
            line: RequestLine::default(),
            head_bytes: 0,
            fields: Fields::of(Writer::Client),
            body: Body::default(),
            aside: Vec::new(),
            refused: None,
        }
    }
}

impl RequestParser {
    /// Feeds bytes. Returns how many of them belong to this request, and the result. After
    /// [`FedRequest::Complete`] the parser awaits the next request, to which the remaining bytes
    /// belong. If the bytes cannot be a legal request, the error occurs at the same byte however
    /// the input was split. After it, every call returns the same error.
    pub fn feed<'a>(
        &'a mut self,
        bytes: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, FedRequest<'a>), ParseError> {
        if !self.started() && self.aside.capacity() > 0 {
            self.aside = Vec::new();
        }
        match self.parse(bytes, limits) {
            Ok((taken, Progress::Partial)) => {
                self.put_aside(bytes);
                Ok((taken, FedRequest::Partial))
            }
            Ok((taken, Progress::ExpectsContinue)) => {
                self.put_aside(bytes);
                Ok((taken, FedRequest::ExpectsContinue))
            }
            Ok((taken, Progress::Complete)) => {
                Ok((taken, FedRequest::Complete(self.complete(bytes))))
            }
            Err(error) => {
                self.at = At::Refused;
                self.aside = Vec::new();
                self.refused.get_or_insert_with(|| Box::new(error));
                Err(error)
            }
        }
    }

    fn parse(&mut self, bytes: &[u8], limits: &Limits) -> Result<(usize, Progress), ParseError> {
        let mut at = 0;
        if matches!(self.at, At::RequestLine | At::Fields) {
            let Some(taken) = self.head(bytes, limits)? else {
                return Ok((bytes.len(), Progress::Partial));
            };
            at = taken;
            self.body = Body::new(request_body(&self.fields.facts, self.line.http10)?);
            self.at = At::Body;
            // RFC 9110 §10.1.1: it has no effect without a body, and is ignored from an HTTP/1.0
            // client.
            let expects = self.fields.facts.expect_continue && !self.line.http10;
            if expects && !self.body.is_whole() {
                return Ok((at, Progress::ExpectsContinue));
            }
        }
        if self.at == At::Refused {
            return Err(self.refused.as_deref().copied().unwrap_or(BAD_METHOD));
        }
        let taken = self.body.scan(&bytes[at..], &mut self.fields, limits, &mut |_: &[u8]| {})?;
        Ok(match taken {
            None => (bytes.len(), Progress::Partial),
            Some(taken) => (at + taken, Progress::Complete),
        })
    }

    fn head(&mut self, bytes: &[u8], limits: &Limits) -> Scan {
        let Self { at: state, line, fields, .. } = self;
        let too_long = "the head is too long";
        scan_within(bytes, &mut self.head_bytes, limits.head_bytes, too_long, |window| {
            let mut at = 0;
            if *state == At::RequestLine {
                let Some(taken) = line.scan(window)? else { return Ok(None) };
                at = taken;
                *state = At::Fields;
            }
            let taken = fields.scan(&window[at..], limits.header_count, false)?;
            Ok(taken.map(|taken| at + taken))
        })
    }

    /// Copies the part of method and target that the bytes just read contain.
    fn put_aside(&mut self, bytes: &[u8]) {
        self.aside.extend_from_slice(self.line.text_in(bytes));
        self.line.text_at = 0;
        self.line.text_len = 0;
    }

    fn complete<'a>(&'a mut self, bytes: &'a [u8]) -> Request<'a> {
        if !self.aside.is_empty() {
            self.put_aside(bytes);
        }
        let Self { line, fields: Fields { facts, .. }, body, .. } = *self;
        *self = Self { aside: std::mem::take(&mut self.aside), ..Self::default() };
        let text = if self.aside.is_empty() { line.text_in(bytes) } else { &self.aside };
        // Tokens and visible ASCII are always UTF-8.
        let text = str::from_utf8(text).unwrap_or_default();
        let (method, target) = text.split_once(' ').unwrap_or_default();
        let (http10, body_bytes) = (line.http10, body.total);
        Request { method, target, keep_alive: keeps_alive(&facts, http10), http10, body_bytes }
    }

    /// Whether any byte of the awaited request has come.
    pub fn started(&self) -> bool {
        self.at != At::RequestLine || self.head_bytes > 0
    }

    /// Whether a part of the awaited request's head has come, but not its end.
    pub fn is_within_head(&self) -> bool {
        self.started() && matches!(self.at, At::RequestLine | At::Fields)
    }

    /// The bytes held on the heap: method and target of a request that was split, or a refusal.
    pub fn buffered_bytes(&self) -> usize {
        self.aside.capacity() + self.refused.as_deref().map_or(0, size_of_val)
    }
}

/// [`FedRequest`] without the texts.
enum Progress {
    Partial,
    ExpectsContinue,
    Complete,
}

const PREFIX: &[u8] = b"HTTP/1.";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// One empty line before the request is skipped (RFC 9112 §2.2).
    #[default]
    EmptyLine,
    EmptyLineLf,
    MethodStart,
    Method,
    TargetStart,
    Target,
    /// The number of bytes of the prefix that were taken.
    Version(u8),
    Minor,
    Cr,
    Lf,
}

/// The automaton over a request line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestLine {
    step: Step,
    pub(super) http10: bool,
    /// The position in the input of method and target, with the space between them.
    text_at: usize,
    text_len: usize,
}

impl RequestLine {
    fn text_in<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.text_at..self.text_at + self.text_len).unwrap_or_default()
    }

    /// Takes a complete, legal line without an empty line before it. Otherwise only `http10` may
    /// change.
    fn plain_line(&mut self, bytes: &[u8]) -> Option<usize> {
        let method_end = token_end(bytes, 0);
        let target = bytes.get(method_end + 1..)?;
        let target_len = target.iter().position(|byte| !matches!(byte, b'!'..=b'~'))?;
        let version = target[target_len..].first_chunk::<11>()?;
        self.http10 = match version {
            b" HTTP/1.1\r\n" => false,
            b" HTTP/1.0\r\n" => true,
            _ => return None,
        };
        if method_end == 0 || bytes[method_end] != b' ' || target_len == 0 {
            return None;
        }
        self.text_len = method_end + 1 + target_len;
        Some(self.text_len + version.len())
    }

    pub(super) fn scan(&mut self, bytes: &[u8]) -> Scan {
        let plain = (self.step == Step::EmptyLine).then(|| self.plain_line(bytes));
        if let Some(Some(end)) = plain {
            return Ok(Some(end));
        }
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let from = at;
            self.step = match (self.step, byte) {
                (Step::EmptyLine, b'\r') => Step::EmptyLineLf,
                (Step::EmptyLine, _) if is_token(byte) => {
                    self.step = Step::MethodStart;
                    continue;
                }
                (Step::EmptyLineLf, _) => {
                    expect_lf(byte)?;
                    Step::MethodStart
                }
                (Step::MethodStart, _) if is_token(byte) => {
                    self.text_at = at;
                    self.step = Step::Method;
                    continue;
                }
                (Step::Method, b' ') => Step::TargetStart,
                (Step::Method, _) if is_token(byte) => {
                    at = token_end(bytes, at) - 1;
                    Step::Method
                }
                (Step::EmptyLine | Step::MethodStart | Step::Method, _) => return Err(BAD_METHOD),
                (Step::TargetStart | Step::Target, b'!'..=b'~') => Step::Target,
                (Step::Target, b' ') => Step::Version(0),
                (Step::TargetStart | Step::Target, _) => return Err(BAD_TARGET),
                (Step::Version(taken), _) if byte == PREFIX[usize::from(taken)] => {
                    let whole = usize::from(taken) + 1 == PREFIX.len();
                    if whole { Step::Minor } else { Step::Version(taken + 1) }
                }
                (Step::Minor, b'0'..=b'9') => {
                    self.http10 = byte == b'0';
                    Step::Cr
                }
                (Step::Cr, b'\r') => Step::Lf,
                (Step::Version(_) | Step::Minor | Step::Cr, _) => return Err(BAD_VERSION),
                (Step::Lf, _) => {
                    expect_lf(byte)?;
                    return Ok(Some(at + 1));
                }
            };
            at += 1;
            if matches!(self.step, Step::Method | Step::TargetStart | Step::Target) {
                self.text_len += at - from;
            }
        }
        Ok(None)
    }
}
