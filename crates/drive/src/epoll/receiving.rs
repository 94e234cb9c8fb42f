//! The reads of the epoll driver: until the socket is empty, but not for ever.

use rustix::io::Errno;

use super::calls::Calls;
use super::{Epoll, READS_PER_TURN, live};
use crate::arrivals;
use crate::glance::keep_time;
use crate::net::{Conn, Net, PeerClose, Program, Token};
use crate::pace::Direction;

impl<K: Calls> Epoll<K> {
    pub(super) fn readable<P: Program>(&mut self, program: &mut P, token: Token, closing: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reads = 0;
        loop {
            let most = self.may_read(token, closing).min(buffer.len());
            if most == 0 || !self.read(program, token, closing, &mut buffer[..most]) {
                break;
            }
            reads += 1;
            if reads == READS_PER_TURN {
                self.arm_again(token);
                break;
            }
        }
        self.buffer = buffer;
    }

    /// The number of bytes that a socket may read now. If there are none, it reads on later.
    #[inline]
    fn may_read(&mut self, token: Token, closing: bool) -> usize {
        let Some(slow) = &mut self.slow else { return usize::MAX };
        if let Some(socket) = live(&mut self.sockets, token) {
            socket.closing |= closing;
        }
        slow.may_pass(token, Direction::Read, self.now_ns)
    }

    /// Reads once; true if there may be more to read now.
    #[inline]
    fn read<P: Program>(
        &mut self,
        program: &mut P,
        token: Token,
        closing: bool,
        buffer: &mut [u8],
    ) -> bool {
        let Some(socket) = live(&mut self.sockets, token) else { return false };
        let conn = Conn { key: socket.key, token };
        let Some(fd) = &socket.fd else { return false };
        let received = if socket.watched {
            self.receive_stamped(token, buffer)
        } else {
            self.calls.receive(fd, buffer)
        };
        let ended = match received {
            // An earlier send may have failed.
            Ok(0) => self.sockets[token.index as usize].failed.unwrap_or(PeerClose::Fin),
            Ok(count) => {
                if let Some(slow) = &mut self.slow {
                    slow.passed(token, Direction::Read, self.now_ns, count);
                }
                program.handle_input(self, conn, &buffer[..count], closing);
                self.arrived_ns = None;
                if self.glance.is_due(count) {
                    keep_time(self, program);
                }
                // A short read means that the socket is empty; the next read reports a pending
                // close.
                return (count == buffer.len() || closing) && !self.is_paused(token);
            }
            Err(Errno::AGAIN) => return false,
            Err(Errno::INTR) => return true,
            // After a FIN the peer's reset arrives as EPIPE: the orderly close came first.
            Err(Errno::PIPE) => PeerClose::Fin,
            Err(_) => PeerClose::Reset,
        };
        self.end(program, conn, ended);
        false
    }

    /// Whether the program's answers to what was read keep it from reading more.
    fn is_paused(&mut self, token: Token) -> bool {
        self.live(token).is_some_and(|socket| socket.reading_paused)
    }

    /// Receives, and notes when the bytes arrived.
    #[cold]
    fn receive_stamped(&mut self, token: Token, buffer: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.sockets[token.index as usize].fd.as_ref().ok_or(Errno::BADF)?;
        let (count, stamp_ns) = arrivals::receive(fd, buffer)?;
        let (clock, now_ns) = (self.clock, self.now_ns);
        let arrived_ns = stamp_ns.and_then(|ns| self.stamps.arrived_ns(clock, now_ns, ns));
        self.arrived_ns = arrived_ns.filter(|_| count > 0);
        Ok(count)
    }

    fn end<P: Program>(&mut self, program: &mut P, conn: Conn, ended: PeerClose) {
        program.handle_end(self, conn, ended);
        // A program that keeps a half-closed socket still has output to send; it gets no more
        // input.
        if let Some(socket) = self.live(conn.token) {
            if socket.nothing_to_send() || ended == PeerClose::Reset {
                self.close(conn.token);
            } else {
                socket.finishing = true;
                self.set_interest(conn.token);
            }
        }
    }
}
