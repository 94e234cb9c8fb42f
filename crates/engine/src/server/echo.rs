//! The reference server of TCP echo: every byte comes back, in order; a half-close is answered with
//! one.
//!
//! A peer that takes nothing back is not read from any more once the driver's outbox is full.
//! Nothing else is kept for it.

use trueload_drive::{Conn, Net, PeerClose, Program, Token};

use super::watch::{Overdue, Watch};

/// TCP echo on one thread.
#[derive(Debug)]
pub struct Echo {
    watch: Watch,
}

impl Echo {
    /// Creates a server without connections.
    pub fn new(watch: Watch) -> Self {
        Echo { watch }
    }
}

impl Program for Echo {
    fn handle_wake(&mut self, _: &mut impl Net) {
        self.watch.wake(|| None);
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        self.watch.admit(net, token);
        token.index
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        self.watch.heard(net.now_ns(), conn.token);
        self.watch.seen.bytes_in += bytes.len() as u64;
        self.watch.seen.bytes_out += bytes.len() as u64;
        net.send(conn.token, bytes);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        self.watch.closed(conn.token);
        self.watch.finish(net, conn.token);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.watch.heard(net.now_ns(), conn.token);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        for (token, why) in self.watch.overdue(net.now_ns()) {
            // Otherwise it has ended, and its client does not read the last of it.
            if why == Overdue::Idle {
                self.watch.seen.timed_out += 1;
                self.watch.closed(token);
            }
            net.close(token);
        }
        self.watch.drop_past(net, |_| None);
        self.watch.look(net.now_ns());
    }

    fn wake_at_ns(&self) -> Option<u64> {
        Some(self.watch.next_ns())
    }

    fn is_done(&self) -> bool {
        self.watch.is_finished()
    }
}
