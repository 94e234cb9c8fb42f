//! The kernel, the peer and the clock, played: a generator's [`Net`] in virtual time.
//!
//! Every connection has a peer that follows its script. Whatever crosses the wire does so as an
//! event with a time; when nothing more happens at a moment, the clock jumps to the next one.
//! How the bytes of a peer are cut when they are read is a [`Cut`]. It must not know what the
//! generator makes of what it hears.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use trueload_drive::{ConnectError, Net, Outbox, PeerClose, Program, Remote, Token};
use trueload_wire::tls::server;

use crate::peer::Peer;
use crate::secure::Secured;
use crate::table::{Protocol, Step};

const NS_PER_MS: u64 = 1_000_000;
/// What one read takes at most, as the real driver's.
const READ_BYTES: usize = 64 * 1024;
/// A flood sends so much every millisecond; less where it is read in small pieces, as that is slow
/// to play. Either is above every cap within the timeout.
const FLOOD_BYTES: usize = 16 * 1024;
const FLOOD_BYTES_APART: usize = 2 * 1024;
/// More happenings than any row needs: a world that is still busy then never ends.
const HAPPENINGS_MOST: u64 = 50_000_000;

/// How what a peer has sent is cut when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All that is there at once; a close that is there, too, is known.
    Whole,
    /// Byte by byte; the generator acts between.
    Bytes,
    /// In random pieces, by this seed.
    Random(u64),
    /// The same, but as completions of one batch: of each piece but the last it is known that more follows.
    Batch(u64),
}

impl Cut {
    pub fn comes_apart(self) -> bool {
        !matches!(self, Cut::Whole | Cut::Batch(_))
    }
}

/// How a row is played.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    pub cut: Cut,
    /// One way.
    pub latency_ns: u64,
    /// Whether a timer that is due goes before what is due on a socket.
    pub timers_first: bool,
    /// Whether the request is one of several that take turns.
    pub several: bool,
    /// Bytes that the kernel takes before the peer has them; the rest waits.
    pub room: usize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Connected,
    Refused,
    AtPeer(Vec<u8>),
    FinAtPeer,
    GoneAtPeer,
    PeerGoesOn,
    Bytes(Vec<u8>),
    Fin,
    Rst,
}

/// An event: when, in which order, where, what.
type Event = Reverse<(u64, u64, u32, Happening)>;

#[derive(Debug)]
struct Connection {
    key: u32,
    open: bool,
    inbox: VecDeque<u8>,
    end: Option<PeerClose>,
    peer: Peer,
    /// What the kernel has taken and the peer does not have; what it has not taken; whether our side ends behind that.
    under_way: usize,
    outbox: Outbox,
    /// Of that, bytes that are a copy for this connection alone.
    copied: usize,
    ending: bool,
}

/// All of it.
pub struct World {
    play: Play,
    now_ns: u64,
    order: u64,
    chance: u64,
    events: BinaryHeap<Event>,
    connections: Vec<Connection>,
    scripts: Vec<Arc<[Step]>>,
    protocol: Protocol,
    tls: Option<server::Setup>,
    /// The most that was ever copied to wait on one connection.
    pub copied_most: usize,
    /// Connections that the program has reset.
    pub reset_by_us: u64,
}

impl World {
    /// With `tls` the peers speak it, and what the scripts say goes through it.
    pub fn new(
        play: Play,
        protocol: Protocol,
        scripts: Vec<Arc<[Step]>>,
        tls: Option<server::Setup>,
    ) -> Self {
        let chance = match play.cut {
            Cut::Random(seed) | Cut::Batch(seed) => seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            _ => 1,
        };
        World {
            play,
            now_ns: 1_000_000_000,
            order: 0,
            chance,
            events: BinaryHeap::new(),
            connections: Vec::new(),
            scripts,
            protocol,
            tls,
            copied_most: 0,
            reset_by_us: 0,
        }
    }

    /// Requests that have come to the peers, in whole or in part: one may be answered before all of it is there.
    pub fn requests(&self) -> u64 {
        self.connections.iter().map(|connection| connection.peer.begun() as u64).sum()
    }

    /// Connections on which the peer has heard that our side is over.
    pub fn ended_by_us(&self) -> u64 {
        self.connections.iter().filter(|connection| connection.peer.fin).count() as u64
    }

    /// Attempts to connect.
    pub fn attempts(&self) -> usize {
        self.connections.len()
    }

    /// Runs until the program is done or nothing is left to happen before `until_ns`.
    pub fn run(&mut self, program: &mut impl Program, until_ns: u64) {
        program.handle_wake(self);
        program.handle_batch_end(self);
        for _ in 0..HAPPENINGS_MOST {
            if program.is_done() {
                return;
            }
            if self.play.timers_first && is_due(program, self.now_ns) {
                program.handle_time(self);
                program.handle_batch_end(self);
                continue;
            }
            if self.happen(program) {
                continue;
            }
            if is_due(program, self.now_ns) {
                program.handle_time(self);
                program.handle_batch_end(self);
                continue;
            }
            let event_ns = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let next_ns = [event_ns, program.wake_at_ns()].into_iter().flatten().min();
            match next_ns {
                Some(at_ns) if at_ns <= until_ns => self.now_ns = at_ns.max(self.now_ns),
                _ => return,
            }
        }
        panic!("the world does not come to rest");
    }

    /// What is still under way when the program has ended reaches the peers.
    pub fn settle(&mut self) {
        while let Some(Reverse((_, _, index, happening))) = self.events.pop() {
            if let Happening::AtPeer(bytes) = happening {
                self.connections[index as usize].peer.take_in(&bytes);
            }
        }
    }

    /// Everything that is due happens, then each socket with something to read is read once.
    fn happen(&mut self, program: &mut impl Program) -> bool {
        let mut some = false;
        while self.events.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns) {
            if let Some(Reverse((_, _, index, happening))) = self.events.pop() {
                self.take(program, index, happening);
                some = true;
            }
        }
        for index in 0..self.connections.len() as u32 {
            while self.read(program, index) {
                some = true;
                if !matches!(self.play.cut, Cut::Batch(_)) {
                    break;
                }
            }
        }
        if some {
            program.handle_batch_end(self);
        }
        some
    }

    fn take(&mut self, program: &mut impl Program, index: u32, happening: Happening) {
        let connection = &mut self.connections[index as usize];
        let key = connection.key;
        match happening {
            Happening::Connected if connection.open => {
                connection.peer.alive = true;
                self.later(0, index, Happening::PeerGoesOn);
                program.handle_connected(self, key, token(index));
            }
            Happening::Refused if connection.open => {
                connection.open = false;
                program.handle_connect_error(self, key, token(index), ConnectError::Refused);
            }
            Happening::Connected | Happening::Refused => {}
            Happening::AtPeer(bytes) => {
                connection.under_way -= bytes.len();
                let answers = connection.peer.take_in(&bytes);
                self.say(index, answers);
                self.go_on(index);
                if self.flush(index) {
                    program.handle_drained(self, key, token(index));
                }
            }
            Happening::FinAtPeer => {
                connection.peer.fin = true;
                self.go_on(index);
            }
            Happening::GoneAtPeer => connection.peer.alive = false,
            Happening::PeerGoesOn => self.go_on(index),
            Happening::Bytes(bytes) => connection.inbox.extend(bytes),
            Happening::Fin => connection.end = connection.end.or(Some(PeerClose::Fin)),
            Happening::Rst => connection.end = connection.end.or(Some(PeerClose::Reset)),
        }
    }

    /// The kernel takes what it has room for; true if something waited, and nothing does any more.
    fn flush(&mut self, index: u32) -> bool {
        let (room, latency_ns) = (self.play.room, self.play.latency_ns);
        loop {
            let connection = &mut self.connections[index as usize];
            if !connection.takes() {
                connection.outbox = Outbox::default();
                return false;
            }
            let Some(front) = connection.outbox.front() else { break };
            let taken = front[..front.len().min(room - connection.under_way)].to_vec();
            if taken.is_empty() {
                return false;
            }
            connection.outbox.advance(taken.len());
            connection.under_way += taken.len();
            connection.copied = connection.copied.saturating_sub(taken.len());
            let drained = connection.outbox.is_empty();
            self.later(latency_ns, index, Happening::AtPeer(taken));
            if drained {
                self.end_if_asked(index);
                return true;
            }
        }
        self.end_if_asked(index);
        false
    }

    fn end_if_asked(&mut self, index: u32) {
        if std::mem::take(&mut self.connections[index as usize].ending) {
            self.later(self.play.latency_ns, index, Happening::FinAtPeer);
        }
    }

    /// One read, as the kernel would have it; true if there was anything.
    fn read(&mut self, program: &mut impl Program, index: u32) -> bool {
        let most = self.piece();
        let connection = &mut self.connections[index as usize];
        let key = connection.key;
        if !connection.open {
            return false;
        }
        if !connection.inbox.is_empty() {
            let count = most.min(connection.inbox.len());
            let bytes: Vec<u8> = connection.inbox.drain(..count).collect();
            let ending = match self.play.cut {
                Cut::Batch(_) => !connection.inbox.is_empty() || connection.end.is_some(),
                cut => connection.end.is_some() && !cut.comes_apart(),
            };
            program.handle_input(self, key, token(index), &bytes, ending);
            return true;
        }
        let Some(ended) = connection.end.take() else {
            return false;
        };
        program.handle_end(self, key, token(index), ended);
        self.close(token(index));
        true
    }

    fn piece(&mut self) -> usize {
        match self.play.cut {
            Cut::Whole => READ_BYTES,
            Cut::Bytes => 1,
            Cut::Random(_) | Cut::Batch(_) => {
                // xorshift64: all that is asked of it is to be the same each time.
                self.chance ^= self.chance << 13;
                self.chance ^= self.chance >> 7;
                self.chance ^= self.chance << 17;
                1 + (self.chance % 40) as usize
            }
        }
    }

    fn later(&mut self, in_ns: u64, index: u32, happening: Happening) {
        self.order += 1;
        self.events.push(Reverse((self.now_ns + in_ns, self.order, index, happening)));
    }

    /// Bytes for the generator.
    fn say(&mut self, index: u32, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.later(self.play.latency_ns, index, Happening::Bytes(bytes));
        }
    }

    /// The peer follows its script as far as it can now.
    fn go_on(&mut self, index: u32) {
        while let Some(step) = self.connections[index as usize].peer.step() {
            let peer = &mut self.connections[index as usize].peer;
            let latency_ns = self.play.latency_ns;
            match step {
                Step::Read(_) | Step::ReadEnd | Step::Head if !peer.has_read(&step) => return,
                Step::Read(_) | Step::ReadEnd | Step::Head => {}
                Step::Flood(_) | Step::Drip(..) | Step::Wait(_) => {
                    if self.takes_time(index, &step) {
                        return;
                    }
                }
                Step::Fin => {
                    let bytes = peer.farewell();
                    self.say(index, bytes);
                    self.later(latency_ns, index, Happening::Fin);
                }
                Step::Cut => self.later(latency_ns, index, Happening::Fin),
                Step::Rst => {
                    peer.alive = false;
                    self.later(latency_ns, index, Happening::Rst);
                }
                Step::Again => {
                    peer.at = peer.again_at();
                    continue;
                }
                Step::Hold | Step::Refuse | Step::Drop | Step::Unroutable => return,
                step => {
                    let bytes = peer.says(&step);
                    self.say(index, bytes);
                }
            }
            self.connections[index as usize].peer.at += 1;
        }
    }

    /// A step that is not done at once; whether it goes on later.
    fn takes_time(&mut self, index: u32, step: &Step) -> bool {
        let peer = &mut self.connections[index as usize].peer;
        let latency_ns = self.play.latency_ns;
        let (bytes, next_ns) = match step {
            Step::Flood(data) => {
                let apart = self.play.cut.comes_apart();
                let most = if apart { FLOOD_BYTES_APART } else { FLOOD_BYTES };
                (data.repeat(most.div_ceil(data.len())), NS_PER_MS)
            }
            Step::Drip(every_ms, data) if peer.dripped < data.len() => {
                peer.dripped += 1;
                (vec![data[peer.dripped - 1]], every_ms * NS_PER_MS)
            }
            Step::Wait(ms) if peer.dripped == 0 => {
                peer.dripped = 1;
                (Vec::new(), ms * NS_PER_MS)
            }
            _ => {
                peer.dripped = 0;
                return false;
            }
        };
        if !bytes.is_empty() {
            let bytes = peer.seal(bytes);
            self.later(latency_ns, index, Happening::Bytes(bytes));
        }
        self.later(next_ns, index, Happening::PeerGoesOn);
        true
    }
}

impl Connection {
    /// After a reset the kernel takes nothing more; one that comes behind bytes that are still to be read in pieces
    /// has not come yet.
    fn takes(&self) -> bool {
        self.open && !(self.end == Some(PeerClose::Reset) && self.inbox.is_empty())
    }
}

fn is_due(program: &impl Program, now_ns: u64) -> bool {
    program.wake_at_ns().is_some_and(|at_ns| at_ns <= now_ns)
}

fn token(index: u32) -> Token {
    Token { index, generation: 0 }
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
        let index = self.connections.len() as u32;
        let script = self.scripts.get(index as usize).or(self.scripts.last()).expect("a script");
        let script = Arc::clone(script);
        let first = script.first().cloned();
        let tls = self.tls.as_ref().map(Secured::new);
        let peer = Peer::new(script, self.protocol, tls);
        let open = first != Some(Step::Unroutable);
        self.connections.push(Connection {
            key,
            open,
            inbox: VecDeque::new(),
            end: None,
            peer,
            under_way: 0,
            outbox: Outbox::default(),
            copied: 0,
            ending: false,
        });
        match first {
            Some(Step::Unroutable) => return Err(ConnectError::Unreachable),
            Some(Step::Refuse) => self.later(2 * self.play.latency_ns, index, Happening::Refused),
            Some(Step::Drop) => {}
            _ => self.later(2 * self.play.latency_ns, index, Happening::Connected),
        }
        Ok(token(index))
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        let connection = &mut self.connections[token.index as usize];
        connection.outbox.push(bytes);
        connection.copied += bytes.len();
        self.flush(token.index);
        let connection = &self.connections[token.index as usize];
        self.copied_most = self.copied_most.max(connection.copied.min(connection.outbox.len()));
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.connections[token.index as usize].outbox.push_shared(bytes, range);
        self.flush(token.index);
    }

    fn queued_bytes(&self, token: Token) -> usize {
        self.connections[token.index as usize].outbox.len()
    }

    fn end_sending(&mut self, token: Token) {
        self.connections[token.index as usize].ending = true;
        if self.connections[token.index as usize].outbox.is_empty() {
            self.end_if_asked(token.index);
        }
    }

    fn close(&mut self, token: Token) {
        let connection = &mut self.connections[token.index as usize];
        if std::mem::replace(&mut connection.open, false) {
            let latency_ns = self.play.latency_ns;
            self.later(latency_ns, token.index, Happening::GoneAtPeer);
        }
    }

    fn reset(&mut self, token: Token) {
        self.reset_by_us += u64::from(self.connections[token.index as usize].open);
        self.close(token);
    }

    fn finish(&mut self, token: Token) {
        self.close(token);
    }
}
