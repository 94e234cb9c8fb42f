//! What has its time is woken for then, whatever else is waited for.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use trueload_drive::{Address, Conn, ConnectError, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// Asks each ms on its own clock, whatever is answered, and keeps how late it was woken for it.
struct Metronome {
    to: Address,
    token: Option<Token>,
    next_ns: u64,
    late_ns: Vec<u64>,
}

impl Program for Metronome {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        (self.token, self.next_ns) = (Some(conn.token), net.now_ns());
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, _: Conn, why: ConnectError) {
        unreachable!("{why:?}")
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {
        unreachable!("nobody answers")
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        unreachable!("the peer stays")
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.late_ns.push(net.now_ns() - self.next_ns);
        self.next_ns = net.now_ns() + 1_000_000;
        net.send(self.token.expect("it is connected"), b"?");
    }

    fn wake_at_ns(&self) -> Option<u64> {
        self.token.map(|_| self.next_ns)
    }

    fn is_done(&self) -> bool {
        self.late_ns.len() == 100
    }
}

fn a_send_that_is_not_answered_delays_nothing(kind: Kind) {
    let reading_paused =
        TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a listener");
    let to = reading_paused.local_addr().expect("its address").into();
    let mut metronome = Metronome { to, token: None, next_ns: 0, late_ns: Vec::new() };
    kind.run(None, &mut metronome);
    // All but the first, which has no send before it. A busy machine delays many of them; a wait for answers delays all.
    let late_ns = &metronome.late_ns[1..];
    assert!(late_ns.iter().any(|late_ns| *late_ns < 5_000_000), "{late_ns:?}");
}

on_both_drivers! { a_send_that_is_not_answered_delays_nothing }
