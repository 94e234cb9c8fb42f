//! The caps on everything whose size the peer decides, and the two ways in which a peer's bytes are refused.

/// Caps on what one message may hold. Sizes in bytes, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The start line and all header lines of one message.
    pub head_bytes: usize,
    /// Header lines of one message; trailer lines have the same cap.
    pub header_count: usize,
    /// One chunk-size line with its extensions.
    pub chunk_line_bytes: usize,
    /// All trailer lines after the last chunk.
    pub trailer_bytes: usize,
    /// 1xx responses before a final one.
    pub informational: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 256 * 1024,
            header_count: 4096,
            chunk_line_bytes: 16 * 1024,
            trailer_bytes: 64 * 1024,
            informational: 100,
        }
    }
}

/// Why bytes were refused. The text says what, never quoting the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes are not HTTP/1 as RFC 9112 has it.
    #[error("framing: {0}")]
    Framing(&'static str),
    /// The bytes go beyond one of the [`Limits`].
    #[error("limit: {0}")]
    Limit(&'static str),
}
