//! Receiving bytes: one multishot receive per socket, started again when it has ended.

use io_uring::cqueue::{self, more};
use io_uring::types::RecvMsgOut;
use rustix::io::Errno;

use super::queue::Kernel;
use super::ring::{Handle, Op};
use super::sockets::{Made, Reading};
use super::{Uring, outcome};
use crate::arrivals::stamp_ns;
use crate::net::{Conn, Net, PeerClose, Program, Token};
use crate::pace::Direction;
use crate::socket::OUTBOX_MOST;

/// A peer that sends so much at once is read piece by piece.
const BULK_BYTES: usize = 32 * 1024;
/// Bytes of such a piece, at most.
const PIECE_BYTES: usize = 64 * 1024;

impl<K: Kernel> Uring<K> {
    #[inline]
    pub(super) fn received<P: Program>(
        &mut self,
        program: &mut P,
        ring: usize,
        index: u32,
        entry: &cqueue::Entry,
        at: u16,
    ) {
        let filled = self.rings[ring].buffers.take(entry);
        let goes_on = more(entry.flags());
        let socket = self.sockets.at(index);
        socket.receiving = goes_on;
        let (conn, closed) = (socket.conn(index), socket.closed);
        let followed = socket.latest > at;
        if let Some(filled) = filled {
            if let Some(slow) = &mut self.slow {
                slow.passed(conn.token, Direction::Read, self.now_ns, filled.bytes().len());
            }
            if filled.bytes().len() >= BULK_BYTES && !closed {
                self.note_bulk(index);
            }
            if !closed && !filled.bytes().is_empty() {
                program.handle_input(self, conn, filled.bytes(), followed);
            }
            self.rings[ring].buffers.put_back(filled);
        }
        if goes_on {
            return;
        }
        let outcome = outcome(entry.result());
        if outcome == Err(Errno::NOBUFS) {
            self.rings[ring].buffers.ran_out = true;
        }
        self.receive_ended(program, index, closed, outcome);
    }

    /// Notes that an accepted peer sends much at once.
    #[cold]
    fn note_bulk(&mut self, index: u32) {
        let socket = self.sockets.at(index);
        if socket.made == Made::Accepted {
            socket.made = Made::Bulky;
            self.end_receive(index);
        }
    }

    /// Does the same for a watched socket ([`Net::watch_arrivals`]), whose messages carry their
    /// arrival times.
    pub(super) fn received_stamped<P: Program>(
        &mut self,
        program: &mut P,
        index: u32,
        entry: &cqueue::Entry,
        at: u16,
    ) {
        let goes_on = more(entry.flags());
        let socket = self.sockets.at(index);
        socket.receiving = goes_on;
        let (conn, closed) = (socket.conn(index), socket.closed);
        let followed = socket.latest > at;
        let mut received = outcome(entry.result());
        if let Some(block) = self.arrivals.take(entry) {
            let parsed = RecvMsgOut::parse(block.bytes(), self.arrivals.wanted());
            let bytes = parsed.as_ref().map_or(&[][..], RecvMsgOut::payload_data);
            received = received.map(|_| bytes.len());
            if !closed && !bytes.is_empty() {
                let control = parsed.as_ref().map_or(&[][..], RecvMsgOut::control_data);
                self.arrivals.note(self.clock, self.now_ns, stamp_ns(control));
                program.handle_input(self, conn, bytes, followed);
                self.arrivals.forget_latest();
            }
            self.arrivals.put_back(&block);
        }
        if received == Err(Errno::NOBUFS) {
            self.arrivals.note_shortage();
        }
        if !goes_on {
            self.receive_ended(program, index, closed, received);
        }
    }

    /// Handles the end of a receive, with its last bytes or without any. `closed`: the program had
    /// closed the socket before.
    fn receive_ended<P: Program>(
        &mut self,
        program: &mut P,
        index: u32,
        closed: bool,
        outcome: Result<usize, Errno>,
    ) {
        if closed {
            return self.receive_or_release(index);
        }
        let socket = self.sockets.at(index);
        let ended = match outcome {
            // It comes again with the next receive, when the answers to what came before it have
            // left.
            Ok(0) if socket.reading == Reading::Held => return,
            Ok(0) => socket.failed.unwrap_or(PeerClose::Fin),
            Ok(_) | Err(Errno::CANCELED | Errno::NOBUFS) => return self.receive_or_release(index),
            // After a FIN the peer's reset arrives as EPIPE: the orderly close came first.
            Err(Errno::PIPE) => PeerClose::Fin,
            Err(_) => PeerClose::Reset,
        };
        let conn = socket.conn(index);
        self.end(program, conn, ended);
    }

    fn end<P: Program>(&mut self, program: &mut P, conn: Conn, ended: PeerClose) {
        program.handle_end(self, conn, ended);
        // A program that keeps a half-closed socket still has output to send; it gets no more
        // input.
        if let Some(socket) = self.sockets.live(conn.token) {
            socket.ended = true;
            if socket.nothing_to_send() || ended == PeerClose::Reset {
                self.close(conn.token);
            } else {
                socket.finishing = true;
                self.awaits_send = true;
            }
        }
    }

    /// Handles a socket whose receive has ended: it receives again after the batch, or its place is
    /// freed.
    fn receive_or_release(&mut self, index: u32) {
        if self.sockets.at(index).closed {
            self.release(index);
        } else {
            self.to_receive.push(index);
        }
    }

    pub(super) fn receive_again(&mut self) {
        let mut to_receive = std::mem::take(&mut self.to_receive);
        for index in to_receive.drain(..) {
            if !self.sockets.at(index).may_receive() {
                continue;
            }
            let socket = self.sockets.at(index);
            let most = match &mut self.slow {
                None if socket.made == Made::Bulky => PIECE_BYTES,
                Some(slow) => slow.may_pass(socket.token(index), Direction::Read, self.now_ns),
                None => usize::MAX,
            };
            if most > 0
                && let Some(handle) = &socket.handle
            {
                socket.receiving = true;
                let ring = &mut self.rings[usize::from(socket.ring)];
                if most < usize::MAX {
                    ring.recv_piece(handle, index, most);
                } else if self.arrivals.watches(index) {
                    ring.recv_stamped(handle, index, self.arrivals.wanted());
                } else {
                    ring.recv(handle, index);
                }
            }
        }
        self.to_receive = to_receive;
    }

    pub(super) fn end_receive(&mut self, index: u32) {
        let socket = self.sockets.at(index);
        if socket.receiving {
            let ring = &mut self.rings[usize::from(socket.ring)];
            ring.cancel(Op::Recv, index);
            // Both kinds are cancelled: the receive may have begun before the socket was watched.
            if self.arrivals.watches(index) {
                ring.cancel(Op::RecvStamped, index);
            }
        }
    }

    /// Receives from this socket with arrival times from now on, which needs a descriptor of its
    /// own.
    pub(super) fn watch(&mut self, token: Token) {
        // What waits to be read on purpose arrived at a time that tells nothing.
        if self.slow.is_some() {
            return;
        }
        let Some(socket) = self.sockets.live(token) else { return };
        let Some(fd) = socket.handle.as_ref().and_then(Handle::own) else { return };
        if !self.arrivals.watches(token.index)
            && self.arrivals.watch(&self.rings[0], fd, token.index)
        {
            // The receive in flight begins again, with arrival times.
            self.end_receive(token.index);
        }
    }

    /// Stops reading from a peer that sends requests and takes no answers, and resumes when it
    /// takes them. A peer that we ask is always read. It may answer before it has taken the whole
    /// request, and take no more until its answer is read.
    pub(super) fn set_interest(&mut self, token: Token) {
        let Some(socket) = self.sockets.live(token) else { return };
        let pending = socket.outbox.as_ref().map_or(0, |outbox| outbox.len());
        let takes_nothing = socket.is_accepted() && pending > OUTBOX_MOST;
        if socket.reading == Reading::Held {
            return;
        }
        let reading = match socket.finishing || takes_nothing {
            true => Reading::Paused,
            false => Reading::GoesOn,
        };
        if std::mem::replace(&mut socket.reading, reading) == reading {
            return;
        }
        match reading {
            Reading::GoesOn => self.to_receive.push(token.index),
            _ => self.end_receive(token.index),
        }
    }

    /// Holds reading until everything is sent; false if nothing is to be sent.
    pub(super) fn hold(&mut self, token: Token) -> bool {
        let Some(socket) = self.sockets.live(token).filter(|socket| !socket.nothing_to_send())
        else {
            return false;
        };
        // The end of the send in flight is reported only if bytes queue behind it.
        socket.outbox.get_or_insert_default();
        self.awaits_send = true;
        if std::mem::replace(&mut socket.reading, Reading::Held) == Reading::GoesOn {
            self.end_receive(token.index);
        }
        true
    }
}
