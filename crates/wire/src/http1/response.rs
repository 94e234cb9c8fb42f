//! The response parser.

pub use super::limits::{Limits, ParseError};

/// A whole final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// 100 to 599.
    pub status: u16,
    /// Whether another request may be sent on this connection.
    pub keep_alive: bool,
    /// Length of the decoded body.
    pub body_bytes: u64,
}

/// What feeding led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// More bytes are needed; all that were given are consumed.
    Partial,
    /// The response is whole.
    Complete(Response),
}

/// Reads one response after the other.
#[derive(Debug, Default)]
pub struct ResponseParser {}

impl ResponseParser {
    /// A parser that awaits its first response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds bytes of one response.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        head_request: bool,
        limits: &Limits,
        body: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, Fed), ParseError> {
        let _ = (bytes, head_request, limits, body);
        todo!()
    }

    /// The peer's FIN.
    pub fn end(&mut self) -> Option<Response> {
        todo!()
    }

    /// Whether any byte of the response now awaited has come (a 1xx counts).
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
