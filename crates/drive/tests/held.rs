//! A program may hold reading until its output has left, and a peer that takes nothing is not read
//! without end. This holds for each driver.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trueload_drive::{Address, Conn, Listener, Net, PeerClose, Program, Token};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;

fn listener() -> (Listener, SocketAddr) {
    let at = Address::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = Listener::bind(&at, false).expect("a listener");
    let Address::Ip(to) = *listener.address() else { panic!("it is one") };
    (listener, to)
}

/// Answers its first input with much, and holds reading until that has left.
#[derive(Default)]
struct Holder {
    held: Option<mpsc::Sender<()>>,
    holds: bool,
    drained: usize,
    /// Bytes that came after the hold, before it was over and afterwards.
    before: usize,
    after: usize,
    ended: bool,
}

impl Program for Holder {
    fn handle_wake(&mut self, _: &mut impl Net) {}

    fn handle_accepted(&mut self, _: &mut impl Net, token: Token) -> u32 {
        token.index
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        if let Some(held) = self.held.take() {
            assert!(!net.hold_reading(conn.token), "nothing is to be sent");
            net.send(conn.token, &vec![7; MUCH]);
            self.holds = net.hold_reading(conn.token);
            assert!(self.holds);
            held.send(()).expect("the peer waits");
        } else if self.holds {
            self.before += bytes.len();
        } else {
            self.after += bytes.len();
        }
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        self.drained += 1;
        self.holds = net.hold_reading(conn.token);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        assert!(!self.holds, "the end comes behind what was held");
        self.ended = true;
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended
    }
}

fn what_comes_while_reading_is_held_comes_afterwards_the_end_too(kind: Kind) {
    let (listener, to) = listener();
    let (held, is_held) = mpsc::channel();
    let peer = thread::spawn(move || {
        let mut stream = TcpStream::connect(to).expect("a connection");
        stream.write_all(b"a").expect("sent");
        is_held.recv().expect("it holds");
        stream.write_all(b"more").expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        thread::sleep(Duration::from_millis(50));
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("all of it");
        bytes.len()
    });
    let mut holder = Holder { held: Some(held), ..Holder::default() };
    kind.run(Some(listener), &mut holder);
    assert_eq!(peer.join().expect("the peer"), MUCH);
    assert_eq!((holder.before, holder.after), (0, 4));
    assert!(holder.drained > 0);
}

/// Sends back what comes.
#[derive(Default)]
struct Echo {
    unsent_most: usize,
    ended: bool,
}

impl Program for Echo {
    fn handle_wake(&mut self, _: &mut impl Net) {}

    fn handle_accepted(&mut self, _: &mut impl Net, token: Token) -> u32 {
        token.index
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        net.send(conn.token, bytes);
        self.unsent_most = self.unsent_most.max(net.unsent_bytes(conn.token));
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        self.ended = true;
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended
    }
}

fn a_peer_that_takes_nothing_back_is_not_read_without_end(kind: Kind) {
    let (listener, to) = listener();
    let peer = thread::spawn(move || {
        let mut stream = TcpStream::connect(to).expect("a connection");
        stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a time-out");
        let (chunk, mut sent) = (vec![7; 64 * 1024], 0);
        while sent < 2 * MUCH {
            match stream.write(&chunk) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        sent
    });
    let mut echo = Echo::default();
    kind.run(Some(listener), &mut echo);
    let sent = peer.join().expect("the peer");
    assert!(sent < 2 * MUCH, "all of {sent} bytes were read");
    // What may wait, one read more, and for io_uring what its buffers hold at first.
    assert!(echo.unsent_most <= 1024 * 1024, "{} bytes wait", echo.unsent_most);
}

on_both_drivers! {
    what_comes_while_reading_is_held_comes_afterwards_the_end_too
    a_peer_that_takes_nothing_back_is_not_read_without_end
}
