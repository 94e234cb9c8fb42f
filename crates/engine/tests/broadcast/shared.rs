//! The same servers, with two engines that share the broadcast: what each counts at its own clients comes to what
//! one alone would have counted.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use trueload_engine::generator::{
    Broadcasting, Command, Connected, DoneReport, PhaseShare, Report, Sent,
};
use trueload_load::{Load, Stop};
use trueload_meter::Failed;
use trueload_wire::shootout::Dialect;

use crate::peer::{Peer, Vice, Way};
use crate::table::{ROWS, Row};
use crate::world::{Cut, World};
use crate::{NS_PER_S, Seen, TIMEOUT_NS, generator, seen};

/// Two engines, with a front that settles.
struct Shared {
    generators: Vec<Broadcasting>,
    commands: Vec<Sender<Command>>,
    reports: Vec<Receiver<Report>>,
    kept: Vec<RefCell<Vec<Report>>>,
    phases: usize,
    /// By when all is to be there, as the front says.
    until_ns: Option<u64>,
}

impl Shared {
    fn new(dialect: Dialect, of: u32) -> Self {
        let (mut generators, mut commands, mut reports) = (vec![], vec![], vec![]);
        for index in 0..of {
            let made = generator(dialect, index, of);
            generators.push(made.0);
            commands.push(made.1);
            reports.push(made.2);
        }
        let kept = reports.iter().map(|_| RefCell::default()).collect();
        Shared { generators, commands, reports, kept, phases: 0, until_ns: None }
    }

    fn tell(&self, command: &Command) {
        self.commands.iter().for_each(|each| each.send(command.clone()).unwrap());
    }

    /// Runs until each engine has said what is waited for; what else it says is kept.
    fn hear(&mut self, world: &mut World, wanted: impl Fn(&Report) -> bool) -> Vec<Report> {
        let (reports, kept) = (&self.reports, &self.kept);
        let place = |kept: &RefCell<Vec<Report>>| kept.borrow().iter().position(&wanted);
        world.run(&mut self.generators, || {
            for (reports, kept) in reports.iter().zip(kept) {
                kept.borrow_mut().extend(reports.try_iter());
            }
            kept.iter().all(|kept| place(kept).is_some())
        });
        let take = |kept: &RefCell<Vec<Report>>| {
            let at = place(kept).expect("it is said");
            kept.borrow_mut().remove(at)
        };
        kept.iter().map(take).collect()
    }

    fn hear_done(&mut self, world: &mut World, index: usize) -> Vec<DoneReport> {
        let is_done = |report: &Report| matches!(report, Report::Done(done) if done.phase == index);
        let done = self.hear(world, is_done).into_iter().map(|report| match report {
            Report::Done(done) => *done,
            other => panic!("{other:?}"),
        });
        done.collect()
    }

    fn connect(&mut self, world: &mut World, connections: u32) -> Vec<Connected> {
        self.tell(&Command::Connections(connections));
        let heard = self.hear(world, |report| matches!(report, Report::Connected(_)));
        let connected = heard.into_iter().map(|report| match report {
            Report::Connected(connected) => connected,
            other => panic!("{other:?}"),
        });
        connected.collect()
    }

    fn begin(&self, connections: u32, concurrent: u32, stop: Stop, start_ns: u64) {
        let load = Load::Turns { concurrent };
        self.tell(&Command::Phase(PhaseShare { load, stop, connections, idle: 0, start_ns }));
    }

    /// One phase; connections, and how many messages of them all in flight.
    fn phase(&mut self, world: &mut World, load: [u32; 2], stop: Stop) -> Vec<DoneReport> {
        self.begin(load[0], load[1], stop, world.now_ns);
        self.settle(world)
    }

    /// What a front does when all have sent what they had to.
    fn settle(&mut self, world: &mut World) -> Vec<DoneReport> {
        let index = self.phases;
        self.phases += 1;
        let mut all = Sent::new();
        for report in self.hear(world, |it| matches!(it, Report::Sent(of, _) if *of == index)) {
            if let Report::Sent(_, sent) = report {
                all.extend(sent);
            }
        }
        self.tell(&Command::Settle(index, Arc::new(all), self.until_ns));
        let mut all: Vec<Failed> = vec![];
        for report in self.hear(world, |it| matches!(it, Report::Settled(of, _) if *of == index)) {
            if let Report::Settled(_, failed) = report {
                all.extend(failed);
            }
        }
        self.tell(&Command::Charge(index, all.into()));
        self.hear_done(world, index)
    }
}

fn play(row: &Row, dialect: Dialect, cut: Cut) -> Seen {
    let mut world = World::new(Peer::new(row.vice, dialect), cut);
    let mut shared = Shared::new(dialect, 2);
    let connected = shared.connect(&mut world, row.clients);
    let began_ns = world.now_ns;
    let load = [row.clients, row.concurrent];
    let done = shared.phase(&mut world, load, Stop::Requests(row.messages));
    let took_ns = world.now_ns - began_ns;
    assert!(took_ns <= 2 * TIMEOUT_NS + 2 * NS_PER_S, "{}: took {took_ns} ns", row.name);
    seen(row, &connected, &done, world.peer.pongs)
}

fn holds(rows: &[&Row]) {
    for row in rows {
        for dialect in row.dialects {
            let random = (0..3).map(Cut::Random);
            for cut in [Cut::Whole, Cut::Bytes].into_iter().chain(random) {
                let seen = play(row, *dialect, cut);
                let why = format!("{}, {}, {cut:?}: {seen:#?}", row.name, dialect.name());
                (row.check)(&seen, &why);
            }
        }
    }
}

/// Rows of the table in which it matters who sends what: an engine that has lost all its clients leaves its part
/// unsent, and what a client has that is closed depends on how often it had its turn.
const OTHERWISE: &[Row] = &[
    Row::of("drops half the clients, FIN", Vice::DropsHalf(Way::Fin), half_is_gone),
    Row::of("drops half the clients, RST", Vice::DropsHalf(Way::Rst), half_is_gone),
    Row::of("drops half the clients, close frame", Vice::DropsHalf(Way::Frame), half_is_gone),
    Row::of("upgrades every other client", Vice::UpgradesHalf, |seen, why| {
        assert_eq!((seen.established, seen.ok, seen.unsent), (2, 5, 5), "{why}");
        assert_eq!(seen.deliveries, [10, 10, 0, 0, 0], "{why}");
    }),
    Row::of("stalls one subscriber", Vice::Stalls, |seen, why| {
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((delivered, seen.unsent), (31, 0), "the others have had all: {why}");
        assert!(lost > 0 && expected <= 40, "{why}");
        assert_eq!(seen.failed.get("timeout.first_byte"), Some(&1), "{why}");
        assert_eq!(seen.failed.get("lost"), Some(&4), "those that the other engine had had: {why}");
    }),
    Row::of("no receipt", Vice::NoReceipt, |seen, why| {
        assert_eq!((seen.ok, seen.failed.get("timeout.first_byte")), (9, Some(&1)), "{why}");
        let [expected, delivered, lost, ..] = seen.deliveries;
        assert_eq!((expected - delivered, lost), (0, 0), "{why}");
    }),
    Row::of("says farewell to a join, and in the middle", Vice::Farewell, |seen, why| {
        assert_eq!((seen.established, seen.refused.get("ws.closed")), (3, Some(&1)), "{why}");
        assert_eq!(seen.deliveries, [30, 21, 9, 0, 0], "the others have had all: {why}");
        assert_eq!(seen.ok + seen.failed.values().sum::<u64>(), 10, "{why}");
    })
    .where_joined(),
];

fn half_is_gone(seen: &Seen, why: &str) {
    let [expected, delivered, lost, duplicate, _] = seen.deliveries;
    assert_eq!((seen.established, seen.ok, duplicate), (4, 1, 0), "{why}");
    let issued = 10 - seen.unsent;
    assert!(seen.unsent > 0, "one engine has nobody left: {why}");
    assert_eq!(expected, 4 * issued, "who was dropped is still to have what is sent: {why}");
    assert!(delivered == 14 && lost >= 9, "{why}");
}

/// Client 1, of engine 1, has something in place of a message of client 0, of engine 0, that nobody sent.
const MADE_UP: Row = Row::of(
    "a message that another engine did not send",
    Vice::Says(r#"{"type":"broadcast","payload":{"sender":0,"sequence":99,"padding":"xxxxxxxx"}}"#),
    |seen, why| {
        let failed = [("lost", 1), ("unsolicited", 1)];
        assert!(seen.failed.iter().map(|(class, count)| (*class, *count)).eq(failed), "{why}");
        let [expected, delivered, lost, duplicate, _] = seen.deliveries;
        assert_eq!((seen.ok, [expected, delivered, lost, duplicate]), (9, [40, 39, 1, 0]), "{why}");
    },
);

#[test]
fn two_engines_come_to_what_one_would_whatever_the_server_does() {
    let otherwise = |row: &&Row| OTHERWISE.iter().all(|other| other.name != row.name);
    holds(&ROWS.iter().filter(otherwise).collect::<Vec<_>>());
}

#[test]
fn rows_that_depend_on_who_sends_have_sums_that_agree() {
    let in_table = |row: &Row| ROWS.iter().any(|other| other.name == row.name);
    assert!(OTHERWISE.iter().all(in_table));
    holds(&OTHERWISE.iter().chain([&MADE_UP]).collect::<Vec<_>>());
}

#[test]
fn messages_belong_to_the_phase_in_which_they_were_sent_also_when_the_next_one_follows_at_once() {
    let mut world = World::new(Peer::new(Vice::Misses, Dialect::Json), Cut::Whole);
    let mut shared = Shared::new(Dialect::Json, 3);
    shared.connect(&mut world, 7);
    let started_ns = world.now_ns;
    for start_ns in [started_ns, started_ns + 2_000_000] {
        shared.begin(7, 9, Stop::After(2_000_000), start_ns);
    }
    for lost in [1, 0] {
        let (mut issued, mut expected, mut found) = (0, 0, 0);
        for done in shared.settle(&mut world) {
            let of = done.deliveries.expect("deliveries");
            issued += done.meter.issued;
            expected += of.expected;
            found += of.lost;
            assert_eq!(of.expected, of.delivered + of.lost);
            assert!(of.untimed > of.delivered / 2, "most were sent by the two others");
            assert!(of.spread().is_some() || lost == 0, "told with what is settled next");
        }
        assert!(issued > 20, "{issued}");
        assert_eq!((expected, found), (7 * issued, lost));
    }
}

#[test]
fn clients_join_from_phase_to_phase() {
    let mut world = World::new(Peer::new(Vice::None, Dialect::Phoenix), Cut::Whole);
    let mut shared = Shared::new(Dialect::Phoenix, 3);
    for (clients, messages) in [(4, 10), (9, 20), (3, 5), (70, 3), (70, 0)] {
        shared.connect(&mut world, clients);
        let done = shared.phase(&mut world, [clients, 4], Stop::Requests(messages));
        let sum = |of: fn(&DoneReport) -> u64| done.iter().map(of).sum::<u64>();
        let all = messages * u64::from(clients);
        assert_eq!(sum(|done| done.deliveries.as_ref().expect("there").delivered), all);
        assert_eq!(sum(|done| done.meter.ok), messages, "{clients} clients");
    }
}

#[test]
fn what_does_not_come_by_the_time_that_the_front_names_is_lost() {
    let mut world = World::new(Peer::new(Vice::Misses, Dialect::Json), Cut::Whole);
    let mut shared = Shared::new(Dialect::Json, 2);
    shared.until_ns = Some(0);
    shared.connect(&mut world, 4);
    let began_ns = world.now_ns;
    // Two by each: the second broadcast is the first engine's, and client 1 the other's.
    let done = shared.phase(&mut world, [4, 4], Stop::Requests(10));
    let lost: u64 = done.iter().map(|done| done.deliveries.as_ref().expect("there").lost).sum();
    assert_eq!(lost, 1);
    assert!(world.now_ns - began_ns < TIMEOUT_NS, "nothing was waited for");
}

#[test]
fn a_stop_before_it_is_settled_ends_it() {
    let mut world = World::new(Peer::new(Vice::None, Dialect::Json), Cut::Whole);
    let mut shared = Shared::new(Dialect::Json, 2);
    shared.connect(&mut world, 4);
    shared.begin(4, 2, Stop::Requests(10), world.now_ns);
    shared.hear(&mut world, |report| matches!(report, Report::Sent(..)));
    shared.tell(&Command::Stop);
    let done = shared.hear_done(&mut world, 0);
    assert!(done.iter().all(|done| done.partial), "what the others sent is not known");
    assert_eq!(done.iter().map(|done| done.meter.ok).sum::<u64>(), 10);
    assert!(shared.generators.iter().all(trueload_drive::Program::is_done));
}
