//! The peer's end of a connection: what has come to it, and what it says at a step of its script.
//!
//! It counts the requests that have come in whole, in whichever protocol; it must not know time.

use std::collections::VecDeque;
use std::sync::Arc;

use trueload_wire::http1;
use trueload_wire::websocket::server::Opening;
use trueload_wire::websocket::{Event, Limits, Receiver, Role, Scratch, send};

use crate::secure::Secured;
use crate::table::{MESSAGE_BYTES, Protocol, Step};

/// The peer's end of a connection.
#[derive(Debug)]
pub struct Peer {
    script: Arc<[Step]>,
    pub at: usize,
    /// Bytes of the present step that have been dripped.
    pub dripped: usize,
    wanted: usize,
    protocol: Protocol,
    /// Requests that have come in whole.
    pub whole: usize,
    rest: Vec<u8>,
    /// Of a WebSocket: its request for the upgrade once that is whole, and what reads frames behind it.
    upgrade: Option<Opening>,
    receiver: Receiver,
    /// Requests to send back, as they would be.
    to_echo: VecDeque<Vec<u8>>,
    pub alive: bool,
    /// The generator has ended its side.
    pub fin: bool,
    tls: Option<Secured>,
}

impl Peer {
    pub fn new(script: Arc<[Step]>, protocol: Protocol, tls: Option<Secured>) -> Self {
        Peer {
            script,
            at: 0,
            dripped: 0,
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
    pub fn begun(&self) -> usize {
        let begins = |byte: &u8| match self.protocol {
            // What begins otherwise is no request, but TLS that the peer does not speak.
            Protocol::Http => byte.is_ascii_uppercase(),
            Protocol::Tcp => true,
            Protocol::Ws => false,
        };
        self.whole + usize::from(self.rest.first().is_some_and(begins))
    }

    pub fn step(&self) -> Option<Step> {
        // What is said through TLS waits for the handshake.
        let ready = self.tls.as_ref().is_none_or(Secured::is_open);
        self.script.get(self.at).filter(|_| self.alive && ready).cloned()
    }

    /// Where a script goes on that does it again: a connection is upgraded once.
    pub fn again_at(&self) -> usize {
        let upgrades = |step: &Step| matches!(step, Step::Upgrade(_));
        self.script.iter().position(upgrades).map_or(0, |at| at + 1)
    }

    /// Whether what a step waits for has come; then it is taken.
    pub fn has_read(&mut self, step: &Step) -> bool {
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

    /// What a step that is over at once says.
    pub fn says(&mut self, step: &Step) -> Vec<u8> {
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
            Step::Notify => self.farewell(),
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

    /// Bytes of the generator have come; returns what TLS says to them.
    pub fn take_in(&mut self, bytes: &[u8]) -> Vec<u8> {
        match &mut self.tls {
            None => {
                self.hear(bytes);
                Vec::new()
            }
            Some(tls) => {
                let (plain, answers) = tls.take_in(bytes);
                self.hear(&plain);
                answers
            }
        }
    }

    pub fn seal(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        match &mut self.tls {
            None => bytes,
            Some(tls) => tls.seal(&bytes),
        }
    }

    pub fn farewell(&mut self) -> Vec<u8> {
        self.tls.as_mut().map(Secured::farewell).unwrap_or_default()
    }

    /// Counts whole requests; they are the generator's, so this need not be strict.
    fn hear(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        match self.protocol {
            Protocol::Http => self.hear_http(),
            Protocol::Tcp => self.hear_tcp(),
            Protocol::Ws => self.hear_ws(),
        }
    }

    fn hear_http(&mut self) {
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

    fn hear_tcp(&mut self) {
        while self.rest.len() >= MESSAGE_BYTES {
            let message = self.rest.drain(..MESSAGE_BYTES).collect();
            self.to_echo.push_back(message);
            self.whole += 1;
        }
    }

    fn hear_ws(&mut self) {
        if self.upgrade.is_none() {
            let mut opening = Opening::default();
            let fed = opening.feed(&self.rest, &http1::Limits::default()).expect("our own head");
            let Some(taken) = fed else { return };
            self.rest.drain(..taken);
            self.upgrade = Some(opening);
        }
        let bytes = std::mem::take(&mut self.rest);
        let (whole, to_echo) = (&mut self.whole, &mut self.to_echo);
        let mut hear = |event: Event<'_>| {
            if let Event::Message { kind, payload } = event {
                let mut frame = Vec::new();
                send::message(&mut frame, kind, payload, None);
                to_echo.push_back(frame);
                *whole += 1;
            }
        };
        let limits = Limits::default();
        let fed = self.receiver.feed(&bytes, &limits, &mut Scratch::default(), &mut hear);
        fed.expect("our own frames");
    }
}
