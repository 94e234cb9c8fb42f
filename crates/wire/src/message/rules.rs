//! What a good answer to a request is, and caps on everything whose size the peer decides.
//!
//! Must not know: what a message that exceeded a cap is counted as.

/// The criteria for a good answer to a request, and properties of the request itself.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The accepted status codes; none accepts any 2xx.
    pub statuses: Option<Vec<u16>>,
    /// The exact body expected; none accepts any.
    pub body: Option<Vec<u8>>,
    /// The requests are HEAD: answers have no body.
    pub head_request: bool,
    /// A request may be sent again if its connection went stale (RFC 9110 §9.2.2).
    pub idempotent: bool,
    /// Caps on the sizes that the peer decides.
    pub limits: Limits,
}

impl Rules {
    #[inline]
    pub(crate) fn accepts(&self, status: u16) -> bool {
        match &self.statuses {
            Some(codes) => codes.contains(&status),
            None => (200..300).contains(&status),
        }
    }
}

/// Caps on the size of one message. A message exactly as large as a cap is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of the start line, all header lines and the empty line, in bytes. Each 1xx response
    /// has a head of its own.
    pub head_bytes: usize,
    /// The number of header lines of one message; trailer lines have the same cap.
    pub header_count: usize,
    /// The size of one chunk-size line with its extensions and its CRLF, in bytes.
    pub chunk_line_bytes: usize,
    /// The size of all trailer lines and the empty line after them, in bytes.
    pub trailer_bytes: usize,
    /// The number of 1xx responses before a final one.
    pub informational: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // nginx, Apache httpd and Node refuse heads above 8 to 32 KiB, Go above 1 MiB. A load
            // generator should not be the first to fail on a large but legal head, and 10,000
            // connections are never all in the middle of one.
            head_bytes: 256 * 1024,
            // Far above any real message (Node allows 2000 lines, Apache httpd 100).
            header_count: 4096,
            // The limit of Node and Go for the chunk extensions of a whole body. Here it applies
            // per line, and nothing is stored.
            chunk_line_bytes: 16 * 1024,
            trailer_bytes: 64 * 1024,
            // RFC 9110 §15.2 allows any number. One interim response every 100 ms for ten seconds
            // is more than any server sends.
            informational: 100,
        }
    }
}
