//! The request parser, for the reference server.

pub use super::limits::{Limits, ParseError};

/// A whole request; its texts are borrowed from the bytes last fed or from the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `HEAD`, …; a token.
    pub method: &'a str,
    /// The request target as sent.
    pub target: &'a str,
    /// Whether the client will hear another response on this connection.
    pub keep_alive: bool,
    /// HTTP/1.0 rather than HTTP/1.1.
    pub http10: bool,
    /// Length of the decoded body, which was skipped.
    pub body_bytes: u64,
}

impl<'a> Request<'a> {
    /// The path of the target, without scheme, authority and query.
    pub fn path(&self) -> &'a str {
        self.target
    }
}

/// What feeding led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FedRequest<'a> {
    /// More bytes are needed; all that were given are consumed.
    Partial,
    /// The head is whole, a body follows, and the client waits for `100 Continue`; feed the rest afterwards.
    ExpectsContinue,
    /// The request is whole, its body skipped.
    Complete(Request<'a>),
}

/// Reads one request after the other.
#[derive(Debug, Default)]
pub struct RequestParser {}

impl RequestParser {
    /// A parser that awaits its first request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds bytes; returns how many of them belong to this request, and what they led to.
    pub fn feed<'a>(
        &'a mut self,
        bytes: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, FedRequest<'a>), ParseError> {
        let _ = (bytes, limits);
        todo!()
    }

    /// Whether any byte of the request now awaited has come.
    pub fn started(&self) -> bool {
        todo!()
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Bytes held on the heap.
    pub fn buffered_bytes(&self) -> usize {
        0
    }
}
