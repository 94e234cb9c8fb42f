//! The connections to the clients: what the server has sent, what the kernel holds, and whether the
//! server reads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use trueload_drive::{ConnectError, Net, Outbox, Remote, Token};

/// Both drivers stop reading from a peer that leaves more than this.
const OUTBOX_MOST: usize = 256 * 1024;

#[derive(Debug, Default)]
struct Link {
    /// What the kernel takes before its peer reads, and what it has.
    room: usize,
    kernel: Vec<u8>,
    outbox: Outbox,
    held: bool,
    /// Closed when everything is sent, or closed.
    finishing: bool,
    closed: bool,
}

impl Link {
    /// Moves to the kernel what it has room for.
    fn flush(&mut self) {
        while let Some(front) = self.outbox.front() {
            let len = front.len().min(self.room.saturating_sub(self.kernel.len()));
            if len == 0 {
                return;
            }
            self.kernel.extend_from_slice(&front[..len]);
            self.outbox.advance(len);
        }
    }
}

/// All connections, and the clock.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) now_ns: u64,
    links: Vec<Link>,
}

impl Links {
    pub(super) fn open(&mut self, room: usize) -> Token {
        self.links.push(Link { room, ..Link::default() });
        super::token(self.links.len() - 1)
    }

    pub(super) fn is_open(&self, index: usize) -> bool {
        !self.links[index].closed && !self.links[index].finishing
    }

    /// Whether the server reads from a connection now.
    pub(super) fn is_read(&self, index: usize) -> bool {
        let link = &self.links[index];
        self.is_open(index) && !link.held && link.outbox.len() <= OUTBOX_MOST
    }

    pub(super) fn end(&mut self, index: usize) {
        self.links[index].finishing = true;
    }

    /// What a client reads; and whether the last of what waited has left with it.
    pub(super) fn read(&mut self, index: usize, most: usize) -> (Vec<u8>, bool) {
        let link = &mut self.links[index];
        let waited = !link.outbox.is_empty();
        let bytes: Vec<u8> = link.kernel.drain(..most.min(link.kernel.len())).collect();
        link.flush();
        let drained = waited && link.outbox.is_empty();
        if drained {
            link.held = false;
            link.closed |= link.finishing;
        }
        (bytes, drained && !link.closed)
    }

    fn at(&mut self, token: Token) -> &mut Link {
        &mut self.links[token.index as usize]
    }
}

impl Net for Links {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {}

    fn unix_time(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }

    fn connect(&mut self, _: u32, _: Remote<'_>) -> Result<Token, ConnectError> {
        Err(ConnectError::Refused)
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        let link = self.at(token);
        if !link.closed {
            link.outbox.push(bytes);
            link.flush();
        }
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        let link = self.at(token);
        if !link.closed {
            link.outbox.push_shared(bytes, range);
            link.flush();
        }
    }

    fn end_sending(&mut self, _: Token) {}

    fn unsent_bytes(&self, token: Token) -> usize {
        self.links[token.index as usize].outbox.len()
    }

    fn hold_reading(&mut self, token: Token) -> bool {
        let link = self.at(token);
        link.held = !link.outbox.is_empty();
        link.held
    }

    fn close(&mut self, token: Token) {
        *self.at(token) = Link { closed: true, ..Link::default() };
    }

    fn finish(&mut self, token: Token) {
        let link = self.at(token);
        link.finishing = true;
        link.closed |= link.outbox.is_empty();
    }
}
