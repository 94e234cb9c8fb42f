//! A server with known delays, the network and the clock, played: a generator's [`Net`] in virtual time.
//!
//! Each request that comes to the server gets the delay that the [`Model`] has for its number; what
//! crosses the wire does so as an event with a time. Every send is written down, so that a test can
//! hold it against the schedule. It must not know what the generator measures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use trueload_drive::{ConnectError, HandOver, Net, Program, Remote, ThreadUse, Token};

use crate::model::{Model, ONE_WAY_NS};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// Calls at one moment without the clock going on: more than any test needs.
const AT_ONE_MOMENT_MOST: u32 = 1_000_000;

/// A request left the generator.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at_ns: u64,
    pub slot: u32,
    /// In flight on its connection, this one included.
    pub in_flight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Connected,
    AtServer,
    Answered,
}

#[derive(Debug)]
struct Connection {
    slot: u32,
    in_flight: usize,
    last_answer_ns: u64,
    /// When its last request left.
    left_ns: u64,
    /// The generator asked when its answers arrive.
    watched: bool,
}

/// All of it.
pub struct World {
    model: Model,
    request_len: usize,
    now_ns: u64,
    /// When the model's time begins.
    pub zero_ns: u64,
    /// The generator does not run from here to there, in model time.
    pub generator_stalls: Option<(u64, u64)>,
    /// The kernel works so long on each send.
    pub send_cost_ns: u64,
    /// Until then it works on those it has.
    sending_until_ns: u64,
    /// When it began on the first send since the generator last asked.
    sending_since_ns: Option<u64>,
    /// From when a request left to when its answer was given to the generator, of a depth of one.
    pub served_ns: Vec<u64>,
    /// Two times of each answer on a watched connection: from when the request left to when the answer was there, and how
    /// long the answer waited to be given to the generator.
    pub watched_ns: Vec<(u64, u64)>,
    /// When the answer arrived that the generator is being given.
    arrived_ns: Option<u64>,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, u32, Happening)>>,
    connections: Vec<Connection>,
    at_server: u64,
    pub sent: Vec<Sent>,
    /// When the thread was made prompt or no longer, in model time.
    pub prompt: Vec<(i64, bool)>,
    /// From when until when it was to stay awake, likewise.
    pub awake: Vec<(i64, i64)>,
}

impl World {
    pub fn new(model: Model, request_len: usize) -> Self {
        World {
            model,
            request_len,
            now_ns: 1_000_000_000,
            zero_ns: 0,
            generator_stalls: None,
            send_cost_ns: 0,
            sending_until_ns: 0,
            sending_since_ns: None,
            served_ns: Vec::new(),
            watched_ns: Vec::new(),
            arrived_ns: None,
            order: 0,
            events: BinaryHeap::new(),
            connections: Vec::new(),
            at_server: 0,
            sent: Vec::new(),
            prompt: Vec::new(),
            awake: Vec::new(),
        }
    }

    /// Runs until nothing is left to happen before `until_ns`, or `over` says so.
    pub fn run(&mut self, program: &mut impl Program, until_ns: u64, over: impl Fn() -> bool) {
        program.handle_wake(self);
        program.handle_batch_end(self);
        let (mut moment_ns, mut calls) = (self.now_ns, 0);
        while !program.is_done() && !over() {
            let event_ns = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let next_ns = [event_ns, program.wake_at_ns()].into_iter().flatten().min();
            let Some(next_ns) = next_ns.filter(|at_ns| *at_ns <= until_ns) else { return };
            let sent_ns = std::mem::take(&mut self.sending_until_ns);
            self.now_ns = self.unless_stalled(next_ns.max(self.now_ns).max(sent_ns));
            calls = if self.now_ns == moment_ns { calls + 1 } else { 0 };
            moment_ns = self.now_ns;
            assert!(calls < AT_ONE_MOMENT_MOST, "the clock stands still");
            // As the driver: what is due on sockets first, then time.
            while self.events.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns <= self.now_ns) {
                if let Some(Reverse((at_ns, _, index, happening))) = self.events.pop() {
                    self.take(program, index, happening, at_ns);
                }
            }
            if program.wake_at_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
                program.handle_time(self);
            }
            program.handle_batch_end(self);
        }
    }

    fn since_zero_ns(&self, at_ns: u64) -> i64 {
        at_ns as i64 - self.zero_ns as i64
    }

    fn unless_stalled(&self, at_ns: u64) -> u64 {
        match self.generator_stalls {
            Some((from_ns, to_ns))
                if (self.zero_ns + from_ns..self.zero_ns + to_ns).contains(&at_ns) =>
            {
                self.zero_ns + to_ns
            }
            _ => at_ns,
        }
    }

    fn take(&mut self, program: &mut impl Program, index: u32, happening: Happening, at_ns: u64) {
        let slot = self.connections[index as usize].slot;
        match happening {
            Happening::Connected => program.handle_connected(self, slot, token(index)),
            Happening::AtServer => self.serve(index),
            Happening::Answered => {
                let connection = &mut self.connections[index as usize];
                connection.in_flight -= 1;
                self.served_ns.push(self.now_ns - connection.left_ns);
                if connection.watched {
                    self.arrived_ns = Some(at_ns);
                    self.watched_ns.push((at_ns - connection.left_ns, self.now_ns - at_ns));
                }
                program.handle_input(self, slot, token(index), ANSWER, false);
                self.arrived_ns = None;
            }
        }
    }

    /// One request is at the server; answers on one connection keep their order.
    fn serve(&mut self, index: u32) {
        let number = self.at_server;
        self.at_server += 1;
        let since_zero_ns = self.now_ns.saturating_sub(self.zero_ns);
        let done_ns = self.zero_ns + self.model.done_ns(number, since_zero_ns);
        let connection = &mut self.connections[index as usize];
        connection.last_answer_ns = done_ns.max(connection.last_answer_ns);
        let answer_ns = connection.last_answer_ns + ONE_WAY_NS;
        self.at(answer_ns, index, Happening::Answered);
    }

    fn at(&mut self, at_ns: u64, index: u32, happening: Happening) {
        self.order += 1;
        self.events.push(Reverse((at_ns, self.order, index, happening)));
    }
}

fn token(index: u32) -> Token {
    Token { index, generation: 0 }
}

impl Net for World {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {}

    fn thread_cpu_ns(&self) -> u64 {
        self.now_ns / 4
    }

    /// A quarter of all time on a CPU, and another waiting for one.
    fn thread_use(&self) -> ThreadUse {
        ThreadUse { cpu_ns: self.now_ns / 4, wanted_ns: self.now_ns / 2 }
    }

    fn wake_promptly(&mut self, promptly: bool) {
        self.prompt.push((self.since_zero_ns(self.now_ns), promptly));
    }

    fn stay_awake_until(&mut self, at_ns: u64) {
        self.awake.push((self.since_zero_ns(self.now_ns), self.since_zero_ns(at_ns)));
    }

    fn connect(
        &mut self,
        key: u32,
        _: Remote<'_>,
        _: Option<IpAddr>,
    ) -> Result<Token, ConnectError> {
        let index = self.connections.len() as u32;
        self.connections.push(Connection {
            slot: key,
            in_flight: 0,
            last_answer_ns: 0,
            left_ns: 0,
            watched: false,
        });
        self.at(self.now_ns + 2 * ONE_WAY_NS, index, Happening::Connected);
        Ok(token(index))
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        for _ in 0..bytes.len() / self.request_len {
            let connection = &mut self.connections[token.index as usize];
            connection.in_flight += 1;
            let begins_ns = self.now_ns.max(self.sending_until_ns);
            self.sending_since_ns.get_or_insert(begins_ns);
            let left_ns = begins_ns + self.send_cost_ns;
            (connection.left_ns, self.sending_until_ns) = (left_ns, left_ns);
            let (slot, in_flight) = (connection.slot, connection.in_flight);
            self.sent.push(Sent { at_ns: self.now_ns - self.zero_ns, slot, in_flight });
            self.at(left_ns + ONE_WAY_NS, token.index, Happening::AtServer);
        }
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.send(token, &bytes[range]);
    }

    fn hand_over(&mut self) -> HandOver {
        let ended_ns = self.now_ns.max(self.sending_until_ns);
        HandOver { began_ns: self.sending_since_ns.take().unwrap_or(ended_ns), ended_ns }
    }

    fn watch_arrivals(&mut self, token: Token) {
        self.connections[token.index as usize].watched = true;
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.arrived_ns
    }

    fn end_sending(&mut self, _: Token) {}

    fn close(&mut self, _: Token) {}

    fn finish(&mut self, _: Token) {}
}
