//! The reference server of UDP echo: every datagram comes back to its sender, with its boundaries.
//!
//! Datagrams that come together leave together. One that finds no room in the kernel is lost, as
//! any may be on its way. It is counted as received and not as answered.

use trueload_drive::{Conn, Datagrams, Net, PeerClose, Program};

use super::watch::Watch;

/// UDP echo on one thread.
#[derive(Debug)]
pub struct UdpEcho {
    watch: Watch,
    received: u64,
}

impl UdpEcho {
    /// Creates a server that has received nothing yet.
    pub fn new(watch: Watch) -> Self {
        UdpEcho { watch, received: 0 }
    }

    /// Updates the counts: the driver knows what it dropped.
    fn count(&mut self, net: &impl Net) {
        self.watch.seen.requests = self.received;
        self.watch.seen.responses = self.received.saturating_sub(net.dropped_datagrams());
    }
}

impl Program for UdpEcho {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.count(net);
        self.watch.wake(|| None);
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {}

    #[inline]
    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, datagrams: Datagrams<'_>) {
        self.received += datagrams.count() as u64;
        self.watch.seen.bytes_in += datagrams.bytes.len() as u64;
        self.watch.seen.bytes_out += datagrams.bytes.len() as u64;
        net.send_datagrams(conn.token, datagrams);
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {}

    fn handle_time(&mut self, net: &mut impl Net) {
        self.count(net);
        self.watch.look(net.now_ns());
    }

    fn wake_at_ns(&self) -> Option<u64> {
        Some(self.watch.next_ns())
    }

    fn is_done(&self) -> bool {
        self.watch.is_finished()
    }
}
