//! The protocol's faults that a reference server of HTTP produces on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reference server of HTTP does wrong on purpose. Each request meets one fault at most, drawn from the seed: the shares
/// add up to 1 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultsPlan {
    /// Decides which requests it meets; each thread has a stream of its own.
    pub seed: u64,
    /// Of all requests, those answered with status 500.
    pub error_share: f64,
    /// Share of requests that are not answered: their connection is reset, or with HTTP/2 their stream.
    pub reset_share: f64,
    /// Share of requests that are answered only after `stall_ns`. Requests behind them on the connection wait, too. A stream stalls half way.
    pub stall_share: f64,
    /// How long a stall is; null for one that never ends.
    pub stall_ns: Option<u64>,
    /// Those whose body comes in pieces, over `slow_ns`.
    pub slow_share: f64,
    /// From the head of a slow answer to its last byte.
    pub slow_ns: u64,
    /// Share of requests whose answer ends half way, with its connection or, with HTTP/2, a reset of its stream.
    pub cut_share: f64,
    /// So many requests are answered on a connection, which the server then closes; null for no such number.
    pub close_after: Option<u32>,
    /// Without saying so in the last answer, or with HTTP/2 by GOAWAY.
    pub close_silently: bool,
    /// CPU time that each request takes beside its answer, in ns.
    pub work_ns: u64,
    /// Share of requests over HTTP/2 whose stream is refused.
    pub refuse_share: f64,
    /// Send GOAWAY after so many requests of an HTTP/2 connection; null for never.
    pub goaway_after: Option<u32>,
    /// Never enlarge the window of an HTTP/2 stream.
    pub stall_window: bool,
    /// How long HTTP/2's SETTINGS, and all that follows them, are delayed.
    pub settings_delay_ns: u64,
}

impl FaultsPlan {
    /// The shares, by the names of their fields.
    pub fn shares(&self) -> [(&'static str, f64); 6] {
        [
            ("error_share", self.error_share),
            ("reset_share", self.reset_share),
            ("stall_share", self.stall_share),
            ("slow_share", self.slow_share),
            ("cut_share", self.cut_share),
            ("refuse_share", self.refuse_share),
        ]
    }
}
