//! Peers that follow scripts: what has come to each, and what it sends at a step.
//!
//! They count the requests that have come in whole, in whichever protocol.

use std::collections::VecDeque;
use std::sync::Arc;

use trueload_wire::message;
use trueload_wire::websocket::server::Opening;
use trueload_wire::websocket::{Event, Limits, Receiver, Role, Scratch, send};

use trueload_sim::peers::{Act, Peers, What};
use trueload_sim::scenario::{Accept, MS};
use trueload_wire::tls::server;

use super::secure::Secured;
use super::table::{Case, MESSAGE_BYTES, Protocol, Step};

/// A flood sends so much every millisecond; less where it is read in small pieces, as that is slow to play. Either is
/// above every cap within the timeout.
const FLOOD_BYTES: usize = 16 * 1024;
const FLOOD_BYTES_APART: usize = 2 * 1024;

/// All peers of a row: connection `n` follows script `n`, and those beyond the last follow that.
#[derive(Debug)]
pub struct Scripted {
    scripts: Vec<Arc<[Step]>>,
    protocol: Protocol,
    /// What the scripts send goes through this.
    tls: Option<server::Setup>,
    flood_bytes: usize,
    attempts: usize,
    peers: Vec<Peer>,
}

impl Scripted {
    /// With `apart` what they send is read in small pieces.
    pub fn new(case: &Case, tls: Option<server::Setup>, apart: bool) -> Self {
        Scripted {
            scripts: case.scripts.clone(),
            protocol: case.protocol,
            tls,
            flood_bytes: if apart { FLOOD_BYTES_APART } else { FLOOD_BYTES },
            attempts: 0,
            peers: Vec::new(),
        }
    }

    /// Connections on which the peer has received the end of our side.
    pub fn ended_by_us(&self) -> u64 {
        self.peers.iter().filter(|peer| peer.fin).count() as u64
    }
}

impl Peers for Scripted {
    fn attempt(&mut self, index: u32, _: u32) -> Accept {
        let script = self.scripts.get(self.attempts).or(self.scripts.last()).expect("a script");
        self.attempts += 1;
        let tls = self.tls.as_ref().map(Secured::new);
        self.peers.truncate(index as usize);
        self.peers.push(Peer::new(Arc::clone(script), self.protocol, tls, self.flood_bytes));
        match script.first() {
            Some(Step::Unroutable) => Accept::Unreachable,
            Some(Step::Refuse) => Accept::Refused,
            Some(Step::Drop) => Accept::Silent,
            _ => Accept::Yes,
        }
    }

    fn connected(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.peers[index as usize].alive = true;
        self.go_on(index, at_ns, acts);
    }

    fn receive(&mut self, index: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        let reply = self.peers[index as usize].take_in(bytes);
        plan_send(index, at_ns, reply, acts);
        self.go_on(index, at_ns, acts);
    }

    fn ended(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.peers[index as usize].fin = true;
        self.go_on(index, at_ns, acts);
    }

    fn go_on(&mut self, index: u32, at_ns: u64, acts: &mut Vec<Act>) {
        self.peers[index as usize].go_on(index, at_ns, acts);
    }

    fn gone(&mut self, index: u32) {
        self.peers[index as usize].alive = false;
    }

    fn requests(&self) -> u64 {
        self.peers.iter().map(|peer| peer.begun() as u64).sum()
    }
}

fn plan_send(on: u32, at_ns: u64, bytes: Vec<u8>, acts: &mut Vec<Act>) {
    if !bytes.is_empty() {
        acts.push(Act { on, at_ns, what: What::Send(bytes, None) });
    }
}

/// The peer's end of a connection.
#[derive(Debug)]
struct Peer {
    script: Arc<[Step]>,
    at: usize,
    /// Bytes of the present step that have been dripped.
    dripped: usize,
    flood_bytes: usize,
    /// When the present step goes on.
    waits_until_ns: u64,
    wanted: usize,
    protocol: Protocol,
    /// Requests that have come in whole.
    whole: usize,
    rest: Vec<u8>,
    /// Of a WebSocket: its request for the upgrade once that is whole, and what reads frames behind it.
    upgrade: Option<Opening>,
    receiver: Receiver,
    /// Requests to send back, as they would be.
    to_echo: VecDeque<Vec<u8>>,
    alive: bool,
    /// The generator has ended its side.
    fin: bool,
    tls: Option<Secured>,
}

impl Peer {
    fn new(
        script: Arc<[Step]>,
        protocol: Protocol,
        tls: Option<Secured>,
        flood_bytes: usize,
    ) -> Self {
        Peer {
            script,
            at: 0,
            dripped: 0,
            flood_bytes,
            waits_until_ns: 0,
            wanted: 0,
            protocol,
            whole: 0,
            rest: Vec::new(),
            upgrade: None,
            receiver: Receiver::new(Role::Server),
            to_echo: VecDeque::new(),
            alive: false,
            fin: false,
            tls,
        }
    }

    /// Requests that have come, in whole or in part. (Of a WebSocket only whole ones: what is there may be no frame of
    /// a message.)
    fn begun(&self) -> usize {
        let begins = |byte: &u8| match self.protocol {
            // What begins otherwise is no request, but TLS that the peer does not speak.
            Protocol::Http => byte.is_ascii_uppercase(),
            Protocol::Tcp => true,
            Protocol::Ws => false,
        };
        self.whole + usize::from(self.rest.first().is_some_and(begins))
    }

    fn step(&self) -> Option<Step> {
        // What is sent through TLS waits for the handshake.
        let ready = self.tls.as_ref().is_none_or(Secured::is_open);
        self.script.get(self.at).filter(|_| self.alive && ready).cloned()
    }

    /// Where a script goes on that does it again: a connection is upgraded once.
    fn again_at(&self) -> usize {
        let upgrades = |step: &Step| matches!(step, Step::Upgrade(_));
        self.script.iter().position(upgrades).map_or(0, |at| at + 1)
    }

    /// Whether what a step waits for has come; then it is taken.
    fn has_read(&mut self, step: &Step) -> bool {
        match step {
            Step::Read(count) if self.whole >= self.wanted + count => {
                self.wanted += count;
                true
            }
            Step::ReadEnd => self.fin,
            Step::Head if self.protocol == Protocol::Http => {
                self.whole > self.wanted || self.rest.windows(4).any(|four| four == b"\r\n\r\n")
            }
            Step::Head => self.upgrade.is_some(),
            _ => false,
        }
    }

    /// What a step that is over at once sends.
    fn step_output(&mut self, step: &Step) -> Vec<u8> {
        match step {
            Step::Send(data, times) => self.seal(data.repeat(*times)),
            Step::Echo(count) => {
                let count = (*count).min(self.to_echo.len());
                let data = self.to_echo.drain(..count).flatten().collect();
                self.seal(data)
            }
            Step::Upgrade(extra) => {
                let answer = self.answer_to_upgrade(extra);
                self.seal(answer)
            }
            Step::Raw(data) => data.to_vec(),
            Step::Notify => self.close_notify(),
            Step::Alert => self.tls.as_mut().map(Secured::alert).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// A 101 that fits the request, with these header lines at its end.
    fn answer_to_upgrade(&self, extra: &[u8]) -> Vec<u8> {
        let request = self.upgrade.as_ref().expect("`head` comes before `upgrade`");
        let mut answer = Vec::new();
        request.judge().expect("our own request").write(None, &mut answer);
        let end = answer.len() - 2;
        answer.splice(end..end, extra.iter().copied());
        answer
    }

    /// Follows the script as far as that can be done now.
    fn go_on(&mut self, on: u32, at_ns: u64, acts: &mut Vec<Act>) {
        while let Some(step) = self.step() {
            match step {
                Step::Read(_) | Step::ReadEnd | Step::Head if !self.has_read(&step) => return,
                Step::Read(_) | Step::ReadEnd | Step::Head => {}
                Step::Flood(_) | Step::Drip(..) | Step::Wait(_) => {
                    if self.takes_time(&step, on, at_ns, acts) {
                        return;
                    }
                }
                Step::Fin => {
                    plan_send(on, at_ns, self.close_notify(), acts);
                    acts.push(Act { on, at_ns, what: What::Fin });
                }
                Step::Cut => acts.push(Act { on, at_ns, what: What::Fin }),
                Step::Rst => {
                    self.alive = false;
                    acts.push(Act { on, at_ns, what: What::Reset });
                }
                Step::Again => {
                    self.at = self.again_at();
                    continue;
                }
                Step::Hold | Step::Refuse | Step::Drop | Step::Unroutable => return,
                step => plan_send(on, at_ns, self.step_output(&step), acts),
            }
            self.at += 1;
        }
    }

    /// A step that is not done at once; whether it goes on later.
    fn takes_time(&mut self, step: &Step, on: u32, at_ns: u64, acts: &mut Vec<Act>) -> bool {
        if at_ns < self.waits_until_ns {
            return true;
        }
        let (bytes, for_ns) = match step {
            Step::Flood(data) => (data.repeat(self.flood_bytes.div_ceil(data.len())), MS),
            Step::Drip(every_ms, data) if self.dripped < data.len() => {
                self.dripped += 1;
                (vec![data[self.dripped - 1]], every_ms * MS)
            }
            Step::Wait(ms) if self.dripped == 0 => {
                self.dripped = 1;
                (Vec::new(), ms * MS)
            }
            _ => {
                self.dripped = 0;
                return false;
            }
        };
        if !bytes.is_empty() {
            plan_send(on, at_ns, self.seal(bytes), acts);
        }
        self.waits_until_ns = at_ns + for_ns;
        acts.push(Act { on, at_ns: self.waits_until_ns, what: What::GoOn });
        true
    }

    /// Bytes of the generator have come; returns what TLS sends in reply.
    fn take_in(&mut self, bytes: &[u8]) -> Vec<u8> {
        match &mut self.tls {
            None => {
                self.receive(bytes);
                Vec::new()
            }
            Some(tls) => {
                let (plain, answers) = tls.take_in(bytes);
                self.receive(&plain);
                answers
            }
        }
    }

    fn seal(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.tls {
            None => bytes,
            Some(tls) => tls.seal(&bytes),
        }
    }

    fn close_notify(&mut self) -> Vec<u8> {
        self.tls.as_mut().map(Secured::close_notify).unwrap_or_default()
    }

    /// Counts whole requests; they are the generator's, so this need not be strict.
    fn receive(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        match self.protocol {
            Protocol::Http => self.receive_http(),
            Protocol::Tcp => self.receive_tcp(),
            Protocol::Ws => self.receive_ws(),
        }
    }

    fn receive_http(&mut self) {
        while let Some(end) = self.rest.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&self.rest[..end]).to_ascii_lowercase();
            let length = head
                .split("\r\n")
                .find_map(|line| line.strip_prefix("content-length:"))
                .map_or(0, |value| value.trim().parse().expect("our own length"));
            if self.rest.len() < end + 4 + length {
                return;
            }
            self.rest.drain(..end + 4 + length);
            self.whole += 1;
        }
    }

    fn receive_tcp(&mut self) {
        while self.rest.len() >= MESSAGE_BYTES {
            let message = self.rest.drain(..MESSAGE_BYTES).collect();
            self.to_echo.push_back(message);
            self.whole += 1;
        }
    }

    fn receive_ws(&mut self) {
        if self.upgrade.is_none() {
            let mut opening = Opening::default();
            let fed = opening.feed(&self.rest, &message::Limits::default()).expect("our own head");
            let Some(taken) = fed else { return };
            self.rest.drain(..taken);
            self.upgrade = Some(opening);
        }
        let bytes = std::mem::take(&mut self.rest);
        let (whole, to_echo) = (&mut self.whole, &mut self.to_echo);
        let mut on_event = |event: Event<'_>| {
            if let Event::Message { kind, payload } = event {
                let mut frame = Vec::new();
                send::message(&mut frame, kind, payload, None);
                to_echo.push_back(frame);
                *whole += 1;
            }
        };
        let limits = Limits::default();
        let fed = self.receiver.feed(&bytes, &limits, &mut Scratch::default(), &mut on_event);
        fed.expect("our own frames");
    }
}
