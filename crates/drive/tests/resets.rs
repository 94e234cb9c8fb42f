//! A reset is reported as one, whichever the driver, also where it comes in the middle of what is
//! being sent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use trueload_drive::{Address, Conn, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 32 * 1024 * 1024;
/// So much has been read when the reset comes: the send has been kept waiting, and goes on.
const READ: usize = 12 * 1024 * 1024;

/// Sends much, and notes how the connection ends.
struct Sender {
    to: Address,
    much: Arc<[u8]>,
    received: Vec<u8>,
    ended: Option<PeerClose>,
}

impl Program for Sender {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.send_shared(conn.token, &self.much, 0..MUCH);
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, bytes: &[u8], _: bool) {
        self.received.extend_from_slice(bytes);
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, ended: PeerClose) {
        self.ended = Some(ended);
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended.is_some()
    }
}

fn a_reset_in_the_middle_of_what_is_sent_is_a_reset(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to: SocketAddr = listener.local_addr().expect("its address");
    let peer = thread::spawn(move || {
        for answer in [&b""[..], b"no"] {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut buffer = vec![0; 64 * 1024];
            let mut count = 0;
            while count < READ {
                count += stream.read(&mut buffer).expect("much is sent");
            }
            stream.write_all(answer).expect("an answer");
            let socket = socket2::Socket::from(stream);
            socket.set_linger(Some(Duration::ZERO)).expect("an option of every socket");
        }
    });
    let much: Arc<[u8]> = Arc::from(vec![7; MUCH]);
    for answer in [&b""[..], b"no"] {
        let much = Arc::clone(&much);
        let mut sender = Sender { to: to.into(), much, received: Vec::new(), ended: None };
        kind.run(None, &mut sender);
        assert_eq!(sender.ended, Some(PeerClose::Reset), "behind {} bytes", answer.len());
        assert_eq!(sender.received, answer, "what was said before it is heard");
    }
    peer.join().expect("the peer");
}

on_both_drivers! { a_reset_in_the_middle_of_what_is_sent_is_a_reset }
on_both_drivers_watched! { a_reset_in_the_middle_of_what_is_sent_is_a_reset }
