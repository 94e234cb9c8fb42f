//! What a connection counts beside the endings of its requests, on a clock that the test sets.

use trueload_wire::account::{Account, Announced, HeaderBytes, Waits};
use trueload_wire::exchange::PeerClose;
use trueload_wire::http2::client::Windows;
use trueload_wire::http2::frame::ErrorCode;
use trueload_wire::message::Rules;

use super::peer::{OK, Peer};
use super::play::{Play, get, idempotent};

const NONE: Waits<u128> = Waits {
    queued: 0,
    stream: 0,
    send_connection: 0,
    send_stream: 0,
    receive_connection: 0,
    receive_stream: 0,
};

fn peer() -> Peer {
    Peer::default()
}

/// A connection with these windows of ours and that SETTINGS of the peer, on which nothing was asked.
fn open(windows: Windows, settings: &[(u16, u32)]) -> Play {
    let mut play = Play::opening(windows);
    play.rules = idempotent();
    play.now_ns = 0;
    play.receive(peer().settings(settings));
    play
}

const WIDE: Windows = Windows { stream: 1 << 20, connection: 1 << 20 };

/// What was counted up to a time.
fn account(play: &mut Play, until_ns: u64) -> Account {
    play.client.take_account(until_ns)
}

#[test]
fn streams_in_flight_and_requests_that_wait_for_one_are_counted_over_time() {
    let mut play = open(WIDE, &[(3, 2)]);
    play.ask(5);
    play.now_ns = 100;
    play.receive(peer().answer(1));
    play.now_ns = 150;
    play.receive(peer().answer(3).answer(5));
    let found = account(&mut play, 160);
    // Two are open all the time. Three wait for 100 ns, two for 50, and then none.
    assert_eq!(found.open_ns, 2 * 160);
    let waited = 3 * 100 + 2 * 50;
    assert_eq!(found.waits_ns, Waits { queued: waited, stream: waited, ..NONE });
    assert_eq!(account(&mut play, 170).open_ns, 2 * 10, "it goes on from there");
    play.now_ns = 200;
    play.receive(peer().answer(9).answer(7));
    let found = account(&mut play, 999);
    assert_eq!((found.open_ns, found.waits_ns), (2 * 30, NONE), "nothing is asked any more");
}

#[test]
fn a_peer_that_permits_no_stream_is_told_from_one_that_was_asked_nothing() {
    let mut play = open(WIDE, &[(3, 0)]);
    assert_eq!(account(&mut play, 50), Account::default());
    play.now_ns = 50;
    play.ask(2);
    for until_ns in [60, 70] {
        let found = account(&mut play, until_ns);
        assert_eq!((found.connections, found.open_ns), (1, 0));
        assert_eq!(found.waits_ns, Waits { queued: 20, stream: 20, ..NONE });
        assert_eq!(found.max_concurrent_streams.most, Some(0));
    }
}

#[test]
fn bodies_wait_for_the_window_of_their_stream_or_of_the_connection() {
    let body = vec![b'x'; 60_000];
    let mut play = open(WIDE, &[(4, 1_000)]);
    play.template = get(Some(&body));
    play.ask(2);
    play.now_ns = 10;
    play.receive(peer().window(1, 1 << 20));
    play.now_ns = 30;
    play.receive(peer().window(3, 1 << 20));
    // It sends 4,535 bytes more: that is the end of the connection's window.
    play.now_ns = 70;
    play.receive(peer().window(0, 1 << 20));
    play.now_ns = 90;
    play.receive(peer().answer(1).answer(3));
    let expected = Waits { send_stream: 2 * 10 + 20, send_connection: 40, ..NONE };
    assert_eq!(account(&mut play, 100).waits_ns, expected);
}

#[test]
fn a_body_that_is_not_wanted_any_more_waits_for_nothing() {
    let body = vec![b'x'; 100_000];
    let mut play = open(WIDE, &[(4, 1 << 20)]);
    play.template = get(Some(&body));
    play.ask(2);
    play.now_ns = 10;
    // One waits for the connection's window, and so does the other that has sent nothing.
    play.receive(peer().answer(1));
    play.now_ns = 20;
    play.receive(peer().answer(3));
    let found = account(&mut play, 100);
    assert_eq!(found.waits_ns, Waits { send_connection: 2 * 10 + 10, ..NONE });
    assert_eq!(found.resets, 2, "the rest of each is cancelled");
}

#[test]
fn a_peer_that_has_used_up_our_window_waits_until_its_next_bytes() {
    let mut play = open(Windows { stream: 100, connection: 65_535 }, &[]);
    play.ask(1);
    play.now_ns = 10;
    // It is granted 60 more bytes, which it cannot know yet: it has sent what it could.
    play.receive(peer().headers(1, OK, false).data(1, &[0; 60], false));
    play.now_ns = 20;
    play.receive(peer().data(1, &[0; 40], false));
    play.now_ns = 50;
    play.receive(peer().data(1, &[0; 20], true));
    assert_eq!(account(&mut play, 100).waits_ns, Waits { receive_stream: 30, ..NONE });
}

#[test]
fn a_connection_whose_window_is_used_up_holds_all_its_streams() {
    let mut play = open(Windows { stream: 1 << 20, connection: 65_535 }, &[]);
    play.ask(3);
    play.now_ns = 10;
    let whole = peer().headers(1, OK, false).times(3, |peer| peer.data(1, &[0; 16_384], false));
    play.receive(whole.data(1, &[0; 16_383], false));
    play.now_ns = 40;
    play.receive(peer().data(1, b"more", true));
    let used_up = Waits { receive_connection: 3 * 30, ..NONE };
    assert_eq!(account(&mut play, 50).waits_ns, used_up);
    // The last of a row of answers uses it up: what is asked much later does not wait for it.
    play.receive(peer().answer(3).answer(5));
    play.ask(1);
    let rest = peer().headers(7, OK, false).times(3, |peer| peer.data(7, &[0; 16_384], false));
    play.receive(rest.data(7, &[0; 16_383], true));
    play.now_ns = 1_000;
    play.ask(1);
    assert_eq!(account(&mut play, 2_000).waits_ns, NONE);
}

#[test]
fn requests_that_come_back_undone_are_counted_and_those_that_fail_are_not() {
    for (rules, input, returned, goaways) in [
        (idempotent(), peer().goaway(1, ErrorCode::NoError), 3, 1),
        (idempotent(), peer().goaway(5, ErrorCode::NoError).goaway(1, ErrorCode::NoError), 3, 1),
        (idempotent(), peer().reset(3, ErrorCode::RefusedStream), 1, 0),
        (idempotent(), peer().reset(3, ErrorCode::InternalError), 0, 0),
        (Rules::default(), peer().goaway(1, ErrorCode::NoError), 3, 1),
        (Rules::default(), peer().reset(3, ErrorCode::RefusedStream), 1, 0),
        (idempotent(), peer().headers(3, OK, false).goaway(1, ErrorCode::NoError), 2, 1),
    ] {
        let mut play = Play::with(4, rules, None, &[(3, 3)]);
        play.receive(input);
        let found = account(&mut play, 10);
        assert_eq!((found.returned, found.goaways), (returned, goaways), "{:?}", play.endings);
    }
}

#[test]
fn streams_that_we_reset_are_counted() {
    let mut play = Play::asked(3);
    play.time_out(2);
    assert_eq!(account(&mut play, 10).resets, 2);
    play.receive(peer().pong().headers(5, &[(":status", "20")], false));
    assert_eq!(account(&mut play, 20).resets, 1, "a malformed answer");
}

#[test]
fn header_fields_are_counted_before_and_after_they_were_coded() {
    let mut play = Play::asked(0);
    let fields = [(":status", "200"), ("x-some", "abcdefgh")];
    let coded = super::peer::block(&fields).len() as u64;
    play.ask(3);
    for stream in [1, 3, 5] {
        // The first is decoded, and the others are recognised.
        play.receive(peer().headers(stream, &fields, true));
    }
    let Account { headers_in, headers_out, .. } = account(&mut play, 10);
    let plain = ":status200x-someabcdefgh".len() as u64;
    assert_eq!(headers_in, HeaderBytes { plain: 3 * plain, coded: 3 * coded });
    let plain = ":methodGET:schemehttp:authoritya:80:path/".len() as u64;
    assert_eq!(headers_out.plain, 3 * plain);
    assert!((3 * 3..3 * plain).contains(&headers_out.coded), "{headers_out:?}");
}

#[test]
fn settings_are_told_with_their_changes_and_a_fresh_connection_is_one_more() {
    let mut play = open(WIDE, &[(3, 100), (4, 70_000)]);
    play.ask(1);
    play.now_ns = 10;
    play.receive(peer().settings(&[(3, 10), (5, 20_000), (1, 0)]));
    play.end(PeerClose::Fin);
    play.client.open(WIDE, &mut Vec::new());
    play.receive(peer().settings(&[]));
    play.ask(1);
    let found = account(&mut play, 20);
    assert_eq!(found.connections, 2);
    let range = |of: Announced| (of.least, of.most);
    assert_eq!(range(found.max_concurrent_streams), (Some(10), None), "no limit is the most");
    assert_eq!(range(found.initial_window_size), (Some(65_535), Some(70_000)));
    assert_eq!(range(found.max_frame_size), (Some(16_384), Some(20_000)));
    assert_eq!(range(found.header_table_size), (Some(0), Some(4_096)));
}

#[test]
fn a_peer_that_answers_in_http_1_is_counted() {
    let mut play = Play::opening(WIDE);
    play.receive(peer().bytes(b"HTTP/1.1 400 Bad Request\r\n"));
    assert_eq!(account(&mut play, 10), Account { http1: 1, ..Account::default() });
}

#[test]
fn accounts_add_up() {
    let sum = |first: Account, second: &Account| {
        let mut sum = first;
        sum.merge(second);
        sum
    };
    let mut plays = [open(WIDE, &[(3, 1)]), open(WIDE, &[(3, 2)])];
    let [one, two] = plays.each_mut().map(|play| {
        play.ask(3);
        account(play, 10)
    });
    let both = sum(one, &two);
    assert_eq!((both.connections, both.open_ns, both.waits_ns.stream), (2, 30, 20 + 10));
    let streams = both.max_concurrent_streams;
    assert_eq!((streams.least, streams.most), (Some(1), Some(2)));
    assert_eq!(sum(Account::default(), &one), one);
    let behind = one.behind_window();
    assert_eq!((behind.connections, behind.open_ns, behind.waits_ns), (0, 0, NONE));
    assert_eq!(behind.headers_out, one.headers_out);
}
