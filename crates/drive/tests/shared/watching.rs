//! A program whose connections are all watched for the arrival of their bytes
//! ([`Net::watch_arrivals`]): it receives the same.

use trueload_drive::{Conn, ConnectError, Datagrams, Net, PeerClose, Program, Token};

/// When a connection begins to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    AtTheStart,
    /// While a receive without stamps is under way.
    WithItsFirstBytes,
}

/// Passes everything on to another program.
#[derive(Debug)]
pub struct Watching<'a, P> {
    pub program: &'a mut P,
    pub when: When,
}

impl<P> Watching<'_, P> {
    fn watch(&self, net: &mut impl Net, token: Token, now: When) {
        if self.when == now {
            net.watch_arrivals(token);
        }
    }
}

impl<P: Program> Program for Watching<'_, P> {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.program.handle_wake(net);
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        self.watch(net, token, When::AtTheStart);
        self.program.handle_accepted(net, token)
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.watch(net, conn.token, When::AtTheStart);
        self.program.handle_connected(net, conn);
    }

    fn handle_connect_error(&mut self, net: &mut impl Net, conn: Conn, why: ConnectError) {
        self.program.handle_connect_error(net, conn, why);
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], ending: bool) {
        self.watch(net, conn.token, When::WithItsFirstBytes);
        self.program.handle_input(net, conn, bytes, ending);
    }

    fn handle_bound(&mut self, net: &mut impl Net, token: Token) -> u32 {
        self.watch(net, token, When::AtTheStart);
        self.program.handle_bound(net, token)
    }

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, datagrams: Datagrams<'_>) {
        self.watch(net, conn.token, When::WithItsFirstBytes);
        self.program.handle_datagrams(net, conn, datagrams);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.program.handle_drained(net, conn);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.program.handle_end(net, conn, ended);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.program.handle_time(net);
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.program.handle_batch_end(net);
    }

    fn wake_at_ns(&self) -> Option<u64> {
        self.program.wake_at_ns()
    }

    fn is_done(&self) -> bool {
        self.program.is_done()
    }
}
