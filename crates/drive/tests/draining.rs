//! Who has to wait with what is to be sent hears when all that waited has left, whichever the driver.

#![allow(clippy::expect_used)]

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use trueload_drive::{Address, Clock, Ended, Epoll, Net, Program, Settings, Token, Uring};

/// More than loopback's socket buffers take at once.
const MUCH: usize = 24 * 1024 * 1024;
const LITTLE: &[u8] = b"a little";
/// How often the program goes on when it hears that there is room.
const TIMES: usize = 3;

/// Sends much, and as much again each time that it has left; then it is done.
struct Sender {
    to: Address,
    much: Arc<[u8]>,
    heard: Vec<usize>,
    sent: usize,
    done: bool,
}

impl Sender {
    fn send(&mut self, net: &mut impl Net, token: Token) {
        // Copied or shared, it waits behind what waits.
        net.send(token, LITTLE);
        net.send_shared(token, &self.much, 0..MUCH);
        net.send(token, LITTLE);
        self.sent += 2 * LITTLE.len() + MUCH;
        assert!(net.queued_bytes(token) > 0, "all of it has left at once");
    }
}

impl Program for Sender {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(7, &self.to, None).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, _: u32, token: Token) {
        self.send(net, token);
    }

    fn handle_drained(&mut self, net: &mut impl Net, key: u32, token: Token) {
        assert_eq!(key, 7);
        self.heard.push(net.queued_bytes(token));
        if self.heard.len() < TIMES {
            self.send(net, token);
        } else {
            // The rest may still be in flight.
            net.finish(token);
            self.done = true;
        }
    }

    fn handle_input(&mut self, _: &mut impl Net, _: u32, _: Token, _: &[u8], _: bool) {}

    fn handle_end(&mut self, _: &mut impl Net, _: u32, _: Token, _: Ended) {}

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// A peer that reads when everything that can be sent at first has been.
fn hears_of_it(run: impl FnOnce(&mut Sender)) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("its address").into();
    let (came, has_come) = channel();
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let mut buffer = vec![0; 256 * 1024];
        let mut count = 0;
        while let Ok(some @ 1..) = stream.read(&mut buffer) {
            count += some;
        }
        came.send(count).expect("somebody waits");
    });
    let much = Arc::from(vec![7; MUCH]);
    let mut sender = Sender { to, much, heard: Vec::new(), sent: 0, done: false };
    run(&mut sender);
    let count = has_come.recv().expect("the peer counts");
    peer.join().expect("the peer");
    // Once each time, and nothing waits then: were it heard sooner, or of what left at once, there would be more.
    assert_eq!(sender.heard, [0; TIMES]);
    assert!(count <= sender.sent && count >= sender.sent - MUCH, "{count} of {}", sender.sent);
}

#[test]
fn who_waits_hears_when_there_is_room_again_on_epoll() {
    hears_of_it(|sender| {
        let mut driver = Epoll::new(Clock::start(), None, &Settings::default()).expect("a driver");
        driver.waker().wake();
        driver.run(sender).expect("the loop runs");
    });
}

#[test]
fn who_waits_hears_when_there_is_room_again_on_io_uring() {
    hears_of_it(|sender| {
        let driver = Uring::new(Clock::start(), None, &Settings::default());
        let mut driver = driver.map_err(|(error, _)| error).expect("a driver");
        driver.waker().wake();
        driver.run(sender).expect("the loop runs");
    });
}
