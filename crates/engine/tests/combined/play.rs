//! A generator with one slot over either version of HTTP, played by hand, with or without TLS.

use std::sync::mpsc::{Receiver, Sender};

use trueload_drive::{PeerClose, Program};
use trueload_engine::generator::{
    Command, Config, Dialogue, DoneReport, Generator, Http, Http2, OverEither, PhaseShare, Report,
    Versions,
};
use trueload_load::{Arrivals, Load, Stage, Stop};
use trueload_wire::http2::client::Windows;

use super::peer::{Answer, Peer, Tls};
use crate::common::{Wire, config, conn, generator, run_to};

pub const MS: u64 = 1_000_000;
pub const TIMEOUT_NS: u64 = 500 * MS;
const START_NS: u64 = 2 * MS;
const WINDOW_NS: u64 = 10_000 * MS;

/// The version that connections speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Http1,
    Http2,
    /// What the server chooses by ALPN. HTTP/1.1 has at most 2 requests in flight.
    Either,
}

pub const PINNED: [Speaks; 2] = [Speaks::Http1, Speaks::Http2];

/// The load of a play.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// Requests in flight on the connection.
    pub depth: usize,
    /// All requests, or sessions, of the load.
    pub count: u64,
    /// The time between two requests of an open loop; none for a closed one.
    pub every_ms: Option<u64>,
}

impl Asks {
    pub fn at_once(depth: usize, count: u64) -> Self {
        Asks { depth, count, every_ms: None }
    }

    fn load(self) -> Load {
        let Some(every_ms) = self.every_ms else { return Load::Closed { active: [].into() } };
        let rate = 1_000.0 / every_ms as f64;
        let stages = [Stage { ns: WINDOW_NS, from: rate, to: rate }].into();
        Load::Open { stages, arrivals: Arrivals::Constant }
    }
}

/// The generator, and the server's end of each of its connections.
pub struct Play<D: Dialogue> {
    generator: Generator<OverEither<D>>,
    pub wire: Wire,
    reports: Receiver<Report>,
    commands: Sender<Command>,
    tls: Option<Tls>,
    speaks: Speaks,
    peers: Vec<Peer>,
}

impl<D: Dialogue> Play<D> {
    /// The slot is connected, over HTTP/2 where the server chooses, and the load has begun.
    pub fn begin(dialogue: D, speaks: Speaks, asks: Asks) -> Self {
        let http2 = Http2::new(Windows::RFC);
        let (versions, tls) = match speaks {
            Speaks::Http1 => (Versions::http1(), None),
            Speaks::Http2 => (Versions::http2(http2), None),
            Speaks::Either => (Versions::either(http2, 2, asks.depth), Some(Tls::new())),
        };
        let client = tls.as_ref().map(Tls::client);
        let config = Config { depth: asks.depth, tls: client, ..config(TIMEOUT_NS) };
        let http = Http::new(versions, dialogue, false);
        let (generator, commands, reports) = generator(config, http);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        let mut play = Play { generator, wire, reports, commands, tls, speaks, peers: Vec::new() };
        play.command(Command::Connections(1));
        play.connected(speaks != Speaks::Http1);
        let (load, stop) = (asks.load(), Stop::Requests(asks.count));
        let share = PhaseShare::new(load, stop, 1, START_NS);
        play.command(Command::Phase(share));
        play.at(0);
        play
    }

    fn command(&mut self, command: Command) {
        self.commands.send(command).expect("it listens");
        self.generator.handle_wake(&mut self.wire);
    }

    /// The connection that was attempted last is established, and speaks HTTP/2 or not.
    pub fn connected(&mut self, over_http2: bool) {
        let index = self.peers.len() as u32;
        assert_eq!(self.wire.attempts.len(), self.peers.len() + 1, "one is attempted");
        self.peers.push(Peer::new(over_http2, self.tls.as_ref()));
        self.generator.handle_time(&mut self.wire);
        self.generator.handle_connected(&mut self.wire, conn(0, index));
        while self.peers[index as usize].is_handshaking() {
            let sent = self.wire.take_sent();
            assert!(!sent.is_empty(), "the handshake goes on");
            let bytes = sent.into_iter().flat_map(|sent| sent.bytes).collect::<Vec<_>>();
            let reply = self.peers[index as usize].hear(&bytes);
            self.receive(index, &reply);
        }
        let settings = self.peers[index as usize].settings();
        let settings = self.peers[index as usize].seal(settings);
        self.receive(index, &settings);
    }

    /// The clock goes on to a moment of the load, by way of all that is due before.
    pub fn at(&mut self, ms: u64) {
        run_to(&mut self.generator, &mut self.wire, START_NS + ms * MS);
    }

    fn receive(&mut self, index: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.generator.handle_input(&mut self.wire, conn(0, index), bytes, false);
        }
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// Answers come in one input on the newest connection. Each is that of the request with this
    /// number on the connection, from 0.
    pub fn answer(&mut self, answers: &[(u32, &Answer)]) {
        let peer = self.peers.last().expect("a connection");
        let bytes = answers.iter().flat_map(|(nth, answer)| peer.written(*nth, answer)).collect();
        self.answer_in([bytes]);
    }

    /// Bytes come on the newest connection, in these pieces.
    pub fn answer_in(&mut self, pieces: impl IntoIterator<Item = Vec<u8>>) {
        let index = self.peers.len() - 1;
        for piece in pieces {
            let sealed = self.peers[index].seal(piece);
            self.receive(index as u32, &sealed);
        }
    }

    /// Answers come, each in an input of its own, in a batch that takes until this time.
    pub fn answer_in_batch(&mut self, answers: &[(u32, &Answer)], until_ms: u64) {
        let peer = self.peers.last().expect("a connection");
        let newest = conn(0, self.peers.len() as u32 - 1);
        for (nth, answer) in answers {
            let bytes = peer.written(*nth, answer);
            self.generator.handle_input(&mut self.wire, newest, &bytes, false);
        }
        self.wire.now_ns = START_NS + until_ms * MS;
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The server ends the newest connection.
    pub fn end_connection(&mut self) {
        let newest = conn(0, self.peers.len() as u32 - 1);
        self.generator.handle_end(&mut self.wire, newest, PeerClose::Fin);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The server's end of the newest connection.
    pub fn peer(&self) -> &Peer {
        self.peers.last().expect("a connection")
    }

    /// Method and target of each request since the last time, in their order on the wire. All came
    /// on the newest connection.
    pub fn asked(&mut self) -> Vec<String> {
        let sent = self.wire.take_sent();
        let newest = self.peers.len() - 1;
        assert!(sent.iter().all(|sent| sent.connection as usize == newest));
        let bytes = sent.into_iter().flat_map(|sent| sent.bytes).collect::<Vec<_>>();
        assert!(self.peers[newest].hear(&bytes).is_empty(), "TLS has nothing to say");
        self.peers[newest].requests()
    }

    /// The report of the load, and the latencies of good answers as indices of histograms.
    pub fn end(mut self) -> (DoneReport, Vec<u32>) {
        self.at((WINDOW_NS + 3 * TIMEOUT_NS) / MS);
        let mut latencies = Vec::new();
        for report in self.reports.try_iter() {
            match report {
                Report::Tick(tick) => latencies.extend(tick.recorded.latency.iter()),
                Report::Done(done) => {
                    latencies.extend(done.last.latency.iter());
                    let each = latencies.iter();
                    let each = each.flat_map(|(index, count)| vec![*index; *count as usize]);
                    return (*done, each.collect());
                }
                _ => {}
            }
        }
        unreachable!("the phase is done: {:?}", self.speaks)
    }
}
