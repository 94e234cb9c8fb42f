//! What a program asks of a connection that is still being set up is done once it is, whichever the driver.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use socket2::{Domain, Socket, Type};
use trueload_drive::{Address, Conn, ConnectError, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;

/// What is asked before the connection is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    EndSending,
    Finish,
}

/// Sends on a connection that is being set up, and again when it is there; receives until its end.
struct Early {
    to: Address,
    early: Arc<[u8]>,
    then: Then,
    late: &'static [u8],
    received: Vec<u8>,
    drained: usize,
    look_ns: u64,
    peer_received: Arc<AtomicBool>,
    ended: Option<PeerClose>,
    /// Reports that it has asked.
    asked: Option<mpsc::Sender<()>>,
}

impl Program for Early {
    fn handle_wake(&mut self, net: &mut impl Net) {
        let token = net.connect(7, self.to.over(Transport::Stream)).expect("somebody listens");
        let half = self.early.len() / 2;
        net.send(token, &self.early[..half]);
        net.send_shared(token, &self.early, half..self.early.len());
        assert_eq!(net.queued_bytes(token), self.early.len());
        match self.then {
            Then::Nothing => {}
            Then::EndSending => net.end_sending(token),
            Then::Finish => net.finish(token),
        }
        if let Some(asked) = &self.asked {
            asked.send(()).expect("somebody waits");
        }
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.send(conn.token, self.late);
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, _: Conn, why: ConnectError) {
        unreachable!("{why:?}")
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, bytes: &[u8], _: bool) {
        self.received.extend_from_slice(bytes);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        assert_eq!(net.queued_bytes(conn.token), 0);
        self.drained += 1;
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.ended = Some(ended);
        net.close(conn.token);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.look_ns = net.now_ns() + 1_000_000;
    }

    fn wake_at_ns(&self) -> Option<u64> {
        (self.then == Then::Finish).then_some(self.look_ns)
    }

    fn is_done(&self) -> bool {
        // A connection that is finished receives nothing: its peer reports.
        let all_received = self.then == Then::Finish && self.peer_received.load(Ordering::Acquire);
        self.ended.is_some() || all_received
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn early(to: impl Into<Address>, len: usize, then: Then, late: &'static [u8]) -> Early {
    let (to, early) = (to.into(), Arc::from(pattern(len)));
    let (received, peer_received) = (Vec::new(), Arc::default());
    let (drained, look_ns, ended, asked) = (0, 0, None, None);
    Early { to, early, then, late, received, drained, look_ns, peer_received, ended, asked }
}

fn what_is_sent_before_leaves_first_and_whole(kind: Kind) {
    for len in [2, 1000, MUCH] {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("a listener");
        let to = listener.local_addr().expect("its address");
        let peer = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut received = vec![0; len + 4];
            peer.read_exact(&mut received).expect("everything");
            peer.write_all(b"thanks").expect("an answer");
            received
        });
        let mut early = early(to, len, Then::Nothing, b"late");
        kind.run(None, &mut early);
        let received = peer.join().expect("the peer");
        assert!(received[..len] == pattern(len), "{len} bytes");
        assert_eq!(&received[len..], b"late");
        assert_eq!(
            (early.received.as_slice(), early.ended),
            (&b"thanks"[..], Some(PeerClose::Fin))
        );
        assert!(early.drained >= 1, "it had to wait, and has left");
    }
}

fn our_side_ends_behind_what_was_sent_before(kind: Kind) {
    for len in [0, 1000, MUCH] {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("a listener");
        let to = listener.local_addr().expect("its address");
        let peer = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("everything, to its end");
            peer.write_all(b"thanks").expect("an answer");
            received
        });
        let mut early = early(to, len, Then::EndSending, b"");
        kind.run(None, &mut early);
        assert!(peer.join().expect("the peer") == pattern(len), "{len} bytes");
        assert_eq!(
            (early.received.as_slice(), early.ended),
            (&b"thanks"[..], Some(PeerClose::Fin))
        );
    }
}

fn a_socket_file_takes_what_was_sent_before(kind: Kind) {
    let path = std::env::temp_dir().join(format!("trueload-early-{kind:?}-{}", std::process::id()));
    let listener = UnixListener::bind(&path).expect("a socket file");
    let peer = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        peer.read_to_end(&mut received).expect("everything, to its end");
        received
    });
    let to = Address::Unix(Arc::from(path.as_path()));
    let mut early = early(to, 1000, Then::EndSending, b"");
    kind.run(None, &mut early);
    std::fs::remove_file(&path).expect("it was there");
    assert!(peer.join().expect("the peer") == pattern(1000));
    assert_eq!(early.ended, Some(PeerClose::Fin));
}

fn a_connection_that_is_finished_before_it_is_there_closes_behind_what_was_sent(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address");
    let mut early = early(to, 1000, Then::Finish, b"");
    let peer_received = Arc::clone(&early.peer_received);
    let peer = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        peer.read_to_end(&mut received).expect("everything, to its end");
        peer_received.store(true, Ordering::Release);
        received
    });
    kind.run(None, &mut early);
    assert!(peer.join().expect("the peer") == pattern(1000));
}

/// A peer whose queue is full, so that a connection is being set up until its caller asks again, a second later.
fn our_side_ends_behind_a_connection_that_takes_its_time(kind: Kind) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
    listener.listen(0).expect("it listens");
    let to = listener.local_addr().ok().and_then(|to| to.as_socket()).expect("an address");
    let first = TcpStream::connect(to).expect("one finds room");
    let (asked, was_asked) = mpsc::channel();
    let peer = thread::spawn(move || {
        was_asked.recv().expect("it asks");
        drop(listener.accept().expect("the first"));
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        peer.read_to_end(&mut received).expect("everything, to its end");
        received
    });
    let mut early = Early { asked: Some(asked), ..early(to, 0, Then::EndSending, b"") };
    kind.run(None, &mut early);
    assert_eq!(peer.join().expect("the peer"), b"");
    assert_eq!(early.ended, Some(PeerClose::Fin));
    drop(first);
}

on_both_drivers! {
    our_side_ends_behind_a_connection_that_takes_its_time
    what_is_sent_before_leaves_first_and_whole
    our_side_ends_behind_what_was_sent_before
    a_socket_file_takes_what_was_sent_before
    a_connection_that_is_finished_before_it_is_there_closes_behind_what_was_sent
}
