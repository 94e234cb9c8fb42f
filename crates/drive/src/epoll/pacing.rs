//! Slow connections of the epoll driver: they read and write a piece at a time, and go on when the
//! next one may pass.

use super::calls::Calls;
use super::{Epoll, live};
use crate::net::{Program, Token};
use crate::pace::{Paces, Waits};

impl<K: Calls> Epoll<K> {
    /// The paces of a new connection of ours; none if it may go as fast as it can.
    pub(super) fn paces(&self, connecting: bool) -> Option<Box<Paces>> {
        (connecting && self.rates.is_slow()).then(|| Box::new(Paces::new(self.rates)))
    }

    /// The number of bytes that a socket may read now. If there are none, it reads on later.
    pub(super) fn may_read(&mut self, token: Token, closing: bool) -> usize {
        let now_ns = self.now_ns;
        let Some(socket) = live(&mut self.sockets, token) else { return 0 };
        let Some(paces) = &mut socket.paces else { return usize::MAX };
        paces.closing |= closing;
        let most = paces.read.most(now_ns);
        if most == 0 {
            self.waiting.add(&mut paces.read, token, Waits::Read);
        }
        most
    }

    pub(super) fn has_read(&mut self, token: Token, bytes: usize) {
        let now_ns = self.now_ns;
        if let Some(paces) = live(&mut self.sockets, token).and_then(|it| it.paces.as_mut()) {
            paces.read.passed(now_ns, bytes);
        }
    }

    /// The number of bytes that a socket may write now. The first byte after a rest may always
    /// leave, so that a request has begun when it is sent.
    pub(super) fn may_write(&mut self, token: Token, is_rested: bool) -> usize {
        let now_ns = self.now_ns;
        let Some(socket) = live(&mut self.sockets, token) else { return 0 };
        let Some(paces) = &socket.paces else { return usize::MAX };
        paces.write.most(now_ns).max(usize::from(is_rested))
    }

    /// Notes what a socket has written; what is `left` follows later.
    pub(super) fn has_written(&mut self, token: Token, bytes: usize, left: bool) {
        let now_ns = self.now_ns;
        let Some(socket) = live(&mut self.sockets, token) else { return };
        let Some(paces) = &mut socket.paces else { return };
        paces.write.passed(now_ns, bytes);
        if left {
            self.waiting.add(&mut paces.write, token, Waits::Write);
        }
    }

    /// Goes on with the connections whose time has come.
    pub(super) fn go_on<P: Program>(&mut self, program: &mut P) {
        while let Some((token, waits)) = self.waiting.pop(self.now_ns) {
            let Some(socket) = live(&mut self.sockets, token) else { continue };
            let key = socket.key;
            let Some(paces) = &mut socket.paces else { continue };
            let closing = paces.closing;
            match waits {
                Waits::Read => {
                    paces.read.goes_on();
                    self.readable(program, token, closing);
                }
                Waits::Write => {
                    paces.write.goes_on();
                    if self.flush(token) {
                        program.handle_drained(self, key, token);
                    }
                }
            }
        }
    }
}
