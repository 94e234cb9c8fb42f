//! The sends of the epoll driver: at once as far as the kernel takes it, and the rest later.

use rustix::io::Errno;

use super::calls::Calls;
use super::{Epoll, live};
use crate::net::{Net, PeerClose, Token};
use crate::outbox::Outbox;
use crate::pace::Direction;

impl<K: Calls> Epoll<K> {
    /// Sends what is queued; true if something was queued and all of it is sent now.
    pub(super) fn flush(&mut self, token: Token) -> bool {
        loop {
            let Some(socket) = live(&mut self.sockets, token) else { return false };
            let Some(outbox) = &mut socket.outbox else { return false };
            let (Some(front), Some(fd)) = (outbox.front(), &socket.fd) else { break };
            let (slow, now_ns) = (&mut self.slow, self.now_ns);
            let most = match slow {
                Some(slow) => slow.may_pass(token, Direction::Write, now_ns),
                None => usize::MAX,
            };
            if most == 0 {
                break;
            }
            match self.calls.send(fd, &front[..front.len().min(most)]) {
                Ok(count) => {
                    outbox.advance(count);
                    if let Some(slow) = slow {
                        slow.passed(token, Direction::Write, now_ns, count);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => {
                    self.send_failed(token, errno);
                    return false;
                }
            }
        }
        let Some(socket) = self.live(token) else { return false };
        let drained = socket.outbox.as_ref().is_some_and(|outbox| outbox.is_empty());
        if drained {
            (socket.outbox, socket.held) = (None, false);
            if socket.finishing {
                self.close(token);
                return false;
            }
            self.end_if_asked(token);
        }
        self.set_interest(token);
        drained
    }

    /// Handles a failed send: the next read reports the end, behind the peer's earlier bytes.
    fn send_failed(&mut self, token: Token, errno: Errno) {
        let Some(socket) = self.live(token) else { return };
        (socket.outbox, socket.held) = (None, false);
        if socket.finishing {
            self.close(token);
            return;
        }
        let ended = if errno == Errno::PIPE { PeerClose::Fin } else { PeerClose::Reset };
        socket.failed.get_or_insert(ended);
        self.set_interest(token);
    }

    #[inline]
    pub(super) fn note_sending(&mut self) {
        if self.sending_since_ns.is_none() {
            self.sending_since_ns = Some(self.clock.now_ns());
        }
    }

    /// Sends what the kernel takes and returns the number of bytes; none if the socket has failed.
    #[inline]
    pub(super) fn send_now(&mut self, token: Token, bytes: &[u8]) -> Option<usize> {
        self.note_sending();
        // The first byte after a rest may always leave, so that a request has begun when it is sent.
        let most = match &mut self.slow {
            Some(slow) => slow.most(token, Direction::Write, self.now_ns).max(1),
            None => usize::MAX,
        };
        let socket = live(&mut self.sockets, token)?;
        if socket.failed.is_some() {
            return None;
        }
        if socket.outbox.is_some() || socket.connecting {
            return Some(0);
        }
        let fd = socket.fd.as_ref()?;
        match self.calls.send(fd, &bytes[..bytes.len().min(most)]) {
            Ok(count) => {
                if let Some(slow) = &mut self.slow {
                    slow.passed(token, Direction::Write, self.now_ns, count);
                    if most < bytes.len() {
                        slow.wait(token, Direction::Write);
                    }
                }
                Some(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => Some(0),
            Err(errno) => {
                self.send_failed(token, errno);
                None
            }
        }
    }

    pub(super) fn outbox(&mut self, token: Token) -> Option<&mut Outbox> {
        Some(self.live(token)?.outbox.get_or_insert_default())
    }
}
