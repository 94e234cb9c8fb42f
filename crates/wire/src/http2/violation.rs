//! What a peer did wrong, and what ends for it.

use super::frame::ErrorCode;

/// What ends (RFC 9113 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The connection.
    Connection,
    /// This stream alone; the frame was taken, and the connection goes on behind it.
    Stream(u32),
}

/// A mistake of the peer. The text names it and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP/2: {why}")]
pub struct Violation {
    /// What ends.
    pub scope: Scope,
    /// What the peer is told.
    pub code: ErrorCode,
    /// The mistake.
    pub why: &'static str,
}

impl Violation {
    /// One that ends the connection.
    #[must_use]
    pub const fn of_connection(code: ErrorCode, why: &'static str) -> Self {
        Violation { scope: Scope::Connection, code, why }
    }

    /// One that ends a stream.
    #[must_use]
    pub const fn of_stream(stream: u32, code: ErrorCode, why: &'static str) -> Self {
        Violation { scope: Scope::Stream(stream), code, why }
    }

    /// The connection ends with PROTOCOL_ERROR.
    #[must_use]
    pub const fn protocol(why: &'static str) -> Self {
        Violation::of_connection(ErrorCode::ProtocolError, why)
    }
}
