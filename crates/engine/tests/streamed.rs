//! Streamed answers in a generator: when their parts came, by the kernel's clock, and when a stream
//! has stalled.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use trueload_wire::message::Rules;

use trueload_drive::Program;
use trueload_engine::generator::{
    Command, DoneReport, Generator, Http, Http1, OverHttp1, PhaseShare, Plain, Report, Sending,
};
use trueload_load::{Load, Stop};
use trueload_meter::Class;
use trueload_wire::parts::{End, Kind, Rule};

use crate::common::{Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 500 * MS;
const WINDOW_NS: u64 = 1_000 * MS;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const PART: &[u8] = b"9\r\ndata: a\n\n\r\n";
const END: &[u8] = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

/// A generator with 20 slots, the first of which is played by hand.
struct Play {
    generator: Generator<OverHttp1<Plain>>,
    wire: Wire,
    reports: Receiver<Report>,
    _commands: Sender<Command>,
}

impl Play {
    fn begin(stall_ns: Option<u64>) -> Self {
        let end = Some(End::Content { text: "[DONE]".into() });
        let rule = Rule { kind: Kind::Sse, end, stall_ns };
        let request: Arc<[u8]> = Arc::from(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..]);
        let plain = Plain::new(Sending::http1(request, 1, Rules::default()), Some(rule));
        let http = Http::new(Http1::default(), plain, false);
        let (generator, commands, reports) = generator(config(TIMEOUT_NS), http);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(20)).expect("it listens");
        let load = Load::Closed { active: [].into() };
        let stop = Stop::After(WINDOW_NS);
        let share = PhaseShare { idle: 19, ..PhaseShare::new(load, stop, 20, 2 * MS) };
        let mut play = Play { generator, wire, reports, _commands: commands.clone() };
        play.generator.handle_wake(&mut play.wire);
        play.at(2 * MS - 1);
        (0..20).for_each(|key| play.generator.handle_connected(&mut play.wire, conn(key, key)));
        commands.send(Command::Phase(share)).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        play.at(2 * MS);
        play
    }

    /// The clock goes on to a moment, by way of all that is due before.
    fn at(&mut self, now_ns: u64) {
        run_to(&mut self.generator, &mut self.wire, now_ns);
    }

    fn receive(&mut self, at_ms: u64, bytes: &[u8]) {
        self.at(at_ms * MS);
        self.generator.handle_input(&mut self.wire, conn(0, 0), bytes, false);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The phase ends, with nothing more to come.
    fn end(mut self) -> DoneReport {
        self.at(2 * MS + WINDOW_NS + 2 * TIMEOUT_NS + 1_000 * MS);
        done(&self.reports)
    }
}

#[test]
fn parts_are_counted_and_the_arrivals_of_all_connections_are_watched() {
    let mut play = Play::begin(None);
    play.receive(10, HEAD);
    play.receive(22, PART);
    play.receive(42, &[PART, PART].concat());
    play.receive(50, END);
    assert_eq!(play.wire.sent.len(), 2, "the next one follows at once");
    assert_eq!(play.wire.watched, Vec::from_iter(0..20));
    let done = play.end();
    let streams = done.meter.streams.expect("answers are streams");
    assert_eq!((streams.parts, streams.together, streams.whole), (3, 1, 1));
    assert_eq!(done.meter.ok, 1);
}

#[test]
fn a_stream_stalls_at_its_time_by_the_clock_of_the_kernel() {
    let mut play = Play::begin(Some(100 * MS));
    play.receive(200, &[HEAD, PART].concat());
    play.wire.arrived_ns = Some(260 * MS);
    play.receive(290, PART);
    play.at(359 * MS);
    assert_eq!(play.wire.attempts.len(), 20, "the last part came at 260 ms");
    play.at(361 * MS);
    assert_eq!(play.wire.attempts.len(), 21, "its connection is given up");
    let done = play.end();
    let failed: Vec<_> = done.meter.failed().collect();
    // Nobody answers the attempt to connect again.
    assert_eq!(failed, [(Class::ConnectTimeout, 1), (Class::TimeoutStall, 1)]);
    let streams = done.meter.streams.expect("answers are streams");
    assert_eq!((streams.parts, streams.whole), (2, 0));
}

#[test]
fn without_a_stall_a_stream_has_the_whole_time_of_its_request() {
    let mut play = Play::begin(None);
    play.receive(200, &[HEAD, PART].concat());
    play.at(501 * MS);
    assert_eq!(play.wire.attempts.len(), 20);
    play.at(503 * MS);
    let done = play.end();
    let failed: Vec<_> = done.meter.failed().collect();
    assert_eq!(failed, [(Class::TimeoutTotal, 1)]);
}

#[test]
fn ticks_and_the_report_tell_each_part_and_gap_once() {
    let mut play = Play::begin(Some(300 * MS));
    play.receive(10, HEAD);
    play.receive(22, PART);
    play.receive(300, &[PART, PART].concat());
    play.receive(480, END);
    play.receive(490, &[HEAD, PART].concat());
    play.at(2 * MS + WINDOW_NS + 2 * TIMEOUT_NS + 1_000 * MS);
    let mut sums = [(0, 0, 0); 2];
    let mut seconds = Vec::new();
    for report in play.reports.try_iter() {
        let tracks = match report {
            Report::Tick(tick) => tick.tracks,
            Report::Done(done) => done.last_tracks,
            _ => continue,
        };
        assert_eq!(tracks.len(), 2, "the first parts and the gaps");
        seconds.extend(tracks.iter().filter(|track| track.ok > 0).map(|track| track.second));
        for (sum, track) in sums.iter_mut().zip(&tracks) {
            let times: u64 = track.latency.iter().map(|(_, count)| count).sum();
            *sum = (sum.0 + track.ok, sum.1 + track.failed, sum.2 + times);
        }
    }
    // One stream came to its end, and the second one stalled.
    assert_eq!(sums, [(1, 1, 1), (4, 1, 2)]);
    assert!(seconds.len() > 2 && seconds.iter().all(|second| *second == 0), "{seconds:?}");
}
