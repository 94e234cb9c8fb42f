//! The protocol's report of what a reference server has seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reference server saw since it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// Engine's clock.
    pub at_ns: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u32,
    /// The most connections open at once.
    pub open_peak: u32,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub responses: u64,
    /// Requests that were not HTTP as RFC 9112 has it; over WebSocket what was no handshake, frame or message either.
    pub malformed: u64,
    /// Requests whose connection was gone before their response could be sent.
    pub aborted: u64,
    /// Responses that wait for their time (`/wait/MS`).
    pub waiting: u32,
    /// Bytes received; under TLS, what was in them.
    pub bytes_in: u64,
    /// Bytes sent; under TLS, before they were sealed.
    pub bytes_out: u64,
    /// TLS handshakes in full.
    #[serde(default)]
    pub handshakes_full: u64,
    /// TLS handshakes that took up an earlier session.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Connections on which TLS failed.
    #[serde(default)]
    pub tls_failed: u64,
    /// Broadcast messages handed to the kernel, one for each listener.
    #[serde(default)]
    pub deliveries: u64,
    /// Listeners that took nothing, and were closed.
    #[serde(default)]
    pub slow: u64,
}
