//! Large messages over WebSocket, at sockets that take little of them at a time.
//!
//! Each is masked by a key of its own, so that what waits for the socket is a copy: of one message of a connection, however
//! many are in flight. What waits to be written has not been asked, as far as the peer knows.

use std::sync::Arc;

use trueload_engine::generator::WsEcho;
use trueload_wire::echo::Messages;
use trueload_wire::shootout::Dialect;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::Outgoing;
use trueload_wire::websocket::{Kind, send};

use super::bodies::{case, ends, send};
use super::how::{Cut, How};
use super::table::{Case, Protocol, Step};
use super::{Seen, WHOLE, check_laws, play_in};

const MESSAGE_BYTES: usize = 300_000;
/// What one connection may have copied to wait for its socket: a message beyond what lets more be written.
const COPIED_MOST: usize = 128 * 1024 + MESSAGE_BYTES + 1024;

/// Messages one behind the other, each unlike the one before.
fn plain() -> Outgoing {
    let bytes: Arc<[u8]> =
        (0..2 * MESSAGE_BYTES).map(|at| (at / 7 + at / MESSAGE_BYTES) as u8).collect();
    Outgoing::Plain(Messages::new(bytes, MESSAGE_BYTES).expect("two messages"), Kind::Binary)
}

fn in_dialect() -> Outgoing {
    Outgoing::Dialect(Dialect::Json, "x".repeat(MESSAGE_BYTES).into_bytes().into())
}

fn echoing(depth: usize, requests: u64, behind: &[Step]) -> Case {
    let script = [&[Step::Head, Step::Upgrade([].into())], behind].concat();
    Case { protocol: Protocol::Ws, body: None, requests, connections: 2, ..case(depth, &[&script]) }
}

/// Plain and over TLS, at sockets of all sizes.
fn each_way(case: &Case, words: &Outgoing, mut look: impl FnMut(&str, &Seen)) {
    for tls in [false, true] {
        for (room, cut) in
            [(usize::MAX, Cut::Whole), (40_000, Cut::Whole), (400_000, Cut::Random(1))]
        {
            let case = Case { tls: tls.then(|| "good".to_owned()), ..case.clone() };
            let how = How { room, cut, ..WHOLE };
            let seen = play_so(&case, words, how);
            let which = format!("tls {tls}, {how:?}: {seen:?}");
            if let Outgoing::Plain(..) = words {
                check_laws(&case, &seen).unwrap_or_else(|law| panic!("{law}: {which}"));
            }
            assert!(seen.copied_most <= COPIED_MOST, "{which}");
            look(&which, &seen);
        }
    }
}

fn play_so(case: &Case, words: &Outgoing, how: How) -> Seen {
    let opening = Opening::new("/echo", &[("Host".to_owned(), "a".to_owned())]).expect("a path");
    play_in(WsEcho::new(opening, words.clone(), 1), case, how).expect("it ends")
}

#[test]
fn what_waits_for_a_socket_is_a_message_at_whatever_depth() {
    for depth in [1, 4, 16] {
        let case = echoing(depth, 32, &[Step::Read(1), Step::Echo(1), Step::Again]);
        each_way(&case, &plain(), |which, seen| {
            assert_eq!(ends(seen), (32, vec![]), "{which}");
            assert_eq!((seen.requests_at_peer, seen.reconnects), (32, 0), "{which}");
        });
    }
}

#[test]
fn so_it_is_in_a_dialect() {
    // It comes back as it went; the first one is the join.
    let case = echoing(16, 32, &[Step::Read(1), Step::Echo(1), Step::Again]);
    each_way(&case, &in_dialect(), |which, seen| {
        assert_eq!(ends(seen), (32, vec![]), "{which}");
        assert_eq!((seen.requests_at_peer, seen.reconnects), (32 + 2, 0), "{which}");
    });
}

#[test]
fn an_answer_to_a_message_that_is_not_written_is_unsolicited() {
    let Outgoing::Plain(messages, kind) = plain() else { panic!("they are") };
    let mut guessed = Vec::new();
    for offset in [0, MESSAGE_BYTES, 0] {
        send::message(&mut guessed, kind, messages.at(offset), None);
    }
    let behind = [Step::Read(1), send(&guessed), Step::Hold];
    let case = Case { connections: 1, ..echoing(8, 8, &behind) };
    for tls in [None, Some("good".to_owned())] {
        let case = Case { tls, ..case.clone() };
        let seen = play_so(&case, &plain(), How { room: 40_000, ..WHOLE });
        // The second has left in part; the third is not even written, and what answers it costs one that ended with it.
        let ended = vec![("closed_pipelined", 5), ("unsolicited", 1)];
        assert_eq!(ends(&seen), (2, ended), "{seen:?}");
    }
}
