//! However much lies ready to be read, what is due does not wait for all of it, whichever the driver.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use trueload_drive::{Address, Conn, Listener, Net, PeerClose, Program, Token};

use crate::shared::Kind;

const PEERS: usize = 16;
/// What the kernel holds for each, at most.
const EACH: usize = 1024 * 1024;
/// So much is received between two looks at the clock, and one read more.
const MOST: usize = (256 + 128) * 1024;

/// Something is due at all times; it counts how much it receives in between.
#[derive(Default)]
struct Clerk {
    since: usize,
    most: usize,
    received: usize,
    ended: usize,
}

impl Program for Clerk {
    fn handle_wake(&mut self, _: &mut impl Net) {}

    fn handle_accepted(&mut self, _: &mut impl Net, token: Token) -> u32 {
        token.index
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, bytes: &[u8], _: bool) {
        self.received += bytes.len();
        self.since += bytes.len();
        self.most = self.most.max(self.since);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        self.ended += 1;
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {
        self.since = 0;
    }

    fn wake_at_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn is_done(&self) -> bool {
        self.ended == PEERS
    }
}

/// Sends as much as the kernel holds, and ends.
fn flood(to: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_nonblocking(true).expect("a socket that does not block");
    let (chunk, mut sent) = (vec![7; 16 * 1024], 0);
    while sent < EACH {
        match stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

fn what_is_due_does_not_wait_for_all_that_lies_ready(kind: Kind) {
    let at = Address::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = Listener::bind(&at, false).expect("a listener");
    let Address::Ip(to) = *listener.address() else { panic!("it is one") };
    let sent: usize = (0..PEERS).map(|_| flood(to)).sum();
    let mut clerk = Clerk::default();
    kind.run(Some(listener), &mut clerk);
    assert_eq!(clerk.received, sent);
    assert!(sent > 4 * MOST, "the kernel holds only {sent} bytes");
    assert!(clerk.most <= MOST, "{} bytes at once", clerk.most);
}

on_both_drivers! { what_is_due_does_not_wait_for_all_that_lies_ready }
on_both_drivers_watched! { what_is_due_does_not_wait_for_all_that_lies_ready }
