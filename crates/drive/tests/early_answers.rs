//! A peer that is asked may answer before it has taken all that it was asked: the answer is
//! received, whichever the driver.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use trueload_drive::{Address, Conn, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;
/// A program that receives nothing fails after so long, instead of waiting.
const UNHEARD: Duration = Duration::from_secs(20);

/// Asks much, twice, and is done when it receives anything.
struct Asker {
    to: Address,
    much: Arc<[u8]>,
    queued: usize,
    received: bool,
}

impl Program for Asker {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        for _ in 0..2 {
            net.send_shared(conn.token, &self.much, 0..self.much.len());
        }
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, _: &[u8], _: bool) {
        self.queued = net.queued_bytes(conn.token);
        self.received = true;
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        panic!("the answer was not heard");
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.received
    }
}

/// A peer that answers when the first byte is there, and takes none.
fn an_answer_before_everything_is_taken_is_received(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let (over, is_over) = channel::<()>();
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        stream.peek(&mut [0]).expect("a byte");
        stream.write_all(b"!").expect("an answer");
        let _ = is_over.recv_timeout(UNHEARD);
    });
    let mut asker = Asker { to, much: Arc::from(vec![7; MUCH]), queued: 0, received: false };
    kind.run(None, &mut asker);
    drop(over);
    assert!(asker.queued >= MUCH, "what was asked last has not left: {}", asker.queued);
    peer.join().expect("the peer");
}

on_both_drivers! { an_answer_before_everything_is_taken_is_received }
on_both_drivers_watched! { an_answer_before_everything_is_taken_is_received }
