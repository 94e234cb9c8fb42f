//! The two kinds of refusal of a peer's bytes, and scans that heed the caps.
//!
//! Must not know: which message exceeded a cap, or what a failure is counted as.

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
