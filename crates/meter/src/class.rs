//! Failure classes: the closed list of ways in which a request can end badly.
//!
//! A class says what was seen on the wire or in the kernel. Whether the run is still valid is
//! decided by the verdict, not by the engine.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The failure class of one request. Records and tables show its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Class { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl Class {
            /// Every class, in the order of the design document.
            pub const ALL: &'static [Class] = &[$(Class::$variant,)*];

            /// The fixed name, as in `counts.failed`.
            pub fn name(self) -> &'static str {
                match self { $(Class::$variant => $name,)* }
            }
        }
    };
}

classes! {
    /// The name did not resolve.
    Dns = "dns",
    /// The peer refused the connection.
    ConnectRefused = "connect.refused",
    /// No answer to the connection attempt in time.
    ConnectTimeout = "connect.timeout",
    /// No route to the peer.
    ConnectUnreachable = "connect.unreachable",
    /// The proxy did not open a tunnel to the server.
    ConnectProxy = "connect.proxy",
    /// No local port was left.
    LocalPorts = "local.ports",
    /// No file descriptor was left.
    LocalFds = "local.fds",
    /// The peer's bytes are not TLS, or violate the TLS protocol.
    TlsProtocol = "tls.protocol",
    /// The peer's certificate is not accepted.
    TlsCert = "tls.cert",
    /// The peer closed in the middle of the TLS handshake.
    TlsEof = "tls.eof",
    /// No application protocol in common.
    TlsAlpn = "tls.alpn",
    /// The peer ended TLS with an alert.
    TlsAlert = "tls.alert",
    /// No version of TLS in common.
    TlsVersion = "tls.version",
    /// The TLS handshake was not done in time.
    TimeoutTls = "timeout.tls",
    /// The connection was reset.
    Reset = "reset",
    /// The peer closed before any byte of the answer.
    Empty = "empty",
    /// The peer closed in the middle of the answer.
    Truncated = "truncated",
    /// The answer is not what RFC 9112 allows.
    Framing = "framing",
    /// The answer passed a cap (head, chunk line, trailers).
    Limit = "limit",
    /// Bytes that belong to no outstanding request.
    Unsolicited = "unsolicited",
    /// The answer's content is not the expected one.
    Mismatch = "mismatch",
    /// The answer's status is not an expected one.
    Status = "status",
    /// The answer lacks a value that the session takes from it.
    Extract = "extract",
    /// The answer is compressed in a way that cannot be read, and its content is needed.
    Encoded = "encoded",
    /// The answer is a redirect that cannot be followed, or one too many.
    Redirect = "redirect",
    /// The request was pipelined behind another on a connection that the peer closed.
    ClosedPipelined = "closed_pipelined",
    /// No byte of the answer in time.
    TimeoutFirstByte = "timeout.first_byte",
    /// The answer began but was not complete in time.
    TimeoutTotal = "timeout.total",
    /// The next part of a streamed answer did not come in time.
    TimeoutStall = "timeout.stall",
    /// The connection was not upgraded to WebSocket as RFC 6455 requires.
    WsHandshake = "ws.handshake",
    /// The answer is not what RFC 6455 allows.
    WsProtocol = "ws.protocol",
    /// A text message is not valid UTF-8.
    WsPayload = "ws.payload",
    /// The peer closed the WebSocket.
    WsClosed = "ws.closed",
    /// The peer reset the stream, or the answer is not what RFC 9113 allows on a stream.
    H2Stream = "h2.stream",
    /// The peer announced the end of the connection (GOAWAY) and did not answer.
    H2Goaway = "h2.goaway",
    /// The peer's bytes are not what RFC 9113 allows on a connection.
    H2Protocol = "h2.protocol",
    /// A frame has a length that RFC 9113 does not allow.
    H2FrameSize = "h2.frame_size",
    /// The peer violated flow control.
    H2Flow = "h2.flow",
    /// The message did not reach a receiver.
    Lost = "lost",
    /// The message reached a receiver more than once.
    Duplicate = "duplicate",
}

/// By name, so that JSON has them in alphabetical order.
impl Ord for Class {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for Class {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A string: a reader takes any class, also one that is new.
impl JsonSchema for Class {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Class".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_shown_by_its_name() {
        assert_eq!((Class::Lost.to_string(), Class::Lost.name()), ("lost".to_owned(), "lost"));
    }
}
