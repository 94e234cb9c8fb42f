//! What has its time is woken for then, whatever else is waited for.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use trueload_drive::{Address, Clock, Ended, Epoll, Net, Program, Refusal, Settings, Token, Uring};

/// Asks each ms on its own clock, whatever is answered, and keeps how late it was woken for it.
struct Metronome {
    to: Address,
    token: Option<Token>,
    next_ns: u64,
    late_ns: Vec<u64>,
}

impl Program for Metronome {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, &self.to, None).expect("somebody listens");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, _: u32, token: Token) {
        (self.token, self.next_ns) = (Some(token), net.now_ns());
    }

    fn handle_refused(&mut self, _: &mut impl Net, _: u32, _: Token, why: Refusal) {
        unreachable!("{why:?}")
    }

    fn handle_input(&mut self, _: &mut impl Net, _: u32, _: Token, _: &[u8], _: bool) {
        unreachable!("nobody answers")
    }

    fn handle_end(&mut self, _: &mut impl Net, _: u32, _: Token, _: Ended) {
        unreachable!("the peer stays")
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.late_ns.push(net.now_ns() - self.next_ns);
        self.next_ns = net.now_ns() + 1_000_000;
        net.send(self.token.expect("it is connected"), b"?");
    }

    fn wake_at_ns(&self) -> Option<u64> {
        self.token.map(|_| self.next_ns)
    }

    fn is_done(&self) -> bool {
        self.late_ns.len() == 100
    }
}

/// Of its times but the first, which has no send before it, those that it was woken for nearly at once.
fn soon(run: impl FnOnce(&mut Metronome)) -> usize {
    let deaf = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a listener");
    let to = deaf.local_addr().expect("its address").into();
    let mut metronome = Metronome { to, token: None, next_ns: 0, late_ns: Vec::new() };
    run(&mut metronome);
    metronome.late_ns[1..].iter().filter(|late_ns| **late_ns < 5_000_000).count()
}

// A busy machine delays many of them; a wait for answers delays all.

#[test]
fn a_send_that_is_not_answered_delays_nothing_on_epoll() {
    let found = soon(|metronome| {
        let mut driver = Epoll::new(Clock::start(), None, &Settings::default()).expect("an epoll");
        driver.waker().wake();
        driver.run(metronome).expect("the loop runs");
    });
    assert!(found > 0);
}

#[test]
fn a_send_that_is_not_answered_delays_nothing_on_io_uring() {
    let found = soon(|metronome| {
        let driver = Uring::new(Clock::start(), None, &Settings::default());
        let mut driver = driver.map_err(|(error, _)| error).expect("a ring");
        driver.waker().wake();
        driver.run(metronome).expect("the loop runs");
    });
    assert!(found > 0);
}
