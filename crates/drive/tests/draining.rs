//! A program with queued output is notified when all of it has left. This holds for each driver.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::thread;

use trueload_drive::{Address, Conn, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;
const LITTLE: &[u8] = b"a little";
/// How often the program goes on when it is notified that there is room.
const TIMES: usize = 3;

/// Sends much, and as much again each time that it has left; then it is done.
struct Sender {
    to: Address,
    much: Arc<[u8]>,
    queued_when_drained: Vec<usize>,
    sent: usize,
    /// Lets the peer read so much.
    let_read: mpsc::Sender<usize>,
    done: bool,
}

impl Sender {
    fn send(&mut self, net: &mut impl Net, token: Token) {
        // Copied or shared, it waits behind what waits.
        net.send(token, LITTLE);
        net.send_shared(token, &self.much, 0..MUCH);
        net.send(token, LITTLE);
        let len = 2 * LITTLE.len() + MUCH;
        let (queued, unsent) = (net.queued_bytes(token), net.unsent_bytes(token));
        assert!(queued > 0, "all of it has left at once");
        // What is in flight is not queued any more, and not sent yet.
        assert!(unsent >= queued, "{unsent} of {len} are unsent, {queued} queued");
        self.sent += len;
        self.let_read.send(len).expect("the peer waits");
    }
}

impl Program for Sender {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(7, self.to.over(Transport::Stream)).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        self.send(net, conn.token);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        assert_eq!(conn.key, 7);
        self.queued_when_drained.push(net.queued_bytes(conn.token));
        if self.queued_when_drained.len() < TIMES {
            self.send(net, conn.token);
        } else {
            // The rest may still be in flight.
            net.finish(conn.token);
            self.done = true;
        }
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

/// A peer that reads what has been sent when some of it waits, and no sooner.
fn who_waits_is_notified_when_there_is_room_again(kind: Kind) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let (let_read, may_read) = mpsc::channel();
    let peer = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a caller");
        let read = |len| io::copy(&mut (&stream).take(len as u64), &mut io::sink()).unwrap_or(0);
        may_read.iter().map(read).sum::<u64>() as usize
    });
    let much = Arc::from(vec![7; MUCH]);
    let mut sender =
        Sender { to, much, queued_when_drained: Vec::new(), sent: 0, let_read, done: false };
    kind.run(None, &mut sender);
    let Sender { queued_when_drained, sent, let_read, .. } = sender;
    drop(let_read); // the peer learns that nothing more comes
    let count = peer.join().expect("the peer");
    // Once each time, and nothing waits then: were it notified sooner, or of what left at once,
    // there would be more.
    assert_eq!(queued_when_drained, [0; TIMES]);
    assert!(count <= sent && count >= sent - MUCH, "{count} of {sent}");
}

on_both_drivers! { who_waits_is_notified_when_there_is_room_again }
on_both_drivers_watched! { who_waits_is_notified_when_there_is_room_again }
