//! When bytes arrived is known of connections that are watched, however late they are read, whichever the driver.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::thread;

use trueload_drive::{Address, Clock, Conn, Datagrams, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// Answers that are enough.
const ROUNDS: usize = 20;
/// After so many, none of those that are wanted has come. (The kernel begins to stamp some time after it is asked to, as
/// it rewrites its own code for that.)
const ROUNDS_MOST: usize = 100_000;

/// When a connection begins to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Never,
    WhenAsked,
    WhenConnected,
    AfterAnAnswer,
}

/// The peer's clock before and after its send.
type Sent = (u64, u64);

/// Asks; is held up until the peer has answered; then reads the answer and asks again.
struct HeldUp {
    to: Address,
    watched: Watched,
    /// It asks until so many answers have told when they arrived.
    wants_stamps: bool,
    sent: mpsc::Receiver<Sent>,
    /// The peer's send, and what the driver says about it.
    known: Vec<(Sent, Option<u64>)>,
    received: Vec<u8>,
    answer_bytes: usize,
    /// When the answer was sent whose bytes come now.
    sending: Sent,
    outside: bool,
    ended: Option<PeerClose>,
}

impl HeldUp {
    fn ask(&mut self, net: &mut impl Net, token: Token) {
        net.send(token, b"?");
        net.hand_over();
        // Nothing is read meanwhile: the kernel has the answer long before the program.
        self.sending = self.sent.recv().expect("the peer answers");
    }
}

impl Program for HeldUp {
    fn handle_wake(&mut self, net: &mut impl Net) {
        let token = net.connect(7, self.to.over(Transport::Stream)).expect("somebody listens");
        if self.watched == Watched::WhenAsked {
            net.watch_arrivals(token);
        }
        assert_eq!(net.arrived_ns(), None);
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        if self.watched == Watched::WhenConnected {
            net.watch_arrivals(conn.token);
        }
        self.ask(net, conn.token);
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        self.received.extend_from_slice(bytes);
        self.known.push((self.sending, net.arrived_ns()));
        if !self.received.len().is_multiple_of(self.answer_bytes) {
            return;
        }
        let rounds = self.received.len() / self.answer_bytes;
        if self.watched == Watched::AfterAnAnswer && rounds == 1 {
            net.watch_arrivals(conn.token);
            net.watch_arrivals(conn.token);
        }
        let stamped = self.known.iter().filter(|(_, arrived_ns)| arrived_ns.is_some()).count();
        let enough = if self.wants_stamps { stamped >= ROUNDS } else { rounds >= ROUNDS };
        if enough || rounds == ROUNDS_MOST {
            net.end_sending(conn.token);
        } else {
            self.ask(net, conn.token);
        }
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.outside |= net.arrived_ns().is_some();
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.outside |= net.arrived_ns().is_some();
        self.ended = Some(ended);
        net.close(conn.token);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended.is_some()
    }
}

/// Answers until nothing more is asked, and reports when; then it closes.
fn answer(
    mut stream: impl Read + Write,
    clock: Clock,
    answer_bytes: usize,
    sent: &mpsc::Sender<Sent>,
) {
    let answer = pattern(answer_bytes);
    while stream.read_exact(&mut [0]).is_ok() {
        let before_ns = clock.now_ns();
        stream.write_all(&answer).expect("it is taken");
        sent.send((before_ns, clock.now_ns())).expect("somebody waits");
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// What a program receives that is held up while its peer answers.
fn held_up(kind: Kind, watched: Watched, answer_bytes: usize) -> HeldUp {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address");
    let clock = Clock::start();
    let (report, sent) = mpsc::channel();
    let peer = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        answer(stream, clock, answer_bytes, &report);
    });
    let mut program = HeldUp {
        to: Address::Ip(to),
        watched,
        wants_stamps: watched != Watched::Never,
        sent,
        known: Vec::new(),
        received: Vec::new(),
        answer_bytes,
        sending: (0, 0),
        outside: false,
        ended: None,
    };
    kind.run_on(clock, None, &mut program);
    peer.join().expect("the peer");
    program
}

fn bytes_are_known_to_have_arrived_when_their_peer_sent_them(kind: Kind) {
    for watched in [Watched::WhenAsked, Watched::WhenConnected, Watched::AfterAnAnswer] {
        for answer_bytes in [1, 700, 20_000] {
            let program = held_up(kind, watched, answer_bytes);
            let answer = pattern(answer_bytes);
            assert!(
                program.received.chunks(answer_bytes).all(|received| received == answer),
                "{watched:?}"
            );
            assert_eq!(program.ended, Some(PeerClose::Fin));
            assert!(!program.outside, "it is known only while an input is handled");
            let mut known = program.known.into_iter();
            if watched == Watched::AfterAnAnswer {
                let first = known.by_ref().next().expect("an answer");
                assert_eq!(first.1, None, "not watched yet");
            }
            let known: Vec<_> = known.collect();
            for ((before_ns, after_ns), arrived_ns) in &known {
                let Some(arrived_ns) = arrived_ns else { continue };
                let within = before_ns <= arrived_ns && arrived_ns <= after_ns;
                assert!(
                    within,
                    "sent {before_ns} to {after_ns}, arrived {arrived_ns}, {watched:?}"
                );
            }
            let stamped = known.iter().filter(|(_, arrived_ns)| arrived_ns.is_some()).count();
            assert!(stamped >= ROUNDS, "{stamped} of {} {watched:?}", known.len());
        }
    }
}

fn of_a_connection_that_is_not_watched_nothing_is_known(kind: Kind) {
    let program = held_up(kind, Watched::Never, 100);
    assert!(program.known.iter().all(|(_, arrived_ns)| arrived_ns.is_none()));
    assert_eq!(program.received.len(), 100 * ROUNDS);
}

fn of_a_socket_file_nothing_is_known_and_all_is_received(kind: Kind) {
    let path =
        std::env::temp_dir().join(format!("trueload-stamps-{kind:?}-{}", std::process::id()));
    let listener = UnixListener::bind(&path).expect("a socket file");
    let clock = Clock::start();
    let (report, sent) = mpsc::channel();
    let peer = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        answer(stream, clock, 100, &report);
    });
    let mut program = HeldUp {
        to: Address::Unix(Arc::from(path.as_path())),
        watched: Watched::WhenConnected,
        wants_stamps: false,
        sent,
        known: Vec::new(),
        received: Vec::new(),
        answer_bytes: 100,
        sending: (0, 0),
        outside: false,
        ended: None,
    };
    kind.run_on(clock, None, &mut program);
    std::fs::remove_file(&path).expect("it was there");
    peer.join().expect("the peer");
    assert_eq!((program.received.len(), program.ended), (100 * ROUNDS, Some(PeerClose::Fin)));
    assert!(program.known.iter().all(|(_, arrived_ns)| arrived_ns.is_none()));
}

/// Asks on many connections at once, and is held up until all of them have been answered; again, until the kernel has told
/// the arrival of all answers of a round. It begins to stamp some time after it was asked.
struct Crowd {
    to: Address,
    tokens: Vec<Token>,
    answered: mpsc::Receiver<()>,
    received: Vec<usize>,
    /// Answers of this round whose arrival is not known.
    unknown: usize,
    rounds: usize,
    done: bool,
}

impl Crowd {
    /// Connections: more than a ring has buffers for stamped receives at first. Two tests at a time open both ends of
    /// each, and stay below the default limit of 1,024 open files.
    const CALLERS: usize = 200;
    /// Some seconds' worth; a kernel that never stamps fails the test then.
    const ROUNDS_MOST: usize = 2_000;

    fn ask(&self, net: &mut impl Net) {
        self.tokens.iter().for_each(|token| net.send(*token, b"?"));
        net.hand_over();
        self.answered.recv().expect("the peer answers");
    }
}

impl Program for Crowd {
    fn handle_wake(&mut self, net: &mut impl Net) {
        for key in 0..Self::CALLERS {
            net.connect(key as u32, self.to.over(Transport::Stream)).expect("somebody listens");
        }
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.watch_arrivals(conn.token);
        self.tokens.push(conn.token);
        if self.tokens.len() == Self::CALLERS {
            self.ask(net);
        }
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        self.received[conn.key as usize] += bytes.len();
        self.unknown += usize::from(net.arrived_ns().is_none());
        if self.received.iter().sum::<usize>() < (self.rounds + 1) * Self::CALLERS {
            return;
        }
        self.rounds += 1;
        self.done = self.unknown == 0 || self.rounds == Self::ROUNDS_MOST;
        if !self.done {
            self.unknown = 0;
            self.ask(net);
        }
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, ended: PeerClose) {
        unreachable!("the peer stays: {ended:?}")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn more_answers_at_once_than_there_are_buffers_are_all_received(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = Address::Ip(listener.local_addr().expect("its address"));
    let (report, answered) = mpsc::channel();
    let peer = thread::spawn(move || {
        let accept = |_| listener.accept().expect("a connection").0;
        let mut streams: Vec<_> = (0..Crowd::CALLERS).map(accept).collect();
        loop {
            for stream in &mut streams {
                // The program has left.
                if stream.read_exact(&mut [0]).is_err() {
                    return;
                }
                stream.write_all(b"!").expect("it is taken");
            }
            report.send(()).expect("somebody waits");
        }
    });
    let (tokens, received) = (Vec::new(), vec![0; Crowd::CALLERS]);
    let mut crowd = Crowd { to, tokens, answered, received, unknown: 0, rounds: 0, done: false };
    kind.run(None, &mut crowd);
    peer.join().expect("the peer");
    assert_eq!(crowd.received, vec![crowd.rounds; Crowd::CALLERS]);
    assert_eq!(crowd.unknown, 0, "of the answers of round {}", crowd.rounds);
}

/// Asks over a socket of datagrams, and is held up until the peer has sent several at once.
struct Block {
    to: Address,
    watched: bool,
    sent: mpsc::Receiver<Sent>,
    sending: Sent,
    /// For each block: when the peer sent it, when the driver says it arrived, and its number of datagrams.
    known: Vec<(Sent, Option<u64>, usize)>,
    outside: bool,
    done: bool,
}

impl Block {
    /// Datagrams that are sent at once.
    const DATAGRAMS: usize = 3;
    const BYTES: usize = 100;

    fn ask(&mut self, net: &mut impl Net, token: Token) {
        net.send_datagrams(token, Datagrams::one(b"?"));
        net.hand_over();
        self.sending = self.sent.recv().expect("the peer answers");
    }

    fn stamped(&self) -> usize {
        self.known.iter().filter(|(_, arrived_ns, _)| arrived_ns.is_some()).count()
    }
}

impl Program for Block {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(7, self.to.over(Transport::Datagram)).expect("it connects to anything");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        if self.watched {
            net.watch_arrivals(conn.token);
        }
        self.ask(net, conn.token);
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {
        unreachable!("these are no streams")
    }

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, came: Datagrams<'_>) {
        self.known.push((self.sending, net.arrived_ns(), came.count()));
        let received: usize = self.known.iter().map(|(_, _, count)| count).sum();
        if !received.is_multiple_of(Self::DATAGRAMS) {
            return;
        }
        let rounds = received / Self::DATAGRAMS;
        let enough = if self.watched { self.stamped() } else { rounds } >= ROUNDS;
        self.done = enough || rounds == ROUNDS_MOST;
        if self.done {
            net.send_datagrams(conn.token, Datagrams::one(b""));
            net.hand_over();
        } else {
            self.ask(net, conn.token);
        }
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.outside |= net.arrived_ns().is_some();
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, ended: PeerClose) {
        unreachable!("the peer stays: {ended:?}")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// Answers each datagram with several that leave in one call, and reports when; an empty one ends
/// it.
fn answer_in_blocks(socket: &UdpSocket, clock: Clock, sent: &mpsc::Sender<Sent>) {
    let size = Block::BYTES as libc::c_int;
    let (value, len) = ((&raw const size).cast(), size_of_val(&size) as libc::socklen_t);
    // SAFETY: `size` has `len` bytes and outlives the call; the kernel only reads it.
    #[allow(unsafe_code)]
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, len);
    }
    let answer = pattern(Block::DATAGRAMS * Block::BYTES);
    while let (1.., peer) = socket.recv_from(&mut [0]).expect("it is asked") {
        let before_ns = clock.now_ns();
        socket.send_to(&answer, peer).expect("it is taken");
        sent.send((before_ns, clock.now_ns())).expect("somebody waits");
    }
}

fn blocks_of_datagrams(kind: Kind, watched: bool) -> Block {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let to = Address::Ip(socket.local_addr().expect("its address"));
    let clock = Clock::start();
    let (report, sent) = mpsc::channel();
    let peer = thread::spawn(move || answer_in_blocks(&socket, clock, &report));
    let (known, sending) = (Vec::new(), (0, 0));
    let mut program = Block { to, watched, sent, sending, known, outside: false, done: false };
    kind.run_on(clock, None, &mut program);
    peer.join().expect("the peer");
    program
}

fn datagrams_are_known_to_have_arrived_when_their_peer_sent_them(kind: Kind) {
    let program = blocks_of_datagrams(kind, true);
    assert!(!program.outside, "it is known only while datagrams are handled");
    assert!(program.stamped() >= ROUNDS, "{} of {}", program.stamped(), program.known.len());
    for ((before_ns, after_ns), arrived_ns, count) in program.known {
        assert_eq!(count, Block::DATAGRAMS, "they are read as one block");
        let Some(arrived_ns) = arrived_ns else { continue };
        let within = before_ns <= arrived_ns && arrived_ns <= after_ns;
        assert!(within, "sent {before_ns} to {after_ns}, arrived {arrived_ns}");
    }
}

fn of_datagrams_that_are_not_watched_nothing_is_known(kind: Kind) {
    let program = blocks_of_datagrams(kind, false);
    assert_eq!((program.known.len(), program.stamped()), (ROUNDS, 0));
}

on_both_drivers! {
    datagrams_are_known_to_have_arrived_when_their_peer_sent_them
    of_datagrams_that_are_not_watched_nothing_is_known
    more_answers_at_once_than_there_are_buffers_are_all_received
    bytes_are_known_to_have_arrived_when_their_peer_sent_them
    of_a_connection_that_is_not_watched_nothing_is_known
    of_a_socket_file_nothing_is_known_and_all_is_received
}
