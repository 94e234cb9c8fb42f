//! The kernel's state of one connection.

use std::collections::VecDeque;

use trueload_drive::{Conn, ConnectError, Outbox, PeerClose};

use super::secure::Secured;
use crate::scenario::Pace;

/// A connection of one generator.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) key: u32,
    pub(super) open: bool,
    /// The connection attempt is in progress.
    pub(super) connecting: bool,
    pub(super) connected: bool,
    pub(super) refused: Option<ConnectError>,
    /// Bytes received but not read, and the way in which the peer's side ends after them.
    pub(super) inbox: VecDeque<u8>,
    pub(super) end: Option<PeerClose>,
    /// Bytes that the kernel has not accepted.
    pub(super) outbox: Outbox,
    /// Bytes of `outbox` that were copied for this connection; the others are shared by all.
    pub(super) copied: usize,
    /// Bytes of `outbox` that a driver would have handed over as one send that is not complete.
    pub(super) in_flight: usize,
    /// Bytes that the kernel has accepted and the peer has not received.
    pub(super) on_wire: usize,
    /// Outgoing datagrams that are not handed over, and incoming ones that are not read.
    pub(super) datagrams_out: Vec<Vec<u8>>,
    pub(super) datagrams_in: VecDeque<super::datagrams::Datagram>,
    /// The generator's side ends when everything is sent.
    pub(super) ending: bool,
    /// The kernel may have room again.
    pub(super) writable: bool,
    /// The socket is in the kernel's `ready` list.
    pub(super) is_ready: bool,
    /// Whether the program asked for arrival times, and the time of the last arrival.
    pub(super) watched: bool,
    pub(super) arrived_ns: u64,
    /// How slowly the peer reads and writes.
    pub(super) pace: Pace,
    /// What has come to the proxy, until it has opened a tunnel; none without a proxy.
    pub(super) proxy: Option<Vec<u8>>,
    /// The peer's end of TLS.
    pub(super) secured: Option<Secured>,
    pub(super) peer_alive: bool,
    /// No bytes arrive before these times, so that bytes on the wire keep their order.
    pub(super) last_out_ns: u64,
    pub(super) last_in_ns: u64,
    /// Bytes that the generator has sent, and pairs of an offset and the time at which the bytes up
    /// to it were handed over.
    pub(super) sent: u64,
    pub(super) handed: VecDeque<(u64, u64)>,
    /// Bytes that have arrived, and bytes that have been read. For each answer, the offset at which
    /// it ends and the offset at which its request began.
    pub(super) came: u64,
    pub(super) read: u64,
    pub(super) answers: VecDeque<(u64, u64)>,
    /// Right answers that the peer has sent.
    pub(super) answered: u64,
}

impl Socket {
    pub(super) fn conn(&self, index: u32) -> Conn {
        Conn { key: self.key, token: super::token(index) }
    }

    pub(super) fn new(key: u32, now_ns: u64) -> Self {
        Socket {
            key,
            open: true,
            connecting: true,
            connected: false,
            refused: None,
            inbox: VecDeque::new(),
            end: None,
            outbox: Outbox::default(),
            copied: 0,
            in_flight: 0,
            on_wire: 0,
            datagrams_out: Vec::new(),
            datagrams_in: VecDeque::new(),
            ending: false,
            writable: false,
            is_ready: false,
            watched: false,
            arrived_ns: 0,
            pace: Pace::default(),
            proxy: None,
            secured: None,
            peer_alive: false,
            last_out_ns: now_ns,
            last_in_ns: now_ns,
            sent: 0,
            handed: VecDeque::new(),
            came: 0,
            read: 0,
            answers: VecDeque::new(),
            answered: 0,
        }
    }

    /// Whether this socket has an event that the program has not been told of.
    pub(super) fn has_news(&self) -> bool {
        let bytes = !self.inbox.is_empty() || !self.datagrams_in.is_empty();
        let read = bytes || self.end.is_some();
        self.open && (self.connected || self.refused.is_some() || read || self.can_flush())
    }

    fn can_flush(&self) -> bool {
        self.writable && !self.outbox.is_empty()
    }

    /// Whether the kernel accepts bytes. It does not once the program has read everything up to a
    /// reset.
    pub(super) fn takes(&self) -> bool {
        self.open && !(self.end == Some(PeerClose::Reset) && self.inbox.is_empty())
    }

    /// Records that everything sent so far has been handed over at this time.
    pub(super) fn hand_over(&mut self, at_ns: u64) {
        if self.handed.back().is_none_or(|(end, _)| *end < self.sent) {
            self.handed.push_back((self.sent, at_ns));
        }
    }

    /// The time at which the request that began at this offset was handed over. Answers may come in
    /// any order.
    fn handed_ns(&self, start: u64) -> Option<u64> {
        let nth = self.handed.partition_point(|(end, _)| *end <= start);
        self.handed.get(nth).map(|(_, at_ns)| *at_ns)
    }

    /// Accounts for `count` bytes read. Calls `answered` with the hand-over time of each request
    /// whose answer is now complete.
    pub(super) fn read_on(&mut self, count: usize, mut answered: impl FnMut(u64)) {
        self.read += count as u64;
        while let Some((end, start)) = self.answers.front().copied()
            && end <= self.read
        {
            self.answers.pop_front();
            if let Some(handed_ns) = self.handed_ns(start) {
                answered(handed_ns);
            }
        }
    }
}
