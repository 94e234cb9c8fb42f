//! Datagrams over io_uring: one multishot `recvmsg` per socket, and any number of sends in flight.
//!
//! Unlike a part of a stream, a datagram may overtake another. So none waits for the one before it,
//! and the kernel takes each when it can. Datagram sockets have a table of their own; a mark in
//! their tokens tells them apart from streams.

use std::os::fd::OwnedFd;

use io_uring::cqueue::{self, more};
use io_uring::types::RecvMsgOut;
use rustix::net::SocketFlags;

use super::blocks::{Block, Blocks, DATAGRAMS, Wanted};
use super::queue::Kernel;
use super::ring::Op;
use super::{Uring, outcome};
use crate::Remote;
use crate::arrivals::watch;
use crate::datagram::message::{Ancillary, CONTROL_IN_BYTES, Message, NAME_BYTES, peer};
use crate::datagram::{self, Datagrams};
use crate::datagram_socket::{NotSent, connect, end, ended};
use crate::glance::keep_time;
use crate::net::{Conn, ConnectError, Program, Token};

/// Marks the token of a datagram socket.
const MARK: u32 = 1 << 31;
/// Bytes handed to the kernel that it has not taken yet, over all sockets; beyond them datagrams
/// are dropped. That is twice the most that one batch of an echo server may send.
const IN_FLIGHT_BYTES_MOST: usize = 64 << 20;
/// Send records kept for later sends.
const SPARE_MOST: usize = 1024;
/// A spare buffer larger than this is given back.
const SPARE_BYTES: usize = 16 * 1024;

/// One socket, or a place for one.
#[derive(Debug, Default)]
struct Socket {
    fd: Option<OwnedFd>,
    generation: u32,
    key: u32,
    connected: bool,
    /// The operation that notifies the program of the connection is in flight.
    announced: bool,
    receiving: bool,
    /// Sends in flight.
    sends: u32,
    /// The kernel cannot segment blocks for it.
    one_by_one: bool,
    /// Datagrams that its receive queue had no room for.
    overflowed: u32,
    /// The program has closed it; the place waits for the operations in flight.
    closed: bool,
}

/// A block on its way to the kernel, with everything that its header points to.
#[derive(Debug)]
struct InFlight {
    message: Message,
    block: datagram::Block,
    socket: u32,
}

/// All datagram sockets of a driver.
#[derive(Debug)]
pub(super) struct Sockets {
    sockets: Vec<Socket>,
    free: Vec<u32>,
    /// The sends in flight; a place without one is free.
    sends: Vec<Option<Box<InFlight>>>,
    free_sends: Vec<u32>,
    // In boxes, so that a spare one moves into `sends` and back without a copy.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<InFlight>>,
    in_flight_bytes: usize,
    /// Created for the first socket.
    blocks: Option<Blocks>,
    wanted: Wanted,
    /// Sockets whose receive found no buffer, or was ended by the kernel.
    to_receive: Vec<u32>,
    /// The bound socket that the driver was given, until it runs.
    pub(super) bound: Option<OwnedFd>,
    /// Datagrams dropped for lack of room, or refused by the kernel.
    pub(super) dropped: u64,
    /// Datagrams that a socket's receive queue had no room for.
    pub(super) overflowed: u64,
}

impl Sockets {
    pub(super) fn new(bound: Option<OwnedFd>) -> Self {
        Sockets {
            sockets: Vec::new(),
            free: Vec::new(),
            sends: Vec::new(),
            free_sends: Vec::new(),
            spare: Vec::new(),
            in_flight_bytes: 0,
            blocks: None,
            wanted: Wanted::new(NAME_BYTES, CONTROL_IN_BYTES),
            to_receive: Vec::new(),
            bound,
            dropped: 0,
            overflowed: 0,
        }
    }

    #[inline]
    pub(super) fn has(token: Token) -> bool {
        token.index & MARK != 0
    }

    pub(super) fn sends_in_flight(&self) -> usize {
        self.sends.len() - self.free_sends.len()
    }

    /// The places of all sends in flight.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = u32> {
        let places = self.sends.iter().enumerate();
        places.filter(|(_, in_flight_send)| in_flight_send.is_some()).map(|(place, _)| place as u32)
    }

    fn add(&mut self, fd: OwnedFd, key: u32, connected: bool) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(Socket::default());
            (self.sockets.len() - 1) as u32
        });
        let place = &mut self.sockets[index as usize];
        let generation = place.generation;
        *place = Socket { fd: Some(fd), generation, key, connected, ..Socket::default() };
        index
    }

    fn token(&self, index: u32) -> Token {
        Token { index: index | MARK, generation: self.sockets[index as usize].generation }
    }

    fn conn(&self, index: u32) -> Conn {
        Conn { key: self.sockets[index as usize].key, token: self.token(index) }
    }

    /// The open socket of a token, and its place.
    fn live(&mut self, token: Token) -> Option<(u32, &mut Socket)> {
        let index = token.index & !MARK;
        let socket = self.sockets.get_mut(index as usize)?;
        let open = socket.fd.is_some() && !socket.closed;
        (open && socket.generation == token.generation).then_some((index, socket))
    }

    /// Frees the place of a closed socket once none of its operations is in flight.
    fn release(&mut self, index: u32) {
        let socket = &mut self.sockets[index as usize];
        if socket.closed && !socket.announced && !socket.receiving && socket.sends == 0 {
            let generation = socket.generation.wrapping_add(1);
            *socket = Socket { generation, ..Socket::default() };
            self.free.push(index);
        }
    }

    /// Gives a block a place among the sends in flight; none if too much is on its way.
    fn begin_send(&mut self, socket: u32, block: &Datagrams<'_>) -> Option<u32> {
        if self.in_flight_bytes + block.bytes.len() > IN_FLIGHT_BYTES_MOST {
            self.dropped += block.count() as u64;
            return None;
        }
        let message = Message::about(block, block.bytes.len());
        self.in_flight_bytes += block.bytes.len();
        let in_flight_send = match self.spare.pop() {
            Some(mut spare) => {
                let buffer = std::mem::take(&mut spare.block.bytes);
                *spare = InFlight { message, block: datagram::Block::of(block, buffer), socket };
                spare
            }
            None => {
                let block = datagram::Block::of(block, Vec::new());
                Box::new(InFlight { message, block, socket })
            }
        };
        self.sockets[socket as usize].sends += 1;
        let place = self.free_sends.pop().unwrap_or_else(|| {
            self.sends.push(None);
            (self.sends.len() - 1) as u32
        });
        self.sends[place as usize] = Some(in_flight_send);
        Some(place)
    }

    /// Takes a block out of the sends in flight.
    fn complete_send(&mut self, place: u32) -> Option<Box<InFlight>> {
        let in_flight_send = self.sends.get_mut(place as usize)?.take()?;
        self.free_sends.push(place);
        self.in_flight_bytes -= in_flight_send.block.bytes.len();
        self.sockets[in_flight_send.socket as usize].sends -= 1;
        Some(in_flight_send)
    }

    fn keep_spare(&mut self, mut in_flight_send: Box<InFlight>) {
        if self.spare.len() < SPARE_MOST && in_flight_send.block.bytes.capacity() <= SPARE_BYTES {
            in_flight_send.block.bytes.clear();
            self.spare.push(in_flight_send);
        }
    }
}

impl<K: Kernel> Uring<K> {
    pub(super) fn connect_datagrams(
        &mut self,
        key: u32,
        to: Remote<'_>,
    ) -> Result<Token, ConnectError> {
        let fd = connect(to, SocketFlags::CLOEXEC)?;
        let index = self.add_datagrams(fd, key, true)?;
        // The socket is ready, but the program is notified as for any other socket: with the next
        // batch.
        self.datagrams.sockets[index as usize].announced = true;
        self.rings[0].announce(Op::Ready, index);
        Ok(self.datagrams.token(index))
    }

    fn add_datagrams(
        &mut self,
        fd: OwnedFd,
        key: u32,
        connected: bool,
    ) -> Result<u32, ConnectError> {
        if self.datagrams.blocks.is_none() {
            let blocks = Blocks::register(&self.rings[0], DATAGRAMS);
            self.datagrams.blocks = Some(blocks.map_err(|_| ConnectError::Fds)?);
        }
        let index = self.datagrams.add(fd, key, connected);
        self.datagrams.to_receive.push(index);
        Ok(index)
    }

    /// Opens the bound socket that the driver was given, if any, and notifies the program.
    pub(super) fn bound<P: Program>(&mut self, program: &mut P) -> std::io::Result<()> {
        let Some(fd) = self.datagrams.bound.take() else { return Ok(()) };
        let index = self.add_datagrams(fd, 0, false);
        let index = index.map_err(|_| std::io::Error::other("no buffers for datagrams"))?;
        let token = self.datagrams.token(index);
        let key = program.handle_bound(self, token);
        self.datagrams.sockets[index as usize].key = key;
        self.receive_datagrams_again();
        Ok(())
    }

    pub(super) fn receive_datagrams_again(&mut self) {
        let mut to_receive = std::mem::take(&mut self.datagrams.to_receive);
        for index in to_receive.drain(..) {
            let wanted = self.datagrams.wanted.header();
            let socket = &mut self.datagrams.sockets[index as usize];
            if let Some(fd) = &socket.fd
                && !socket.closed
                && !socket.receiving
            {
                socket.receiving = true;
                self.rings[0].recv_messages(fd, index, wanted);
            }
        }
        self.datagrams.to_receive = to_receive;
    }

    /// Notifies the program that a socket is connected.
    pub(super) fn datagrams_connected<P: Program>(&mut self, program: &mut P, index: u32) {
        let socket = &mut self.datagrams.sockets[index as usize];
        socket.announced = false;
        if socket.closed {
            return self.datagrams.release(index);
        }
        program.handle_connected(self, self.datagrams.conn(index));
    }

    /// Handles a receive that has filled a block or has ended.
    pub(super) fn datagrams_came<P: Program>(
        &mut self,
        program: &mut P,
        index: u32,
        entry: &cqueue::Entry,
    ) {
        let goes_on = more(entry.flags());
        let conn = self.datagrams.conn(index);
        let socket = &mut self.datagrams.sockets[index as usize];
        socket.receiving = goes_on;
        let closed = socket.closed;
        let block = self.datagrams.blocks.as_ref().and_then(|blocks| blocks.take(entry));
        if let Some(block) = block {
            if !closed {
                self.handle_block(program, conn, &block);
            }
            if let Some(blocks) = &mut self.datagrams.blocks {
                blocks.put_back(&block);
            }
        }
        if goes_on {
            return;
        }
        let ended = outcome(entry.result()).err().and_then(ended);
        if let Some(ended) = ended.filter(|_| !closed) {
            end(self, program, conn, ended);
        }
        match self.datagrams.live(conn.token) {
            Some(_) => self.datagrams.to_receive.push(index),
            None => self.datagrams.release(index),
        }
    }

    fn handle_block<P: Program>(&mut self, program: &mut P, conn: Conn, block: &Block) {
        let Ok(message) = RecvMsgOut::parse(block.bytes(), self.datagrams.wanted.header()) else {
            return;
        };
        let ancillary = Ancillary::read(message.control_data());
        let Some((_, socket)) = self.datagrams.live(conn.token) else { return };
        let named = !socket.connected;
        let since = ancillary.overflowed.wrapping_sub(socket.overflowed);
        socket.overflowed = ancillary.overflowed;
        self.datagrams.overflowed += u64::from(since);
        let peer = peer(message.name_data()).filter(|_| named);
        let bytes = message.payload_data();
        let datagrams = ancillary.datagrams(bytes, peer);
        self.arrivals.note(self.clock, self.now_ns, ancillary.stamp_ns);
        program.handle_datagrams(self, conn, datagrams);
        self.arrivals.forget_latest();
        if self.glance.is_due(bytes.len()) {
            keep_time(self, program);
        }
    }

    pub(super) fn send_blocks(&mut self, token: Token, datagrams: Datagrams<'_>) {
        let Some((index, socket)) = self.datagrams.live(token) else { return };
        for bytes in datagrams.blocks(!socket.one_by_one) {
            self.send_block(index, &Datagrams { bytes, ..datagrams });
        }
    }

    fn send_block(&mut self, index: u32, block: &Datagrams<'_>) {
        let Some(place) = self.datagrams.begin_send(index, block) else { return };
        let Sockets { sockets, sends, .. } = &mut *self.datagrams;
        let fd = sockets[index as usize].fd.as_ref();
        if let (Some(fd), Some(in_flight_send)) = (fd, &mut sends[place as usize]) {
            self.fresh_sends += 1;
            // Message and bytes stay on the heap until the completion.
            let InFlight { message, block, .. } = &mut **in_flight_send;
            self.rings[0].send_message(fd, place, message.header(&block.bytes));
        }
    }

    /// Handles the completion of a block's send.
    pub(super) fn datagrams_sent<P: Program>(&mut self, program: &mut P, place: u32, result: i32) {
        let Some(in_flight_send) = self.datagrams.complete_send(place) else { return };
        let index = in_flight_send.socket;
        let Err(errno) = outcome(result) else {
            self.datagrams.keep_spare(in_flight_send);
            return self.datagrams.release(index);
        };
        let block = in_flight_send.block.datagrams();
        let conn = self.datagrams.conn(index);
        let socket = self.datagrams.live(conn.token);
        match (NotSent::of(errno, in_flight_send.message.is_segmented()), socket) {
            (_, None) => self.datagrams.release(index),
            (NotSent::OneByOne, Some((_, socket))) => {
                socket.one_by_one = true;
                self.send_blocks(conn.token, block);
            }
            (NotSent::PeerClose(ended), Some(_)) => {
                self.datagrams.dropped += block.count() as u64;
                end(self, program, conn, ended);
            }
            (NotSent::Later | NotSent::Dropped, Some(_)) => {
                self.datagrams.dropped += block.count() as u64;
            }
        }
    }

    /// Makes the kernel stamp the datagrams of this socket with their arrival times from now on.
    pub(super) fn watch_datagrams(&mut self, token: Token) {
        if let Some((_, Socket { fd: Some(fd), .. })) = self.datagrams.live(token) {
            watch(fd);
        }
    }

    pub(super) fn close_datagrams(&mut self, token: Token) {
        let Some((index, socket)) = self.datagrams.live(token) else { return };
        socket.closed = true;
        if socket.receiving {
            self.rings[0].cancel(Op::Datagrams, index);
        }
        self.datagrams.release(index);
    }
}
