//! Both drivers against the kernel: real sockets on loopback, ended by events, never by time.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use trueload_drive::{
    Address, Coalescing, Conn, ConnectError, Listener, Net, PeerClose, Program, Token, Transport,
};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;
/// An answer that takes longer may have been waited for in vain: a send holds up others for 10 ms at most.
const LATE_NS: u64 = 5_000_000;

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn unix(path: &Path) -> Address {
    Address::Unix(Arc::from(path))
}

/// A folder for socket files, gone with the test.
struct Folder(PathBuf);

impl Folder {
    /// One of its own: the same test of another driver may run at the same time.
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("trueload-drivers-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

on_both_drivers! {
    what_the_kernel_does_not_take_at_once_arrives_later_whole_and_in_order
    what_a_peer_sent_before_its_reset_is_received
    nobody_listening_is_a_refusal
    a_socket_in_the_file_system_is_connected_to_like_any_other
    a_socket_file_that_is_missing_or_left_over_is_a_refusal
    an_accepting_program_echoes_more_than_the_kernel_buffers
    our_side_ends_when_everything_is_sent_and_more_is_still_received
    an_answer_is_waited_for_once
    a_send_that_its_peer_does_not_take_holds_up_no_answer_of_another
    answers_that_may_wait_for_each_other_are_all_received
    a_socket_that_was_used_often_ends_at_once_and_as_told
}

on_both_drivers_watched! {
    what_the_kernel_does_not_take_at_once_arrives_later_whole_and_in_order
    what_a_peer_sent_before_its_reset_is_received
    a_socket_in_the_file_system_is_connected_to_like_any_other
    an_accepting_program_echoes_more_than_the_kernel_buffers
    our_side_ends_when_everything_is_sent_and_more_is_still_received
    an_answer_is_waited_for_once
    a_send_that_its_peer_does_not_take_holds_up_no_answer_of_another
    answers_that_may_wait_for_each_other_are_all_received
    a_socket_that_was_used_often_ends_at_once_and_as_told
}

/// Connects, sends what it has, and writes down what happens until the peer's end.
struct Caller {
    to: Address,
    shared: Arc<[u8]>,
    then: Vec<u8>,
    /// Our side ends behind what it has to send.
    half: bool,
    received: Vec<u8>,
    ended: Option<PeerClose>,
    refused: Option<ConnectError>,
    stale: Option<Token>,
}

impl Caller {
    fn new(to: impl Into<Address>, shared: Vec<u8>, then: Vec<u8>) -> Self {
        let to = to.into();
        let (received, shared) = (Vec::new(), Arc::from(shared));
        let (half, ended, refused, stale) = (false, None, None, None);
        Caller { to, shared, then, half, received, ended, refused, stale }
    }

    fn run(&mut self, kind: Kind) {
        kind.run(None, self);
    }
}

impl Program for Caller {
    fn handle_wake(&mut self, net: &mut impl Net) {
        let connected = net.connect(7, self.to.over(Transport::Stream));
        self.refused = connected.err();
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        assert_eq!(conn.key, 7);
        let shared = Arc::clone(&self.shared);
        net.send_shared(conn.token, &shared, 0..shared.len());
        net.send(conn.token, &self.then);
        if self.half {
            net.end_sending(conn.token);
        }
        self.stale = Some(conn.token);
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, _: Conn, why: ConnectError) {
        self.refused = Some(why);
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, bytes: &[u8], _: bool) {
        self.received.extend_from_slice(bytes);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.ended = Some(ended);
        net.close(conn.token);
        // A token outlives its socket harmlessly.
        net.send(conn.token, b"nobody hears this");
        net.finish(conn.token);
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended.is_some() || self.refused.is_some()
    }
}

/// Asks again when it is answered, over each of its connections, and counts how often it was woken.
struct Rally {
    to: Address,
    coalescing: Coalescing,
    to_ask: usize,
    batches: usize,
    /// When each connection last asked, and how often its answer took longer than a send may hold up others.
    asked_ns: Vec<u64>,
    late: usize,
}

impl Rally {
    fn new(to: Address, callers: usize, coalescing: Coalescing, to_ask: usize) -> Self {
        Rally { to, coalescing, to_ask, batches: 0, asked_ns: vec![0; callers], late: 0 }
    }
}

impl Program for Rally {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.coalesce(self.coalescing);
        for key in 0..self.asked_ns.len() {
            net.connect(key as u32, self.to.over(Transport::Stream)).expect("somebody listens");
        }
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.asked_ns[conn.key as usize] = net.now_ns();
        net.send(conn.token, b"?");
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, _: &[u8], _: bool) {
        let asked_ns = std::mem::replace(&mut self.asked_ns[conn.key as usize], net.now_ns());
        self.late += usize::from(net.now_ns() - asked_ns > LATE_NS);
        self.to_ask = self.to_ask.saturating_sub(1);
        net.send(conn.token, b"?");
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        unreachable!("the peer answers until it is left")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn handle_batch_end(&mut self, _: &mut impl Net) {
        self.batches += 1;
    }

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.to_ask == 0
    }
}

/// Sends much to who takes nothing, and a question to who answers; done when the answer is there.
struct Torn {
    reading_paused: Address,
    other: Address,
    much: Arc<[u8]>,
    first: Option<Token>,
    answered: bool,
}

impl Program for Torn {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.reading_paused.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        match self.first {
            None => {
                assert_eq!(conn.key, 0);
                self.first = Some(conn.token);
                net.connect(1, self.other.over(Transport::Stream)).expect("somebody listens");
            }
            Some(first) => {
                let much = Arc::clone(&self.much);
                net.send_shared(first, &much, 0..much.len());
                net.send(conn.token, b"?");
            }
        }
    }

    fn handle_input(&mut self, _: &mut impl Net, conn: Conn, _: &[u8], _: bool) {
        assert_eq!(conn.key, 1);
        self.answered = true;
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        unreachable!("both peers stay")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.answered
    }
}

/// Asks on one connection after the other, each left in its own way after some answers.
struct Leaver {
    to: Address,
    to_leave: Vec<Leaving>,
    asked: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Close,
    Reset,
    Finish,
}

impl Program for Leaver {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.asked = 1;
        net.send(conn.token, b"?");
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, _: &[u8], _: bool) {
        const ASKED_OF_EACH: usize = 5;
        if self.asked < ASKED_OF_EACH {
            self.asked += 1;
            net.send(conn.token, b"?");
            return;
        }
        match self.to_leave.pop().expect("one more to leave") {
            Leaving::Close => net.close(conn.token),
            Leaving::Reset => net.reset(conn.token),
            Leaving::Finish => net.finish(conn.token),
        }
        if !self.to_leave.is_empty() {
            net.connect(0, self.to.over(Transport::Stream)).expect("somebody listens");
        }
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        unreachable!("the peer answers until it is left")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.to_leave.is_empty()
    }
}

/// Echoes the first `most` bytes of its one connection, then finishes it.
struct Echo {
    most: usize,
    echoed: usize,
    over: bool,
}

impl Program for Echo {
    fn handle_wake(&mut self, _: &mut impl Net) {}

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        3
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        assert_eq!(conn.key, 3);
        let part = bytes.len().min(self.most - self.echoed);
        net.send(conn.token, &bytes[..part]);
        self.echoed += part;
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, _: PeerClose) {
        net.finish(conn.token);
        self.over = true;
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.over
    }
}

fn what_the_kernel_does_not_take_at_once_arrives_later_whole_and_in_order(kind: Kind) {
    let listener = TcpListener::bind(loopback()).expect("a port");
    let to = listener.local_addr().expect("an address");
    let reader = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut received = vec![0; MUCH + 5];
        peer.read_exact(&mut received).expect("everything");
        peer.write_all(b"thanks").expect("an answer");
        received
    });
    let mut caller = Caller::new(to, pattern(MUCH), b"after".to_vec());
    caller.run(kind);
    let received = reader.join().expect("the reader");
    assert!(received[..MUCH] == pattern(MUCH)[..], "the shared bytes are not what was sent");
    assert_eq!(&received[MUCH..], b"after");
    assert_eq!((caller.received.as_slice(), caller.ended), (&b"thanks"[..], Some(PeerClose::Fin)));
}

fn what_a_peer_sent_before_its_reset_is_received(kind: Kind) {
    let listener = TcpListener::bind(loopback()).expect("a port");
    let to = listener.local_addr().expect("an address");
    let peer = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut first = [0; 1];
        peer.read_exact(&mut first).expect("a byte");
        peer.write_all(b"half an answer").expect("an answer");
        // Closing with input unread makes the kernel send a reset.
    });
    let mut caller = Caller::new(to, b"question".to_vec(), Vec::new());
    caller.run(kind);
    peer.join().expect("the peer");
    assert_eq!(caller.received, b"half an answer");
    assert_eq!(caller.ended, Some(PeerClose::Reset));
}

fn nobody_listening_is_a_refusal(kind: Kind) {
    // Its port is taken, so that no other test can listen there.
    let taken = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    taken.bind(&loopback().into()).expect("a port");
    let to = taken.local_addr().ok().and_then(|to| to.as_socket()).expect("an address");
    let mut caller = Caller::new(to, Vec::new(), Vec::new());
    caller.run(kind);
    assert_eq!((caller.refused, caller.ended), (Some(ConnectError::Refused), None));
}

fn a_socket_in_the_file_system_is_connected_to_like_any_other(kind: Kind) {
    let folder = Folder::new();
    let path = folder.0.join("peer.sock");
    let listener = UnixListener::bind(&path).expect("a socket file");
    let peer = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut received = [0; 8];
        peer.read_exact(&mut received).expect("everything");
        peer.write_all(b"thanks").expect("an answer");
        received
    });
    let mut caller = Caller::new(unix(&path), b"question".to_vec(), Vec::new());
    caller.run(kind);
    assert_eq!(&peer.join().expect("the peer"), b"question");
    assert_eq!((caller.received.as_slice(), caller.ended), (&b"thanks"[..], Some(PeerClose::Fin)));
}

fn a_socket_file_that_is_missing_or_left_over_is_a_refusal(kind: Kind) {
    let folder = Folder::new();
    let path = folder.0.join("peer.sock");
    for left_over in [false, true] {
        if left_over {
            drop(UnixListener::bind(&path).expect("a socket file"));
        }
        let mut caller = Caller::new(unix(&path), Vec::new(), Vec::new());
        caller.run(kind);
        assert_eq!(caller.refused, Some(ConnectError::Refused), "left over: {left_over}");
    }
}

fn an_accepting_program_echoes_more_than_the_kernel_buffers(kind: Kind) {
    let listener = Listener::bind(&loopback().into(), false).expect("a port");
    let Address::Ip(to) = *listener.address() else { panic!("no port") };
    let server = thread::spawn(move || {
        kind.run(Some(listener), &mut Echo { most: MUCH, echoed: 0, over: false });
    });
    let mut stream = TcpStream::connect(to).expect("a connection");
    let mut writer = stream.try_clone().expect("a second handle");
    let feeder = thread::spawn(move || writer.write_all(&pattern(MUCH)));
    let mut received = vec![0; MUCH];
    stream.read_exact(&mut received).expect("everything");
    feeder.join().expect("the feeder").expect("all is taken");
    assert!(received == pattern(MUCH), "the echo is not what was sent");
    drop(stream);
    server.join().expect("the server");
}

fn our_side_ends_when_everything_is_sent_and_more_is_still_received(kind: Kind) {
    for much in [0, 7, MUCH] {
        let listener = TcpListener::bind(loopback()).expect("a port");
        let to = listener.local_addr().expect("an address");
        let reader = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let mut received = Vec::new();
            peer.read_to_end(&mut received).expect("everything, to its end");
            peer.write_all(b"thanks").expect("an answer");
            received.len()
        });
        let mut caller = Caller { half: true, ..Caller::new(to, pattern(much), b"after".to_vec()) };
        caller.run(kind);
        assert_eq!(reader.join().expect("the reader"), much + 5);
        assert_eq!(
            (caller.received.as_slice(), caller.ended),
            (&b"thanks"[..], Some(PeerClose::Fin))
        );
    }
}

/// A peer of so many callers, each of which is answered for every byte; ends when they have left.
fn answering(callers: u32) -> (Address, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(loopback()).expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let peer = thread::spawn(move || {
        let serve = |mut stream: TcpStream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(b"!").is_ok() {}
        };
        let accept = |_| listener.accept().expect("a caller").0;
        let streams: Vec<_> = (0..callers).map(accept).collect();
        let served = streams.into_iter().map(|stream| thread::spawn(move || serve(stream)));
        served.collect::<Vec<_>>().into_iter().for_each(|one| one.join().expect("served"));
    });
    (to, peer)
}

fn an_answer_is_waited_for_once(kind: Kind) {
    const ASKED: usize = 100;
    let (to, peer) = answering(1);
    let mut rally = Rally::new(to, 1, Coalescing::default(), ASKED);
    kind.run(None, &mut rally);
    peer.join().expect("the peer");
    // The bell, the connection, and then the answers. Twice as many wakings would be twice for each; a peer that was kept
    // from its CPU for as long as a send may hold up others makes one more.
    let Rally { batches, late, .. } = rally;
    assert!(
        batches - late <= ASKED * 3 / 2,
        "woken {batches} times for {ASKED} answers, {late} late"
    );
}

fn answers_that_may_wait_for_each_other_are_all_received(kind: Kind) {
    const ASKED: usize = 400;
    const FOREVER_US: u32 = 60_000_000;
    let (to, peer) = answering(4);
    let coalescing = Coalescing { events: 4, within_us: FOREVER_US };
    let mut rally = Rally::new(to, 4, coalescing, ASKED);
    kind.run(None, &mut rally);
    peer.join().expect("the peer");
    assert_eq!(rally.to_ask, 0);
    if let Kind::Uring = kind {
        assert!(rally.batches <= ASKED / 3, "woken {} times for {ASKED} answers", rally.batches);
    }
}

fn a_socket_that_was_used_often_ends_at_once_and_as_told(kind: Kind) {
    let listener = TcpListener::bind(loopback()).expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let to_leave = [Leaving::Close, Leaving::Reset, Leaving::Finish].repeat(7);
    let expected: Vec<bool> = to_leave.iter().rev().map(|way| *way == Leaving::Reset).collect();
    let callers = expected.len();
    // One caller after the other: who has not been left yet keeps the next from being answered.
    let peer = thread::spawn(move || {
        let was_reset = |_| {
            let (mut stream, _) = listener.accept().expect("a caller");
            // Never as long where it works: without it a socket that is not left would be waited for without end.
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            let mut byte = [0];
            loop {
                match stream.read(&mut byte) {
                    Ok(0) => return false,
                    Ok(_) => stream.write_all(b"!").expect("an answer"),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
                    Err(error) => panic!("the caller neither asks nor leaves: {error}"),
                }
            }
        };
        (0..callers).map(was_reset).collect::<Vec<bool>>()
    });
    kind.run(None, &mut Leaver { to, to_leave, asked: 0 });
    assert_eq!(peer.join().expect("the peer"), expected);
}

fn a_send_that_its_peer_does_not_take_holds_up_no_answer_of_another(kind: Kind) {
    let reading_paused = TcpListener::bind(loopback()).expect("a listener");
    let (other, peer) = answering(1);
    let mut torn = Torn {
        reading_paused: reading_paused.local_addr().expect("its address").into(),
        other,
        much: Arc::from(pattern(MUCH)),
        first: None,
        answered: false,
    };
    kind.run(None, &mut torn);
    assert!(torn.answered);
    peer.join().expect("the peer");
}

#[test]
fn a_socket_file_that_is_taken_is_an_error_and_one_that_is_left_over_is_replaced() {
    let folder = Folder::new();
    let address = unix(&folder.0.join("our.sock"));
    let first = Listener::bind(&address, false).expect("a socket file");
    assert!(Listener::bind(&address, false).is_err());
    drop(first);
    assert!(Listener::bind(&address, false).is_ok());
    let file = unix(&folder.0.join("file"));
    std::fs::write(folder.0.join("file"), "not a socket").expect("a file");
    assert!(Listener::bind(&file, false).is_err());
    assert!(folder.0.join("file").exists());
}

#[test]
fn a_port_that_is_taken_is_an_error_unless_it_is_shared() {
    let first = Listener::bind(&loopback().into(), true).expect("a port");
    assert!(Listener::bind(first.address(), false).is_err());
    assert!(Listener::bind(first.address(), true).is_ok());
}
