//! The protocol of a reference server: its plan, its faults, and its reports of what it has seen, since it began
//! and from one mark to the next.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::Figures;
use trueload_wire::shootout::Dialect;

use super::{AddressPlan, DriverPlan, ServeTlsPlan};

/// What one reference server is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServePlan {
    /// The version of this protocol; any other is refused.
    pub protocol: u32,
    /// Port 0 for a free one; `ready` names it. A socket file has one thread.
    pub listen: AddressPlan,
    /// What it does.
    #[serde(default, skip_serializing_if = "ServicePlan::is_plain_http")]
    pub service: ServicePlan,
    /// Threads, each with its own listening socket on the same port.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty for no pinning.
    pub cpus: Vec<u32>,
    /// What carries the sockets.
    #[serde(default)]
    pub driver: DriverPlan,
    /// For so long a thread polls before it sleeps; 0 for not at all.
    #[serde(default)]
    pub spin_ns: u64,
    /// What TLS is set up with, or null for none.
    #[serde(default)]
    pub tls: Option<ServeTlsPlan>,
    /// A connection on which nothing comes or goes for so long is closed; null for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ns: Option<u64>,
    /// Connections of all threads that may be open at once; further ones are closed. Null for any
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
}

/// What a server of HTTP/2 permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http2Plan {
    /// Streams that a connection may have open at once.
    pub max_streams: u32,
}

/// What a reference server does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ServicePlan {
    /// HTTP: `/`, `/perf`, `/bytes/1024`, `/bytes/65536`, `/wait/MS`, `/stream/N/MS`, `/redirect/N`.
    Http {
        /// Keep a record of what is seen, which `mark` asks for.
        #[serde(default)]
        record: bool,
        /// What it does wrong on purpose; null for nothing.
        #[serde(default)]
        faults: Option<FaultsPlan>,
        /// HTTP/2 beside HTTP/1.1 on the same port; null for HTTP/1.1 alone.
        #[serde(default)]
        http2: Option<Http2Plan>,
    },
    /// Every byte comes back over TCP.
    TcpEcho,
    /// Every datagram comes back over UDP.
    UdpEcho,
    /// WebSocket: `/echo` returns every message, `/ws` has the contract `ws-shootout`.
    Ws {
        /// How its messages are written.
        #[serde(default)]
        dialect: Dialect,
    },
}

impl Default for ServicePlan {
    fn default() -> Self {
        ServicePlan::Http { record: false, faults: None, http2: None }
    }
}

impl ServicePlan {
    /// Whether it is the default service, which need not be named.
    pub fn is_plain_http(&self) -> bool {
        *self == ServicePlan::default()
    }
}

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
    /// Connections that were closed because a request's head was half-sent for a minute, or
    /// because nothing came for as long as the plan says.
    #[serde(default)]
    pub timed_out: u64,
    /// Connections that were closed because there were as many as the plan permits.
    #[serde(default)]
    pub refused: u64,
}

trueload_meter::merged! {
    Served: accepted, open, open_peak, requests, responses, malformed, aborted, waiting, bytes_in,
    bytes_out, handshakes_full, handshakes_resumed, tls_failed, deliveries, slow, timed_out, refused;
    keeps: at_ns
}

/// What a reference server of HTTP saw since the mark before, or since it began. Every request is counted once:
/// those open at the beginning + `requests` = `answered` + `aborted` + `dropped` + those open at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The name that the mark gave.
    pub id: String,
    /// The beginning of the interval, on the engine's clock.
    pub began_ns: u64,
    /// The end of the interval, on the engine's clock.
    pub at_ns: u64,
    /// The number of server threads whose counts are added. With several, the peaks are sums of
    /// their peaks, so they are upper bounds.
    pub threads: u32,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub answered: u64,
    /// The part of `answered` with status 200.
    pub ok: u64,
    /// The responses of `answered`, by status.
    pub statuses: BTreeMap<String, u64>,
    /// Requests whose connection the client ended before they were answered.
    pub aborted: u64,
    /// Requests whose connection the server ended before they were answered: by a fault, or because
    /// an earlier response closed it.
    pub dropped: u64,
    /// Connections that the client ended in the middle of a request.
    pub half_sent: u64,
    /// Requests that violate RFC 9112.
    pub malformed: u64,
    /// Faults that the server made on purpose, by kind: `error`, `reset`, `stall` and `slow` count
    /// requests, `close` counts connections.
    pub faults: BTreeMap<String, u64>,
    /// The time when the first request was read to its end, on the engine's clock; null without
    /// one.
    pub first_request_ns: Option<u64>,
    /// The time when the last response was handed to the kernel, on the engine's clock; null
    /// without one.
    pub last_answer_ns: Option<u64>,
    /// Bytes received; under TLS, the bytes after decryption.
    pub bytes_in: u64,
    /// Bytes sent; under TLS, the bytes before encryption.
    pub bytes_out: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended.
    pub closed: u64,
    /// The number of open connections.
    pub connections: Concurrent,
    /// The number of requests that were read and not yet answered.
    pub open_requests: Concurrent,
    /// The number of requests of each connection that had any, closed or still open; null if none
    /// had.
    pub requests_per_connection: Option<Figures>,
    /// Connections with exactly one request.
    pub used_once: u64,
    /// Connections with no request.
    pub unused: u64,
    /// The time from an answer to the next request of its connection, in ns, if nothing else was
    /// open on it; null without one.
    pub gap_ns: Option<Figures>,
    /// How much later than asked for delayed answers (`/wait/MS`) were sent, in ns; null without
    /// one.
    pub delay_error_ns: Option<Figures>,
    /// The length of each span of the series, in ns.
    pub span_ns: u64,
    /// One entry per span, for an hour at most. The first and the last are shorter.
    pub series: Vec<Span>,
}

/// How many were open at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concurrent {
    /// The number at the end of the interval.
    pub now: u32,
    /// The largest number.
    pub peak: u32,
    /// The mean over time.
    pub mean: f64,
}

/// A short stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its beginning, on the engine's clock.
    pub began_ns: u64,
    /// The part of it that belongs to the interval, in ns.
    pub ns: u64,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub answered: u64,
    /// The most connections open at once.
    pub connections_peak: u32,
    /// The mean number of open connections over time.
    pub connections_mean: f64,
    /// The most requests open at once.
    pub open_requests_peak: u32,
    /// The mean number of open requests over time.
    pub open_requests_mean: f64,
}

/// What a reference server of HTTP does wrong on purpose. Each request meets one fault at most, drawn from the seed: the shares
/// add up to 1 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FaultsPlan {
    /// Decides which requests it meets; each thread has a stream of its own.
    pub seed: u64,
    /// Share of requests that are answered with status 500.
    pub error_share: f64,
    /// Share of requests that are not answered: their connection is reset, or with HTTP/2 their stream.
    pub reset_share: f64,
    /// Share of requests that are answered only after `stall_ns`. Requests behind them on the connection wait, too. A stream stalls half way.
    pub stall_share: f64,
    /// How long a stall is; null for one that never ends.
    pub stall_ns: Option<u64>,
    /// Share of requests whose body is sent in pieces, over `slow_ns`.
    pub slow_share: f64,
    /// From the head of a slow answer to its last byte.
    pub slow_ns: u64,
    /// Share of requests whose answer ends half way, with its connection or, with HTTP/2, a reset of its stream.
    pub cut_share: f64,
    /// Close a connection after so many answers; null for never.
    pub close_after: Option<u32>,
    /// Do not announce that close in the last answer, or with HTTP/2 by GOAWAY.
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
