//! Caps on everything whose size the peer decides.
//!
//! Must not know: what a message that exceeded one is counted as.

// Reasons for the values: nginx, Apache httpd and Node refuse heads above 8 to 32 KiB, Go above 1
// MiB. A load generator should not be the first to fail on a large but legal head, and 10,000
// connections are never all in the middle of one.
const HEAD_BYTES: usize = 256 * 1024;
// Far above any real message (Node allows 2000 lines, Apache httpd 100).
const HEADER_COUNT: usize = 4096;
// The limit of Node and Go for the chunk extensions of a whole body. Here it applies per line, and
// nothing is stored.
const CHUNK_LINE_BYTES: usize = 16 * 1024;
const TRAILER_BYTES: usize = 64 * 1024;
// RFC 9110 §15.2 allows any number. One interim response every 100 ms for ten seconds is more than
// any server sends.
const INFORMATIONAL: u32 = 100;

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
            head_bytes: HEAD_BYTES,
            header_count: HEADER_COUNT,
            chunk_line_bytes: CHUNK_LINE_BYTES,
            trailer_bytes: TRAILER_BYTES,
            informational: INFORMATIONAL,
        }
    }
}
