//! Connections that are opened when their requests are due, played by hand: when each is tried,
//! what it is charged with, and from when its steps count.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use trueload_wire::message::Rules;

use trueload_drive::{ConnectError, PeerClose, Program};
use trueload_engine::generator::{
    Command, Config, DoneReport, Generator, Http, Http1, OverHttp1, PhaseShare, Plain, Report,
    Sending,
};
use trueload_load::{Arrivals, Load, Stage, Stop};
use trueload_meter::{Class, Lazy, Openings};

use crate::common::{Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const START_NS: u64 = 100 * MS;
const TIMEOUT_NS: u64 = 500 * MS;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// A generator with some slots, whose connections are played by hand.
struct Play {
    generator: Generator<OverHttp1<Plain>>,
    wire: Wire,
    reports: Receiver<Report>,
    _commands: Sender<Command>,
}

impl Play {
    /// One connection every 10 ms from the start of the window on; the server has been tried.
    fn begin(slots: u32, stop: Stop) -> Self {
        let request: Arc<[u8]> = Arc::from(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..]);
        let plain = Plain::new(Sending::http1(request, 1, Rules::default()), None);
        let http = Http::new(Http1::default(), plain, false);
        let config = Config { close: true, connect_open: true, ..config(TIMEOUT_NS) };
        let (generator, commands, reports) = generator(config, http);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(slots)).expect("it listens");
        let stages = [Stage { ns: 10_000 * MS, from: 100.0, to: 100.0 }].into();
        let load = Load::Open { stages, arrivals: Arrivals::Constant };
        let share = PhaseShare::new(load, stop, slots, START_NS);
        let mut play = Play { generator, wire, reports, _commands: commands.clone() };
        play.generator.handle_wake(&mut play.wire);
        play.connected(0, 0);
        commands.send(Command::Phase(share)).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        play
    }

    /// The clock goes on to a moment of the window, by way of all that is due before.
    fn at(&mut self, ms: u64) {
        let now_ns = START_NS + ms * MS;
        run_to(&mut self.generator, &mut self.wire, now_ns);
    }

    fn connected(&mut self, key: u32, connection: u32) {
        self.generator.handle_connected(&mut self.wire, conn(key, connection));
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The answer comes, and the end of the connection behind it.
    fn answer(&mut self, key: u32, connection: u32) {
        let conn = conn(key, connection);
        self.generator.handle_input(&mut self.wire, conn, OK, true);
        self.generator.handle_end(&mut self.wire, conn, PeerClose::Fin);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The slot and the time of each attempt but the first, in ms of the window.
    fn attempts(&self) -> Vec<(u32, u64)> {
        let attempts = self.wire.attempts[1..].iter();
        attempts.map(|attempt| (attempt.key, (attempt.at_ns - START_NS) / MS)).collect()
    }

    fn done(mut self) -> DoneReport {
        self.at(5_000);
        done(&self.reports)
    }
}

/// The histogram of these times until connections were established.
fn connects(times_ms: &[u64]) -> Lazy {
    let mut openings = Openings::default();
    times_ms.iter().for_each(|ms| openings.record_connect(ms * MS));
    openings.connect
}

#[test]
fn one_connection_tries_the_server_and_vouches_for_all() {
    let mut play = Play::begin(64, Stop::After(100 * MS));
    assert_eq!((play.wire.attempts.len(), &play.wire.closed[..]), (1, &[0][..]));
    assert!(play.wire.sent.is_empty(), "nothing is due");
    let established = play.reports.try_iter().find_map(|report| match report {
        Report::Connected(connected) => Some(connected.established),
        _ => None,
    });
    assert_eq!(established, Some(64));
    play.at(0);
    let done = play.done();
    assert_eq!(done.established, 64);
}

#[test]
fn each_arrival_opens_a_connection_asks_once_and_its_steps_count_from_its_time() {
    let mut play = Play::begin(4, Stop::After(20 * MS));
    play.at(0);
    play.at(3);
    play.connected(0, 1);
    assert_eq!(play.wire.take_sent()[0].connection, 1, "as soon as it is connected");
    play.at(8);
    play.answer(0, 1);
    play.at(12);
    assert_eq!(play.attempts(), [(0, 0), (1, 10)], "the slot that was free for longest");
    play.connected(1, 2);
    play.at(19);
    play.answer(1, 2);
    let done = play.done();
    let meter = done.meter;
    assert_eq!((meter.scheduled, meter.issued, meter.ok), (2, 2, 2));
    assert_eq!(meter.openings.expect("timed").connect, connects(&[3, 2]));
}

#[test]
fn an_arrival_that_finds_no_free_slot_waits_and_its_time_runs() {
    let mut play = Play::begin(1, Stop::After(20 * MS));
    play.at(1);
    play.connected(0, 1);
    play.at(15);
    assert_eq!(play.wire.attempts.len(), 2, "the one that was due at 10 waits");
    play.answer(0, 1);
    play.at(16);
    assert_eq!(play.attempts(), [(0, 0), (0, 15)]);
    play.connected(0, 2);
    play.answer(0, 2);
    let done = play.done();
    assert_eq!((done.meter.issued, done.meter.ok), (2, 2));
    let openings = done.meter.openings.expect("timed");
    assert_eq!(openings.connect, connects(&[1, 6]));
}

#[test]
fn a_connection_that_fails_charges_its_own_request_and_holds_up_no_other() {
    let mut play = Play::begin(2, Stop::After(40 * MS));
    play.at(0);
    play.generator.handle_connect_error(&mut play.wire, conn(0, 1), ConnectError::Refused);
    play.at(11);
    play.connected(1, 2);
    // From here on there is no local port left.
    play.wire.refusal = Some(ConnectError::Ports);
    play.at(35);
    play.answer(1, 2);
    assert_eq!(play.attempts(), [(0, 0), (1, 10), (0, 20), (0, 30)]);
    let done = play.done();
    let failed: Vec<_> = done.meter.failed().collect();
    assert_eq!(failed, [(Class::ConnectRefused, 1), (Class::LocalPorts, 2)]);
    assert_eq!((done.meter.issued, done.meter.ok, done.meter.slots.outages), (4, 1, 0));
    assert_eq!(done.meter.openings.expect("timed").connect, connects(&[1]));
}

#[test]
fn a_number_of_requests_opens_as_many_connections() {
    let mut play = Play::begin(8, Stop::Requests(3));
    play.at(300);
    assert_eq!(play.attempts(), [(0, 0), (1, 10), (2, 20)]);
    (0..3).for_each(|key| play.connected(key, key + 1));
    (0..3).for_each(|key| play.answer(key, key + 1));
    let done = play.done();
    assert_eq!((done.meter.scheduled, done.meter.ok, done.meter.unsent()), (3, 3, 0));
}

#[test]
fn a_connection_that_is_never_established_is_out_of_time_and_every_request_ends_once() {
    let mut play = Play::begin(1, Stop::After(20 * MS));
    play.at(10);
    let done = play.done();
    let failed: Vec<_> = done.meter.failed().collect();
    assert_eq!(failed, [(Class::ConnectTimeout, 1)]);
    assert_eq!((done.meter.scheduled, done.meter.issued, done.meter.unsent()), (2, 1, 1));
    assert_eq!(done.meter.ok + done.meter.failed_sum() + done.meter.cancelled, 1);
}
