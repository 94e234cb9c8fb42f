//! Broadcasts against servers that err, replayed at the generator in virtual time: whole, byte by byte and in random
//! pieces. Each row says what becomes of the messages and of their deliveries; laws hold for all.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

mod peer;
mod phases;
mod shared;
mod table;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};

use trueload_drive::Program;
use trueload_engine::generator::{
    Broadcast, Broadcasting, Command, Config, Connected, DoneReport, Generator, PhaseShare, Report,
};
use trueload_engine::outlet::Outlet;
use trueload_load::{Load, Stop};
use trueload_meter::{Deliveries, Meter};
use trueload_wire::shootout::Dialect;
use trueload_wire::websocket::client::Opening;

use peer::{Peer, Vice};
use table::{ROWS, Row};
use world::{Cut, World};

const NS_PER_S: u64 = 1_000_000_000;
const TIMEOUT_NS: u64 = NS_PER_S;
const PADDING_BYTES: u32 = 8;

/// A generator, what it is told and what it tells.
pub struct Engine {
    pub generator: Broadcasting,
    pub commands: Sender<Command>,
    connections: u32,
    reports: RefCell<Receiver<Report>>,
    pub connected: RefCell<Vec<Connected>>,
    pub done: RefCell<Vec<DoneReport>>,
}

/// The generator of engine `index` of `of`, and where it tells.
pub fn generator(
    dialect: Dialect,
    index: u32,
    of: u32,
) -> (Broadcasting, Sender<Command>, Receiver<Report>) {
    let config = Config {
        addresses: vec!["127.0.0.1:80".parse().unwrap()],
        local_addresses: Vec::new(),
        depth: 1,
        refill: 1,
        close: false,
        timeout_ns: TIMEOUT_NS,
        connect_timeout_ns: TIMEOUT_NS,
        connect_interval_ns: 10_000,
        tls: None,
        send_quantum_ns: 0,
        coalesce_ns: 0,
        seed: 0,
        thread: index,
        threads: of,
        places: None,
    };
    let mut headers = vec![("Host".to_owned(), "a".to_owned())];
    if let Some(protocol) = dialect.subprotocol() {
        headers.push(("Sec-WebSocket-Protocol".to_owned(), protocol.to_owned()));
    }
    let opening = Opening::new("/ws", &headers).unwrap();
    let protocol = Broadcast::new(opening, dialect, PADDING_BYTES, TIMEOUT_NS, 7);
    let (commands, inbox) = channel();
    let (sender, reports) = channel();
    let outlet = Outlet::to(sender, |report| report);
    let settled = Arc::new(AtomicU64::new(0));
    let protocol = protocol.of_part(index, of);
    let generator = Generator::new(Arc::new(config), protocol, settled, inbox, outlet);
    (Broadcasting::new(generator), commands, reports)
}

impl Engine {
    pub fn new(dialect: Dialect) -> Self {
        let (generator, commands, reports) = generator(dialect, 0, 1);
        let reports = RefCell::new(reports);
        let (connected, done) = (RefCell::default(), RefCell::default());
        Engine { generator, commands, connections: 0, reports, connected, done }
    }

    /// Has so many connections, or what can be had of them.
    pub fn connect(&mut self, world: &mut World, connections: u32) -> Connected {
        self.connections = connections;
        self.commands.send(Command::Connections(connections)).unwrap();
        let before = self.connected.borrow().len();
        self.run(world, |engine| engine.connected.borrow().len() > before);
        self.connected.borrow_mut().pop().expect("a report")
    }

    /// Runs one phase.
    pub fn phase(&mut self, world: &mut World, concurrent: u32, stop: Stop) -> DoneReport {
        let load = Load::Turns { concurrent };
        let (connections, start_ns) = (self.connections, world.now_ns);
        let share = PhaseShare { load, stop, connections, idle: 0, start_ns };
        self.commands.send(Command::Phase(share)).unwrap();
        let before = self.done.borrow().len();
        self.run(world, |engine| engine.done.borrow().len() > before);
        self.done.borrow_mut().pop().expect("the phase ends")
    }

    /// Runs up to a moment.
    pub fn run_until(&mut self, world: &mut World, until_ns: u64) {
        world.until_ns = until_ns;
        self.run(world, |_| false);
        world.until_ns = u64::MAX;
    }

    pub fn run(&mut self, world: &mut World, over: impl Fn(&Outcome) -> bool) {
        let Engine { generator, reports, connected, done, .. } = self;
        let heard = Outcome { reports, connected, done };
        world.run(std::slice::from_mut(generator), || {
            heard.listen();
            over(&heard)
        });
        heard.listen();
    }
}

/// What has been told so far.
pub struct Outcome<'a> {
    reports: &'a RefCell<Receiver<Report>>,
    pub connected: &'a RefCell<Vec<Connected>>,
    pub done: &'a RefCell<Vec<DoneReport>>,
}

impl Outcome<'_> {
    fn listen(&self) {
        while let Ok(report) = self.reports.borrow().try_recv() {
            match report {
                Report::Connected(connected) => self.connected.borrow_mut().push(connected),
                Report::Done(done) => self.done.borrow_mut().push(*done),
                _ => {}
            }
        }
    }
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

fn play(row: &Row, dialect: Dialect, cut: Cut) -> Seen {
    let mut world = World::new(Peer::new(row.vice, dialect), cut);
    let mut engine = Engine::new(dialect);
    let connected = engine.connect(&mut world, row.clients);
    let began_ns = world.now_ns;
    let done = engine.phase(&mut world, row.concurrent, Stop::Requests(row.messages));
    let took_ns = world.now_ns - began_ns;
    assert!(took_ns <= TIMEOUT_NS + 2 * NS_PER_S, "{}: took {took_ns} ns", row.name);
    assert!(!engine.generator.is_done());
    seen(row, &[connected], &[done], world.peer.pongs)
}

/// What a row left at all engines together.
fn seen(row: &Row, connected: &[Connected], done: &[DoneReport], pongs: u32) -> Seen {
    let (mut meter, mut of) = (Meter::default(), Deliveries::default());
    for done in done {
        meter.merge(&done.meter);
        of.merge(done.deliveries.as_ref().expect("deliveries"));
    }
    assert_eq!(meter.issued, meter.ok + meter.failed_sum() + meter.cancelled, "{}", row.name);
    assert_eq!(of.expected, of.delivered + of.lost, "{}", row.name);
    let mut refused = BTreeMap::new();
    for (class, count) in connected.iter().flat_map(|connected| &connected.failed) {
        *refused.entry(class.name()).or_default() += count;
    }
    Seen {
        refused,
        established: connected.iter().map(|connected| connected.established).sum(),
        ok: meter.ok,
        unsent: meter.unsent(),
        failed: meter.failed().map(|(class, count)| (class.name(), count)).collect(),
        deliveries: [of.expected, of.delivered, of.lost, of.duplicate, of.out_of_order],
        pongs,
    }
}

#[test]
fn every_row_comes_out_as_it_says_however_its_bytes_come() {
    for row in ROWS {
        for dialect in row.dialects {
            let random = (0..6).map(Cut::Random);
            for cut in [Cut::Whole, Cut::Bytes].into_iter().chain(random) {
                let seen = play(row, *dialect, cut);
                let why = format!("{}, {}, {cut:?}: {seen:#?}", row.name, dialect.name());
                (row.check)(&seen, &why);
            }
        }
    }
}

#[test]
fn a_server_that_keeps_to_the_contract_has_every_message_delivered_in_every_dialect() {
    for dialect in Dialect::ALL {
        let row = Row::of("good", Vice::None, |_, _| {});
        let seen = play(&row, dialect, Cut::Whole);
        assert_eq!((seen.established, seen.ok, seen.deliveries), (4, 10, [40, 40, 0, 0, 0]));
    }
}
