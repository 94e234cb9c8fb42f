//! Draws a scenario from a seed. Half of all scenarios have only peers that answer rightly.
//!
//! The sizes give a run tens to hundreds of requests, because it matters more that many different
//! runs are played. The meaning of a seed changes whenever this code changes what it draws.

mod http2;
mod talk;

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage, Stop, refill};
use trueload_wire::shootout::Dialect;

use crate::chance::Chance;
use crate::scenario::{
    Accept, Bytes, Choice, Delay, End, Http2Manner, Http2Plan, HttpPlan, KernelPlan, MS, Manner,
    Pace, PhasePlan, Protocol, S, Scenario, Start, Style, Talk, Trick, US,
};

/// One scenario in this many uses TLS. TLS is rare because handshakes take a hundred times as long
/// as the rest of a run.
const TLS_ONE_IN: u64 = 16;
/// The part of the seed that decides about TLS.
const TLS: u64 = 777;
/// The part of the seed that decides about HTTP/2. One scenario in `HTTP2_ONE_IN` uses it.
const HTTP2: u64 = 779;
const HTTP2_ONE_IN: u64 = 3;
/// The part of the seed that decides how the connections of a scenario with HTTP/2 begin.
const START: u64 = 780;
/// The part of the seed that decides how many engines share a broadcast, and how slow their front
/// is.
const SHARED: u64 = 778;

/// The part of the seed that decides about conversations. One scenario in `TALK_ONE_IN` is one.
const TALK: u64 = 781;
const TALK_ONE_IN: u64 = 3;

/// The part of the seed that decides whether an echo over WebSocket becomes conversations.
const CHAT: u64 = 783;

/// The part of the seed that decides whether a thread joins the others, and whether a run is long.
const LATE: u64 = 782;
/// One run in this many has so many requests that some are held back.
const LONG_ONE_IN: u64 = 12;
/// Its requests: more than the most from one that is held back to the next.
const LONG_REQUESTS: u64 = 3_000;

/// Draws the scenario of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    let fair = chance.one_in(2);
    let (mut http2, mut start) = (Chance::part(seed, HTTP2), Chance::part(seed, START));
    let shape = Shape::of(seed, fair, (&mut chance, &mut http2, &mut start));
    let Shape { protocol, talk, tls, depth, close } = shape;
    let broadcast = matches!(protocol, Protocol::Broadcast { .. });
    let datagrams = matches!(protocol, Protocol::Udp { .. });
    let origins = talk.as_ref().map_or(1, |talk| talk.origins.len().max(1) as u32);
    let connections = (chance.between(1, 8) as u32).max(origins);
    let mut kernel = kernel(&mut chance, fair);
    if datagrams && !fair {
        kernel.lost_one_in = chance.pick(&[0, 2, 10, 40]);
        kernel.twice_one_in = chance.pick(&[0, 2, 10]);
    }
    let right = fair || datagrams;
    let mut peers: Vec<Manner> = (0..chance.between(1, 3))
        .map(|_| {
            let common = manner(&mut chance, right, &protocol, close);
            let manner = http2::add(&mut http2, common.clone(), right, &protocol, depth);
            http2::begin(&mut start, manner, common, right, &protocol)
        })
        .collect();
    if talk.as_ref().is_some_and(|talk| talk.tunnel) {
        talk::proxies(&mut chance, &mut peers, fair);
    }
    let mut shared = Chance::part(seed, SHARED);
    let engines = shared.pick(&[1, 1, 2, 3]);
    let mut scenario = Scenario {
        seed,
        tls,
        protocol,
        talk,
        threads: if broadcast { engines } else { chance.pick(&[1, 1, 2, 3]) },
        connections,
        depth,
        refill: if chance.one_in(3) {
            chance.between(1, depth as u64) as usize
        } else {
            refill(depth)
        },
        close,
        dead_address: chance.one_in(12),
        timeout_ns: chance.scaled(4 * MS, 400 * MS),
        connect_timeout_ns: chance.scaled(20 * MS, 400 * MS),
        connect_interval_ns: chance.pick(&[0, 10 * US, 300 * US]),
        send_quantum_ns: chance.pick(&[0, 0, 100 * US]),
        joins_ns: None,
        phases: Vec::new(),
        stop_ns: None,
        front_ns: shared.pick(&[0, 100 * US, 30 * MS]),
        settle_by_ns: None,
        kernel,
        peers,
    };
    match fair {
        true => be_patient(&mut scenario),
        false => talk::endless(&mut chance, &mut scenario),
    }
    add_phases(&mut scenario, &mut chance);
    if fair && scenario.talk.is_none() {
        answer_with_status(&mut scenario, &mut chance);
        forget_quiet_connections(&mut scenario, &mut chance);
    }
    last_specially(&mut scenario, &mut Chance::part(seed, LATE), fair);
    if chance.one_in(12) {
        scenario.stop_ns = Some(chance.scaled(10 * US, 2 * S));
    }
    scenario
}

/// Permits each request and connection as much time as fair peers may take.
fn be_patient(scenario: &mut Scenario) {
    let patience_ns = 4 * scenario.slowest_ns() + 50 * MS;
    (scenario.timeout_ns, scenario.connect_timeout_ns) = (patience_ns, patience_ns);
}

/// What is asked, and over how many connections at once.
struct Shape {
    protocol: Protocol,
    talk: Option<Talk>,
    tls: bool,
    depth: usize,
    close: bool,
}

impl Shape {
    /// Draws it from these streams: of everything, of HTTP/2, and of how connections begin.
    fn of(seed: u64, fair: bool, chances: (&mut Chance, &mut Chance, &mut Chance)) -> Self {
        let (chance, http2, start) = chances;
        let protocol = protocol(chance, http2, start);
        let mut talk = Chance::part(seed, TALK);
        if talk.one_in(TALK_ONE_IN) {
            let protocol = talk::protocol(&mut talk);
            let tls = tls(&protocol, seed);
            return talk::shape(&mut talk, protocol, tls, fair);
        }
        let tls = tls(&protocol, seed);
        let half_close = matches!(protocol, Protocol::Tcp { half_close: true, .. });
        let broadcast = matches!(protocol, Protocol::Broadcast { .. });
        let datagrams = matches!(protocol, Protocol::Udp { .. });
        let lasting = broadcast || datagrams || matches!(protocol, Protocol::Ws { .. });
        let close = half_close || (!lasting && chance.one_in(5));
        let depth = if broadcast || chance.one_in(2) { 1 } else { chance.between(2, 12) as usize };
        let mut chat = Chance::part(seed, CHAT);
        if matches!(protocol, Protocol::Ws { .. }) && chat.one_in(2) {
            let says = chat.between(1, 4) as u32;
            let protocol = Protocol::Chat { says, opens: chat.one_in(4) };
            return Shape { protocol, talk: None, tls, depth: 1, close };
        }
        Shape { protocol, talk: None, tls, depth, close }
    }
}

/// In some runs, lets the last thread join the others. A few others have thousands of requests.
fn last_specially(scenario: &mut Scenario, chance: &mut Chance, fair: bool) {
    if scenario.threads > 1
        && scenario.is_divisible()
        && chance.one_in(3)
        && let Stop::After(ns) = scenario.phases[0].stop
    {
        scenario.joins_ns = Some(chance.below(ns / 2 + 1));
    }
    if chance.one_in(LONG_ONE_IN) {
        last_long(scenario, chance, fair);
    }
}

/// Draws whether TLS is used. ALPN is a part of it. This draw has its own stream, so that it does
/// not change the rest of the scenario.
fn tls(protocol: &Protocol, seed: u64) -> bool {
    match protocol {
        Protocol::Http2(Http2Plan { start: Start::Negotiated(_), .. }) => true,
        Protocol::Tcp { half_close: true, .. } | Protocol::Udp { .. } => false,
        _ => Chance::part(seed, TLS).one_in(TLS_ONE_IN),
    }
}

/// Draws the protocol. `http2` and `start` are streams of their own, like the one for TLS.
fn protocol(chance: &mut Chance, http2: &mut Chance, start: &mut Chance) -> Protocol {
    let protocol = match chance.below(10) {
        0..=3 => Protocol::Http(HttpPlan {
            method: chance.pick(&["GET", "GET", "GET", "HEAD", "POST"]),
            several: chance.one_in(4),
            expect_body: chance.one_in(2),
        }),
        4 | 5 => {
            Protocol::Tcp { size: chance.pick(&[1, 5, 64, 700]), half_close: chance.one_in(8) }
        }
        6 | 7 => Protocol::Ws { size: chance.pick(&[1, 5, 64, 700]) },
        8 => Protocol::Udp { size: chance.pick(&[16, 17, 64, 700]) },
        _ => Protocol::Broadcast {
            dialect: chance.pick(&Dialect::ALL),
            padding: chance.scaled(1, 200) as u32,
        },
    };
    if http2.one_in(HTTP2_ONE_IN) { Protocol::Http2(http2::plan(http2, start)) } else { protocol }
}

fn kernel(chance: &mut Chance, fair: bool) -> KernelPlan {
    let costs = !chance.one_in(3);
    let cost = |chance: &mut Chance, most_ns| if costs { chance.below(most_ns) } else { 0 };
    let narrow = chance.one_in(4);
    // In a fair run, a request must not leave in so many pieces that the peers wait too long for
    // it.
    let least = if fair { 40 } else { 1 };
    let read_most = match chance.below(4) {
        0 => chance.scaled(if fair { 8 } else { 1 }, 200) as usize,
        _ => 64 * 1024,
    };
    KernelPlan {
        together: chance.one_in(2),
        latency_ns: match chance.below(4) {
            0 => 0,
            1 => 50 * US,
            _ => chance.scaled(US, 4 * MS),
        },
        jitter_ns: if chance.one_in(2) { chance.scaled(US, MS) } else { 0 },
        batch_cost_ns: chance.between(300, 4 * US),
        input_cost_ns: cost(chance, 3 * US),
        send_cost_ns: cost(chance, 6 * US),
        late_ns: if chance.one_in(3) { chance.scaled(US, 3 * MS) } else { 0 },
        coalesce_ns: if chance.one_in(5) { chance.scaled(4 * US, 200 * US) } else { 0 },
        coalesces: chance.one_in(3),
        lost_one_in: 0,
        twice_one_in: 0,
        room: if narrow { chance.scaled(least, 400) as usize } else { usize::MAX },
        send_most: if chance.one_in(5) { chance.scaled(least, 400) as usize } else { usize::MAX },
        read_most,
        read_random: chance.one_in(2),
        read_all: chance.one_in(2),
        shuffled: chance.one_in(2),
        timers_first: chance.one_in(4),
        hides_waits: chance.one_in(4),
        stalls: None,
    }
}

fn delay(chance: &mut Chance) -> Delay {
    let least_ns = if chance.one_in(4) { 0 } else { chance.scaled(US, 6 * MS) };
    let more_ns = if chance.one_in(2) { 0 } else { chance.scaled(US, 6 * MS) };
    Delay { least_ns, most_ns: least_ns + more_ns }
}

/// Draws a peer's behaviour on one connection.
fn manner(chance: &mut Chance, fair: bool, protocol: &Protocol, close: bool) -> Manner {
    // Idempotent requests sent after an announced end are sent again (RFC 9112 section 9.6).
    let announces = protocol.over_http1().is_some_and(|plan| plan.method != "POST");
    let plain = protocol.over_http1().is_some_and(|plan| plan.expect_body);
    let right = fair || chance.one_in(3);
    let mut tricks = Vec::new();
    if announces && !close && chance.one_in(4) {
        tricks.push((chance.below(6) as u32, Trick::Announce(chance.pick(&[0, 0, 200 * US]))));
    }
    let (mut accept, mut greeting) = (Accept::Yes, None);
    if !right {
        for _ in 0..chance.between(0, 2) {
            tricks.push((chance.scaled(1, 12) as u32 - 1, trick(chance)));
        }
        if chance.one_in(4) {
            let silent = [Accept::Silent, Accept::Unreachable, Accept::NoPort, Accept::Busy];
            let refused = [Accept::Refused, Accept::Refused, Accept::Reset];
            accept = if chance.one_in(2) { chance.pick(&silent) } else { chance.pick(&refused) };
        }
        greeting = chance.one_in(6).then(|| trick(chance));
    }
    Manner {
        accept,
        greeting,
        tricks,
        delay: delay(chance),
        style: match chance.below(12) {
            0 => Style::Dated,
            1 => Style::Chunked,
            2 => Style::Interim,
            3 if close => Style::UntilEnd,
            4 if !plain => Style::Large(chance.scaled(10, 3000) as usize),
            5 => Style::Folded,
            6 => Style::Repeated,
            7 => Style::LaterVersion,
            _ => Style::Length,
        },
        keeps_open: chance.one_in(6),
        pace: pace(chance),
        ..Manner::default()
    }
}

/// Draws how slowly a peer reads and writes. Most are not slow.
fn pace(chance: &mut Chance) -> Pace {
    let writes = (chance.scaled(4, 200) as usize, chance.scaled(US, 200 * US));
    match chance.below(16) {
        0 => Pace { read_ns: chance.scaled(10, 4_000), writes: None },
        1 => Pace { read_ns: 0, writes: Some(writes) },
        _ => Pace::default(),
    }
}

/// Makes a run over a long way have thousands of requests over HTTP/1.1, one at a time on kept
/// connections: some are held back then. Peers that are not fair send answers ahead.
fn last_long(scenario: &mut Scenario, chance: &mut Chance, fair: bool) {
    let kept = scenario.talk.as_ref().is_none_or(|talk| {
        let alike = talk.steps.is_empty() && talk.follow.is_none() && talk.rows.is_none();
        alike && !talk.connect_open
    });
    if !kept || scenario.joins_ns.is_some() || scenario.close || scenario.depth > 1 {
        return;
    }
    let over_http1 = scenario.protocol.over_http1().is_some();
    let guesses = match &mut scenario.protocol {
        Protocol::Http(plan) if scenario.talk.is_none() => {
            (plan.method, plan.several, plan.expect_body) = ("GET", false, true);
            !fair
        }
        _ if fair && over_http1 => false,
        _ => return,
    };
    let latency_ns = chance.between(2 * MS, 10 * MS);
    // As many answers as requests: none is left over in the end.
    let guess = (0, Trick::Guess(latency_ns * 7 / 5, LONG_REQUESTS as u32));
    let tricks = if guesses { vec![guess] } else { Vec::new() };
    let http2 = Http2Manner { choice: Choice::Http1, ..Http2Manner::default() };
    scenario.peers = vec![Manner { tricks, http2, ..Manner::default() }];
    (scenario.threads, scenario.connections) = (1, scenario.parts());
    // Bytes are known to have come before they are read only where the thread runs a little late.
    scenario.kernel = KernelPlan { latency_ns, late_ns: 10 * US, ..KernelPlan::default() };
    let patience_ns = 4 * scenario.slowest_ns() + 400 * MS;
    (scenario.timeout_ns, scenario.connect_timeout_ns) = (patience_ns, patience_ns);
    scenario.phases = vec![PhasePlan {
        load: Load::Closed { active: Arc::default() },
        stop: Stop::Requests(LONG_REQUESTS),
        connections: scenario.connections,
        idle: 0,
        pause_ns: 0,
        not_before_ns: 0,
    }];
}

/// In some runs, makes one peer answer rightly, but with an unsuccessful status.
fn answer_with_status(scenario: &mut Scenario, chance: &mut Chance) {
    if matches!(scenario.protocol, Protocol::Http(_) | Protocol::Http2(_)) && chance.one_in(16) {
        scenario.peers[0].style = Style::Status(chance.pick(&[404, 500, 600, 999]));
    }
}

/// In some runs, makes the peers forget connections during the pauses between phases. The two ends
/// disagree slightly on how long a connection was quiet. So each connection is either always busy
/// or quiet for much longer than the limit.
fn forget_quiet_connections(scenario: &mut Scenario, chance: &mut Chance) {
    let again = match &scenario.protocol {
        Protocol::Http(plan) | Protocol::Http2(Http2Plan { http: plan, .. }) => {
            plan.method != "POST"
        }
        _ => false,
    };
    let busy =
        |phase: &PhasePlan| matches!(&phase.load, Load::Closed { active } if active.is_empty());
    let alone = scenario.depth == 1 && !scenario.close;
    if !(again && alone && scenario.phases.iter().all(busy) && chance.one_in(2)) {
        return;
    }
    let forgets_ns = S + 4 * scenario.slowest_ns() + chance.scaled(MS, 2 * S);
    scenario.peers.iter_mut().for_each(|manner| manner.forgets_ns = Some(forgets_ns));
    for phase in &mut scenario.phases {
        phase.pause_ns += 2 * forgets_ns;
    }
}

fn end(chance: &mut Chance) -> End {
    chance.pick(&[End::Fin, End::Fin, End::Reset, End::Silence])
}

const JUNK: [&[u8]; 10] = [
    b"x",
    b"\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhullo",
    b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"\x81\x05hello",
    b"\x88\x02\x03\xe8",
    b"\x89\x02hi\xc1\x00",
];

/// A WebSocket ping. The client's answer is longer than the ping, because it is masked.
const PING: &[u8] = b"\x89\x02hi";

fn trick(chance: &mut Chance) -> Trick {
    match chance.below(23) {
        0..=2 => Trick::Double,
        3..=5 => Trick::Truncate(chance.between(1, 99), end(chance)),
        6..=8 => Trick::EndInstead(end(chance)),
        9..=11 => Trick::EndBehind(end(chance)),
        12..=14 => Trick::Instead(Bytes(chance.pick(&JUNK))),
        15..=17 => Trick::Behind(Bytes(chance.pick(&JUNK))),
        18 => Trick::Dribble(chance.scaled(US, 2 * MS)),
        19 | 20 => Trick::Late(chance.scaled(10 * US, 500 * MS)),
        21 => Trick::ReadsNothing,
        _ if chance.one_in(6) => Trick::Flood(Bytes(chance.pick(&JUNK))),
        _ if chance.one_in(2) => Trick::FloodUnread(Bytes(PING)),
        _ => Trick::Announce(chance.scaled(US, 100 * MS)),
    }
}

fn add_phases(scenario: &mut Scenario, chance: &mut Chance) {
    let mut connections = scenario.connections;
    for index in 0..chance.pick(&[1, 1, 2, 3]) {
        if index > 0 && chance.one_in(3) {
            connections = (chance.between(1, 8) as u32).max(scenario.parts());
        }
        let broadcast = matches!(scenario.protocol, Protocol::Broadcast { .. });
        let opens = scenario.connect_open();
        let idle = if !broadcast && !opens && chance.one_in(8) {
            chance.below(connections.into()) as u32
        } else {
            0
        };
        let (load, stop) = load(scenario, chance, connections - idle);
        let pause_ns = if chance.one_in(3) { chance.scaled(US, 300 * MS) } else { 0 };
        scenario.phases.push(PhasePlan {
            load,
            stop,
            connections,
            idle,
            pause_ns,
            not_before_ns: 0,
        });
    }
}

/// Draws a load of tens to hundreds of requests, and when it stops.
fn load(scenario: &Scenario, chance: &mut Chance, senders: u32) -> (Load, Stop) {
    let Scenario { kernel, peers, .. } = scenario;
    let requests = chance.scaled(4, 250);
    let senders = senders.max(1);
    let delays = peers.iter().map(|manner| (manner.delay.least_ns + manner.delay.most_ns) / 2);
    let delay_ns = delays.sum::<u64>() / peers.len() as u64;
    let exchange_ns = 2 * kernel.latency_ns + kernel.batch_cost_ns + delay_ns;
    let places = u64::from(senders) * if scenario.close { 1 } else { scenario.depth as u64 };
    let by_requests = chance.one_in(3);
    if let Protocol::Broadcast { .. } = scenario.protocol {
        let window_ns = (requests * exchange_ns / 4).clamp(US, 2 * S);
        let stop = if by_requests { Stop::Requests(requests / 2) } else { Stop::After(window_ns) };
        return (Load::Turns { concurrent: chance.between(1, 8) as u32 }, stop);
    }
    let opens = scenario.connect_open();
    if !opens && chance.one_in(2) {
        let window_ns = (requests * exchange_ns / places).clamp(US, 2 * S);
        let stop = if by_requests { Stop::Requests(requests) } else { Stop::After(window_ns) };
        // A slot that becomes inactive would keep its share of a fixed number of requests.
        let staged = !by_requests && chance.one_in(4);
        let active = if staged { active(chance, senders, window_ns) } else { Arc::default() };
        return (Load::Closed { active }, stop);
    }
    let window_ns = chance.scaled(MS, S);
    let rate = requests as f64 / (window_ns as f64 / S as f64);
    let arrivals = match chance.below(2) {
        0 => Arrivals::Constant,
        _ => Arrivals::Poisson { seed: chance.draw() },
    };
    let stop = if by_requests { Stop::Requests(requests) } else { Stop::After(window_ns) };
    // A load with a number of requests lasts until they are sent; one with a time may be cut off.
    let last_ns = if by_requests || chance.one_in(2) { 3_600 * S } else { window_ns };
    (Load::Open { stages: rates(chance, rate, window_ns, last_ns), arrivals }, stop)
}

/// Draws the number of sending connections over time.
fn active(chance: &mut Chance, senders: u32, window_ns: u64) -> Arc<[Stage]> {
    let stage =
        |from: u64, to: u64| Stage { ns: window_ns / 2 + 1, from: from as f64, to: to as f64 };
    let (first, last) = (chance.between(1, senders.into()), chance.between(1, senders.into()));
    [stage(first, first), stage(first, last)].into()
}

fn rates(chance: &mut Chance, rate: f64, window_ns: u64, last_ns: u64) -> Arc<[Stage]> {
    match chance.below(3) {
        0 => [
            Stage { ns: window_ns / 2, from: rate / 2.0, to: rate * 2.0 },
            Stage { ns: last_ns / 2, from: rate, to: rate },
        ]
        .into(),
        _ => [Stage { ns: last_ns, from: rate, to: rate }].into(),
    }
}
