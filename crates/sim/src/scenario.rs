//! The description of a run, as a plain value. It can be drawn from a seed, printed, or written as
//! a test of its own.

mod http2;
mod pace;
mod talk;

use std::fmt;
use std::sync::Arc;

use trueload_load::{Load, Stop};
use trueload_wire::shootout::Dialect;

pub use http2::{Choice, Http2Manner, Http2Plan, Http2Trick, Leave, Start};
pub use pace::{Pace, Proxy};
pub use talk::{Leads, Order, PartEnd, PartKind, Place, Rows, Site, Step, Stream, Talk, permitted};

/// Length of the longest request or ordinary answer, in bytes, for estimating how long an exchange
/// may take.
const MESSAGE_BYTES: u64 = 128;

/// Maximum length of an opening handshake, in bytes.
const OPENING_BYTES: u64 = 300;
/// Maximum number of bytes that each side sends in a TLS handshake, including session tickets.
const TLS_BYTES: u64 = 3_000;
/// The body of a right answer.
pub const BODY: &str = "hello";
/// Nanoseconds in a microsecond.
pub const US: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const S: u64 = 1_000_000_000;
/// The time at which every run begins.
pub const BEGIN_NS: u64 = S;

/// One run: the commands for the generators, and the behaviour of the kernel and of the peers.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides everything that the scenario leaves open: each jitter, each split of the bytes, each
    /// delay.
    pub seed: u64,
    /// The protocol.
    pub protocol: Protocol,
    /// The conversation that is had over HTTP; none for the same requests again and again.
    pub talk: Option<Talk>,
    /// Number of generators that share the load.
    pub threads: u32,
    /// Number of connections over all threads at the start.
    pub connections: u32,
    /// Requests in flight per connection.
    pub depth: usize,
    /// A connection is filled again once this many of its places are free.
    pub refill: usize,
    /// Whether each request has its own connection.
    pub close: bool,
    /// Whether TLS is used.
    pub tls: bool,
    /// Whether the first of two addresses refuses every connection.
    pub dead_address: bool,
    /// Maximum time from a send to the last byte of its answer.
    pub timeout_ns: u64,
    /// Maximum time from a connection attempt to the established connection.
    pub connect_timeout_ns: u64,
    /// Time between two attempts while connections are set up.
    pub connect_interval_ns: u64,
    /// Minimum time between two wake-ups for sends of an open loop.
    pub send_quantum_ns: u64,
    /// The time after the start of the first phase at which the last thread begins to connect, as
    /// an engine of its own that joins the others; none if all begin together.
    pub joins_ns: Option<u64>,
    /// The load, phase by phase.
    pub phases: Vec<PhasePlan>,
    /// The time after the start of the run at which the generators are told to end; none for after
    /// the last phase.
    pub stop_ns: Option<u64>,
    /// The time that the front takes to answer an engine that shares a broadcast with others.
    pub front_ns: u64,
    /// The time by which the front wants all deliveries of a shared broadcast; none for the
    /// ordinary timeout.
    pub settle_by_ns: Option<u64>,
    /// The behaviour of the kernel and the network.
    pub kernel: KernelPlan,
    /// The behaviour of the peers. Connection attempt `n` of a thread meets peer `n`, modulo their
    /// number.
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
            talk: None,
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
            joins_ns: None,
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

/// The protocol and its requests.
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
        /// Whether our side ends after each message.
        half_close: bool,
    },
    /// Echo over WebSocket.
    Ws {
        /// Bytes of a message.
        size: usize,
    },
    /// Conversations over WebSocket, each over a connection of its own.
    Chat {
        /// Messages of each, which come back.
        says: u32,
        /// Its connection is opened when it is due.
        opens: bool,
    },
    /// UDP echo.
    Udp {
        /// Bytes of a datagram.
        size: usize,
    },
    /// Broadcast over WebSocket: a message of one client goes to all clients.
    Broadcast {
        /// The format of its messages.
        dialect: Dialect,
        /// Padding of a message, in bytes.
        padding: u32,
    },
}

impl Protocol {
    /// The requests that may be sent over HTTP/1.1, if any.
    #[must_use]
    pub fn over_http1(&self) -> Option<&HttpPlan> {
        match self {
            Protocol::Http(plan) => Some(plan),
            Protocol::Http2(Http2Plan { http, start: Start::Negotiated(_), .. }) => Some(http),
            _ => None,
        }
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// HTTP requests, and the criteria of a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlan {
    /// `GET`, `HEAD` or `POST`.
    pub method: &'static str,
    /// Whether several different requests take turns.
    pub several: bool,
    /// Whether the body of the answer is compared.
    pub expect_body: bool,
}

/// One phase as it is requested.
#[derive(Clone, Debug)]
pub struct PhasePlan {
    /// The times at which to send.
    pub load: Load,
    /// The condition at which to stop.
    pub stop: Stop,
    /// Number of connections over all threads. If it differs from the phase before, it is changed
    /// first.
    pub connections: u32,
    /// Number of connections that never send: the last ones.
    pub idle: u32,
    /// Pause before the phase, from the time at which it could begin.
    pub pause_ns: u64,
    /// Earliest start of the phase, from the start of the run.
    pub not_before_ns: u64,
}

/// The behaviour of the kernel and the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlan {
    /// Whether sends leave together, as over `io_uring`: at the end of a batch, or when the program
    /// hands them over. Otherwise each send leaves at once.
    pub together: bool,
    /// Time that bytes take one way over the network.
    pub latency_ns: u64,
    /// Maximum random time added to `latency_ns`.
    pub jitter_ns: u64,
    /// Time that the thread takes for each batch of events. Never 0, or the clock might stand
    /// still.
    pub batch_cost_ns: u64,
    /// Time that it takes for each input.
    pub input_cost_ns: u64,
    /// Time that it takes for each send.
    pub send_cost_ns: u64,
    /// One datagram in this many is lost on its way; 0 for none.
    pub lost_one_in: u64,
    /// One datagram in this many comes back twice; 0 for none.
    pub twice_one_in: u64,
    /// Maximum random delay before the thread runs a batch.
    pub late_ns: u64,
    /// Time that an event waits for others.
    pub coalesce_ns: u64,
    /// Whether the program may ask for event coalescing.
    pub coalesces: bool,
    /// Bytes that the kernel accepts for a connection before the peer has read them.
    pub room: usize,
    /// Maximum bytes accepted by one send.
    pub send_most: usize,
    /// Maximum bytes returned by one read.
    pub read_most: usize,
    /// Whether reads have a random length up to `read_most`.
    pub read_random: bool,
    /// Whether everything that a connection has to read comes in one batch.
    pub read_all: bool,
    /// Whether ready connections come in random order.
    pub shuffled: bool,
    /// Whether due timers also run before ready connections.
    pub timers_first: bool,
    /// Whether readings of the time that the thread waited for a CPU sometimes fail.
    pub hides_waits: bool,
    /// The thread does not run between these two times, from the start of the run.
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

/// The behaviour of a peer on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The result of the connection attempt.
    pub accept: Accept,
    /// A trick that the peer plays as soon as the connection is established.
    pub greeting: Option<Trick>,
    /// The time that an answer takes.
    pub delay: Delay,
    /// The form of the answers.
    pub style: Style,
    /// Tricks that the peer plays instead of an answer or after it. Requests of a connection are
    /// numbered from 0.
    pub tricks: Vec<(u32, Trick)>,
    /// The peer does not close a connection after its only request, nor when the client ends its
    /// side.
    pub keeps_open: bool,
    /// The peer forgets a connection that has been quiet for this long since its last answer. It
    /// resets the connection at the next request.
    pub forgets_ns: Option<u64>,
    /// What the proxy does that leads to the peer, if one does.
    pub proxy: Proxy,
    /// How slowly the peer reads and writes.
    pub pace: Pace,
    /// The behaviour over HTTP/2. There the peer uses only [`Style::body_bytes`] and the status of
    /// `style`, and none of the `tricks` above. A peer that chooses HTTP/1.1 uses only them.
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
            proxy: Proxy::Opens(Bytes(b"HTTP/1.1 200 OK\r\n\r\n")),
            pace: Pace::default(),
            http2: Http2Manner::default(),
        }
    }
}

/// The result of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It is accepted.
    Yes,
    /// It is refused after one round trip.
    Refused,
    /// There is no reply to it.
    Silent,
    /// The kernel reports at once that there is no route.
    Unreachable,
    /// The kernel has no free local port.
    NoPort,
    /// The queue of a Unix socket is full.
    Busy,
    /// It is accepted and reset before any data.
    Reset,
}

/// The time that a peer takes for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Minimum.
    pub least_ns: u64,
    /// Maximum.
    pub most_ns: u64,
}

/// The form of an HTTP peer's right answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With `Content-Length`.
    Length,
    /// With a `Date` that differs each time.
    Dated,
    /// In chunks, with a trailer.
    Chunked,
    /// After an interim answer.
    Interim,
    /// The body lasts until the connection ends.
    UntilEnd,
    /// With this many bytes of body.
    Large(usize),
    /// With a field that is folded onto the next line (RFC 9112 section 5.2).
    Folded,
    /// With the same `Content-Length` three times, in two lines (RFC 9110 section 8.6).
    Repeated,
    /// With version HTTP/1.2, which is read as HTTP/1.1 (RFC 9110 section 2.5).
    LaterVersion,
    /// With this status, which is not a success.
    Status(u16),
}

impl Style {
    /// The length of an answer's body, in bytes.
    #[must_use]
    pub fn body_bytes(self) -> usize {
        if let Style::Large(bytes) = self { bytes } else { BODY.len() }
    }
}

/// The way in which a peer ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a FIN.
    Fin,
    /// With a reset.
    Reset,
    /// Not at all: the peer falls silent.
    Silence,
}

/// Bytes that a peer sends, printed as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub &'static [u8]);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// An unusual reaction of a peer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trick {
    /// Answers twice.
    Double,
    /// Answers with this percentage of the bytes and ends the connection.
    Truncate(u64, End),
    /// Ends the connection without an answer.
    EndInstead(End),
    /// Ends the connection after the answer, unannounced.
    EndBehind(End),
    /// Announces the end of the connection in the answer, and ends it after this time, in ns.
    Announce(u64),
    /// Sends these bytes instead of the answer and goes on.
    Instead(Bytes),
    /// Sends these bytes after the right answer.
    Behind(Bytes),
    /// Answers byte by byte, with this many ns between bytes.
    Dribble(u64),
    /// Answers this many ns later.
    Late(u64),
    /// Sends the same bytes for a long time.
    Flood(Bytes),
    /// Sends the same bytes for a long time, and reads nothing from here on.
    FloodUnread(Bytes),
    /// Answers with more bytes than a session keeps, and does not end.
    Endless,
    /// Reads nothing from here on.
    ReadsNothing,
    /// Sends so many answers, one after each of these times in ns, whether or not their requests
    /// have come.
    Guess(u64, u32),
}

impl Trick {
    /// Whether a correct generator counts no failure because of this trick. Idempotent requests
    /// sent after an announced end are sent again (RFC 9112 section 9.6).
    #[must_use]
    pub fn is_right(&self, protocol: &Protocol) -> bool {
        let again = protocol.over_http1().is_some_and(|plan| plan.method != "POST");
        again && matches!(self, Trick::Announce(_))
    }
}

impl Scenario {
    /// Whether every peer answers everything rightly and in time. Then nothing may fail, and the
    /// service times are known.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        let succeeds = |manner: &Manner| !matches!(manner.style, Style::Status(_));
        let talk = self.talk.as_ref().is_none_or(Talk::is_right);
        talk && self.peers.iter().all(succeeds) && self.is_well_formed()
    }

    /// Whether the peers are fair, except that some may answer with an unsuccessful status, or lead
    /// a conversation where it ends in a failure. Then nothing else may fail. False for peers that the scenario does not describe.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let described = !self.peers.is_empty();
        let patience_ns = self.timeout_ns.min(self.connect_timeout_ns);
        let in_time = patience_ns >= 2 * self.slowest_ns() + 20 * MS;
        let broadcast = matches!(self.protocol, Protocol::Broadcast { .. });
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
                let tunnel = self.tunnel().is_none() || matches!(manner.proxy, Proxy::Opens(_));
                // A slow writer's deliveries of a broadcast wait for all those before them.
                let keeps_up = !broadcast || manner.pace.writes.is_none();
                style && greeting && accepted && tricks && http2 && tunnel && keeps_up
            })
    }

    /// Whether an engine may join the first phase while it goes on: its load can be divided again.
    #[must_use]
    pub fn is_divisible(&self) -> bool {
        let Some(first) = self.phases.first() else { return false };
        let kept = match &self.talk {
            None => match &self.protocol {
                Protocol::Http(plan) | Protocol::Http2(Http2Plan { http: plan, .. }) => {
                    !plan.several
                }
                _ => false,
            },
            Some(talk) => {
                let fixed = talk.connect_open || talk.rows.is_some();
                talk.steps.is_empty() && talk.origins.is_empty() && !fixed
            }
        };
        let even = match &first.load {
            Load::Closed { active } => active.is_empty(),
            load => load.is_scheduled(),
        };
        kept && even && first.idle == 0 && matches!(first.stop, Stop::After(_))
    }

    /// Maximum number of connections over all threads.
    #[must_use]
    pub fn connections_most(&self) -> u32 {
        let later = self.phases.iter().map(|phase| phase.connections).max();
        self.connections.max(later.unwrap_or(0))
    }

    /// A generous upper bound on the time of a request when every peer answers rightly, in ns.
    #[must_use]
    pub fn slowest_ns(&self) -> u64 {
        let exchange_ns = self.exchange_ns() + self.slowness_ns();
        self.talk.as_ref().map_or(exchange_ns, |talk| talk.slowest_ns(exchange_ns))
    }

    /// The same of one exchange, without the pauses in its answer.
    fn exchange_ns(&self) -> u64 {
        let Scenario { kernel, peers, depth, .. } = self;
        let size = match self.protocol {
            Protocol::Tcp { size, .. } | Protocol::Ws { size } | Protocol::Udp { size } => {
                size as u64 + 16
            }
            Protocol::Http2(Http2Plan { body_bytes, .. }) => MESSAGE_BYTES + body_bytes as u64,
            _ => MESSAGE_BYTES,
        };
        let large = peers.iter().map(|manner| match manner.style {
            Style::Large(bytes) => bytes as u64 + MESSAGE_BYTES,
            _ => 2 * MESSAGE_BYTES,
        });
        let more = self.talk.as_ref().map_or(0, Talk::more_bytes);
        let size = size + more.min(300);
        let answer = large.max().unwrap_or(0).max(size) + more;
        let depth = (*depth as u64).max(self.in_flight_most());
        let connections = u64::from(self.connections_most()) + 8;
        let way_ns = 2 * (kernel.latency_ns + kernel.jitter_ns);
        let turn_ns = kernel.batch_cost_ns
            + kernel.late_ns
            + kernel.coalesce_ns
            + connections * (kernel.input_cost_ns + kernel.send_cost_ns) * 4;
        let http2_ns = match &self.protocol {
            Protocol::Http2(plan) => {
                secure_ns(self, turn_ns + way_ns) + plan.slowest_ns(self, turn_ns, way_ns)
            }
            _ => 0,
        };
        if http2_ns > 0 && self.protocol.over_http1().is_none() {
            return http2_ns;
        }
        let piece = kernel.room.min(kernel.send_most).min(4096) as u64;
        let opening = match self.protocol {
            Protocol::Http(_)
            | Protocol::Http2(_)
            | Protocol::Tcp { .. }
            | Protocol::Udp { .. } => 0,
            _ => OPENING_BYTES,
        };
        let secure = if self.tls { TLS_BYTES } else { 0 };
        let pieces = (((depth + 1) * size).max(opening) + secure) / piece + 2;
        let reads = ((depth + 1) * answer + secure) / (kernel.read_most as u64 / 2 + 1) + 2;
        let delay_ns = peers.iter().map(|manner| manner.delay.most_ns).max().unwrap_or(0);
        let one_ns = depth * delay_ns + pieces * (way_ns + turn_ns) + 2 * reads * turn_ns;
        one_ns.max(http2_ns)
    }
}

/// The maximum time of a TLS handshake, if each piece of it takes `piece_ns`.
fn secure_ns(scenario: &Scenario, piece_ns: u64) -> u64 {
    let kernel = &scenario.kernel;
    let piece = kernel.room.min(kernel.send_most).min(kernel.read_most / 2 + 1) as u64;
    if scenario.tls { (TLS_BYTES / piece + 2) * piece_ns } else { 0 }
}
