//! A driver that writes down what it is asked, and does nothing else: the test is the kernel, the
//! peers and the clock.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use trueload_drive::{ConnectError, Datagrams, Net, Remote, Token, Transport};

use super::token;

/// An attempt to connect; the attempts are the connections, in their order.
#[derive(Debug)]
pub struct Attempt {
    pub at_ns: u64,
    pub key: u32,
    pub transport: Transport,
}

/// The bytes of one call, or one datagram.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at_ns: u64,
    pub connection: u32,
    pub bytes: Vec<u8>,
}

impl Sent {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The driver. Connections are told apart by the index of their token.
#[derive(Debug, Default)]
pub struct Wire {
    pub now_ns: u64,
    /// The time that passes until the clock is read again.
    pub step_ns: u64,
    /// The wall clock when this clock began.
    pub epoch: Duration,
    pub attempts: Vec<Attempt>,
    /// Why no connection can be opened from now on.
    pub refusal: Option<ConnectError>,
    pub sent: Vec<Sent>,
    /// Calls that sent datagrams.
    pub blocks: usize,
    /// Bytes that were shared and not copied.
    pub shared_bytes: usize,
    /// A connection of which the kernel takes nothing.
    pub stuck: Option<u32>,
    pub dropped: u64,
    pub overflowed: u64,
    pub watched: Vec<u32>,
    /// When the kernel received the input that is handled.
    pub arrived_ns: Option<u64>,
    /// The connections whose sending side has ended, those that were closed, and those of the
    /// closed ones that were reset.
    pub ended: Vec<u32>,
    /// The connections that are not read until their output has left.
    pub held: Vec<u32>,
    pub closed: Vec<u32>,
    pub reset: Vec<u32>,
}

impl Wire {
    /// Returns what was sent since the last time.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the bytes that were sent and not taken.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_of(|_| true).concat()
    }

    /// Returns the bytes that were sent over a connection and not taken.
    pub fn bytes_to(&self, connection: u32) -> Vec<u8> {
        self.bytes_of(|to| to == connection).concat()
    }

    fn bytes_of(&self, chosen: impl Fn(u32) -> bool) -> Vec<&[u8]> {
        let chosen = self.sent.iter().filter(|sent| chosen(sent.connection));
        chosen.map(|sent| &sent.bytes[..]).collect()
    }

    fn note(&mut self, token: Token, bytes: &[u8], transport: Transport) {
        let connection = token.index;
        let over = self.closed.contains(&connection) || self.ended.contains(&connection);
        assert!(!over, "nothing is sent after the end");
        let attempt = self.attempts.get(connection as usize);
        assert!(attempt.is_none_or(|attempt| attempt.transport == transport));
        self.sent.push(Sent { at_ns: self.now_ns, connection, bytes: bytes.to_vec() });
    }
}

impl Net for Wire {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {
        self.now_ns += self.step_ns;
    }

    fn unix_time(&self) -> Duration {
        self.epoch + Duration::from_nanos(self.now_ns)
    }

    fn connect(&mut self, key: u32, to: Remote<'_>) -> Result<Token, ConnectError> {
        self.attempts.push(Attempt { at_ns: self.now_ns, key, transport: to.transport });
        match self.refusal {
            Some(why) => Err(why),
            None => Ok(token(self.attempts.len() as u32 - 1)),
        }
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        self.note(token, bytes, Transport::Stream);
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.shared_bytes += range.len();
        self.send(token, &bytes[range]);
    }

    fn send_datagrams(&mut self, token: Token, datagrams: Datagrams<'_>) {
        self.blocks += 1;
        datagrams.iter().for_each(|bytes| self.note(token, bytes, Transport::Datagram));
    }

    fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn overflowed_datagrams(&self) -> u64 {
        self.overflowed
    }

    fn watch_arrivals(&mut self, token: Token) {
        self.watched.push(token.index);
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.arrived_ns
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        let stuck = self.stuck == Some(token.index);
        if stuck { self.bytes_to(token.index).len() } else { 0 }
    }

    fn hold_reading(&mut self, token: Token) -> bool {
        let holds = self.unsent_bytes(token) > 0;
        if holds && !self.held.contains(&token.index) {
            self.held.push(token.index);
        }
        holds
    }

    fn end_sending(&mut self, token: Token) {
        self.ended.push(token.index);
    }

    fn close(&mut self, token: Token) {
        self.closed.push(token.index);
    }

    fn reset(&mut self, token: Token) {
        self.reset.push(token.index);
        self.close(token);
    }

    fn finish(&mut self, token: Token) {
        self.close(token);
    }
}
