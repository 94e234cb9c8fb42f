//! The caps on everything whose size the peer decides, and the two ways in which its bytes are refused.
//!
//! What it must not know: which message a cap was met in, or what a failure is counted as.

// The values: nginx, Apache httpd and Node refuse heads of 8 to 32 KiB, Go ones of 1 MiB; a load generator
// should not be the first to fail on a big but legal head, and 10,000 connections are never all in one.
const HEAD_BYTES: usize = 256 * 1024;
// Far above any real message (Node allows 2000 lines, Apache httpd 100).
const HEADER_COUNT: usize = 4096;
// What Node and Go allow the chunk extensions of a whole body; here it is per line, and nothing is kept.
const CHUNK_LINE_BYTES: usize = 16 * 1024;
const TRAILER_BYTES: usize = 64 * 1024;
// RFC 9110 §15.2 allows any number; an interim response every 100 ms for ten seconds is more than any server does.
const INFORMATIONAL: u32 = 100;

/// Caps on what one message may hold. A message that is exactly as large as a cap is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The start line, all header lines and the empty line, in bytes. Each 1xx response has a head of its own.
    pub head_bytes: usize,
    /// Header lines of one message; trailer lines have the same cap.
    pub header_count: usize,
    /// One chunk-size line with its extensions and its CRLF, in bytes.
    pub chunk_line_bytes: usize,
    /// All trailer lines and the empty line after them, in bytes.
    pub trailer_bytes: usize,
    /// 1xx responses before a final one.
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
    /// The bytes cannot be HTTP/1 as RFC 9112 has it.
    #[error("framing: {0}")]
    Framing(&'static str),
    /// The bytes go beyond one of the [`Limits`].
    #[error("limit: {0}")]
    Limit(&'static str),
}

/// `Some(n)`: the part is whole and took `n` bytes. `None`: every byte was taken and more are needed.
pub(crate) type Scan = Result<Option<usize>, ParseError>;

/// Runs `scan` over the bytes that a capped part may still take, of which `used` were taken before.
///
/// The byte that goes beyond the cap is what is refused, so a part that ends at the cap is whole, and a mistake before
/// the cap is told rather than the cap.
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
    // A cap beyond 4 GiB is none: the count stops there.
    let count = u32::try_from(taken.unwrap_or(window.len())).unwrap_or(u32::MAX);
    *used = used.saturating_add(count);
    Ok(taken)
}
