//! What is handed over is with the kernel while the program is still at work, and the reading of the clock is later.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use trueload_drive::{Address, Conn, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// More than are handed over by themselves.
const SENDS: u8 = 20;
/// A byte that does not come fails the test after so long, instead of never.
const UNHEARD: Duration = Duration::from_secs(20);

/// Sends on several connections in one batch, and waits in it until the peer has it all.
struct Sender {
    to: Address,
    tokens: Vec<Token>,
    arrived: Receiver<u8>,
    done: bool,
}

impl Program for Sender {
    fn handle_wake(&mut self, net: &mut impl Net) {
        for key in 0..u32::from(SENDS) {
            net.connect(key, self.to.over(Transport::Stream)).expect("somebody listens");
        }
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.tokens.push(conn.token);
        if self.tokens.len() < usize::from(SENDS) {
            return;
        }
        net.read_clock();
        let asked_ns = net.now_ns();
        for (token, byte) in self.tokens.iter().zip(0..) {
            net.send(*token, &[byte]);
        }
        net.read_clock();
        let before_ns = net.now_ns();
        let handed = net.hand_over();
        let mut arrived: Vec<u8> = (0..SENDS)
            .map(|_| self.arrived.recv_timeout(UNHEARD).expect("all was handed over"))
            .collect();
        arrived.sort_unstable();
        assert!(arrived.into_iter().eq(0..SENDS));
        assert_eq!(net.now_ns(), before_ns, "the time of the batch stays");
        net.read_clock();
        assert!(handed.began_ns <= handed.ended_ns && handed.ended_ns <= net.now_ns());
        assert!(handed.began_ns >= asked_ns, "no send was handed over before it was asked for");
        assert!(self.tokens.iter().all(|token| net.queued_bytes(*token) == 0));
        self.done = true;
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {}

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {}

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn what_is_handed_over_leaves_before_the_batch_ends(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let (arrives, arrived) = channel();
    let peer = thread::spawn(move || {
        let streams: Vec<_> = (0..SENDS).map(|_| listener.accept().expect("a caller").0).collect();
        for mut stream in &streams {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a byte");
            arrives.send(byte[0]).expect("it waits for it");
        }
    });
    kind.run(None, &mut Sender { to, tokens: Vec::new(), arrived, done: false });
    peer.join().expect("the peer");
}

on_both_drivers! { what_is_handed_over_leaves_before_the_batch_ends }
