//! The protocol's report of what a reference server has seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reference server has seen since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// The time of this line, on the engine's clock.
    pub at_ns: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that are open now.
    pub open: u32,
    /// The most connections open at once.
    pub open_peak: u32,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub responses: u64,
    /// Requests that violate RFC 9112. Over WebSocket, also handshakes, frames and messages that
    /// are not valid.
    pub malformed: u64,
    /// Requests whose connection was gone before their response could be sent.
    pub aborted: u64,
    /// Responses that wait for their time now (`/wait/MS`).
    pub waiting: u32,
    /// Bytes received; under TLS, the bytes after decryption.
    pub bytes_in: u64,
    /// Bytes sent; under TLS, the bytes before encryption.
    pub bytes_out: u64,
    /// Full TLS handshakes.
    #[serde(default)]
    pub handshakes_full: u64,
    /// TLS handshakes that resumed an earlier session.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// Connections on which TLS failed.
    #[serde(default)]
    pub tls_failed: u64,
    /// Broadcast messages handed to the kernel, one for each listener.
    #[serde(default)]
    pub deliveries: u64,
    /// Listeners that were closed because they did not read.
    #[serde(default)]
    pub slow: u64,
}

trueload_meter::merged! {
    Served: accepted, open, open_peak, requests, responses, malformed, aborted, waiting, bytes_in,
    bytes_out, handshakes_full, handshakes_resumed, tls_failed, deliveries, slow; keeps: at_ns
}
