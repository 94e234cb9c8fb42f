//! The generator over datagrams: what is lost ends alone, its socket lives on, and what settles nothing is counted apart.

use std::sync::mpsc::{Receiver, Sender};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use trueload_drive::{Datagrams, PeerClose, Program};
use trueload_engine::generator::{
    Command, Config, DoneReport, Generator, PhaseShare, Report, UdpEcho,
};
use trueload_load::{Load, Stop};
use trueload_meter::{Class, Datagrams as Counts};
use trueload_wire::echo::Messages;

use crate::common::{Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 100 * MS;
const SIZE: usize = 24;

/// A generator with one socket in a phase of so many requests, played by hand.
struct Play {
    generator: Generator<UdpEcho>,
    wire: Wire,
    reports: Receiver<Report>,
    _commands: Sender<Command>,
}

impl Play {
    /// The socket is there, and its phase has begun.
    fn begin(depth: usize, requests: u64) -> Self {
        let messages: Vec<u8> = (0..3 * SIZE as u8).collect();
        let protocol = UdpEcho::new(Messages::new(messages.into(), SIZE).expect("even"), 7);
        let config = Config { depth, ..config(TIMEOUT_NS) };
        let (generator, commands, reports) = generator(config, protocol);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(1)).expect("it listens");
        let (stop, load) = (Stop::Requests(requests), Load::Closed { active: [].into() });
        let share = PhaseShare::new(load, stop, 1, 2 * MS);
        let mut play = Play { generator, wire, reports, _commands: commands.clone() };
        play.generator.handle_wake(&mut play.wire);
        play.generator.handle_connected(&mut play.wire, conn(0, 0));
        commands.send(Command::Phase(share)).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        play.at(2 * MS);
        play
    }

    /// The clock goes on to a moment, by way of all that is due before.
    fn at(&mut self, now_ns: u64) {
        run_to(&mut self.generator, &mut self.wire, now_ns);
    }

    /// These of the datagrams that were sent come back, one by one, on the present socket.
    fn answer(&mut self, numbers: &[usize]) {
        for number in numbers {
            let bytes = self.wire.sent[*number].bytes.clone();
            self.deliver(Datagrams::one(&bytes));
        }
    }

    fn deliver(&mut self, datagrams: Datagrams<'_>) {
        let socket = conn(0, self.wire.attempts.len() as u32 - 1);
        self.generator.handle_datagrams(&mut self.wire, socket, datagrams);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// What the phase leaves, once it is over.
    fn end(mut self) -> DoneReport {
        self.at(self.wire.now_ns + 10 * TIMEOUT_NS);
        done(&self.reports)
    }
}

fn decoded(encoded: &str) -> Histogram<u64> {
    let bytes = STANDARD.decode(encoded).expect("base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram")
}

fn failed(done: &DoneReport) -> Vec<(Class, u64)> {
    done.meter.failed().collect()
}

#[test]
fn a_socket_with_places_left_sends_whatever_order_its_answers_come_in() {
    let mut play = Play::begin(3, 6);
    assert_eq!(play.wire.sent.len(), 3);
    play.answer(&[2, 0]);
    assert_eq!(play.wire.sent.len(), 5, "a place each");
    play.answer(&[4, 1, 3, 5]);
    let done = play.end();
    assert_eq!((done.meter.ok, done.meter.issued, failed(&done)), (6, 6, vec![]));
    assert_eq!(done.meter.datagrams, Counts { reordered: 3, ..Counts::default() });
}

#[test]
fn a_lost_datagram_frees_its_place_after_the_timeout_and_its_socket_lives_on() {
    let mut play = Play::begin(2, 4);
    play.answer(&[1]);
    assert_eq!(play.wire.sent.len(), 3);
    play.at(2 * MS + TIMEOUT_NS - 1);
    play.answer(&[2]);
    assert_eq!(play.wire.sent.len(), 4, "the last one");
    play.at(2 * MS + TIMEOUT_NS);
    // The first is lost by now: its answer is late, and one to a request that is answered comes twice.
    play.answer(&[0, 2, 3]);
    let (connects, closed) = (play.wire.attempts.len(), play.wire.closed.len());
    let done = play.end();
    assert_eq!((connects, closed, done.meter.reconnects), (1, 0, 0));
    assert_eq!((done.meter.ok, failed(&done)), (3, vec![(Class::Lost, 1)]));
    assert_eq!(done.meter.datagrams, Counts { late: 1, duplicated: 1, ..Counts::default() });
}

#[test]
fn a_block_of_datagrams_settles_a_request_each() {
    let mut play = Play::begin(4, 4);
    let bytes = play.wire.bytes();
    play.deliver(Datagrams { segment_bytes: SIZE, ..Datagrams::one(&bytes) });
    let done = play.end();
    assert_eq!((done.meter.ok, done.meter.bytes_in), (4, 4 * SIZE as u64));
}

#[test]
fn each_datagram_of_a_block_arrived_when_the_block_did() {
    let mut play = Play::begin(4, 5);
    assert_eq!(play.wire.watched, [0], "one connection of sixteen, and of fewer");
    let bytes = play.wire.bytes()[..3 * SIZE].to_vec();
    play.wire.now_ns = 7 * MS;
    play.wire.arrived_ns = Some(4 * MS);
    play.deliver(Datagrams { segment_bytes: SIZE, ..Datagrams::one(&bytes) });
    // Of these nothing is reported: the kernel had no stamp.
    play.wire.arrived_ns = None;
    play.answer(&[3, 4]);
    let done = play.end();
    assert_eq!(done.meter.ok, 5);
    let times = done.meter.times.clone().encoded();
    for (what, encoded, expected_ns) in
        [("round trip", times.round_trip, 2 * MS), ("receive lag", times.receive_lag, 3 * MS)]
    {
        let found = decoded(&encoded.expect(what));
        assert_eq!(found.len(), 3, "{what}");
        // Lags are kept to two digits.
        let (least, most) = (found.min(), found.max());
        let off_ns = least.abs_diff(expected_ns).max(most.abs_diff(expected_ns));
        assert!(off_ns <= expected_ns / 100, "{what}: {least} to {most}");
    }
}

#[test]
fn a_peer_that_is_not_there_fails_what_is_outstanding_and_is_asked_on_another_socket() {
    let mut play = Play::begin(2, 3);
    play.generator.handle_end(&mut play.wire, conn(0, 0), PeerClose::Refused);
    assert_eq!((play.wire.attempts.len(), play.wire.closed.len()), (2, 1));
    play.generator.handle_connected(&mut play.wire, conn(0, 1));
    play.generator.handle_batch_end(&mut play.wire);
    // Answers to the socket before are none to this one.
    play.answer(&[0, 2]);
    let done = play.end();
    assert_eq!((done.meter.ok, failed(&done)), (1, vec![(Class::ConnectRefused, 2)]));
    assert_eq!(done.meter.datagrams, Counts { unsolicited: 1, ..Counts::default() });
}

#[test]
fn datagrams_that_were_lost_in_this_machine_are_reported() {
    let mut play = Play::begin(2, 2);
    (play.wire.dropped, play.wire.overflowed) = (1, 2);
    play.answer(&[0]);
    let done = play.end();
    assert_eq!((done.meter.ok, failed(&done)), (1, vec![(Class::Lost, 1)]));
    assert_eq!(done.meter.datagrams, Counts { dropped: 1, overflowed: 2, ..Counts::default() });
}
