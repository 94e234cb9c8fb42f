//! Compression of messages over WebSocket: which connections agreed to it, and what it saved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Compression of messages over WebSocket (permessage-deflate). Bytes are those of the payloads of
/// messages, on connections that agreed to compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deflate {
    /// Connections that agreed, since the start: also those opened before the phase.
    pub agreed: u64,
    /// Connections that were opened without compression, likewise.
    pub declined: u64,
    /// Bytes of messages sent, before compression.
    pub sent_bytes: u64,
    /// The same as they were sent.
    pub sent_compressed_bytes: u64,
    /// Bytes of messages received, after decompression.
    pub received_bytes: u64,
    /// The same as they came.
    pub received_compressed_bytes: u64,
}

crate::merged! {
    Deflate: agreed, declined, sent_bytes, sent_compressed_bytes, received_bytes,
    received_compressed_bytes
}
