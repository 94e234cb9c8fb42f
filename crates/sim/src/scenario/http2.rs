//! What a run over HTTP/2 asks for, and what its peers do beyond what peers of every protocol do.

use super::{Bytes, End, HttpPlan, Scenario};

/// Bytes that an answer may have beside its body: its fields, padding, frames that mean nothing.
const BESIDE_BYTES: u64 = 3_000;

/// Requests over HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Plan {
    /// What they are, and what is a good answer.
    pub http: HttpPlan,
    /// Bytes of a request's body, if it is a POST.
    pub body_bytes: usize,
    /// The window that the generator gives each stream.
    pub window: u32,
    /// The window that it gives the connection: 65,535 at least.
    pub connection_window: u32,
}

/// How a peer behaves on one connection of HTTP/2, beside its [`Manner`](super::Manner).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Manner {
    /// When its SETTINGS come, from when the connection is there.
    pub settings_ns: u64,
    /// What they say: parameters and values.
    pub settings: Vec<(u16, u32)>,
    /// Further SETTINGS, each so long after the connection was there.
    pub changes: Vec<(u64, Vec<(u16, u32)>)>,
    /// How long it takes to enlarge its windows again; none for never.
    pub opens_windows_ns: Option<u64>,
    /// Answers differ in everything that RFC 9113 leaves open, and other frames come between.
    pub varied: bool,
    /// It announces its end without an error.
    pub leaves: Option<Leave>,
    /// What it does at, or behind, a request; those of a connection are numbered from 0.
    pub tricks: Vec<(u32, Http2Trick)>,
    /// Says these bytes instead of its SETTINGS, and ends.
    pub greeting: Option<(Bytes, End)>,
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
        }
    }
}

/// GOAWAY with `NO_ERROR`, and the end of the connection when everything is answered that it permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// When so many requests have come.
    pub after: u32,
    /// First it permits all streams, and names the last one so much later (RFC 9113 section 6.8).
    pub warns_ns: Option<u64>,
    /// From the last answer to the end of the connection; none where that is left to the client.
    pub ends_ns: Option<u64>,
}

/// What a peer does at a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Http2Trick {
    /// Resets the stream with this code, behind so much of the answer, in percent; at 100 the stream has not ended.
    Reset(u32, u64),
    /// The same with `REFUSED_STREAM`, before the answer.
    Refuse,
    /// GOAWAY with the stream so many streams behind this one as the last, this code, and this end.
    GoAway(i32, u32, Option<End>),
    /// Two of them.
    GoAways(i32, i32),
    /// Ends the connection behind so much of the answer, in percent.
    Truncate(u64, End),
    /// Ends it behind the whole answer.
    EndBehind(End),
    /// Announces another length than the body has.
    Length(i64),
    /// Says so much of the answer, in percent, and never ends the stream.
    Stall(u64),
    /// Answers twice.
    Twice,
    /// Answers with this block.
    Block(Bytes),
    /// Answers with these fields, and a body.
    Fields(&'static [(&'static str, &'static str)]),
    /// Sends these frames, on the stream of the request, in this order: type, flags, payload.
    Frames(&'static [(u8, u8, Bytes)]),
    /// Says these bytes instead of an answer.
    Instead(Bytes),
    /// Says them, and then answers.
    Before(Bytes),
    /// Answers on the stream so many streams behind this one.
    Elsewhere(i32),
    /// Sends more than the window of the stream has room for.
    BeyondWindow,
    /// A flood of frames of this type, with these flags, on this stream or on the request's own (`None`).
    Flood(u8, u8, Option<u32>, Bytes),
    /// The same, and reads nothing from here on.
    FloodUnread(u8, u8, Option<u32>, Bytes),
    /// Answers byte by byte, one each so many ns.
    Dribble(u64),
    /// Answers this much later.
    Late(u64),
    /// Reads nothing from here on.
    Deaf,
}

impl Http2Trick {
    /// Whether a generator that does everything right counts no failure because of it: a request that is refused goes again,
    /// if that is permitted, and once only.
    fn is_right(&self, at: u32, plan: &HttpPlan, depth: usize) -> bool {
        *self == Http2Trick::Refuse && plan.method != "POST" && at as usize >= depth
    }
}

impl Leave {
    /// The same of the end of a connection. What is asked again comes first on the next one: it must not be in vain there.
    fn is_right(&self, plan: &HttpPlan, depth: usize) -> bool {
        let all_permitted = self.warns_ns == Some(u64::MAX);
        all_permitted || (plan.method != "POST" && self.after as usize >= depth)
    }
}

impl Http2Manner {
    /// Whether it answers everything rightly, sooner or later.
    pub(super) fn is_right(&self, plan: &Http2Plan, depth: usize) -> bool {
        let Http2Manner { tricks, leaves, greeting, .. } = self;
        let http = &plan.http;
        let refusals = tricks.iter().all(|(at, trick)| trick.is_right(*at, http, depth));
        let leaves_well = leaves.is_none_or(|leave| leave.is_right(http, depth));
        // What is refused, and then behind the last stream, cannot go again.
        let either = leaves.is_none() || tricks.is_empty();
        let uploads = http.method == "POST";
        let takes = !uploads || (self.opens_windows_ns.is_some() && self.window_last() > 0);
        let permits = self.last(3).is_none_or(|streams| streams > 0);
        refusals
            && leaves_well
            && either
            && takes
            && permits
            && greeting.is_none()
            && tricks.len() < 2
    }

    /// What a parameter comes to.
    fn last(&self, parameter: u16) -> Option<u32> {
        let all = self.changes.iter().map(|(_, change)| change);
        let all = [&self.settings].into_iter().chain(all).flatten();
        all.filter(|(number, _)| *number == parameter).map(|(_, value)| *value).next_back()
    }

    /// The window of a stream in the end.
    fn window_last(&self) -> u32 {
        self.last(4).unwrap_or(65_535)
    }

    /// Whether so many streams are permitted all the time.
    #[must_use]
    pub fn permits(&self, streams: usize) -> bool {
        let all = self.changes.iter().map(|(_, change)| change);
        let mut all = [&self.settings].into_iter().chain(all).flatten();
        all.all(|(number, value)| *number != 3 || *value as usize >= streams)
    }
}

impl Http2Plan {
    /// The longest that an exchange takes when every peer answers rightly, with much to spare. `turn_ns`: what a batch takes;
    /// `way_ns`: there and back.
    pub(super) fn slowest_ns(&self, scenario: &Scenario, turn_ns: u64, way_ns: u64) -> u64 {
        let kernel = &scenario.kernel;
        let depth = scenario.depth as u64;
        let slowest = scenario.peers.iter().map(|manner| {
            let http2 = &manner.http2;
            let body = manner.style.body_bytes() as u64;
            let windows = body / (u64::from(self.window) / 2 + 1) + 2;
            let uploads = self.body_bytes as u64 / u64::from(http2.window_last().max(1)) + 2;
            let answer = body + BESIDE_BYTES;
            // Beside the request its windows and acknowledgements.
            let request = self.body_bytes as u64 + 300 + 13 * 2 * windows;
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
