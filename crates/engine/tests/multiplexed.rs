//! The seam takes protocols with many exchanges at once: each ends on its own, in any order.
//!
//! The protocol is a toy. A request is one byte, its number; the answer is the same byte. The peer
//! grants places (`+`), begins to drain the connection (`d`), and receives which requests were
//! given up (`!` and the number).

use std::sync::mpsc::{Receiver, Sender};
use trueload_wire::message::{self, Rules, Texts};

use trueload_drive::{Net, Program};
use trueload_engine::generator::{
    Carrier, Command, Config, ConnectionEnd, DoneReport, Facts, Generator, Http2, Input, Opened,
    OverHttp2, PhaseShare, Plain, Protocol, Received, Report, Sending, Tag,
};
use trueload_load::{Load, Stop};
use trueload_meter::Class;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, Standing};
use trueload_wire::http2::client::Windows;
use trueload_wire::http2::frame::write_block;
use trueload_wire::http2::request::Template;
use trueload_wire::http2::settings::{self, parameter};

use crate::common::{Sent, Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 100 * MS;
const WINDOW_NS: u64 = 1_000 * MS;

/// One connection's side of the toy.
#[derive(Debug, Default)]
struct Client {
    outstanding: Vec<(u8, Tag)>,
    next: u8,
    granted: usize,
    draining: bool,
    answered: bool,
}

impl Client {
    fn link(&self) -> Disposition {
        if self.draining { Disposition::Draining } else { Disposition::Open }
    }
}

impl Exchange<Tag> for Client {
    fn ask_alike(&mut self, tag: Tag, count: usize) {
        for _ in 0..count {
            self.outstanding.push((self.next, tag));
            self.next += 1;
        }
    }

    fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    fn capacity(&self, depth: usize) -> usize {
        let most = if self.draining { 0 } else { depth.min(self.granted) };
        most.saturating_sub(self.outstanding.len())
    }

    fn standing(&self) -> Standing {
        Standing { answered: self.answered, ..Standing::default() }
    }

    fn change_newest(&mut self, mut change: impl FnMut(&mut Tag) -> bool) {
        let mut newest = self.outstanding.iter_mut().rev();
        while newest.next().is_some_and(|(_, tag)| change(tag)) {}
    }

    fn next_timeout_ns(&self, deadline_ns: impl Fn(&Tag) -> u64) -> Option<u64> {
        self.outstanding.iter().map(|(_, tag)| deadline_ns(tag)).min()
    }

    fn handle_timeout(
        &mut self,
        now_ns: u64,
        deadline_ns: impl Fn(&Tag) -> u64,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let late = self.outstanding.extract_if(.., |(_, tag)| deadline_ns(tag) <= now_ns);
        for (number, tag) in late {
            output.bytes.extend([b'!', number]);
            on_outcome(Outcome::unanswered(tag, Ending::TimeoutFirstByte, now_ns));
        }
        self.link()
    }

    fn cancel(&mut self) -> impl Iterator<Item = Tag> + '_ {
        self.outstanding.drain(..).map(|(_, tag)| tag)
    }
}

#[derive(Debug)]
struct Toy;

impl Protocol for Toy {
    type Client = Client;

    fn client(&self) -> Client {
        Client::default()
    }

    fn facts(&self, _client: &Client) -> Facts {
        Facts { peer_closes: true, ..Facts::default() }
    }

    fn open(&mut self, client: &mut Client, _opened: Opened<'_>, _output: &mut Output) -> bool {
        *client = Client { granted: 2, ..Client::default() };
        false
    }

    fn handle_input(
        &mut self,
        client: &mut Client,
        input: Input<'_>,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Received::Bytes(bytes) = input.received else { return Disposition::Unsolicited };
        for byte in bytes {
            match byte {
                b'+' => client.granted += 1,
                b'd' => client.draining = true,
                number => {
                    let at = client.outstanding.iter().position(|(known, _)| known == number);
                    let Some(at) = at else { return Disposition::Unsolicited };
                    let (_, tag) = client.outstanding.remove(at);
                    client.answered = true;
                    let outcome = Outcome::unanswered(tag, Ending::Ok, input.now_ns);
                    on_outcome(Outcome { complete: true, ..outcome });
                }
            }
        }
        client.link()
    }

    fn handle_end(
        &mut self,
        client: &mut Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        client
            .cancel()
            .for_each(|tag| on_outcome(Outcome::unanswered(tag, Ending::Reset, end.now_ns)));
    }

    fn send(
        &mut self,
        client: &mut Client,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let newest = client.outstanding.len() - count;
        client.outstanding[newest..].iter().for_each(|(number, _)| carrier.send(&[*number]));
        count
    }
}

/// A generator with one slot in a phase, played by hand.
struct Play<P: Protocol> {
    generator: Generator<P>,
    wire: Wire,
    reports: Receiver<Report>,
    _commands: Sender<Command>,
}

impl Play<Toy> {
    fn begin(depth: usize) -> Self {
        Self::of(Toy, depth)
    }
}

impl<P: Protocol> Play<P> {
    /// The slot is connected, and its phase has begun.
    fn of(protocol: P, depth: usize) -> Self {
        let config = Config { depth, ..config(TIMEOUT_NS) };
        let (generator, commands, reports) = generator(config, protocol);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(1)).expect("it listens");
        let stop = Stop::After(WINDOW_NS);
        let load = Load::Closed { active: [].into() };
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

    fn receive(&mut self, connection: u32, bytes: &[u8]) {
        let input = &mut self.wire;
        self.generator.handle_input(input, conn(0, connection), bytes, false);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// What was sent since the last time.
    fn sent(&mut self) -> Vec<(u32, u8)> {
        let sent = self.wire.take_sent();
        let bytes = |sent: Sent| sent.bytes.into_iter().map(move |byte| (sent.connection, byte));
        sent.into_iter().flat_map(bytes).collect()
    }

    /// The phase ends, with nothing more to come.
    fn end(mut self) -> DoneReport {
        self.at(2 * MS + WINDOW_NS + 2 * TIMEOUT_NS + 1_000 * MS);
        done(&self.reports)
    }
}

#[test]
fn no_more_is_asked_than_the_peer_grants_and_answers_end_in_any_order() {
    let mut play = Play::begin(3);
    assert_eq!(play.sent(), [(0, 0), (0, 1)], "two places, of three that are asked for");
    play.at(12 * MS);
    play.receive(0, &[1]);
    assert_eq!(play.sent(), [(0, 2)], "the place of the second is free");
    play.receive(0, b"+");
    assert_eq!(play.sent(), [(0, 3)], "and one more");
    play.receive(0, &[3, 0, 2]);
    assert_eq!(play.sent(), [(0, 4), (0, 5), (0, 6)]);
    let meter = play.end().meter;
    assert_eq!((meter.ok, meter.failed_sum() + meter.ok), (4, meter.issued));
    // Ten of the window's milliseconds with two places, the others with three.
    let permitted_ns = 10 * MS * 2 + (WINDOW_NS - 10 * MS) * 3;
    assert_eq!(meter.permitted_ns, i128::from(permitted_ns));
}

#[test]
fn a_late_request_ends_alone_and_its_connection_lives() {
    let mut play = Play::begin(2);
    play.at(50 * MS);
    play.receive(0, &[1]);
    assert_eq!(play.sent(), [(0, 0), (0, 1), (0, 2)]);
    play.at(2 * MS + TIMEOUT_NS);
    assert_eq!(play.sent(), [(0, b'!'), (0, 0), (0, 3)], "given up, and its place taken");
    play.receive(0, &[2, 3]);
    assert_eq!((play.wire.attempts.len(), play.wire.closed.len()), (1, 0));
    let meter = play.end().meter;
    assert_eq!(meter.ok, 3);
    assert!(meter.failed().any(|(class, _)| class == Class::TimeoutFirstByte));
    assert_eq!(meter.reconnects, 0);
}

#[test]
fn a_connection_that_drains_is_asked_nothing_new_and_replaced_when_it_is_empty() {
    let mut play = Play::begin(2);
    assert_eq!(play.sent(), [(0, 0), (0, 1)]);
    play.receive(0, &[b'd', 0]);
    assert_eq!(play.sent(), [], "nothing new");
    assert_eq!(play.wire.attempts.len(), 1, "one is still open");
    play.receive(0, &[1]);
    // The peer's end is waited for, as behind an announced close; nobody ends it, so we do.
    play.at(60 * MS);
    assert_eq!((play.wire.attempts.len(), &play.wire.closed[..]), (2, &[0][..]));
    play.generator.handle_connected(&mut play.wire, conn(0, 1));
    play.generator.handle_batch_end(&mut play.wire);
    assert_eq!(play.sent(), [(1, 0), (1, 1)], "asked on the next one");
    let meter = play.end().meter;
    assert_eq!((meter.ok, meter.reconnects, meter.stale), (2, 1, 0));
}

#[test]
fn times_of_http_2_are_those_of_the_window_and_counts_go_on_in_the_drain() {
    let texts = Texts { method: "GET", path: "/", headers: &[], body: None };
    let request = message::Template::new(&texts, None);
    let sending = Sending::http2(Template::of("http", &request), Rules::default());
    let plain = Plain::new(sending, None);
    let http = OverHttp2::new(Http2::new(Windows::RFC), plain, false);
    let mut play = Play::of(http, 3);
    let mut words = Vec::new();
    settings::write(&mut words, &[(parameter::MAX_CONCURRENT_STREAMS, 1)]);
    play.at(12 * MS);
    play.receive(0, &words);
    for (stream, at_ms) in (1..).step_by(2).zip((32..1_002).step_by(20)) {
        play.at(at_ms * MS);
        words.clear();
        write_block(&mut words, stream, &[0x88], true, 16_384);
        play.receive(0, &words);
    }
    // Three are left: nobody answers them, nor the PING behind the reset of the first. So the connection ends.
    let done = play.end();
    let account = done.account.expect("connections count");
    let window_ns = u128::from(WINDOW_NS - 10 * MS);
    assert_eq!((account.open_ns, account.waits_ns.stream), (window_ns, 2 * window_ns));
    assert_eq!((done.meter.ok, account.resets, account.connections), (49, 1, 1));
    assert_eq!(done.meter.failed().map(|(_, count)| count).sum::<u64>(), 3);
}
