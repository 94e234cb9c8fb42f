//! A server with known delays: each request that comes gets the delay that the [`Model`] has for its number.
//!
//! It must not know what the generator measures.

use std::collections::VecDeque;

use trueload_sim::peers::{Act, Peers, What};
use trueload_sim::scenario::Accept;

use super::model::Model;

pub const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The server, with all its connections.
#[derive(Debug)]
pub struct Server {
    model: Model,
    /// When the model's time begins.
    zero_ns: u64,
    requests: u64,
    connections: Vec<Connection>,
    /// Requests that were ever in flight on one connection, at most.
    pub in_flight_most: usize,
}

#[derive(Debug, Default)]
struct Connection {
    /// Bytes that have come.
    received: usize,
    /// When each answer leaves that has not.
    answers_ns: VecDeque<u64>,
}

impl Server {
    pub fn new(model: Model, zero_ns: u64) -> Self {
        Server { model, zero_ns, requests: 0, connections: Vec::new(), in_flight_most: 0 }
    }

    /// One request has come; answers on one connection keep their order.
    fn serve(&mut self, on: u32, at_ns: u64, start: u64) -> Act {
        let number = self.requests;
        self.requests += 1;
        let since_zero_ns = at_ns.saturating_sub(self.zero_ns);
        let done_ns = self.zero_ns + self.model.done_ns(number, since_zero_ns);
        let answers_ns = &mut self.connections[on as usize].answers_ns;
        let leaves_ns = answers_ns.back().copied().unwrap_or(0).max(done_ns);
        answers_ns.push_back(leaves_ns);
        while answers_ns.front().is_some_and(|leaves_ns| *leaves_ns <= at_ns) {
            answers_ns.pop_front();
        }
        self.in_flight_most = self.in_flight_most.max(answers_ns.len());
        Act { on, at_ns: leaves_ns, what: What::Send(ANSWER.to_vec(), Some(start)) }
    }
}

impl Peers for Server {
    fn attempt(&mut self, _: u32, _: u32) -> Accept {
        self.connections.push(Connection::default());
        Accept::Yes
    }

    fn connected(&mut self, _: u32, _: u64, _: &mut Vec<Act>) {}

    fn receive(&mut self, on: u32, at_ns: u64, bytes: &[u8], acts: &mut Vec<Act>) {
        let connection = &mut self.connections[on as usize];
        let before = connection.received / REQUEST.len();
        connection.received += bytes.len();
        for number in before..connection.received / REQUEST.len() {
            let act = self.serve(on, at_ns, (number * REQUEST.len()) as u64);
            acts.push(act);
        }
    }

    fn ended(&mut self, _: u32, _: u64, _: &mut Vec<Act>) {}

    fn requests(&self) -> u64 {
        self.requests
    }
}
