//! More sockets than the process may have files open: alone in its process, whose limit it lowers.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trueload_drive::{
    Address, Clock, Conn, ConnectError, Listener, Net, PeerClose, Program, Settings, Token,
    Transport, Uring,
};

/// Files that the process may have open: both ends run in it, and each leaves 256 to others.
const FILES: u64 = 400;
/// Connections: each end has as many sockets.
const CONNECTIONS: u32 = 1500;

/// On one in this many connections, the crowd ends its side as soon as it has sent its byte.
const HALVES_EVERY: u32 = 3;

/// Connects to `to` again and again, sends a byte on each connection, and receives it back.
struct Crowd {
    to: SocketAddr,
    asked: u32,
    received: Vec<u32>,
    refused: Vec<ConnectError>,
}

impl Crowd {
    fn connect(&mut self, net: &mut impl Net) {
        if self.asked < CONNECTIONS {
            let key = self.asked;
            self.asked += 1;
            self.received.push(0);
            if let Err(why) = net.connect(key, Address::Ip(self.to).over(Transport::Stream)) {
                self.refused.push(why);
            }
        }
    }
}

impl Program for Crowd {
    fn handle_wake(&mut self, net: &mut impl Net) {
        (0..16).for_each(|_| self.connect(net));
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to a crowd")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.send(conn.token, &conn.key.to_ne_bytes());
        if conn.key.is_multiple_of(HALVES_EVERY) {
            net.end_sending(conn.token);
        }
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, _: Conn, why: ConnectError) {
        self.refused.push(why);
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        assert_eq!(bytes, conn.key.to_ne_bytes(), "the bytes of another connection");
        self.received[conn.key as usize] += 1;
        self.connect(net);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        let answered = ended == PeerClose::Fin && conn.key.is_multiple_of(HALVES_EVERY);
        assert!(answered, "the server ended {conn:?}: {ended:?}");
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.received.iter().sum::<u32>() + self.refused.len() as u32 == CONNECTIONS
    }
}

/// Echoes on every connection until its bell rings.
#[derive(Default)]
struct Echo {
    accepted: u32,
    over: bool,
}

impl Program for Echo {
    fn handle_wake(&mut self, _: &mut impl Net) {
        self.over = true;
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        self.accepted += 1;
        self.accepted
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        net.send(conn.token, bytes);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        net.finish(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.over
    }
}

#[test]
fn more_connections_than_open_files_are_each_served_once_on_both_ends() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), ..limit }).expect("a limit");
    let listener = Listener::bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), false);
    let listener = listener.expect("a port");
    let Address::Ip(to) = *listener.address() else { panic!("no port") };
    let ring = |listener| {
        let made = Uring::new(Clock::start(), listener, &Settings::default());
        made.map_err(|(error, _)| error).expect("a ring")
    };
    let mut server = ring(Some(listener));
    let wake_fd = server.waker();
    let server = thread::spawn(move || {
        let mut echo = Echo::default();
        server.run(&mut echo).expect("the server runs");
        echo.accepted
    });
    let mut client = ring(None);
    client.waker().wake();
    let mut crowd = Crowd { to, asked: 0, received: Vec::new(), refused: Vec::new() };
    client.run(&mut crowd).expect("the crowd runs");
    wake_fd.wake();
    assert_eq!(server.join().expect("the server"), CONNECTIONS);
    assert_eq!(crowd.refused, []);
    assert!(crowd.received.iter().all(|times| *times == 1));
}
