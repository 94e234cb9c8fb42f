//! What a run plays, as a plain value: it can be drawn from a seed, printed, and written down as a test of its own.

mod http2;

use std::fmt;
use std::sync::Arc;

use trueload_load::{Load, Stop};
use trueload_wire::shootout::Dialect;

pub use http2::{Http2Manner, Http2Plan, Http2Trick, Leave};

/// Bytes of the longest request, or its answer, that counts for how long an exchange may take.
const MESSAGE_BYTES: u64 = 128;

/// Bytes of an opening handshake, at most.
const OPENING_BYTES: u64 = 300;
/// Bytes of a handshake of TLS that each side says, with its tickets, at most.
const TLS_BYTES: u64 = 3_000;
/// The body of a right answer.
pub const BODY: &str = "hello";
/// Nanoseconds in a microsecond.
pub const US: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const S: u64 = 1_000_000_000;

/// One run: what the generators are told, what the kernel does, and how the peers behave.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides what the scenario leaves open: each jitter, each piece of bytes, each delay.
    pub seed: u64,
    /// What is spoken.
    pub protocol: Protocol,
    /// Generators that share the load.
    pub threads: u32,
    /// Connections over all threads at the start.
    pub connections: u32,
    /// Requests in flight per connection.
    pub depth: usize,
    /// Free places from which on a connection is filled again.
    pub refill: usize,
    /// A connection per request.
    pub close: bool,
    /// Whether it is spoken over TLS.
    pub tls: bool,
    /// Whether the first of two addresses refuses every connection.
    pub dead_address: bool,
    /// From a send to the last byte of its answer, at most.
    pub timeout_ns: u64,
    /// From an attempt to the established connection, at most.
    pub connect_timeout_ns: u64,
    /// Between two attempts, while connections are set up.
    pub connect_interval_ns: u64,
    /// Between two wakings for sends of an open loop, at least.
    pub send_quantum_ns: u64,
    /// What is sent, phase by phase.
    pub phases: Vec<PhasePlan>,
    /// When the generators are told to end, from the start of the run; none for behind the last phase.
    pub stop_ns: Option<u64>,
    /// How long the front takes to answer an engine that shares a broadcast with others.
    pub front_ns: u64,
    /// By when the front says that all deliveries of a shared broadcast are to be there; none for the time-out.
    pub settle_by_ns: Option<u64>,
    /// How the kernel and the network behave.
    pub kernel: KernelPlan,
    /// How the peers behave: connection attempt `n` of a thread meets number `n`, over and over.
    pub peers: Vec<Manner>,
}

impl Default for Scenario {
    /// Twenty GET requests over two connections to a peer that answers rightly.
    fn default() -> Self {
        let load = Load::Closed { active: Arc::default() };
        let stop = Stop::Requests(20);
        Scenario {
            seed: 1,
            protocol: Protocol::Http(HttpPlan { method: "GET", several: true, expect_body: true }),
            threads: 1,
            connections: 2,
            depth: 1,
            refill: 1,
            close: false,
            tls: false,
            dead_address: false,
            timeout_ns: 500 * MS,
            connect_timeout_ns: 500 * MS,
            connect_interval_ns: 0,
            send_quantum_ns: 0,
            phases: vec![PhasePlan {
                load,
                stop,
                connections: 2,
                idle: 0,
                pause_ns: 0,
                not_before_ns: 0,
            }],
            stop_ns: None,
            front_ns: 0,
            settle_by_ns: None,
            kernel: KernelPlan::default(),
            peers: vec![Manner::default()],
        }
    }
}

/// What is spoken, and what the requests look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http(HttpPlan),
    /// HTTP/2.
    Http2(Http2Plan),
    /// TCP echo.
    Tcp {
        /// Bytes of a message.
        size: usize,
        /// Our side ends behind each message.
        half_close: bool,
    },
    /// Echo over WebSocket.
    Ws {
        /// Bytes of a message.
        size: usize,
    },
    /// UDP echo.
    Udp {
        /// Bytes of a datagram.
        size: usize,
    },
    /// Broadcast over WebSocket: what one client sends goes to all.
    Broadcast {
        /// How its messages are put.
        dialect: Dialect,
        /// Padding of a message, in bytes.
        padding: u32,
    },
}

/// HTTP requests, and what is a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlan {
    /// `GET`, `HEAD` or `POST`.
    pub method: &'static str,
    /// Whether requests differ and take turns.
    pub several: bool,
    /// Whether the answer's body is compared.
    pub expect_body: bool,
}

/// One phase as it is asked for.
#[derive(Clone, Debug)]
pub struct PhasePlan {
    /// When to send.
    pub load: Load,
    /// When to stop.
    pub stop: Stop,
    /// Connections over all threads: they are changed before the phase if they differ.
    pub connections: u32,
    /// How many of them, the last ones, never send.
    pub idle: u32,
    /// Pause before the phase, from when it could begin.
    pub pause_ns: u64,
    /// It does not begin before this time, from the start of the run.
    pub not_before_ns: u64,
}

/// How the kernel and the network behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlan {
    /// Sends leave together, at the end of a batch or when they are handed over, as over `io_uring`; else at once.
    pub together: bool,
    /// One way over the network.
    pub latency_ns: u64,
    /// What is added to that at random, at most.
    pub jitter_ns: u64,
    /// Time that the thread takes for each batch of events; never 0, or the clock might stand still.
    pub batch_cost_ns: u64,
    /// Time that it takes for each input.
    pub input_cost_ns: u64,
    /// Time that it takes for each send.
    pub send_cost_ns: u64,
    /// One datagram in so many is lost on its way; 0 for none.
    pub lost_one_in: u64,
    /// One datagram in so many comes back twice; 0 for none.
    pub twice_one_in: u64,
    /// The thread runs late by a random time up to this.
    pub late_ns: u64,
    /// Events wait so long for others.
    pub coalesce_ns: u64,
    /// Whether the program may ask that events wait for each other.
    pub coalesces: bool,
    /// Bytes that the kernel takes for a connection before the peer has read them.
    pub room: usize,
    /// Bytes that one send takes at most.
    pub send_most: usize,
    /// Bytes that one read gives at most.
    pub read_most: usize,
    /// Reads have a random length up to `read_most`.
    pub read_random: bool,
    /// All that a connection has to read comes in one batch.
    pub read_all: bool,
    /// Connections that are ready come in random order.
    pub shuffled: bool,
    /// A timer that is due goes before what is ready on connections.
    pub timers_first: bool,
    /// How long the thread has waited for a CPU cannot always be read.
    pub hides_waits: bool,
    /// The thread does not run from here to there, from the start of the run.
    pub stalls: Option<(u64, u64)>,
}

impl Default for KernelPlan {
    fn default() -> Self {
        KernelPlan {
            together: false,
            latency_ns: 50 * US,
            jitter_ns: 0,
            batch_cost_ns: US,
            input_cost_ns: 0,
            send_cost_ns: 0,
            lost_one_in: 0,
            twice_one_in: 0,
            late_ns: 0,
            coalesce_ns: 0,
            coalesces: false,
            room: usize::MAX,
            send_most: usize::MAX,
            read_most: 64 * 1024,
            read_random: false,
            read_all: true,
            shuffled: false,
            timers_first: false,
            hides_waits: false,
            stalls: None,
        }
    }
}

/// How a peer behaves on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manner {
    /// What becomes of the attempt to connect.
    pub accept: Accept,
    /// What it does before anything is asked.
    pub greeting: Option<Trick>,
    /// How long an answer takes.
    pub delay: Delay,
    /// How answers look.
    pub style: Style,
    /// What it does instead of, or behind, the answer to a request; requests of a connection are numbered from 0.
    pub tricks: Vec<(u32, Trick)>,
    /// It never closes a connection that was for one request.
    pub keeps_open: bool,
    /// It forgets a connection that has been quiet for so long since its last answer, and resets it at the next request.
    pub forgets_ns: Option<u64>,
    /// What it does if HTTP/2 is spoken; of the styles and tricks above, [`Style::body_bytes`] and the status are used then.
    pub http2: Http2Manner,
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            accept: Accept::Yes,
            greeting: None,
            delay: Delay { least_ns: 10 * US, most_ns: 10 * US },
            style: Style::Length,
            tricks: Vec::new(),
            keeps_open: false,
            forgets_ns: None,
            http2: Http2Manner::default(),
        }
    }
}

/// What becomes of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is accepted.
    Yes,
    /// It is refused after a way there and back.
    Refused,
    /// Nothing is heard of it.
    Silent,
    /// The kernel says at once that there is no route.
    Unreachable,
    /// The kernel has no local port.
    NoPort,
    /// The queue of a socket file is full.
    Busy,
    /// It is accepted and reset before anything is said.
    Reset,
}

/// How long an answer takes at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// At least.
    pub least_ns: u64,
    /// At most.
    pub most_ns: u64,
}

/// How the right answers of an HTTP peer look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With `Content-Length`.
    Length,
    /// With a `Date` that differs each time.
    Dated,
    /// In chunks, with a trailer.
    Chunked,
    /// Behind an interim answer.
    Interim,
    /// Until the end of the connection.
    UntilEnd,
    /// So many bytes of body.
    Large(usize),
    /// With a field that is folded onto the next line (RFC 9112 section 5.2).
    Folded,
    /// With the same `Content-Length` three times, in two lines (RFC 9110 section 8.6).
    Repeated,
    /// Of HTTP/1.2, which is read as HTTP/1.1 (RFC 9110 section 2.5).
    LaterVersion,
    /// With this status, which is no success.
    Status(u16),
}

impl Style {
    /// Bytes of an answer's body.
    #[must_use]
    pub fn body_bytes(self) -> usize {
        if let Style::Large(bytes) = self { bytes } else { BODY.len() }
    }
}

/// How a peer ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a FIN.
    Fin,
    /// With a reset.
    Reset,
    /// Not at all: nothing more is heard.
    Silence,
}

/// Bytes that a peer says, printed as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub &'static [u8]);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// What a peer does at a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trick {
    /// Answers twice.
    Double,
    /// Answers a part, in percent, and ends.
    Truncate(u64, End),
    /// Ends without an answer.
    EndInstead(End),
    /// Ends behind the answer, unannounced.
    EndBehind(End),
    /// Announces the end of the connection in the answer, and ends it after this time.
    Announce(u64),
    /// Answers with these bytes and goes on.
    Instead(Bytes),
    /// Answers with these bytes behind the right ones.
    Behind(Bytes),
    /// Answers byte by byte, one each so many ns.
    Dribble(u64),
    /// Answers this much later.
    Late(u64),
    /// Says the same bytes for a long time.
    Flood(Bytes),
    /// The same, and reads nothing from here on.
    FloodUnread(Bytes),
    /// Reads nothing from here on.
    Deaf,
}

impl Trick {
    /// Whether a generator that does everything right counts no failure because of it. Idempotent requests behind an
    /// announced end are sent again (RFC 9112 section 9.6).
    #[must_use]
    pub fn is_right(&self, protocol: &Protocol) -> bool {
        let again = matches!(protocol, Protocol::Http(plan) if plan.method != "POST");
        again && matches!(self, Trick::Announce(_))
    }
}

impl Scenario {
    /// Whether every peer answers everything rightly and in time: then nothing may fail, and the service times are known.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        let succeeds = |manner: &Manner| !matches!(manner.style, Style::Status(_));
        self.peers.iter().all(succeeds) && self.is_well_formed()
    }

    /// The same, but a peer may answer with a status that is no success: then nothing else may fail. Of peers that the
    /// scenario does not describe nothing is known.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let described = !self.peers.is_empty();
        let patience_ns = self.timeout_ns.min(self.connect_timeout_ns);
        let in_time = patience_ns >= 2 * self.slowest_ns() + 20 * MS;
        let datagrams = matches!(self.protocol, Protocol::Udp { .. });
        let all_come = self.kernel.lost_one_in + self.kernel.twice_one_in == 0 || !datagrams;
        described
            && in_time
            && all_come
            && self.peers.iter().all(|manner| {
                let style = manner.style != Style::UntilEnd || self.close;
                let greeting = manner.greeting.is_none();
                let accepted = manner.accept == Accept::Yes;
                let tricks = manner.tricks.iter().all(|(_, trick)| trick.is_right(&self.protocol));
                let http2 = match &self.protocol {
                    Protocol::Http2(plan) => manner.http2.is_right(plan, self.depth),
                    _ => true,
                };
                style && greeting && accepted && tricks && http2
            })
    }

    /// Connections over all threads, at most.
    #[must_use]
    pub fn connections_most(&self) -> u32 {
        let later = self.phases.iter().map(|phase| phase.connections).max();
        self.connections.max(later.unwrap_or(0))
    }

    /// How many messages of a broadcast are in flight at most: one peer may have to answer all of them.
    fn in_flight_most(&self) -> u64 {
        let loads = self.phases.iter().map(|phase| match phase.load {
            Load::Turns { concurrent } => u64::from(concurrent),
            _ => 1,
        });
        loads.max().unwrap_or(1)
    }

    /// The longest that an exchange takes when every peer answers rightly, with much to spare.
    #[must_use]
    pub fn slowest_ns(&self) -> u64 {
        let Scenario { kernel, peers, depth, .. } = self;
        let size = match self.protocol {
            Protocol::Tcp { size, .. } | Protocol::Ws { size } | Protocol::Udp { size } => {
                size as u64 + 16
            }
            _ => MESSAGE_BYTES,
        };
        let large = peers.iter().map(|manner| match manner.style {
            Style::Large(bytes) => bytes as u64 + MESSAGE_BYTES,
            _ => 2 * MESSAGE_BYTES,
        });
        let answer = large.max().unwrap_or(0).max(size);
        let depth = (*depth as u64).max(self.in_flight_most());
        let connections = u64::from(self.connections_most()) + 8;
        let way_ns = 2 * (kernel.latency_ns + kernel.jitter_ns);
        let turn_ns = kernel.batch_cost_ns
            + kernel.late_ns
            + kernel.coalesce_ns
            + connections * (kernel.input_cost_ns + kernel.send_cost_ns) * 4;
        if let Protocol::Http2(plan) = &self.protocol {
            return secure_ns(self, turn_ns + way_ns) + plan.slowest_ns(self, turn_ns, way_ns);
        }
        let piece = kernel.room.min(kernel.send_most).min(4096) as u64;
        let opening = match self.protocol {
            Protocol::Ws { .. } | Protocol::Broadcast { .. } => OPENING_BYTES,
            _ => 0,
        };
        let secure = if self.tls { TLS_BYTES } else { 0 };
        let pieces = (((depth + 1) * size).max(opening) + secure) / piece + 2;
        let reads = ((depth + 1) * answer + secure) / (kernel.read_most as u64 / 2 + 1) + 2;
        let delay_ns = peers.iter().map(|manner| manner.delay.most_ns).max().unwrap_or(0);
        depth * delay_ns + pieces * (way_ns + turn_ns) + 2 * reads * turn_ns
    }
}

/// How long a handshake of TLS takes, at most, if a piece of it takes so long.
fn secure_ns(scenario: &Scenario, piece_ns: u64) -> u64 {
    let kernel = &scenario.kernel;
    let piece = kernel.room.min(kernel.send_most).min(kernel.read_most / 2 + 1) as u64;
    if scenario.tls { (TLS_BYTES / piece + 2) * piece_ns } else { 0 }
}
