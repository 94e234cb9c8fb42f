//! Hostile clients against the reference server, beside honest ones, all decided by one seed.
//!
//! The server is the real one; the kernel is a queue for each connection, with room drawn from the
//! seed. Hostile clients ask for much, and read nothing, little, or by fits and starts. The laws:
//! what waits for a client is bounded, and every honest client is answered.

mod client;
mod link;

use std::sync::mpsc::channel;

use trueload_drive::{Conn, Net, PeerClose, Program, Token};
use trueload_engine::outlet::Outlet;
use trueload_engine::protocol::Http2Plan;
use trueload_engine::server::{Report, Server, Watch};

use crate::chance::Chance;
use client::Client;
use link::Links;

/// One in so many seeds has them.
const ONE_IN: u64 = 4;
const ROUNDS: u64 = 120;
const ROUND_NS: u64 = 1_000_000;
/// The law: what waits for one connection, whatever its client does.
const UNSENT_MOST: usize = 1024 * 1024;
/// What a driver reads from a connection before it takes notice that reading has been held.
const PIECES: u64 = 4;
/// An honest client gets its answer within so many rounds.
const PATIENCE: u64 = 5;

/// Plays the hostile clients of a seed, if it has any. Returns the laws that were broken.
pub(crate) fn check(seed: u64) -> Option<(&'static str, String)> {
    let mut chance = Chance::part(seed, 77);
    if !chance.one_in(ONE_IN) {
        return None;
    }
    let (_commands, inbox) = channel();
    let (sink, _reports) = channel::<Report>();
    let watch = Watch::new(0, inbox, Outlet::to(sink, |report| report));
    let max_streams = chance.scaled(1, 1000) as u32;
    let server = Server::new(None, watch).with_http2(Http2Plan { max_streams }, None);
    let mut play = Play { server, links: Links::default(), clients: Vec::new() };
    for _ in 0..chance.between(1, 3) {
        play.meet(Client::honest(&mut chance), &mut chance);
    }
    for _ in 0..chance.between(1, 5) {
        play.meet(Client::hostile(&mut chance), &mut chance);
    }
    (0..ROUNDS).find_map(|round| play.round(round, &mut chance))
}

struct Play {
    server: Server,
    links: Links,
    clients: Vec<Client>,
}

impl Play {
    fn meet(&mut self, client: Client, chance: &mut Chance) {
        // An honest client reads once in a round: its kernel has room for an answer.
        let least = if client.is_honest() { 100_000 } else { 1 };
        let token = self.links.open(chance.scaled(least, 200_000) as usize);
        assert_eq!(token.index as usize, self.clients.len());
        self.clients.push(client);
        self.server.handle_accepted(&mut self.links, token);
    }

    /// One batch of events. Returns the law that it broke.
    fn round(&mut self, round: u64, chance: &mut Chance) -> Option<(&'static str, String)> {
        self.links.now_ns += ROUND_NS;
        for index in 0..self.clients.len() {
            self.read(index, chance);
            self.write(index, round, chance);
        }
        while self.server.wake_at_ns().is_some_and(|at_ns| at_ns <= self.links.now_ns) {
            self.server.handle_time(&mut self.links);
        }
        self.server.handle_batch_end(&mut self.links);
        self.clients.iter().enumerate().find_map(|(index, client)| {
            let unsent = self.links.unsent_bytes(token(index));
            if unsent > UNSENT_MOST {
                let how = format!("{unsent} bytes wait for {client:?}");
                return Some(("what waits for a hostile client is bounded", how));
            }
            let late = client.waits_since(round).is_some_and(|rounds| rounds > PATIENCE);
            late.then(|| ("honest clients are served beside hostile ones", format!("{client:?}")))
        })
    }

    /// Lets a client read, and the server learn of it.
    fn read(&mut self, index: usize, chance: &mut Chance) {
        let most = self.clients[index].reads(chance);
        let (bytes, drained) = self.links.read(index, most);
        self.clients[index].receive(&bytes);
        if drained {
            self.server.handle_drained(&mut self.links, conn(index));
        }
    }

    /// Lets a client send, as far as the server reads it.
    fn write(&mut self, index: usize, round: u64, chance: &mut Chance) {
        let pieces = if self.links.is_read(index) { chance.between(1, PIECES) } else { 0 };
        for _ in 0..pieces {
            let bytes = self.clients[index].send(round, chance);
            if !bytes.is_empty() && self.links.is_open(index) {
                self.server.handle_input(&mut self.links, conn(index), &bytes, false);
            }
        }
        if pieces > 0 && self.clients[index].leaves(chance) && self.links.is_open(index) {
            let ended = chance.pick(&[PeerClose::Fin, PeerClose::Reset]);
            self.server.handle_end(&mut self.links, conn(index), ended);
            self.links.end(index);
        }
    }
}

fn conn(index: usize) -> Conn {
    Conn { key: index as u32, token: token(index) }
}

fn token(index: usize) -> Token {
    Token { index: index as u32, generation: 0 }
}
