//! Caps on everything whose size the peer decides, and the two kinds of refusal of its bytes.
//!
//! Must not know: which message exceeded a cap, or what a failure is counted as.

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

/// Why bytes were refused. The text names the mistake and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes violate HTTP/1 as defined by RFC 9112.
    #[error("framing: {0}")]
    Framing(&'static str),
    /// The bytes exceed one of the [`Limits`].
    #[error("limit: {0}")]
    Limit(&'static str),
}

/// `Some(n)`: the part is complete and took `n` bytes. `None`: all bytes were taken and more are
/// needed.
pub(crate) type Scan = Result<Option<usize>, ParseError>;

/// Runs `scan` over at most the bytes that a capped part may still take; `used` were taken before.
///
/// The refusal is triggered by the first byte beyond the cap, so a part that ends exactly at the
/// cap is complete. A mistake before the cap is reported in preference to the cap.
pub(crate) fn scan_within(
    bytes: &[u8],
    used: &mut u32,
    cap_bytes: usize,
    too_long: &'static str,
    scan: impl FnOnce(&[u8]) -> Scan,
) -> Scan {
    let room = cap_bytes.saturating_sub(*used as usize);
    let window = bytes.get(..room).unwrap_or(bytes);
    let taken = scan(window)?;
    if taken.is_none() && window.len() < bytes.len() {
        return Err(ParseError::Limit(too_long));
    }
    // A cap above 4 GiB has no effect: the count saturates there.
    let count = u32::try_from(taken.unwrap_or(window.len())).unwrap_or(u32::MAX);
    *used = used.saturating_add(count);
    Ok(taken)
}
