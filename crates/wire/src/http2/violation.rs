//! A peer's violation of the protocol, and what it ends.

use super::frame::ErrorCode;

/// What a violation ends (RFC 9113 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole connection.
    Connection,
    /// Only this stream. Its frame was consumed, and the connection continues after it.
    Stream(u32),
}

/// A violation by the peer. The text names it and never quotes the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP/2: {why}")]
pub struct Violation {
    /// What the violation ends.
    pub scope: Scope,
    /// The error code that is sent to the peer.
    pub code: ErrorCode,
    /// A description of the violation.
    pub why: &'static str,
}

impl Violation {
    /// A violation that ends the connection.
    pub const fn of_connection(code: ErrorCode, why: &'static str) -> Self {
        Violation { scope: Scope::Connection, code, why }
    }

    /// A violation that ends a stream.
    pub const fn of_stream(stream: u32, code: ErrorCode, why: &'static str) -> Self {
        Violation { scope: Scope::Stream(stream), code, why }
    }

    /// A violation that ends the connection with PROTOCOL_ERROR.
    pub const fn protocol(why: &'static str) -> Self {
        Violation::of_connection(ErrorCode::ProtocolError, why)
    }
}
