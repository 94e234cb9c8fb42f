//! Statistics of connections whose requests go out on streams: what requests waited for, and what
//! the peers permit and do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of requests by what they wait for. As `waits_ns`, each number is multiplied by the
/// nanoseconds that it lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Waits")]
pub struct Waits<N = u64> {
    /// Requests that are not sent yet, for any reason.
    pub queued: N,
    /// The part of `queued` that waits because the peer permits no more streams.
    pub stream: N,
    /// Request bodies that wait because the peer's window for the connection is used up.
    pub send_connection: N,
    /// Request bodies that wait because the peer's window for their stream is used up.
    pub send_stream: N,
    /// Answers that wait because our window for the connection is used up. An upper bound: every
    /// stream that it can hold up is counted.
    pub receive_connection: N,
    /// Answers that wait because our window for their stream is used up.
    pub receive_stream: N,
}

impl<N: Copy> Waits<N> {
    /// Each number, joined with its counterpart.
    fn joined<M: Copy, J>(&self, other: &Waits<M>, join: impl Fn(N, M) -> J) -> Waits<J> {
        Waits {
            queued: join(self.queued, other.queued),
            stream: join(self.stream, other.stream),
            send_connection: join(self.send_connection, other.send_connection),
            send_stream: join(self.send_stream, other.send_stream),
            receive_connection: join(self.receive_connection, other.receive_connection),
            receive_stream: join(self.receive_stream, other.receive_stream),
        }
    }
}

impl Waits<u128> {
    /// Adds what waits, each for this time.
    pub(crate) fn add_over(&mut self, waits: &Waits, ns: u64) {
        *self = self.joined(waits, |sum, number| sum + u128::from(number) * u128::from(ns));
    }
}

/// The bytes of header fields in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderBytes {
    /// The size of names and values before compression.
    pub plain: u64,
    /// Their size as sent, compressed by HPACK.
    pub coded: u64,
}

impl HeaderBytes {
    #[inline]
    pub(crate) fn note(&mut self, plain: u64, coded: u64) {
        self.plain += plain;
        self.coded += coded;
    }
}

/// One setting as the peers announced it, over all peers and changes. Without an announcement, the
/// default of RFC 9113 counts. Null means no limit, or that no peer was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// The smallest value.
    pub least: Option<u32>,
    /// The largest value.
    pub most: Option<u32>,
    /// Whether any value was heard.
    #[serde(skip)]
    heard: bool,
}

impl Announced {
    pub(crate) fn add(&mut self, value: Option<u32>) {
        self.merge(&Announced { least: value, most: value, heard: true });
    }

    fn merge(&mut self, other: &Announced) {
        if !self.heard {
            *self = *other;
        } else if other.heard {
            self.least = [self.least, other.least].into_iter().flatten().min();
            self.most = self.most.zip(other.most).map(|(mine, theirs)| mine.max(theirs));
        }
    }
}

/// The counts and times of HTTP/2 connections. Times are those of the window. Counts include the
/// drain, and in the first phase also the set-up before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Http2")]
pub struct Account {
    /// Connections on which at least one request was sent over HTTP/2.
    pub connections: u64,
    /// Connections whose peer answered in HTTP/1. A report adds those whose peer chose HTTP/1.1 by
    /// ALPN.
    pub http1: u64,
    /// Connections on which at least one request was sent over HTTP/1, because the peer chose it.
    #[serde(skip)]
    pub chose_http1: u64,
    /// Connections whose end the peer announced (GOAWAY).
    pub goaways: u64,
    /// Requests that the peer returned unprocessed (GOAWAY, REFUSED_STREAM). They may be sent
    /// again.
    pub returned: u64,
    /// Streams that we reset: their requests timed out, or their answers were malformed.
    pub resets: u64,
    /// The number of open streams, integrated over time in ns. Divided by the window, it is the
    /// mean number of streams in flight. It can exceed 64 bits.
    #[serde(rename = "streams_ns")]
    pub open_ns: u128,
    /// What requests waited for, integrated over time in ns.
    pub waits_ns: Waits<u128>,
    /// The header fields of requests.
    pub headers_out: HeaderBytes,
    /// The header fields of answers.
    pub headers_in: HeaderBytes,
    /// MAX_CONCURRENT_STREAMS: how many streams the peer permits at once.
    pub max_concurrent_streams: Announced,
    /// INITIAL_WINDOW_SIZE, in bytes.
    pub initial_window_size: Announced,
    /// MAX_FRAME_SIZE, in bytes.
    pub max_frame_size: Announced,
    /// HEADER_TABLE_SIZE, in bytes.
    pub header_table_size: Announced,
}

impl Account {
    /// Adds the statistics of other connections or of another time span.
    pub fn merge(&mut self, other: &Account) {
        self.connections += other.connections;
        self.http1 += other.http1;
        self.chose_http1 += other.chose_http1;
        self.goaways += other.goaways;
        self.returned += other.returned;
        self.resets += other.resets;
        self.open_ns += other.open_ns;
        self.waits_ns = self.waits_ns.joined(&other.waits_ns, |mine, theirs| mine + theirs);
        self.headers_out.note(other.headers_out.plain, other.headers_out.coded);
        self.headers_in.note(other.headers_in.plain, other.headers_in.coded);
        self.max_concurrent_streams.merge(&other.max_concurrent_streams);
        self.initial_window_size.merge(&other.initial_window_size);
        self.max_frame_size.merge(&other.max_frame_size);
        self.header_table_size.merge(&other.header_table_size);
    }

    /// The statistics after a window that already reported these connections and times: only later
    /// events are new.
    pub fn behind_window(self) -> Self {
        let (open_ns, waits_ns) = Default::default();
        Account { connections: 0, chose_http1: 0, open_ns, waits_ns, ..self }
    }
}
