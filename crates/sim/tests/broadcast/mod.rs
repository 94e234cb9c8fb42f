//! Broadcasts against servers that err, replayed at the generator in virtual time: whole, byte by byte and in random
//! pieces. Each row says what becomes of the messages and of their deliveries; laws hold for all.

mod peer;
mod phases;
mod shared;
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use trueload_engine::generator::{Broadcast, Broadcasting, Connected, DoneReport};
use trueload_load::{Load, Stop};
use trueload_meter::{Deliveries, Meter};
use trueload_sim::kernel::Setups;
use trueload_sim::laws;
use trueload_sim::peers::Peers;
use trueload_sim::play::{Cast, play_as};
use trueload_sim::scenario::{KernelPlan, PhasePlan, Protocol, S, Scenario, US};
use trueload_wire::shootout::Dialect;
use trueload_wire::websocket::client::Opening;

use peer::{Fault, Server, Side};
use table::{ROWS, Row};

const TIMEOUT_NS: u64 = S;
const PADDING_BYTES: u32 = 8;

/// In which pieces bytes come to the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Whole,
    Bytes,
    /// By this seed.
    Random(u64),
}

/// What is played: the clients of one engine, or of several that share the broadcast.
pub struct Play {
    pub server: Server,
    pub dialect: Dialect,
    /// Threads are the engines.
    pub scenario: Scenario,
}

impl Play {
    pub fn new(fault: Fault, dialect: Dialect, phases: Vec<PhasePlan>) -> Self {
        let scenario = Scenario {
            protocol: Protocol::Broadcast { dialect, padding: PADDING_BYTES },
            connections: phases[0].connections,
            timeout_ns: TIMEOUT_NS,
            connect_timeout_ns: TIMEOUT_NS,
            connect_interval_ns: 10_000,
            phases,
            kernel: KernelPlan { latency_ns: 50 * US, ..KernelPlan::default() },
            peers: Vec::new(),
            ..Scenario::default()
        };
        Play { server: Server::new(fault, dialect), dialect, scenario }
    }

    pub fn cut(mut self, cut: Cut) -> Self {
        let kernel = &mut self.scenario.kernel;
        (kernel.read_all, kernel.read_random) = (cut == Cut::Whole, matches!(cut, Cut::Random(_)));
        kernel.read_most = match cut {
            Cut::Whole => usize::MAX,
            Cut::Bytes => 1,
            Cut::Random(_) => 300,
        };
        self.scenario.seed = if let Cut::Random(seed) = cut { seed } else { 0 };
        self
    }

    pub fn of_engines(mut self, engines: u32) -> Self {
        self.scenario.threads = engines;
        self.server.has_stamps = engines > 1;
        self
    }

    pub fn play(self) -> Outcome {
        let (dialect, engines) = (self.dialect, self.scenario.threads);
        let mut headers = vec![("Host".to_owned(), "a".to_owned())];
        if let Some(protocol) = dialect.subprotocol() {
            headers.push(("Sec-WebSocket-Protocol".to_owned(), protocol.to_owned()));
        }
        let opening = Opening::new("/ws", &headers).unwrap();
        let server = Rc::new(RefCell::new(self.server));
        let cast = Cast {
            protocol: &|engine| {
                let opening = opening.clone();
                let protocol = Broadcast::new(opening, dialect, PADDING_BYTES, TIMEOUT_NS, 7);
                protocol.of_part(engine, engines, 7)
            },
            program: &Broadcasting::new,
            peers: &|engine| -> Box<dyn Peers> { Box::new(Side::new(&server, engine, engines)) },
            tls: Setups::default(),
        };
        let mut played = play_as(&Arc::new(self.scenario), false, &cast);
        let broken = laws::check(&mut played);
        let phases = played.front.assigned.len();
        let mut done: Vec<Vec<DoneReport>> = (0..phases).map(|_| Vec::new()).collect();
        for reported in played.front.done {
            done[reported.done.phase].push(*reported.done);
        }
        let connected = played.front.set_ups.into_iter().map(|(_, connected)| connected);
        let server = server.borrow();
        let (pongs, heartbeats) = (server.pongs, server.heartbeats);
        Outcome { connected: connected.collect(), done, pongs, heartbeats, broken }
    }
}

/// A phase in which clients have their turns, so many at a time.
pub fn turns(connections: u32, concurrent: u32, stop: Stop) -> PhasePlan {
    let load = Load::Turns { concurrent };
    PhasePlan { load, stop, connections, idle: 0, pause_ns: 0, not_before_ns: 0 }
}

/// What came of it.
pub struct Outcome {
    pub connected: Vec<Connected>,
    /// By phase: what each engine reports.
    pub done: Vec<Vec<DoneReport>>,
    pub pongs: u32,
    pub heartbeats: u32,
    /// The laws of the simulation that are broken, each with how.
    pub broken: Vec<(&'static str, String)>,
}

/// Expected, delivered, lost, duplicate and out of order, of all engines.
pub fn counts(done: &[DoneReport]) -> [u64; 5] {
    let mut of = Deliveries::default();
    done.iter().for_each(|done| of.merge(done.deliveries.as_ref().expect("deliveries")));
    [of.expected, of.delivered, of.lost, of.duplicate, of.out_of_order]
}

/// What a row left.
#[derive(Debug)]
pub struct Seen {
    pub refused: BTreeMap<&'static str, u64>,
    pub established: u32,
    pub ok: u64,
    pub unsent: u64,
    pub failed: BTreeMap<&'static str, u64>,
    /// expected, delivered, lost, duplicate, out of order.
    pub deliveries: [u64; 5],
    pub pongs: u32,
}

pub fn play(row: &Row, dialect: Dialect, cut: Cut, engines: u32) -> Seen {
    let phase = turns(row.clients, row.concurrent, Stop::Requests(row.messages));
    let outcome = Play::new(row.fault, dialect, vec![phase]).cut(cut).of_engines(engines).play();
    assert_eq!(outcome.broken, [], "{}, {}, {cut:?}", row.name, dialect.name());
    let took_ns = outcome.done[0].iter().map(|done| done.done_ns - done.started_ns).max();
    let most_ns = u64::from(engines) * TIMEOUT_NS + 2 * S;
    assert!(took_ns <= Some(most_ns), "{}: took {took_ns:?} ns", row.name);
    seen(row, &outcome)
}

/// What a row left at all engines together.
fn seen(row: &Row, outcome: &Outcome) -> Seen {
    let mut meter = Meter::default();
    outcome.done[0].iter().for_each(|done| meter.merge(&done.meter));
    let deliveries = counts(&outcome.done[0]);
    assert_eq!(meter.issued, meter.ok + meter.failed_sum() + meter.cancelled, "{}", row.name);
    assert_eq!(deliveries[0], deliveries[1] + deliveries[2], "{}", row.name);
    let mut refused = BTreeMap::new();
    for (class, count) in outcome.connected.iter().flat_map(|connected| &connected.failed) {
        *refused.entry(class.name()).or_default() += count;
    }
    Seen {
        refused,
        established: outcome.connected.iter().map(|connected| connected.established).sum(),
        ok: meter.ok,
        unsent: meter.unsent(),
        failed: meter.failed().map(|(class, count)| (class.name(), count)).collect(),
        deliveries,
        pongs: outcome.pongs,
    }
}

#[test]
fn every_row_comes_out_as_it_says_however_its_bytes_come() {
    for row in ROWS {
        for dialect in row.dialects {
            let random = (0..6).map(Cut::Random);
            for cut in [Cut::Whole, Cut::Bytes].into_iter().chain(random) {
                let seen = play(row, *dialect, cut, 1);
                let why = format!("{}, {}, {cut:?}: {seen:#?}", row.name, dialect.name());
                (row.check)(&seen, &why);
            }
        }
    }
}

#[test]
fn a_server_that_keeps_to_the_contract_has_every_message_delivered_in_every_dialect() {
    for dialect in Dialect::ALL {
        let row = Row::of("good", Fault::None, |_, _| {});
        let seen = play(&row, dialect, Cut::Whole, 1);
        assert_eq!((seen.established, seen.ok, seen.deliveries), (4, 10, [40, 40, 0, 0, 0]));
    }
}
