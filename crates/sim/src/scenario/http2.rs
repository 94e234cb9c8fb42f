//! The parts of a scenario that only HTTP/2 has: requests, and the behaviour of peers beyond that
//! of all protocols.

use super::{Bytes, End, HttpPlan, Scenario, Version};

/// Maximum bytes of an answer besides its body: fields, padding, and frames that mean nothing.
const BESIDE_BYTES: u64 = 3_000;

/// Requests over HTTP/2, and the generator's windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Plan {
    /// The requests, and the criteria of a good answer.
    pub http: HttpPlan,
    /// Bytes of a request's body, if it is a POST.
    pub body_bytes: usize,
    /// Window that the generator gives each stream.
    pub window: u32,
    /// Window that the generator gives the connection: at least 65,535.
    pub connection_window: u32,
    /// How connections begin.
    pub start: Start,
}

/// How connections begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With HTTP/2.
    Direct,
    /// With the version that the peer chooses by ALPN. A connection that speaks HTTP/1.1 has at
    /// most this many requests in flight.
    Negotiated(usize),
}

/// The version that a peer chooses by ALPN, if the client offers both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// HTTP/2.
    Http2,
    /// HTTP/1.1.
    Http1,
    /// None, because the peer does not know ALPN. HTTP/1.1 is spoken.
    Nothing,
    /// None, because the peer knows only other protocols. It refuses the handshake.
    Neither,
}

impl Choice {
    /// The protocols that the peer knows.
    #[must_use]
    pub fn alpn(self) -> &'static [&'static str] {
        match self {
            Choice::Http2 => &["h2", "http/1.1"],
            Choice::Http1 => &["http/1.1"],
            Choice::Nothing => &[],
            Choice::Neither => &["spdy/3"],
        }
    }

    /// The version that is spoken.
    #[must_use]
    pub fn version(self) -> Version {
        match self {
            Choice::Http2 | Choice::Neither => Version::Http2,
            Choice::Http1 | Choice::Nothing => Version::Http1,
        }
    }
}

/// The behaviour of a peer on one HTTP/2 connection, in addition to its [`Manner`](super::Manner).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Manner {
    /// Delay of the peer's SETTINGS, from when the connection is established. Over TLS, from the
    /// first bytes that the client sends.
    pub settings_ns: u64,
    /// The parameters and values of these SETTINGS.
    pub settings: Vec<(u16, u32)>,
    /// Further SETTINGS, each with its delay after the first ones were due.
    pub changes: Vec<(u64, Vec<(u16, u32)>)>,
    /// The time that the peer takes to enlarge its windows again; none for never.
    pub opens_windows_ns: Option<u64>,
    /// Whether answers vary in everything that RFC 9113 leaves open, with other frames in between.
    pub varied: bool,
    /// The peer announces its end without an error.
    pub leaves: Option<Leave>,
    /// Tricks that the peer plays at a request or after it. Requests of a connection are numbered
    /// from 0.
    pub tricks: Vec<(u32, Http2Trick)>,
    /// The peer sends these bytes instead of its SETTINGS, and ends the connection.
    pub greeting: Option<(Bytes, End)>,
    /// The version that the peer chooses, with [`Start::Negotiated`].
    pub choice: Choice,
    /// The peer answers nothing. It replies with these bytes to the first bytes of a connection, and
    /// ends the connection. Not with [`Start::Direct`].
    pub reply: Option<(Bytes, End)>,
}

impl Default for Http2Manner {
    fn default() -> Self {
        Http2Manner {
            settings_ns: 0,
            settings: Vec::new(),
            changes: Vec::new(),
            opens_windows_ns: Some(0),
            varied: false,
            leaves: None,
            tricks: Vec::new(),
            greeting: None,
            choice: Choice::Http2,
            reply: None,
        }
    }
}

/// A GOAWAY with `NO_ERROR`, and the end of the connection once all permitted requests are
/// answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// Number of requests after which the GOAWAY is sent.
    pub after: u32,
    /// If set, the peer first permits all streams, and names the last one this much later (RFC 9113
    /// section 6.8). With `u64::MAX` it never names one.
    pub warns_ns: Option<u64>,
    /// Time from the last answer to the end of the connection; none if the client is to end it.
    pub ends_ns: Option<u64>,
}

/// An unusual reaction of a peer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Http2Trick {
    /// Resets the stream with this code after this percentage of the answer's pieces. Even at 100
    /// the answer does not end the stream.
    Reset(u32, u64),
    /// Resets the stream with `REFUSED_STREAM`, before the answer.
    Refuse,
    /// Sends GOAWAY with this code. The last stream it names is this many streams after this one; a
    /// negative number names an earlier one. Then ends the connection in this way, or answers.
    GoAway(i32, u32, Option<End>),
    /// Sends two such GOAWAYs without an error, and answers.
    GoAways(i32, i32),
    /// Ends the connection after this percentage of the answer's bytes.
    Truncate(u64, End),
    /// Ends the connection after the whole answer.
    EndBehind(End),
    /// Announces a length that differs from the body's by this much.
    Length(i64),
    /// Sends this percentage of the answer's pieces, and never ends the stream.
    Stall(u64),
    /// Answers twice.
    Twice,
    /// Answers with this header block.
    Block(Bytes),
    /// Answers with these fields, and a body.
    Fields(&'static [(&'static str, &'static str)]),
    /// Sends these frames on the stream of the request, in this order: type, flags, payload.
    Frames(&'static [(u8, u8, Bytes)]),
    /// Sends these bytes instead of an answer.
    Instead(Bytes),
    /// Sends these bytes, and then answers.
    Before(Bytes),
    /// Answers on another stream. The number is added to the stream's own number.
    Elsewhere(i32),
    /// Sends more than the stream's window has room for.
    BeyondWindow,
    /// Sends a flood of frames of this type, flags and payload, on this stream or on the request's
    /// own (`None`).
    Flood(u8, u8, Option<u32>, Bytes),
    /// Sends a flood, and reads nothing from here on.
    FloodUnread(u8, u8, Option<u32>, Bytes),
    /// Answers byte by byte, with this many ns between bytes.
    Dribble(u64),
    /// Answers with more bytes than a session keeps, and never ends the stream.
    Endless,
    /// Answers this many ns later.
    Late(u64),
    /// Reads nothing from here on.
    ReadsNothing,
}

impl Http2Trick {
    /// Whether the peer sends no answer that its site has not given.
    pub(super) fn follows_its_site(&self) -> bool {
        matches!(
            self,
            Http2Trick::Reset(..)
                | Http2Trick::Refuse
                | Http2Trick::GoAway(..)
                | Http2Trick::GoAways(..)
                | Http2Trick::Truncate(..)
                | Http2Trick::EndBehind(_)
                | Http2Trick::Stall(_)
                | Http2Trick::Dribble(_)
                | Http2Trick::Late(_)
                | Http2Trick::ReadsNothing
        )
    }

    /// Whether a correct generator counts no failure because of this trick. A refused request is
    /// sent again, but only once.
    fn is_right(&self, at: u32, depth: usize) -> bool {
        *self == Http2Trick::Refuse && at as usize >= depth
    }
}

impl Leave {
    /// Whether a correct generator counts no failure because of the connection's end. Requests sent
    /// again come first on the next connection, which must not refuse them a second time.
    fn is_right(&self, depth: usize) -> bool {
        self.warns_ns == Some(u64::MAX) || self.after as usize >= depth
    }
}

impl Http2Manner {
    /// Whether the peer answers everything rightly, sooner or later.
    pub(super) fn is_right(&self, plan: &Http2Plan, depth: usize) -> bool {
        let Http2Manner { tricks, leaves, greeting, reply, choice, .. } = self;
        let refusals = tricks.iter().all(|(at, trick)| trick.is_right(*at, depth));
        let leaves_well = leaves.is_none_or(|leave| leave.is_right(depth));
        // A request that is refused, and then lies after the last permitted stream, cannot be sent
        // again.
        let either = leaves.is_none() || tricks.is_empty();
        let uploads = plan.http.method == "POST";
        let takes = !uploads || (self.opens_windows_ns.is_some() && self.window_last() > 0);
        let permits = self.last(3).is_none_or(|streams| streams > 0);
        refusals
            && leaves_well
            && either
            && takes
            && permits
            && greeting.is_none()
            && reply.is_none()
            && *choice != Choice::Neither
            && tricks.len() < 2
    }

    /// The final value of a parameter; none if it is never set.
    fn last(&self, parameter: u16) -> Option<u32> {
        let all = self.changes.iter().map(|(_, change)| change);
        let all = [&self.settings].into_iter().chain(all).flatten();
        all.filter(|(number, _)| *number == parameter).map(|(_, value)| *value).next_back()
    }

    /// The final window of a stream.
    fn window_last(&self) -> u32 {
        self.last(4).unwrap_or(65_535)
    }

    /// Whether this many streams are permitted at all times.
    #[must_use]
    pub fn permits(&self, streams: usize) -> bool {
        let all = self.changes.iter().map(|(_, change)| change);
        let mut all = [&self.settings].into_iter().chain(all).flatten();
        all.all(|(number, value)| *number != 3 || *value as usize >= streams)
    }
}

impl Http2Plan {
    /// A generous upper bound on the time of an exchange when every peer answers rightly, in ns.
    /// `turn_ns` is the time of a batch, `way_ns` that of a round trip.
    pub(super) fn slowest_ns(&self, scenario: &Scenario, turn_ns: u64, way_ns: u64) -> u64 {
        let kernel = &scenario.kernel;
        let depth = scenario.depth as u64;
        let slowest = scenario.peers.iter().map(|manner| {
            let http2 = &manner.http2;
            let more = scenario.talk.as_ref().map_or(0, |talk| talk.more_bytes());
            let body = manner.style.body_bytes() as u64 + more;
            let windows = body / (u64::from(self.window) / 2 + 1) + 2;
            let uploads = self.body_bytes as u64 / u64::from(http2.window_last().max(1)) + 2;
            let answer = body + BESIDE_BYTES;
            // Besides the request, the client sends WINDOW_UPDATE frames and acknowledgements.
            let request = self.body_bytes as u64 + 300 + more.min(300) + 13 * 2 * windows;
            let piece = kernel.room.min(kernel.send_most).min(4096) as u64;
            let reads = answer / (kernel.read_most as u64 / 2 + 1) + 2;
            let pieces = request / piece + 2;
            let opens_ns = http2.opens_windows_ns.unwrap_or(0);
            let rounds_ns = (windows + uploads) * (way_ns + 2 * turn_ns + opens_ns);
            let changes_ns = http2.changes.iter().map(|(at_ns, _)| *at_ns).max().unwrap_or(0);
            let one_ns = manner.delay.most_ns
                + rounds_ns
                + pieces * (way_ns + turn_ns)
                + 2 * reads * turn_ns;
            http2.settings_ns + changes_ns + (depth + 1) * one_ns
        });
        slowest.max().unwrap_or(0)
    }
}
