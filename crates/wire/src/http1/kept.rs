//! A head that is kept for reading its fields, as an upgrade to another protocol requires.
//!
//! How it works: the automata of `http1` refuse the same input at the same byte as always. The
//! bytes that they accept are kept until the head is complete, capped like every head. Then lines
//! are looked up in it.
//!
//! Must not know: which protocol follows.

use super::fields::{Fields, Writer};
pub(crate) use super::head::Framed;
use super::head::request_body;
use super::limits::{ParseError, Scan, scan_within};
use super::request::RequestLine;
use super::status_line::StatusLine;
use crate::message::Limits;

/// The start line of a head.
#[derive(Debug)]
enum Start {
    Status(StatusLine),
    Request(RequestLine),
}

/// Reads one head and keeps it.
#[derive(Debug)]
pub(crate) struct KeptHead {
    start: Start,
    in_fields: bool,
    used: u32,
    fields: Fields,
    bytes: Vec<u8>,
}

impl KeptHead {
    /// The head of a response to a request for an upgrade, where 101 is a possible answer.
    pub(crate) fn of_upgrade() -> Self {
        Self::new(Start::Status(StatusLine::after_upgrade()), Writer::Server)
    }

    pub(crate) fn of_request() -> Self {
        Self::new(Start::Request(RequestLine::default()), Writer::Client)
    }

    fn new(start: Start, writer: Writer) -> Self {
        let fields = Fields::of(writer);
        KeptHead { start, in_fields: false, used: 0, fields, bytes: Vec::new() }
    }

    /// Feeds bytes. `Some(n)`: the head is complete, and `n` of the bytes belong to it.
    pub(crate) fn feed(&mut self, bytes: &[u8], limits: &Limits) -> Scan {
        let Self { start, in_fields, used, fields, .. } = self;
        let taken =
            scan_within(bytes, used, limits.head_bytes, "the head is too long", |window| {
                let mut at = 0;
                if !*in_fields {
                    let taken = match start {
                        Start::Status(line) => line.scan(window, true)?,
                        Start::Request(line) => line.scan(window)?,
                    };
                    let Some(taken) = taken else { return Ok(None) };
                    at = taken;
                    *in_fields = true;
                }
                let taken = fields.scan(&window[at..], limits.header_count, false)?;
                Ok(taken.map(|taken| at + taken))
            })?;
        self.bytes.extend_from_slice(&bytes[..taken.unwrap_or(bytes.len())]);
        if taken.is_some() {
            unfold(&mut self.bytes);
        }
        Ok(taken)
    }

    /// Whether any byte has come.
    pub(crate) fn started(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The status of a complete response head.
    pub(crate) fn status(&self) -> u16 {
        if let Start::Status(line) = &self.start { line.status } else { 0 }
    }

    pub(crate) fn is_http10(&self) -> bool {
        match &self.start {
            Start::Status(line) => line.http10,
            Start::Request(line) => line.http10,
        }
    }

    /// The method and target of a complete request head.
    pub(crate) fn request_line(&self) -> (&str, &str) {
        // One empty line may precede it. Tokens and visible ASCII are always UTF-8.
        let line = self.lines().find(|line| !line.is_empty()).unwrap_or_default();
        let line = str::from_utf8(line).unwrap_or_default();
        let (method, rest) = line.split_once(' ').unwrap_or_default();
        (method, rest.split_once(' ').map_or(rest, |(target, _)| target))
    }

    pub(crate) fn request_body(&self) -> Result<Framed, ParseError> {
        request_body(&self.fields.facts, self.is_http10())
    }

    /// Whether the head announces content, regardless of what its status makes of that.
    pub(crate) fn has_content(&self) -> bool {
        let facts = &self.fields.facts;
        facts.chunked || facts.length.is_some_and(|length| length > 0)
    }

    /// The values of all fields with this name, in order, without surrounding whitespace.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        // A start line never matches: it has a space before any colon, after the method or
        // `HTTP/1.1`.
        self.lines().filter_map(move |line| {
            let at = line.iter().position(|&byte| byte == b':')?;
            let named = line[..at].eq_ignore_ascii_case(name.as_bytes());
            named.then(|| line[at + 1..].trim_ascii())
        })
    }

    /// The non-empty elements of all lists with this name (RFC 9110 §5.6.1), in order.
    pub(crate) fn elements<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let elements = self.values(name).flat_map(|value| value.split(|&byte| byte == b','));
        elements.map(|element| element.trim_ascii()).filter(|element| !element.is_empty())
    }

    /// Whether a list with this name has this element, ignoring case.
    pub(crate) fn has_element(&self, name: &str, element: &str) -> bool {
        self.elements(name).any(|one| one.eq_ignore_ascii_case(element.as_bytes()))
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// Replaces each obs-fold in a complete head by spaces, so that each field is one line (RFC 9112
/// §5.2).
fn unfold(head: &mut [u8]) {
    for at in 2..head.len() {
        if matches!(head[at], b' ' | b'\t') && head[at - 2..at] == *b"\r\n" {
            head[at - 2..at].fill(b' ');
        }
    }
}
