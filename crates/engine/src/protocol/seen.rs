//! The protocol's report of what a reference server of HTTP saw from one mark to the next.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_meter::Figures;

/// What a reference server of HTTP saw since the mark before, or since it began. Every request is counted once:
/// those open at the beginning + `requests` = `answered` + `aborted` + `dropped` + those open at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// As the mark had it.
    pub id: String,
    /// Engine's clock at the beginning.
    pub began_ns: u64,
    /// Engine's clock at the end.
    pub at_ns: u64,
    /// Threads that were put together. Of several, the peaks are sums of their peaks: upper bounds.
    pub threads: u32,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub answered: u64,
    /// Of them those with status 200.
    pub ok: u64,
    /// Of them by status.
    pub statuses: BTreeMap<String, u64>,
    /// Requests whose connection the client ended before they were answered.
    pub aborted: u64,
    /// Requests whose connection the server ended before they were answered: faults, and what came behind a close.
    pub dropped: u64,
    /// Connections that the client ended in the middle of a request.
    pub half_sent: u64,
    /// Requests that were not HTTP as RFC 9112 has it.
    pub malformed: u64,
    /// What the server did wrong on purpose, by kind: `error`, `reset`, `stall`, `slow` (requests), `close` (connections).
    pub faults: BTreeMap<String, u64>,
    /// When the first request was read to its end; null without one.
    pub first_request_ns: Option<u64>,
    /// When the last response was handed to the kernel; null without one.
    pub last_answer_ns: Option<u64>,
    /// Bytes received; under TLS, what was in them.
    pub bytes_in: u64,
    /// Bytes sent; under TLS, before they were sealed.
    pub bytes_out: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Connections that were open.
    pub connections: Concurrent,
    /// Requests that were read and not yet answered.
    pub open_requests: Concurrent,
    /// Requests of each connection that had any, closed or still open; null when none had.
    pub requests_per_connection: Option<Figures>,
    /// Connections with exactly one.
    pub used_once: u64,
    /// Connections with none.
    pub unused: u64,
    /// From an answer to the next request on its connection, where nothing else was open on it; null without one.
    pub gap_ns: Option<Figures>,
    /// By how much answers that had to wait (`/wait/MS`) left later than asked for; null without one.
    pub delay_error_ns: Option<Figures>,
    /// How long a span of the series is.
    pub span_ns: u64,
    /// One entry per span, an hour of them at most; the first and the last are shorter.
    pub series: Vec<Span>,
}

/// How many there were at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concurrent {
    /// At the end.
    pub now: u32,
    /// The most.
    pub peak: u32,
    /// The mean over time.
    pub mean: f64,
}

/// A short stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Engine's clock at its beginning.
    pub began_ns: u64,
    /// How much of it belongs to the interval.
    pub ns: u64,
    /// Requests read to their end.
    pub requests: u64,
    /// Responses handed whole to the kernel.
    pub answered: u64,
    /// The most connections open at once.
    pub connections_peak: u32,
    /// The mean over time.
    pub connections_mean: f64,
    /// The most requests open at once.
    pub open_requests_peak: u32,
    /// The mean over time.
    pub open_requests_mean: f64,
}
