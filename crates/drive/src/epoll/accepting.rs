//! Accepts connections for the epoll driver.

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::calls::Calls;
use super::{Epoll, LISTENER, readable};
use crate::net::Program;
use crate::socket::ACCEPT_PAUSE_NS;

/// Connections accepted before other sockets have their turn.
const ACCEPTS_PER_TURN: usize = 64;

impl<K: Calls> Epoll<K> {
    pub(super) fn accept<P: Program>(&mut self, program: &mut P) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.listener else { return };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(listener, flags) {
                Ok(fd) => {
                    let Ok(token) = self.add(fd, 0, false) else { continue };
                    let key = program.handle_accepted(self, token);
                    if let Some(socket) = self.live(token) {
                        socket.key = key;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // The listener is level-triggered, so a waiting connection would make the loop
                    // spin: pause it.
                    let _ = epoll::delete(&self.epoll, listener);
                    self.accept_again_ns = Some(self.now_ns + ACCEPT_PAUSE_NS);
                    return;
                }
                Err(_) => {}
            }
        }
    }

    pub(super) fn listen_again(&mut self) {
        if self.accept_again_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.accept_again_ns = None;
            if let Some(listener) = &self.listener {
                let _ = self.calls.watch(&self.epoll, listener, readable(LISTENER));
            }
        }
    }
}
