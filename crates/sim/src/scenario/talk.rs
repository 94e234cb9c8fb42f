//! The parts of a scenario that only conversations have: requests whose answers decide what is asked
//! next, answers that come in parts, and the ways to a server besides a plain connection.

use trueload_load::RowOrder;

use super::{MS, Protocol, Scenario, Style, Trick};

/// A conversation over the scenario's version of HTTP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Talk {
    /// The steps of each session; empty for requests by themselves.
    pub steps: Vec<Step>,
    /// Most redirects of one request; none if they are not followed.
    pub follow: Option<u8>,
    /// The parts of answers, if they are streams.
    pub stream: Option<Stream>,
    /// The weight of each of several origins; empty for one.
    pub origins: Vec<u32>,
    /// Whether each connection is opened when its request is due.
    pub connect_open: bool,
    /// Whether a proxy leads to the server.
    pub tunnel: bool,
    /// Rows of data: each session or request takes one.
    pub rows: Option<Rows>,
    /// What the server answers.
    pub site: Site,
}

/// A step of every session.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// How often it is asked in a row.
    pub repeat: u32,
    /// The shortest and the longest pause before each of its requests, in ns.
    pub think_ns: (u64, u64),
    /// Where its answers have a value that later steps use; none if they have none.
    pub takes: Option<Place>,
}

/// The place of a value in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A member of a JSON body.
    Json,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
    /// The first match of an expression in the body.
    Body,
}

/// The parts of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// What a part is.
    pub kind: PartKind,
    /// What comes behind the last part.
    pub end: PartEnd,
    /// Most parts of an answer.
    pub parts_most: u64,
    /// The longest time between two parts, in ns.
    pub gap_ns: u64,
    /// The generator's limit of that time, in ns; none for any.
    pub stall_ns: Option<u64>,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A server-sent event.
    Event,
    /// A chunk of HTTP/1.1, or a DATA frame of HTTP/2.
    Chunk,
    /// A line.
    Line,
}

/// What ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartEnd {
    /// The end of the body.
    Body,
    /// A part with a certain content.
    Content,
    /// An event of a certain type.
    Event,
}

/// Rows of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Their number.
    pub count: u64,
    /// The order in which they are taken. The shuffle is by the scenario's seed.
    pub order: Order,
}

/// The order in which rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, and from the first again.
    Sequential,
    /// In another order each time.
    Shuffled,
    /// Each once.
    Unique,
}

impl Order {
    /// The row order of a run with this seed.
    #[must_use]
    pub fn of(self, seed: u64) -> RowOrder {
        match self {
            Order::Sequential => RowOrder::Sequential,
            Order::Shuffled => RowOrder::Shuffled { seed },
            Order::Unique => RowOrder::Unique,
        }
    }
}

/// What a server answers. The number of a request, or of a session, decides which answer it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Most redirects before a request's final answer.
    pub hops_most: u64,
    /// Where one request in four is led in the end; none for to its final answer.
    pub leads: Option<Leads>,
    /// One request in this many is answered with a failure; 0 for none.
    pub fails_one_in: u64,
    /// Whether a failure has a good status but lacks the value that is taken.
    pub lacks_value: bool,
    /// Whether a failure is a stream that lacks its last part, where that is to come.
    pub cuts: bool,
    /// Whether answers set cookies.
    pub cookies: bool,
    /// Bytes that stand in each final answer besides what is asked for.
    pub padding: usize,
}

/// A redirect that ends in a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To another host, scheme or port.
    Elsewhere,
    /// To itself.
    InCircles,
    /// To more hops than are followed.
    TooFar,
    /// Nowhere: without a Location, or with one that cannot be read.
    Nowhere,
}

impl Talk {
    /// Whether requests are told apart by a number in their paths.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        !self.steps.is_empty() || self.follow.is_some() || self.rows.is_some()
    }

    /// The number of requests in a session.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.repeat)).sum()
    }

    /// Whether every answer of its server is a good one that comes in time.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let Site { hops_most, leads, fails_one_in, .. } = self.site;
        let led = hops_most == 0 || self.follow.is_some_and(|most| u64::from(most) >= hops_most);
        led && leads.is_none() && fails_one_in == 0 && self.flows()
    }

    /// Whether no part of a stream comes too late.
    #[must_use]
    pub fn flows(&self) -> bool {
        self.stream.is_none_or(|stream| {
            stream.stall_ns.is_none_or(|most_ns| most_ns > 2 * stream.gap_ns + 100 * MS)
        })
    }

    /// The failures that such a server may cause although it keeps to the protocol.
    #[must_use]
    pub fn excuses(&self) -> Vec<&'static str> {
        let mut excused = Vec::new();
        if !self.is_right() {
            excused.extend(["status", "extract", "redirect"]);
        }
        if self.cuts() {
            excused.push("truncated");
        }
        if !self.flows() {
            // Requests behind a stream that has stalled end with its connection.
            excused.extend(["timeout.stall", "timeout.first_byte"]);
        }
        excused
    }

    /// Whether a failure is a stream without its last part.
    #[must_use]
    pub fn cuts(&self) -> bool {
        self.site.cuts && self.stream.is_some_and(|stream| stream.end != PartEnd::Body)
    }

    /// The longest time of one request, if an exchange takes this long.
    pub(super) fn slowest_ns(&self, exchange_ns: u64) -> u64 {
        let stream_ns = self.stream.map_or(0, |stream| stream.parts_most * stream.gap_ns);
        let led = self.site.leads.map_or(0, |_| self.follow.unwrap_or(0).into());
        let opens = u64::from(self.tunnel);
        (self.site.hops_most.max(led) + 1 + opens) * (exchange_ns + stream_ns)
    }

    /// Most bytes of an answer beyond an ordinary one.
    pub(crate) fn more_bytes(&self) -> u64 {
        let parts = self.stream.map_or(0, |stream| stream.parts_most * 64);
        self.site.padding as u64 + parts + 300
    }
}

/// Whether the engine's plan takes this conversation over this protocol, with so many requests in
/// flight, a connection for each request or not, and TLS or not. Every combination that is refused
/// is named here once.
#[must_use]
pub fn permitted(talk: &Talk, protocol: &Protocol, shape: (usize, bool, bool)) -> bool {
    let (depth, close, tls) = shape;
    let over_http = matches!(protocol, Protocol::Http(_) | Protocol::Http2(_));
    let (sessions, follows) = (!talk.steps.is_empty(), talk.follow.is_some());
    let refused = [
        !over_http,
        follows && talk.connect_open,
        sessions && (depth > 1 || close || !talk.origins.is_empty()),
        talk.connect_open && (!close || sessions),
        talk.tunnel && !tls,
    ];
    !refused.contains(&true)
}

impl Scenario {
    /// Whether requests follow each other in sessions.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        let steps = self.talk.as_ref().is_some_and(|talk| !talk.steps.is_empty());
        steps || matches!(self.protocol, Protocol::Chat { .. })
    }

    /// Whether connections are opened when their requests are due.
    #[must_use]
    pub fn connect_open(&self) -> bool {
        let opens = self.talk.as_ref().is_some_and(|talk| talk.connect_open);
        opens || matches!(self.protocol, Protocol::Chat { opens: true, .. })
    }

    /// The number of generators on each thread.
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.talk.as_ref().map_or(1, |talk| talk.origins.len().max(1) as u32)
    }

    /// The failures that well-formed peers may cause.
    #[must_use]
    pub fn excuses(&self) -> Vec<&'static str> {
        match &self.talk {
            Some(talk) => talk.excuses(),
            None if self.is_fair() => Vec::new(),
            None => vec!["status"],
        }
    }

    /// Whether no peer sends an answer that its site has not given. Only then can the site tell what
    /// is to be asked next.
    #[must_use]
    pub fn follows_its_site(&self) -> bool {
        let plain = |trick: &Trick| {
            !matches!(
                trick,
                Trick::Double
                    | Trick::Instead(_)
                    | Trick::Behind(_)
                    | Trick::Endless
                    | Trick::Flood(_)
                    | Trick::FloodUnread(_)
                    | Trick::Guess(..)
            )
        };
        self.peers.iter().all(|manner| {
            let greeting = manner.greeting.is_none();
            let http1 = manner.tricks.iter().all(|(_, trick)| plain(trick));
            let http2 = manner.http2.tricks.iter().all(|(_, trick)| trick.follows_its_site());
            greeting && http1 && http2 && manner.http2.reply.is_none()
        })
    }

    /// Whether a hop may go to another connection than the one before it.
    #[must_use]
    pub fn hops_move(&self) -> bool {
        let leaves = self.peers.iter().any(|manner| {
            let http2 = manner.http2.leaves.is_some() || !manner.http2.tricks.is_empty();
            http2 || !manner.tricks.is_empty() || manner.style == Style::UntilEnd
        });
        let follows = self.talk.as_ref().is_some_and(|talk| talk.follow.is_some());
        follows && (self.close || leaves)
    }
}
