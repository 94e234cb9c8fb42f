//! A part of the load goes to an engine that joins, played by hand: which arrivals and which
//! connections each of them has, before and after.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use trueload_wire::message::Rules;

use trueload_drive::Program;
use trueload_engine::generator::{
    Command, Config, DoneReport, Generator, Http, Http1, NewPart, OverHttp1, PhaseShare, Plain,
    Report, Sending,
};
use trueload_load::{Arrivals, Load, Stage, Stop};

use crate::common::{Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const START_NS: u64 = 100 * MS;
const WINDOW_NS: u64 = 200 * MS;
const JOINS_NS: u64 = 100 * MS;
const SLOTS: u32 = 4;
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// One engine with one thread. Connection n is that of slot n.
struct Play {
    generator: Generator<OverHttp1<Plain>>,
    wire: Wire,
    reports: Receiver<Report>,
    commands: Sender<Command>,
    /// The number of requests that were answered, the first ones.
    answered: usize,
}

impl Play {
    /// The engine that has thread `thread` of `threads`, and begins at `from_ns`.
    fn begin(load: &Load, thread: u32, threads: u32, from_ns: u64) -> Self {
        let request: Arc<[u8]> = Arc::from(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..]);
        let plain = Plain::new(Sending::http1(request, 1, Rules::default()), None);
        let http = Http::new(Http1::default(), plain, false);
        let config = Config { thread, threads, ..config(500 * MS) };
        let (generator, commands, reports) = generator(config, http);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        let mut play = Play { generator, wire, reports, commands, answered: 0 };
        play.tell(Command::Connections(SLOTS));
        play.run_to(START_NS - MS);
        for key in 0..play.wire.attempts.len() as u32 {
            play.generator.handle_connected(&mut play.wire, conn(key, key));
        }
        let share = PhaseShare {
            from_ns,
            ..PhaseShare::new(load.clone(), Stop::After(WINDOW_NS), SLOTS, START_NS)
        };
        play.tell(Command::Phase(share));
        play
    }

    fn tell(&mut self, command: Command) {
        self.commands.send(command).expect("it listens");
        self.generator.handle_wake(&mut self.wire);
        self.generator.handle_batch_end(&mut self.wire);
    }

    fn share(&mut self, thread: u32, threads: u32) {
        let part = NewPart { from_ns: JOINS_NS, thread, threads, turns: None };
        self.tell(Command::Part(part));
    }

    /// The clock goes on, by way of all that is due before.
    fn run_to(&mut self, at_ns: u64) {
        run_to(&mut self.generator, &mut self.wire, at_ns);
    }

    fn answer_all(&mut self) {
        let asked: Vec<u32> = self.sent().skip(self.answered).map(|(_, who)| who).collect();
        self.answered += asked.len();
        for index in asked {
            self.generator.handle_input(&mut self.wire, conn(index, index), OK, false);
        }
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The time of each request in the window, and its connection.
    fn sent(&self) -> impl Iterator<Item = (u64, u32)> {
        self.wire.sent.iter().map(|sent| (sent.at_ns - START_NS, sent.connection))
    }

    /// The times of the requests and their connections in a stretch of the window; each is answered
    /// a millisecond later.
    fn play(&mut self, until_ns: u64) {
        while self.wire.now_ns < START_NS + until_ns {
            self.run_to(self.wire.now_ns + MS);
            self.answer_all();
        }
    }

    fn done(mut self) -> DoneReport {
        self.run_to(START_NS + 2 * WINDOW_NS);
        self.answer_all();
        self.run_to(START_NS + 3 * WINDOW_NS);
        done(&self.reports)
    }
}

fn open_load() -> Load {
    let stages = [Stage { ns: WINDOW_NS, from: 1000.0, to: 1000.0 }].into();
    Load::Open { stages, arrivals: Arrivals::Constant }
}

fn closed_load() -> Load {
    Load::Closed { active: Arc::from([]) }
}

/// The whole load on one engine until another joins.
fn both(load: &Load) -> (Play, Play) {
    let mut first = Play::begin(load, 0, 1, 0);
    first.play(JOINS_NS / 2);
    first.share(0, 2);
    first.play(WINDOW_NS);
    let mut second = Play::begin(load, 1, 2, JOINS_NS);
    second.play(WINDOW_NS);
    (first, second)
}

#[test]
fn each_arrival_is_sent_once_by_the_engine_whose_turn_it_is() {
    let (first, second) = both(&open_load());
    let times = |play: &Play| play.sent().map(|(ns, _)| ns / MS).collect::<Vec<_>>();
    let of_first: Vec<u64> = (0..100).chain((100..200).step_by(2)).collect();
    let of_second: Vec<u64> = (100..200).filter(|ms| ms % 2 == 1).collect();
    assert_eq!((times(&first), times(&second)), (of_first, of_second));
    let (first, second) = (first.done(), second.done());
    assert_eq!((first.meter.scheduled, second.meter.scheduled), (150, 50));
    assert_eq!((first.meter.unsent(), second.meter.unsent()), (0, 0));
    assert_eq!((second.started_ns, second.began_ns), (START_NS, START_NS + JOINS_NS));
}

#[test]
fn connections_that_are_given_up_end_their_requests_and_are_closed() {
    let (first, second) = both(&closed_load());
    assert_eq!(first.wire.closed, [2, 3], "the last half of its four");
    let sent = |play: &Play, from_ns, until_ns| {
        let within = |(ns, _): &(u64, u32)| (from_ns..until_ns).contains(ns);
        let mut who: Vec<u32> = play.sent().filter(within).map(|(_, who)| who).collect();
        who.sort_unstable();
        who.dedup();
        who
    };
    assert_eq!(sent(&first, 0, JOINS_NS), [0, 1, 2, 3]);
    assert_eq!(sent(&first, JOINS_NS + MS, WINDOW_NS), [0, 1]);
    assert!(sent(&second, 0, JOINS_NS).is_empty());
    assert_eq!(sent(&second, JOINS_NS, WINDOW_NS), [0, 1]);
    let (first, second) = (first.done(), second.done());
    assert_eq!((first.established, second.established), (2, 2));
    // Four places over the whole window, but for the answers that the change waited for.
    let permitted_ns = first.meter.permitted_ns + second.meter.permitted_ns;
    assert!(
        permitted_ns.abs_diff(i128::from(4 * WINDOW_NS)) <= u128::from(4 * MS),
        "{permitted_ns}"
    );
    for done in [first, second] {
        assert_eq!(done.meter.issued, done.meter.ok + done.meter.cancelled);
        assert_eq!((done.meter.reconnects, done.meter.failed_sum()), (0, 0));
    }
}
