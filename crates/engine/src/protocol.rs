//! The protocol between the front and the engine: a plan, then lines both ways.
//!
//! Every line is one JSON object with a `type`. Unknown fields are refused by name, so a front and
//! an engine of different versions never half-understand each other. All times are nanoseconds; all
//! clocks are the engine's monotonic one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use trueload_meter::{
    Bin, Class, Counts, Datagrams, Deflate, Deliveries, Early, EncodedTimes, Failed, FlowReport,
    Kinds, Messages, Openings, Packed, Redirects, SessionMeter, SlotSums, Streams, TargetMeter,
    is_zero,
};
use trueload_wire::account::Account;

mod connections;
mod data;
mod exchange;
mod generator;
mod origins;
mod part;
mod replay;
mod requests;
mod scenario;
mod server;
mod tls;

pub use connections::{Connections, Ready};
pub use data::{DataFormat, DataOrder, DataPlan, DataUse};
pub use exchange::{ExchangePlan, WindowsPlan};
pub use generator::{Generator, Lateness, Stalls};
pub use origins::{AddressPlan, OriginConnections, OriginPlan};
pub use part::{CpuLooks, Machine, MachineShares, PartPlan, SharePlan};
pub use replay::{RecordedRequest, ReplayPlan};
pub use requests::{Blob, ExpectPlan, RequestPlan, TargetPlan};
pub use scenario::{FromPlan, MessagePlan, MessagesPlan, StepPlan, TakePlan, ThinkPlan, UsersPlan};
pub use server::{
    Concurrent, FaultsPlan, Http2Plan, Interval, ServePlan, Served, ServicePlan, Span,
};
pub use tls::{ServeTlsPlan, TlsPlan, TrustPlan};
pub use trueload_drive::Choice as DriverPlan;
pub use trueload_load::Stage as StagePlan;
pub use trueload_wire::parts::{End as StreamEndPlan, Kind as StreamKindPlan, Rule as StreamPlan};
pub use trueload_wire::tls::Secured as Tls;

/// The number of the last message of a broadcast of each sender that sent any in a phase. Senders are
/// numbered over all engines, messages of each from 1 over all phases.
pub type Sent = BTreeMap<u32, u32>;

/// Version of this protocol; `hello` carries it, a plan must name it.
///
/// It is raised by the first change of a line after a release, so that mixing a front and an engine
/// of two releases is reported by this number. Nothing was released yet, so it is 1. Between
/// releases a front and an engine are built together, and a field that only one of them knows is
/// refused by name.
pub const PROTOCOL: u32 = 1;

/// A line from the front to the engine. The first one must be `generate`, `serve` or `lock`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToEngine {
    /// Be a load generator.
    Generate(Box<GeneratePlan>),
    /// Be a reference server.
    Serve(ServePlan),
    /// A large body, sent once before the first phase and named by its SHA-256.
    Blob(Blob),
    /// One more phase; phases run in the order in which they come.
    Phase(PhasePlan),
    /// Take another part of the load from some time of the last phase on: this engine joins then,
    /// or gives connections to one that joins. Connections that it gives away are closed once their
    /// requests have ended.
    Share(SharePlan),
    /// Report what the record of an HTTP server holds since the mark before (`seen`), and begin a
    /// new interval.
    Mark {
        /// Named by the front; comes back in `seen`.
        id: String,
    },
    /// Report the time on the engine's clock at once (`clock`).
    Clock {
        /// Named by the front; comes back.
        id: u64,
    },
    /// Measure how far apart two CPUs are (`distance`). Both are busy for some ms.
    Distance {
        /// Both must be granted to the engine.
        cpus: [u32; 2],
    },
    /// Measure the speed of these CPUs until the next such line, which is answered with the results
    /// (`speeds`). An empty list ends it.
    Speeds {
        /// All must be granted to the engine; of others there is nothing to see.
        cpus: Vec<u32>,
    },
    /// Settle the messages of the other engines, in a broadcast that several engines share. It is
    /// sent when all have said `phase_sent`, and answered by `settled`.
    Settle {
        /// The phase.
        id: String,
        /// What all engines have sent in it.
        #[serde(deserialize_with = "untagged")]
        sent: Sent,
        /// What has not come by then on this engine's clock is lost; null for the timeout from now on.
        until_ns: Option<u64>,
    },
    /// The messages that failed at any engine, when all have said `settled`. It is answered by
    /// `phase_done`.
    Charge {
        /// The phase.
        id: String,
        /// Messages of all engines; each takes its own.
        failed: Vec<Failed>,
    },
    /// Take the lock of this machine, on which one run measures at a time, or release it. It is
    /// answered by `lock`. An engine that is told so first does nothing else.
    Lock {
        /// Identifies the run: its engines do not wait for each other.
        token: String,
        /// What the run does, in one line for those who wait for it.
        what: String,
        /// Whether to take the lock.
        hold: bool,
    },
    /// The front is alive. Without this line for 2 s, the engine ends.
    Lease,
    /// End now: open requests are cancelled, and the results are reported.
    Stop,
}

/// The plan of one generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratePlan {
    /// The version of this protocol; any other is refused.
    pub protocol: u32,
    /// The addresses to connect to, resolved by the front and tried in this order at the start.
    /// Empty if there are `origins`.
    pub addresses: Vec<AddressPlan>,
    /// Several origins instead, each with its own addresses and TLS. Each target names its origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<OriginPlan>,
    /// Addresses to connect from, used in turn; empty for the kernel's choice.
    pub local_addresses: Vec<IpAddr>,
    /// What is exchanged over connections; null for HTTP, as the next fields describe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangePlan>,
    /// The one request that is sent, as written on the wire; null if there are `targets`, a
    /// `scenario`, a `replay` or an `exchange`.
    pub request: Option<RequestPlan>,
    /// Requests go over HTTP/2, `pipeline` streams at once on each connection; null for HTTP/1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<WindowsPlan>,
    /// What counts as a good answer to `request`.
    pub expect: ExpectPlan,
    /// Answers are streams, and their parts are timed; null if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamPlan>,
    /// The most redirects of one request that are followed on its server; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<u8>,
    /// Several requests instead, which take turns by weight and are counted separately.
    #[serde(default)]
    pub targets: Vec<TargetPlan>,
    /// Rows of data that fill placeholders of the requests; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataPlan>,
    /// The variables of the front's environment that requests name (`{env:NAME}`), and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The steps of sessions instead: each connection is a virtual user, and goes through them in
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenario: Vec<StepPlan>,
    /// In a conversation over WebSocket, messages that no step expects are allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_unexpected: bool,
    /// Texts of the server that are answered at once, as heartbeats are, and their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<(String, String)>,
    /// Connections offer permessage-deflate: those of `ws_echo`, and of conversations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deflate: bool,
    /// Recorded traffic instead: each request is sent at its recorded time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayPlan>,
    /// Seed for the numbers of `{random}` and the order of shuffled data.
    #[serde(default)]
    pub seed: u64,
    /// Connections to open before `ready`.
    pub connections: u32,
    /// The most requests in flight per connection.
    pub pipeline: u32,
    /// Whether each request has its own connection.
    pub close: bool,
    /// Whether each of these connections is opened when its request is due. The load's rate is then
    /// one of new connections.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connect_open: bool,
    /// The number of threads. Connections are divided among them.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty for no pinning.
    pub cpus: Vec<u32>,
    /// The longest time from the actual send of a request to its last byte, and from a connection
    /// attempt to the established connection, in ns.
    pub timeout_ns: u64,
    /// The most connection attempts per second, over all threads.
    pub connect_rate_per_s: u32,
    /// What carries the sockets.
    #[serde(default)]
    pub driver: DriverPlan,
    /// Bytes that each connection reads per second; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rate_per_s: Option<u64>,
    /// Bytes that each connection writes per second; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_rate_per_s: Option<u64>,
    /// The time for which a thread polls before it sleeps, in ns; 0 for not at all.
    #[serde(default)]
    pub spin_ns: u64,
    /// The longest time for which a busy thread lets answers wait under a closed loop, to read
    /// several at once, in ns; 0 for not at all.
    #[serde(default)]
    pub coalesce_ns: u64,
    /// A connection's pipeline is filled again as soon as this many places are free; null for half
    /// the depth.
    #[serde(default)]
    pub refill: Option<u32>,
    /// The TLS settings; null for no TLS.
    #[serde(default)]
    pub tls: Option<Box<TlsPlan>>,
    /// This engine's part of the load, if several engines share it.
    #[serde(default, skip_serializing_if = "PartPlan::is_whole")]
    pub part: PartPlan,
}

/// One phase over the existing connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhasePlan {
    /// The name that the front gives it. It comes back in every line about the phase.
    pub id: String,
    /// When to send.
    pub load: LoadPlan,
    /// The number of connections for this phase; null for as many as there are.
    pub connections: Option<u32>,
    /// The number of connections, the last ones, that stay open and never send.
    #[serde(default)]
    pub idle: u32,
    /// When to stop sending.
    pub stop: StopPlan,
    /// The earliest start, on the engine's clock; null for at once.
    pub at_ns: Option<u64>,
    /// How far this engine's clock is ahead of the front's from now on, in ns; null if nothing
    /// changes. Only a broadcast that several engines share needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_ns: Option<i64>,
    /// When this engine joins others: how long they have been sending in this phase, counted from
    /// `at_ns`, in ns. 0 if all begin together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub from_ns: u64,
    /// The most rows of single requests that are reported (`request_rows`); 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_rows: u64,
}

/// When to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadPlan {
    /// Each free slot sends at once.
    Closed {
        /// How many connections take part, over time; empty for all of them throughout.
        #[serde(default)]
        active: Vec<StagePlan>,
    },
    /// Requests are sent at scheduled times, whether or not those before were answered.
    Open {
        /// Requests per second, over time; after the last stage nothing is scheduled.
        stages: Vec<StagePlan>,
        /// How they are spaced.
        arrivals: ArrivalsPlan,
        /// Decides the gaps of `poisson`.
        seed: u64,
        /// With `recorded` arrivals: how far into the recording this phase begins.
        #[serde(default, skip_serializing_if = "is_zero")]
        from_ns: u64,
    },
    /// A fixed number of messages is in flight over all connections, which send them in turn. For
    /// `ws_broadcast` only.
    Turns {
        /// In flight: sent, and without a receipt.
        concurrent: u32,
    },
}

/// How the requests of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalsPlan {
    /// At equal intervals.
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// At the times of the plan's `replay`. `stages` then only describe the rate.
    Recorded,
}

/// When to stop sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopPlan {
    /// After this time.
    Duration {
        /// Length of the phase.
        ns: u64,
    },
    /// After this many requests, divided among the connections.
    Requests {
        /// Requests in all; sessions in all, if there is a scenario.
        count: u64,
    },
}

/// A line from the engine to the front.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromEngine {
    /// The first line.
    Hello {
        /// The version of this protocol.
        protocol: u32,
        /// The version of the engine.
        version: String,
        /// Process id, so that the front can account for it.
        pid: u32,
        /// The machine that it runs on.
        #[serde(default)]
        machine: Machine,
    },
    /// The answer to `clock`.
    Clock {
        /// The id of the question.
        id: u64,
        /// The time, on the engine's clock.
        at_ns: u64,
    },
    /// The answer to `distance`.
    Distance {
        /// The CPUs of the question.
        cpus: [u32; 2],
        /// The time of a round trip of a cache line, in ns; null if it could not be measured.
        ns: Option<f64>,
    },
    /// The answer to `speeds`: what was measured since the line before. Empty at the first.
    Speeds {
        /// The time of the first measurement, on the engine's clock.
        from_ns: u64,
        /// One entry per CPU.
        cpus: Vec<CpuLooks>,
    },
    /// The answer to `lock`.
    Lock {
        /// What another run does that has the lock; null if this run has it, or has released it.
        by: Option<String>,
    },
    /// A generator is connected, or a server listens.
    Ready(Ready),
    /// A phase begins to send.
    PhaseStarted {
        /// The phase.
        id: String,
        /// The time, on the engine's clock.
        at_ns: u64,
    },
    /// A phase has sent its last request. Open requests drain.
    PhaseStopped {
        /// The phase.
        id: String,
        /// The time, on the engine's clock.
        at_ns: u64,
    },
    /// A broadcast that several engines share: this engine's own messages of a phase are over. See
    /// `settle`.
    PhaseSent {
        /// The phase.
        id: String,
        /// The number of the last message of each sender of this engine.
        #[serde(deserialize_with = "untagged")]
        sent: Sent,
    },
    /// A broadcast that several engines share: the other engines' messages of a phase are over
    /// here. See `charge`.
    Settled {
        /// The phase.
        id: String,
        /// Messages that failed here; if there are very many, the first ones.
        failed: Vec<Failed>,
    },
    /// The progress of a phase, at least every 250 ms.
    Tick(#[serde(deserialize_with = "untagged")] Tick),
    /// Single requests of a phase that logs them, before its `phase_done`. Those of an engine come
    /// in one line or more, in the order in which they were due.
    RequestRows {
        /// The phase.
        id: String,
        /// The number of requests that have ended, in the first line; 0 in the others.
        ended: u64,
        /// One request in 2^level is here, drawn evenly: those of at least this level.
        level: u8,
        /// The failure classes, by the numbers from 1 in the rows.
        classes: Vec<Class>,
        /// Rows of 44 bytes, lowest bytes first: four times since the start of the phase, in ns
        /// (due, sent, first byte, end; all ones if unknown), connection (all ones for none) and
        /// target (32 bits each), status (16; 0 for none), class (0 for none) and level (8 each).
        #[schemars(extend("contentEncoding" = "base64"))]
        rows: String,
    },
    /// The results of a phase, when its last request is settled.
    PhaseDone {
        /// The phase.
        id: String,
        /// The results.
        #[serde(deserialize_with = "untagged")]
        measurement: Box<Measurement>,
    },
    /// The counts of a server, at least every 250 ms while it runs, and once before `done`.
    Served(Served),
    /// A server's answer to `mark`: what it saw since the mark before.
    Seen(Box<Interval>),
    /// An error in the engine itself or in the plan. `done` follows, unless the plan was refused.
    Error {
        /// `plan` (refused; nothing was sent), `listen`, `machine` (no thread or descriptor was left),
        /// `engine`, or a failure class.
        class: String,
        /// The message, in one line.
        message: String,
    },
    /// The last line.
    Done {
        /// `finished`, `stopped` (by the front), `orphaned` (no lease, or the end of input) or
        /// `signalled`.
        why: String,
    },
}

/// Reads a value within a tagged message. There, serde reads neither numbers as keys of a map nor
/// sums of 128 bits.
fn untagged<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<T, D::Error> {
    serde_json::from_value(serde_json::Value::deserialize(from)?).map_err(D::Error::custom)
}

/// What ended of one part of the traffic since the tick before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// What ended well.
    pub ok: u64,
    /// What failed.
    pub failed: u64,
    /// Its times, encoded as in `Second`.
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
}

/// Progress of a phase since the tick before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    /// The time of the tick, on the engine's clock.
    pub at_ns: u64,
    /// The phase; null between phases.
    pub id: Option<String>,
    /// Totals of the phase up to now.
    pub counts: Counts,
    /// Latencies of the successful requests since the last tick, encoded as in `Second`.
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
    /// Their service times under an open loop, encoded alike. Under a closed loop they equal the
    /// latencies, and this is empty.
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub service: Packed,
    /// What ended since the last tick of each part of the traffic. For streamed answers the first
    /// two are the first parts and the gaps between parts, where `ok` counts all parts. The first
    /// 32 targets or steps follow, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<Track>,
    /// Connections that are open now.
    pub open: u32,
    /// Bytes received in the phase up to now.
    pub bytes_in: u64,
    /// Bytes sent in the phase up to now.
    pub bytes_out: u64,
    /// The time for which the busiest thread was on a CPU or waited for one in the phase up to now,
    /// in ns.
    pub busiest_ns: u64,
}

/// The results of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The planned start of sending, on the engine's clock.
    pub started_ns: u64,
    /// The time when the first thread really began to send, on the engine's clock.
    #[serde(default)]
    pub began_ns: u64,
    /// The length of the window, in ns: from the start to the end of sending.
    pub window_ns: u64,
    /// The length of the drain, in ns: from the end of sending to the last settled request.
    pub drain_ns: u64,
    /// Whether the phase was cut short: the engine was told to stop, or died.
    pub partial: bool,
    /// Counts of requests.
    pub counts: Counts,
    /// Bytes received; under TLS, the bytes after decryption.
    pub bytes_in: u64,
    /// Bytes sent; under TLS, the bytes before encryption.
    pub bytes_out: u64,
    /// Times of requests and connections.
    pub histograms: EncodedTimes,
    /// The connections of the phase.
    pub connections: Connections,
    /// How the work was spread over the slots.
    pub slots: SlotSums,
    /// One entry per second of the phase. After an hour, each entry covers 2 s, later 4 s, and so
    /// on.
    pub series: Vec<Bin>,
    /// The same of each part of the traffic, as in ticks; each has at most 240 entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<Vec<Bin>>,
    /// How answers flowed through the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowReport>,
    /// The engine's own load.
    pub generator: Generator,
    /// Counts by target or by step of a scenario, in the plan's order; null if the plan has one
    /// request.
    #[serde(default)]
    pub targets: Option<Vec<TargetMeter>>,
    /// Counts of whole sessions; null without a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionMeter>,
    /// Connections by origin, in the plan's order; empty if there is one origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<OriginConnections>,
    /// The rows that requests took; null if the plan has no data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataUse>,
    /// Deliveries of a broadcast; null for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Deliveries>,
    /// Counts of datagrams; null if requests are sent over streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// Counts of HTTP/2 connections; null for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Account>,
    /// Kinds of answer, if the plan has one request. Otherwise they are listed by target.
    #[serde(default, skip_serializing_if = "Kinds::is_empty")]
    pub kinds: Kinds,
    /// Answers that came before the server can have read their requests.
    #[serde(default, skip_serializing_if = "Early::is_none")]
    pub early: Early,
    /// Parts of streamed answers; null if answers are not streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<Streams>>,
    /// Steps of connections that are opened when their requests are due; null for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openings: Option<Box<Openings>>,
    /// Redirects that were followed; null if none may be followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Box<Redirects>>,
    /// Messages of conversations over WebSocket; null for other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Box<Messages>>,
    /// Compression of messages over WebSocket; null if it is not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deflate: Option<Box<Deflate>>,
}
