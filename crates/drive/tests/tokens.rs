//! A token is of one socket for ever: a place that is used again gives another one, and what is asked of an old token
//! is ignored.

use std::net::TcpListener;

use trueload_drive::{Address, Conn, ConnectError, Net, PeerClose, Program, Token, Transport};

use crate::shared::Kind;

/// How often the one place is used.
const TIMES: usize = 6;

on_both_drivers! {
    a_place_that_is_used_again_gives_another_token_and_old_ones_do_nothing
}

/// Connects, closes, and connects again; on each connection it asks everything of the old tokens.
struct Again {
    to: Address,
    tokens: Vec<Token>,
    done: bool,
}

impl Again {
    fn connect(&self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Stream)).expect("an attempt");
    }
}

impl Program for Again {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.connect(net);
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects here")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        for old in &self.tokens {
            net.send(*old, b"to nobody");
            net.end_sending(*old);
            net.reset(*old);
            net.close(*old);
            net.finish(*old);
            assert_eq!(net.queued_bytes(*old), 0);
        }
        self.tokens.push(conn.token);
        net.send(conn.token, b"x");
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, _: Conn, why: ConnectError) {
        panic!("{why:?}");
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        assert_eq!((bytes, Some(&conn.token)), (&b"x"[..], self.tokens.last()));
        net.close(conn.token);
        self.done = self.tokens.len() == TIMES;
        if !self.done {
            self.connect(net);
        }
    }

    fn handle_end(&mut self, _: &mut impl Net, conn: Conn, ended: PeerClose) {
        panic!("{conn:?} has ended: {ended:?}");
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn a_place_that_is_used_again_gives_another_token_and_old_ones_do_nothing(kind: Kind) {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let to = Address::Ip(listener.local_addr().expect("its address"));
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(TIMES) {
            let mut stream = stream.expect("a connection");
            let mut all = [0; 1];
            stream.read_exact(&mut all).expect("one byte");
            assert_eq!(&all, b"x", "nothing of an old token is sent here");
            // The program may have closed meanwhile.
            let _ = stream.write_all(&all);
        }
    });
    let mut program = Again { to, tokens: Vec::new(), done: false };
    kind.run(None, &mut program);
    server.join().expect("the server saw what it should");
    let mut distinct = program.tokens.clone();
    distinct.sort_unstable_by_key(|token| (token.index, token.generation));
    distinct.dedup();
    assert_eq!(distinct.len(), TIMES, "{:?}", program.tokens);
}
