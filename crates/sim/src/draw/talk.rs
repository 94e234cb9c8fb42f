//! Draws conversations from a seed: sessions, redirects, streams, several origins, and the ways to a
//! server.

use super::Shape;
use crate::chance::Chance;
use crate::scenario::{
    Bytes, End, Http2Plan, Http2Trick, HttpPlan, Leads, MS, Manner, Order, Pace, PartEnd, PartKind,
    Place, Protocol, Proxy, Rows, Scenario, Start, Step, Stream, Talk, Trick, US, permitted,
};

/// A part of conversations that may be drawn, with how often: once in so many.
type Part = (u64, fn(&mut Chance, &mut Talk, bool));

/// The parts. Each is drawn by itself; combinations that are not permitted are drawn again.
const PARTS: &[Part] = &[
    (2, sessions),
    (2, redirects),
    (3, streams),
    (4, origins),
    (4, |_, talk, _| talk.connect_open = true),
    (2, |_, talk, _| talk.tunnel = true),
    (5, rows),
    (3, failures),
    (8, |chance, talk, _| talk.site.padding = chance.scaled(100, 4_000) as usize),
];

/// One conversation in this many may be over either version: that takes TLS.
const EITHER_ONE_IN: u64 = 12;

/// Draws the protocol of a conversation.
pub(super) fn protocol(chance: &mut Chance) -> Protocol {
    let method = chance.pick(&["GET", "GET", "GET", "HEAD", "POST"]);
    let http = HttpPlan { method, several: false, expect_body: chance.one_in(2) };
    let start = if chance.one_in(EITHER_ONE_IN) {
        Start::Negotiated(chance.pick(&[1, 1, 2]))
    } else {
        Start::Direct
    };
    if start == Start::Direct && chance.one_in(2) {
        return Protocol::Http(http);
    }
    Protocol::Http2(Http2Plan {
        http,
        body_bytes: chance.scaled(1, 500) as usize - 1,
        window: chance.pick(&[65_535, 65_535, 1 << 20, 300]),
        connection_window: chance.pick(&[65_535, 1 << 20]),
        start,
    })
}

/// Draws a conversation with this protocol. With `fair` its server answers everything rightly, or
/// at least keeps to the protocol.
pub(super) fn shape(chance: &mut Chance, protocol: Protocol, tls: bool, fair: bool) -> Shape {
    loop {
        let mut talk = Talk::default();
        for (one_in, part) in PARTS {
            if chance.one_in(*one_in) {
                part(chance, &mut talk, fair);
            }
        }
        let close = talk.connect_open || chance.one_in(5);
        let depth = if chance.one_in(2) { 1 } else { chance.between(2, 8) as usize };
        if has_meaning(&talk) && permitted(&talk, &protocol, (depth, close, tls)) {
            let protocol = suited(protocol, &mut talk);
            return Shape { protocol, talk: Some(talk), tls, depth, close };
        }
    }
}

/// Whether the drawn parts go together.
fn has_meaning(talk: &Talk) -> bool {
    let sessions = !talk.steps.is_empty();
    let takes = talk.steps.iter().any(|step| step.takes.is_some());
    let leads = talk.site.leads.is_none() || talk.follow.is_some();
    // An answer that lacks the value of a stream would be no stream either.
    let lacks = !talk.site.lacks_value || (takes && talk.stream.is_none());
    // Rows of several origins are numbered apart.
    let rows = talk.rows.is_none() || talk.origins.is_empty();
    // The body of a stream is its parts.
    let in_body = |step: &Step| matches!(step.takes, Some(Place::Json | Place::Body));
    let bodies = talk.stream.is_none() || !talk.steps.iter().any(in_body);
    leads && lacks && rows && bodies && (sessions || !talk.site.cookies)
}

/// Suits the requests to the conversation.
fn suited(mut protocol: Protocol, talk: &mut Talk) -> Protocol {
    let (http, over_http2) = match &mut protocol {
        Protocol::Http2(plan) => (&mut plan.http, true),
        Protocol::Http(plan) => (plan, false),
        _ => return protocol,
    };
    if !talk.steps.is_empty() {
        let posts = talk.steps.iter().any(|step| step.method == "POST");
        http.method = if posts { "POST" } else { "GET" };
    } else if talk.stream.is_some() && http.method == "HEAD" {
        http.method = "GET";
    }
    let plain = talk.steps.is_empty() && talk.stream.is_none() && talk.site.padding == 0;
    http.expect_body &= plain;
    // A window may cut the frame that ends a stream in two.
    if let Some(stream) = talk.stream.as_mut().filter(|_| over_http2)
        && stream.kind == PartKind::Chunk
    {
        stream.end = PartEnd::Body;
    }
    protocol
}

fn sessions(chance: &mut Chance, talk: &mut Talk, _: bool) {
    let places = [Place::Json, Place::Header, Place::Cookie, Place::Body];
    for _ in 0..chance.between(1, 4) {
        let least_ns = if chance.one_in(2) { 0 } else { chance.scaled(US, 2 * MS) };
        let more_ns = if chance.one_in(2) { 0 } else { chance.scaled(US, 2 * MS) };
        talk.steps.push(Step {
            method: chance.pick(&["GET", "GET", "POST"]),
            repeat: chance.pick(&[1, 1, 1, 2, 3]),
            think_ns: (least_ns, least_ns + more_ns),
            takes: chance.one_in(2).then(|| chance.pick(&places)),
        });
    }
    talk.site.cookies = chance.one_in(2);
}

fn redirects(chance: &mut Chance, talk: &mut Talk, fair: bool) {
    let most = chance.between(1, 6);
    talk.follow = Some(most as u8);
    let hops = chance.between(1, most);
    talk.site.hops_most = if fair || chance.one_in(2) { hops } else { chance.between(1, 9) };
}

fn streams(chance: &mut Chance, talk: &mut Talk, fair: bool) {
    let gap_ns = if chance.one_in(3) { 0 } else { chance.scaled(US, 3 * MS) };
    let kind = chance.pick(&[PartKind::Event, PartKind::Chunk, PartKind::Line]);
    let ends = match kind {
        PartKind::Event => [PartEnd::Body, PartEnd::Content, PartEnd::Event],
        _ => [PartEnd::Body, PartEnd::Content, PartEnd::Content],
    };
    let stall_ns = match fair {
        true => 1_000 * MS,
        // Some parts come later.
        false if chance.one_in(2) => gap_ns / 2 + 10 * US,
        false => chance.scaled(MS, 20 * MS),
    };
    talk.stream = Some(Stream {
        kind,
        end: chance.pick(&ends),
        parts_most: chance.scaled(1, 12),
        gap_ns,
        stall_ns: chance.one_in(2).then_some(stall_ns),
    });
}

fn origins(chance: &mut Chance, talk: &mut Talk, _: bool) {
    talk.origins = (0..chance.between(2, 3)).map(|_| chance.between(1, 4) as u32).collect();
}

fn rows(chance: &mut Chance, talk: &mut Talk, _: bool) {
    let order = chance.pick(&[Order::Sequential, Order::Shuffled, Order::Unique, Order::Unique]);
    talk.rows = Some(Rows { count: chance.scaled(1, 60), order });
}

fn failures(chance: &mut Chance, talk: &mut Talk, _: bool) {
    let leads = [Leads::Elsewhere, Leads::InCircles, Leads::TooFar, Leads::Nowhere];
    if talk.follow.is_some() && chance.one_in(2) {
        talk.site.leads = Some(chance.pick(&leads));
    } else {
        talk.site.fails_one_in = chance.scaled(2, 20);
        talk.site.lacks_value = chance.one_in(2);
        talk.site.cuts = chance.one_in(2);
    }
}

/// In some runs whose sessions take values from bodies, lets a peer answer without end: a session
/// must not keep all of it.
pub(super) fn endless(chance: &mut Chance, scenario: &mut Scenario) {
    let in_body = |step: &Step| matches!(step.takes, Some(Place::Json | Place::Body));
    let takes = scenario.talk.as_ref().is_some_and(|talk| talk.steps.iter().any(in_body));
    if !takes || chance.one_in(2) {
        return;
    }
    let (at, peer) = (chance.below(4) as u32, &mut scenario.peers[0]);
    peer.tricks.insert(0, (at, Trick::Endless));
    peer.http2.tricks.insert(0, (at, Http2Trick::Endless));
    peer.pace = Pace::default();
    // So much is not read byte by byte.
    scenario.kernel.read_most = 64 * 1024;
}

/// Answers that open a tunnel. None has a body, whatever it says (RFC 9110 section 9.3.6).
const OPENS: [&[u8]; 5] = [
    b"HTTP/1.1 200 Connection established\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nProxy-Agent: any\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
];

/// Answers that open none.
const REFUSES: [&[u8]; 6] = [
    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\noops",
    b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n",
    b"HTTP/1.1 200 O",
    b"SSH-2.0-x\r\n",
    b"",
];

/// Draws what the proxies before the peers do.
pub(super) fn proxies(chance: &mut Chance, peers: &mut [Manner], fair: bool) {
    for manner in peers {
        let ends = [End::Fin, End::Reset, End::Silence];
        manner.proxy = match fair || chance.one_in(2) {
            true => Proxy::Opens(Bytes(chance.pick(&OPENS))),
            false => Proxy::Refuses(Bytes(chance.pick(&REFUSES)), chance.pick(&ends)),
        };
    }
}
