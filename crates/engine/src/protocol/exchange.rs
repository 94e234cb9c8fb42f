//! The protocol's exchanges over connections other than HTTP/1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_wire::http2::client::{Terms, Windows};
use trueload_wire::http2::hpack::TABLE_BYTES;
use trueload_wire::shootout::Dialect;

use super::RequestPlan;

/// HTTP/2 instead of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowsPlan {
    /// What the server may send on a stream before it has to wait, in bytes: 1 to 2^31 - 1.
    pub stream_window: u32,
    /// The same for a connection: 65,535 to 2^31 - 1.
    pub connection_window: u32,
    /// Bytes of the table that the server's header blocks may refer to, up to 1 MiB.
    #[serde(default = "table_bytes", skip_serializing_if = "is_table_of_rfc")]
    pub header_table_bytes: u32,
    /// HTTP/1.1 is offered beside it by ALPN: so many requests are in flight on a connection whose server chooses that. Null where
    /// HTTP/2 alone is spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http1_pipeline: Option<u32>,
}

fn table_bytes() -> u32 {
    TABLE_BYTES
}

fn is_table_of_rfc(bytes: &u32) -> bool {
    *bytes == TABLE_BYTES
}

impl From<WindowsPlan> for Terms {
    fn from(plan: WindowsPlan) -> Self {
        let windows = Windows { stream: plan.stream_window, connection: plan.connection_window };
        Terms { windows, table_bytes: plan.header_table_bytes }
    }
}

/// What is exchanged over the connections of a generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ExchangePlan {
    /// Bytes over TCP, which must all come back in order.
    TcpEcho {
        /// The payload's SHA-256 in hex (see `blob`).
        payload_sha256: String,
        /// Bytes of one message: the payload is cut into messages that take turns. Null where it is one message.
        #[serde(default)]
        size: Option<u32>,
        /// With `close`: our side ends behind its message, which must come back all the same.
        #[serde(default)]
        half_close: bool,
    },
    /// Datagrams over UDP, each of which must come back.
    UdpEcho {
        /// The payload's SHA-256 in hex (see `blob`). The first 16 bytes of each datagram give way to its numbers.
        payload_sha256: String,
        /// Bytes of one datagram, 16 to 65,507: the payload is cut into datagrams that take turns. Null where it is one.
        #[serde(default)]
        size: Option<u32>,
    },
    /// WebSocket messages, each of which must come back.
    WsEcho {
        /// The request for the upgrade; the engine adds what RFC 6455 has in it.
        opening: RequestPlan,
        /// The payload's SHA-256 in hex (see `blob`).
        payload_sha256: String,
        /// Bytes of one message: the payload is cut into messages that take turns. Null where it is one message.
        #[serde(default)]
        size: Option<u32>,
        /// Text messages; else binary ones.
        text: bool,
        /// The payload travels in the echo message of this dialect; null for as it is.
        #[serde(default)]
        dialect: Option<Dialect>,
    },
    /// WebSocket messages, each of which goes to all clients; its sender has a receipt. One thread, and phases by `turns`.
    WsBroadcast {
        /// The request for the upgrade; the engine adds what RFC 6455 has in it.
        opening: RequestPlan,
        /// How messages are written.
        dialect: Dialect,
        /// Bytes of a message beside its sender and number.
        padding: u32,
    },
}
