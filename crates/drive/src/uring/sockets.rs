//! The table of sockets: who uses which place, and what of each is in flight.

use io_uring::cqueue;
use rustix::io::Errno;

use crate::net::{Ended, Token};
use crate::outbox::{Outbox, Segment};

use super::ring::{Handle, Op};

/// One socket, or a place for one.
#[derive(Debug, Default)]
pub(super) struct Socket {
    /// None for a free place.
    pub(super) handle: Option<Handle>,
    pub(super) generation: u32,
    pub(super) key: u32,
    /// Where the last of its receptions stands in the batch.
    pub(super) latest: u32,
    /// The ring that carries it.
    pub(super) ring: u8,
    /// A connect is in flight.
    pub(super) connecting: bool,
    /// A receive is in flight.
    pub(super) hearing: bool,
    /// The send in flight.
    pub(super) flight: Option<Segment>,
    /// What is to be sent after it.
    pub(super) outbox: Option<Box<Outbox>>,
    /// Our side ends when everything is sent.
    pub(super) ending: bool,
    /// To be closed when everything is sent.
    pub(super) finishing: bool,
    /// The peer takes nothing, so nothing is read from it.
    pub(super) deaf: bool,
    /// The peer's side is over.
    pub(super) ended: bool,
    /// The program has closed it; the place waits for what is in flight.
    pub(super) closed: bool,
    pub(super) failed: Option<Ended>,
}

impl Socket {
    #[inline]
    pub(super) fn token(&self, index: u32) -> Token {
        Token { index, generation: self.generation }
    }

    #[inline]
    pub(super) fn nothing_to_send(&self) -> bool {
        self.flight.is_none() && self.outbox.is_none()
    }

    pub(super) fn may_hear(&self) -> bool {
        !(self.closed || self.deaf || self.hearing || self.connecting || self.ended)
    }
}

/// All sockets of a driver.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    sockets: Vec<Socket>,
    free: Vec<u32>,
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

    /// What the socket of a token has still to send, in flight or behind it.
    pub(super) fn unsent_bytes(&self, token: Token) -> usize {
        let socket = self.sockets.get(token.index as usize);
        let socket = socket.filter(|socket| socket.generation == token.generation);
        socket.map_or(0, |socket| {
            let in_flight = socket.flight.as_ref().map_or(0, |segment| segment.bytes().len());
            in_flight + socket.outbox.as_ref().map_or(0, |outbox| outbox.len())
        })
    }

    /// Sockets with a send in flight, and their rings.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (u32, u8)> {
        let sockets = self.sockets.iter().enumerate();
        let flying = sockets.filter(|(_, socket)| socket.flight.is_some());
        flying.map(|(index, socket)| (index as u32, socket.ring))
    }

    /// Frees the place of a closed socket, once nothing is in flight; its descriptor is to be closed.
    pub(super) fn release(&mut self, index: u32) -> Option<(u8, Handle)> {
        let socket = &mut self.sockets[index as usize];
        let flies = socket.hearing || socket.connecting || socket.flight.is_some();
        if !socket.closed || flies {
            return None;
        }
        let handle = socket.handle.take()?;
        let ring = socket.ring;
        let generation = socket.generation.wrapping_add(1);
        *socket = Socket { generation, ..Socket::default() };
        self.free.push(index);
        Some((ring, handle))
    }

    /// Notes where in a batch the last news from each peer stands: bytes or its end.
    #[inline]
    pub(super) fn note_latest(&mut self, entry: &cqueue::Entry, at: u32) {
        let (op, index) = Op::of(entry.user_data());
        let no_news = [Errno::NOBUFS, Errno::CANCELED].map(|errno| -errno.raw_os_error());
        if op == Op::Recv && !no_news.contains(&entry.result()) {
            self.sockets[index as usize].latest = at;
        }
    }
}
