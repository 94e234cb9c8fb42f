//! A network in virtual time between generators, one on each host, and a [`Peer`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use trueload_drive::{ConnectError, Net, PeerClose, Program, Remote, Token};

use crate::peer::{Act, Peer, Way};

/// One way.
const LATENCY_NS: u64 = 50_000;
/// More than any row needs: a generator that spins would not come to rest.
const HAPPENINGS_MOST: u32 = 2_000_000;

/// In which pieces bytes come to the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Whole,
    Bytes,
    /// By this seed.
    Random(u64),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Connected,
    Refused,
    AtPeer(Vec<u8>),
    GoneAtPeer,
    Came(Act),
}

struct Connection {
    /// Which generator it is of.
    host: usize,
    key: u32,
    open: bool,
    inbox: VecDeque<u8>,
    end: Option<PeerClose>,
}

/// All of it.
pub struct World {
    pub peer: Peer,
    cut: Cut,
    chance: u64,
    pub now_ns: u64,
    pub until_ns: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize, Happening)>>,
    connections: Vec<Connection>,
    /// The generator whose turn it is.
    host: usize,
}

impl World {
    pub fn new(peer: Peer, cut: Cut) -> Self {
        let seed = if let Cut::Random(seed) = cut { seed } else { 0 };
        let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        World {
            peer,
            cut,
            chance,
            now_ns: 1_000_000_000,
            until_ns: u64::MAX,
            order: 0,
            events: BinaryHeap::new(),
            connections: Vec::new(),
            host: 0,
        }
    }

    /// Runs until `over`, or nothing is left to happen.
    pub fn run<P: Program>(&mut self, programs: &mut [P], over: impl Fn() -> bool) {
        self.each(programs, |world, program| {
            program.handle_wake(world);
            program.handle_batch_end(world);
        });
        for _ in 0..HAPPENINGS_MOST {
            if over() || programs.iter().all(Program::is_done) {
                return;
            }
            if self.happen(programs) {
                self.each(programs, |world, program| program.handle_batch_end(world));
                continue;
            }
            let mut late = false;
            self.each(programs, |world, program| {
                if program.wake_at_ns().is_some_and(|at_ns| at_ns <= world.now_ns) {
                    program.handle_time(world);
                    program.handle_batch_end(world);
                    late = true;
                }
            });
            if late {
                continue;
            }
            let wake_ns = programs.iter().filter_map(Program::wake_at_ns).min();
            let event_ns = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
            match [event_ns, wake_ns].into_iter().flatten().min() {
                Some(at_ns) if at_ns <= self.until_ns => self.now_ns = at_ns,
                _ => return,
            }
        }
        panic!("the world does not come to rest");
    }

    fn each<P: Program>(&mut self, programs: &mut [P], mut act: impl FnMut(&mut World, &mut P)) {
        for (host, program) in programs.iter_mut().enumerate() {
            self.host = host;
            act(self, program);
        }
    }

    fn happen(&mut self, programs: &mut [impl Program]) -> bool {
        let mut some = false;
        while self.events.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns) {
            let Some(Reverse((_, _, index, happening))) = self.events.pop() else { break };
            self.take(programs, index, happening);
            some = true;
        }
        for index in 0..self.connections.len() {
            some |= self.read(programs, index);
        }
        some
    }

    fn take(&mut self, programs: &mut [impl Program], index: usize, happening: Happening) {
        let connection = &mut self.connections[index];
        self.host = connection.host;
        let program = &mut programs[self.host];
        match happening {
            Happening::Connected => {
                self.peer.accept();
                program.handle_connected(self, self.connections[index].key, token(index));
            }
            Happening::Refused => {
                connection.open = false;
                program.handle_connect_error(
                    self,
                    self.connections[index].key,
                    token(index),
                    ConnectError::Refused,
                );
            }
            Happening::AtPeer(bytes) => {
                for (client, act) in self.peer.hear(index, &bytes) {
                    self.later(LATENCY_NS, client, Happening::Came(act));
                }
            }
            Happening::GoneAtPeer => self.peer.gone(index),
            Happening::Came(Act::Bytes(bytes)) => connection.inbox.extend(bytes),
            Happening::Came(Act::End(way)) => {
                let ended = if way == Way::Rst { PeerClose::Reset } else { PeerClose::Fin };
                connection.end = connection.end.or(Some(ended));
            }
        }
    }

    /// One read, as the kernel would have it; true if there was anything.
    fn read(&mut self, programs: &mut [impl Program], index: usize) -> bool {
        let most = self.piece();
        let connection = &mut self.connections[index];
        let key = connection.key;
        self.host = connection.host;
        let program = &mut programs[self.host];
        if !connection.open {
            return false;
        }
        if !connection.inbox.is_empty() {
            let count = most.min(connection.inbox.len());
            let bytes: Vec<u8> = connection.inbox.drain(..count).collect();
            program.handle_input(self, key, token(index), &bytes, false);
            return true;
        }
        let Some(ended) = connection.end.take() else { return false };
        program.handle_end(self, key, token(index), ended);
        self.close(token(index));
        true
    }

    fn piece(&mut self) -> usize {
        match self.cut {
            Cut::Whole => usize::MAX,
            Cut::Bytes => 1,
            Cut::Random(_) => {
                // xorshift64: all that is asked of it is to be the same each time.
                self.chance ^= self.chance << 13;
                self.chance ^= self.chance >> 7;
                self.chance ^= self.chance << 17;
                1 + (self.chance % 300) as usize
            }
        }
    }

    fn later(&mut self, in_ns: u64, index: usize, happening: Happening) {
        self.order += 1;
        self.events.push(Reverse((self.now_ns + in_ns, self.order, index, happening)));
    }
}

fn token(index: usize) -> Token {
    Token { index: index as u32, generation: 0 }
}

impl Net for World {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {}

    fn connect(
        &mut self,
        key: u32,
        _: Remote<'_>,
        _: Option<IpAddr>,
    ) -> Result<Token, ConnectError> {
        let index = self.connections.len();
        let (host, inbox) = (self.host, VecDeque::new());
        self.connections.push(Connection { host, key, open: true, inbox, end: None });
        let happening = if self.peer.refuses { Happening::Refused } else { Happening::Connected };
        self.later(2 * LATENCY_NS, index, happening);
        Ok(token(index))
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        let index = token.index as usize;
        if self.connections[index].open {
            self.later(LATENCY_NS, index, Happening::AtPeer(bytes.to_vec()));
        }
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.send(token, &bytes[range]);
    }

    fn end_sending(&mut self, _: Token) {}

    fn close(&mut self, token: Token) {
        let index = token.index as usize;
        if std::mem::replace(&mut self.connections[index].open, false) {
            self.later(LATENCY_NS, index, Happening::GoneAtPeer);
        }
    }

    fn finish(&mut self, token: Token) {
        self.close(token);
    }
}
