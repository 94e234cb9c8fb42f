//! The table of sockets: which socket uses which place, and which of its operations are in flight.

use std::num::NonZeroU32;

use io_uring::cqueue;
use rustix::io::Errno;

use crate::net::{Conn, PeerClose, Token};
use crate::outbox::{Outbox, Segment};

use super::ring::{Handle, Op};

/// The place of the bytes of a send in flight. A send mostly ends before the next batch. So there
/// are far fewer of them than sockets, and they are not kept with the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight(NonZeroU32);

/// The origin of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Made {
    /// We connected it.
    #[default]
    Connected,
    Connecting,
    /// Its peer decides how much is to be sent.
    Accepted,
    /// Accepted, and its peer sends much at once: it is read piece by piece. One multishot receive
    /// took 4 MiB before it could be stopped.
    Bulky,
}

/// Whether bytes of a socket are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reading {
    #[default]
    GoesOn,
    /// The peer takes nothing, so nothing is read from it.
    Paused,
    /// Nothing is read until everything is sent.
    Held,
}

/// One socket, or a place for one.
#[derive(Debug, Default)]
pub(super) struct Socket {
    /// None for a free place.
    pub(super) handle: Option<Handle>,
    pub(super) generation: u32,
    pub(super) key: u32,
    /// The position in the batch of the last news from its peer.
    pub(super) latest: u16,
    /// The ring that carries it.
    pub(super) ring: u8,
    pub(super) sent_before: bool,
    pub(super) made: Made,
    pub(super) receiving: bool,
    /// The send in flight: its place among all sends.
    pub(super) in_flight_send: Option<InFlight>,
    /// What is to be sent after it.
    pub(super) outbox: Option<Box<Outbox>>,
    /// Our side is to be ended when everything is sent.
    pub(super) ending: bool,
    /// To be closed when everything is sent.
    pub(super) finishing: bool,
    pub(super) reading: Reading,
    /// The peer's side has ended.
    pub(super) ended: bool,
    /// The program has closed it; the place waits for the operations in flight.
    pub(super) closed: bool,
    pub(super) failed: Option<PeerClose>,
}

impl InFlight {
    /// Places count from one, so that `None` takes no memory.
    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Socket {
    #[inline]
    pub(super) fn token(&self, index: u32) -> Token {
        Token { index, generation: self.generation }
    }

    #[inline]
    pub(super) fn conn(&self, index: u32) -> Conn {
        Conn { key: self.key, token: self.token(index) }
    }

    #[inline]
    pub(super) fn nothing_to_send(&self) -> bool {
        self.in_flight_send.is_none() && self.outbox.is_none()
    }

    #[inline]
    pub(super) fn is_connecting(&self) -> bool {
        self.made == Made::Connecting
    }

    /// Ends a hold: everything is sent, or will never be.
    pub(super) fn release_reading(&mut self) {
        if self.reading == Reading::Held {
            self.reading = Reading::Paused;
        }
    }

    #[inline]
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.made, Made::Accepted | Made::Bulky)
    }

    pub(super) fn may_receive(&self) -> bool {
        !(self.closed
            || self.reading != Reading::GoesOn
            || self.receiving
            || self.is_connecting()
            || self.ended)
    }
}

/// All sockets of a driver.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    sockets: Vec<Socket>,
    free: Vec<u32>,
    /// The sends in flight; a place without one is free.
    sends: Vec<Option<Segment>>,
    free_sends: Vec<InFlight>,
}

impl Sockets {
    /// Gives a socket a place.
    pub(super) fn add(&mut self, socket: Socket) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(Socket::default());
            (self.sockets.len() - 1) as u32
        });
        let place = &mut self.sockets[index as usize];
        *place = Socket { generation: place.generation, ..socket };
        index
    }

    /// The socket at a place, open or not.
    #[inline]
    pub(super) fn at(&mut self, index: u32) -> &mut Socket {
        &mut self.sockets[index as usize]
    }

    /// The socket of a token, while it is open.
    #[inline]
    pub(super) fn live(&mut self, token: Token) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(token.index as usize)?;
        let open = socket.handle.is_some() && !socket.closed;
        (open && socket.generation == token.generation).then_some(socket)
    }

    /// Bytes that the socket of a token has still to send, in flight or behind it.
    pub(super) fn unsent_bytes(&self, token: Token) -> usize {
        let in_flight_send = self.of(token).and_then(|socket| socket.in_flight_send);
        let in_flight =
            in_flight_send.and_then(|in_flight_send| self.sends[in_flight_send.place()].as_ref());
        in_flight.map_or(0, |segment| segment.bytes().len()) + self.queued_bytes(token)
    }

    /// Bytes that the socket of a token has to send behind those in flight.
    #[inline]
    pub(super) fn queued_bytes(&self, token: Token) -> usize {
        let outbox = self.of(token).and_then(|socket| socket.outbox.as_ref());
        outbox.map_or(0, |outbox| outbox.len())
    }

    /// The socket of a token, unless another uses its place by now.
    #[inline]
    fn of(&self, token: Token) -> Option<&Socket> {
        let socket = self.sockets.get(token.index as usize);
        socket.filter(|socket| socket.generation == token.generation)
    }

    #[inline]
    pub(super) fn begin_send(&mut self, index: u32, segment: Segment) {
        let in_flight_send = self.free_sends.pop().unwrap_or_else(|| {
            self.sends.push(None);
            // There are at most as many sends as sockets, each of which has a 32-bit index.
            InFlight(NonZeroU32::new(self.sends.len() as u32).unwrap_or(NonZeroU32::MAX))
        });
        self.sends[in_flight_send.place()] = Some(segment);
        self.sockets[index as usize].in_flight_send = Some(in_flight_send);
    }

    /// Takes the segment that was on its way; its socket has none in flight from now on.
    #[inline]
    pub(super) fn complete_send(&mut self, index: u32) -> Option<Segment> {
        let in_flight_send = self.sockets[index as usize].in_flight_send.take()?;
        self.free_sends.push(in_flight_send);
        self.sends[in_flight_send.place()].take()
    }

    #[inline]
    pub(super) fn sends_in_flight(&self) -> usize {
        self.sends.len() - self.free_sends.len()
    }

    /// Sockets with a send in flight, and their rings.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (u32, u8)> {
        let sockets = self.sockets.iter().enumerate();
        let busy = sockets.filter(|(_, socket)| socket.in_flight_send.is_some());
        busy.map(|(index, socket)| (index as u32, socket.ring))
    }

    /// Frees the place of a closed socket, once nothing is in flight; returns its descriptor to be
    /// closed.
    pub(super) fn release(&mut self, index: u32) -> Option<(u8, Handle)> {
        let socket = &mut self.sockets[index as usize];
        let is_busy = socket.receiving || socket.is_connecting() || socket.in_flight_send.is_some();
        if !socket.closed || is_busy {
            return None;
        }
        let handle = socket.handle.take()?;
        let ring = socket.ring;
        let generation = socket.generation.wrapping_add(1);
        *socket = Socket { generation, ..Socket::default() };
        self.free.push(index);
        Some((ring, handle))
    }

    /// Notes the position in a batch of the last news from each peer: bytes or its end.
    #[inline]
    pub(super) fn note_latest(&mut self, entry: &cqueue::Entry, at: u16) {
        let (op, index) = Op::of(entry.user_data());
        let no_news = [Errno::NOBUFS, Errno::CANCELED].map(|errno| -errno.raw_os_error());
        if matches!(op, Op::Recv | Op::RecvStamped) && !no_news.contains(&entry.result()) {
            self.sockets[index as usize].latest = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 100,000 connections must take at most 50 MB (docs/performance.md).
    #[test]
    fn a_socket_takes_little_memory() {
        assert!(size_of::<Socket>() <= 40, "a socket takes {} bytes", size_of::<Socket>());
    }

    #[test]
    fn each_socket_gets_its_own_segment_back() {
        let mut sockets = Sockets::default();
        let segment = |byte| Segment::Copied(vec![byte], 0);
        let bytes = |segment: Option<Segment>| segment.map(|segment| segment.bytes().to_vec());
        for _ in 0..3 {
            sockets.add(Socket::default());
        }
        for index in [2, 0, 1] {
            sockets.begin_send(index, segment(index as u8));
        }
        assert_eq!(bytes(sockets.complete_send(0)), Some(vec![0]));
        assert_eq!(bytes(sockets.complete_send(0)), None);
        sockets.begin_send(0, segment(9));
        let completed = [0, 1, 2].map(|index| bytes(sockets.complete_send(index)));
        assert_eq!(completed, [Some(vec![9]), Some(vec![1]), Some(vec![2])]);
        assert_eq!(sockets.sends.len(), 3, "places are used again");
    }
}
