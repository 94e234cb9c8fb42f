//! Streams that the peer permits, and windows in both directions.

use trueload_wire::exchange::{Disposition, Ending, Exchange};
use trueload_wire::http2::client::Windows;
use trueload_wire::http2::frame::ErrorCode;

use super::peer::{OK, Peer};
use super::play::{Play, idempotent};

fn peer() -> Peer {
    Peer::default()
}

#[test]
fn no_more_streams_are_opened_than_the_peer_permits_and_the_others_wait_in_order() {
    let mut play = Play::with(4, idempotent(), None, &[(3, 2)]);
    assert_eq!(play.headers_sent(), 2);
    assert_eq!((play.client.outstanding(), play.client.capacity(5)), (4, 1));
    play.receive(peer().answer(3));
    assert_eq!(play.frames(), ["HEADERS 5 end"]);
    play.receive(peer().settings(&[(3, 1)]).answer(1));
    assert_eq!(play.headers_sent(), 0, "one is open, and one is permitted");
    play.receive(peer().answer(5));
    assert_eq!(play.frames(), ["HEADERS 7 end"]);
    assert_eq!(play.endings.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [1, 0, 2]);
}

#[test]
fn a_peer_that_permits_no_stream_lets_requests_run_out_of_time() {
    let mut play = Play::with(2, idempotent(), None, &[(3, 0)]);
    assert_eq!(play.headers_sent(), 0);
    assert_eq!(play.client.next_timeout_ns(|tag| *tag as u64), Some(0));
    assert_eq!(play.time_out(1), Disposition::Open);
    assert_eq!(play.endings, [(0, Ending::TimeoutFirstByte)]);
    assert_eq!(play.frames(), [""; 0], "there is nothing to reset");
    play.receive(peer().settings(&[(3, 1)]));
    assert_eq!(play.frames(), ["SETTINGS ack", "HEADERS 1 end"]);
    play.receive(peer().answer(1));
    assert_eq!(play.endings[1], (1, Ending::Ok));
}

#[test]
fn our_windows_are_enlarged_when_half_of_them_is_used_and_only_where_more_may_come() {
    let mut play = Play::opening(Windows { stream: 100, connection: 65_535 });
    play.rules = idempotent();
    play.receive(peer().settings(&[]));
    play.ask(2);
    play.frames();
    let half = [0; 50];
    play.receive(peer().headers(1, OK, false).data(1, &half, false));
    assert_eq!(play.frames(), [""; 0]);
    play.receive(peer().data(1, &[0], false));
    assert_eq!(play.frames(), ["WINDOW 1 51"]);
    play.receive(peer().data(1, &[0; 100], true).headers(3, OK, false));
    assert_eq!(play.frames(), [""; 0], "nothing more comes on the stream");
    for _ in 0..320 {
        play.receive(peer().data(3, &[0; 100], false));
    }
    let frames = play.frames();
    assert_eq!(frames.iter().filter(|frame| *frame == "WINDOW 3 100").count(), 320);
    let of_connection = frames.iter().filter(|frame| frame.starts_with("WINDOW 0"));
    assert_eq!(of_connection.collect::<Vec<_>>(), [""; 0], "32,151 of 65,535 bytes");
    for _ in 0..7 {
        play.receive(peer().data(3, &[0; 100], false));
    }
    assert!(play.frames().contains(&"WINDOW 0 32851".to_owned()));
}

// The stream waited for the connection's window, and then once more for its own.
#[test]
fn a_body_whose_window_is_closed_and_opened_again_is_sent_once() {
    let body = [b'x'; 70_000];
    let mut play = Play::with(1, idempotent(), Some(&body), &[(4, 100_000)]);
    play.frames();
    let again = peer().settings(&[(4, 0)]).settings(&[(4, 100_000)]);
    play.receive(again.window(0, 10_000));
    let rest = ["SETTINGS ack", "SETTINGS ack", "DATA 1 4465 end"];
    assert_eq!(play.frames(), rest, "65,535 bytes went before");
    play.receive(peer().answer(1));
    assert_eq!(play.endings, [(0, Ending::Ok)]);
    assert!(!play.client.waits_to_write());
}

#[test]
fn data_beyond_a_window_breaks_the_connection() {
    let small = Windows { stream: 100, connection: 65_535 };
    let large = Windows { stream: 1 << 20, connection: 65_535 };
    // What is granted in an input counts from the next one on.
    for (sentence, windows, inputs, broken) in [
        ("of the stream", small, &[&[101][..]][..], true),
        ("all of it", small, &[&[100]], false),
        ("all of it, granted", small, &[&[60, 40]], false),
        ("more than is granted in time", small, &[&[60, 41]], true),
        ("what was granted, behind it", small, &[&[60, 40], &[60]], false),
        ("more than that", small, &[&[60, 40], &[61]], true),
        ("all of the connection's", large, &[&[16_384, 16_384, 16_384, 16_383]], false),
        ("of the connection", large, &[&[16_384; 4]], true),
        ("with a grant", large, &[&[16_384, 16_384, 16_384], &[16_384, 16_384]], false),
        ("more than with a grant", large, &[&[16_384; 3], &[16_384; 3]], true),
    ] {
        let mut play = Play::opening(windows);
        play.receive(peer().settings(&[]));
        play.ask(1);
        play.receive(peer().headers(1, OK, false));
        for lens in inputs {
            play.receive(lens.iter().fold(peer(), |peer, len| peer.data(1, &vec![0; *len], false)));
        }
        let expected = if broken { vec![(0, Ending::H2Flow)] } else { Vec::new() };
        assert_eq!(play.endings, expected, "{sentence}");
        let told = play.frames().contains(&"GOAWAY FlowControlError".to_owned());
        assert_eq!((play.link == Disposition::Broken, told), (broken, broken), "{sentence}");
    }
}

#[test]
fn padding_counts_in_the_windows() {
    let mut play = Play::opening(Windows { stream: 100, connection: 65_535 });
    play.receive(peer().settings(&[]));
    play.ask(1);
    let padded =
        peer().headers(1, OK, false).padded(trueload_wire::http2::frame::Kind::DATA, 1, b"ab", 98);
    assert_eq!(play.receive(padded), Disposition::Broken, "101 bytes");
}

#[test]
fn a_body_goes_out_as_far_as_the_windows_go() {
    let body = vec![b'x'; 100_000];
    let mut play = Play::with(1, idempotent(), Some(&body), &[(4, 20_000)]);
    assert_eq!(play.frames(), ["SETTINGS ack", "HEADERS 1", "DATA 1 16384", "DATA 1 3616"]);
    play.receive(peer().window(1, 10));
    assert_eq!(play.frames(), ["DATA 1 10"]);
    // Less than nothing is left, and a window that does not make up for it opens nothing.
    play.receive(peer().settings(&[(4, 0)]).window(1, 20_000));
    assert_eq!(play.frames(), ["SETTINGS ack"]);
    play.receive(peer().window(1, 5));
    assert_eq!(play.frames(), ["DATA 1 5"]);
    play.receive(peer().settings(&[(4, 1 << 20)]));
    let sent = 20_015;
    let left = 65_535 - sent;
    let frames = play.frames();
    assert_eq!(
        frames.len(),
        1 + left / 16_384 + 1,
        "the connection's window is the end: {frames:?}"
    );
    play.receive(peer().window(0, 1 << 20));
    assert!(play.frames().last().unwrap().ends_with(" end"));
    play.receive(peer().answer(1));
    assert_eq!(play.endings, [(0, Ending::Ok)]);
}

#[test]
fn an_answer_before_the_end_of_its_request_ends_the_upload() {
    let body = vec![b'x'; 100_000];
    let mut play = Play::with(2, idempotent(), Some(&body), &[]);
    play.frames();
    play.receive(peer().answer(1).reset(1, ErrorCode::NoError));
    assert_eq!(play.endings, [(0, Ending::Ok)]);
    assert_eq!(play.frames(), ["RST 1 Cancel"]);
    play.receive(peer().window(0, 1 << 20).window(3, 1 << 20));
    assert!(play.frames().last().unwrap().ends_with(" end"));
}

#[test]
fn an_upload_whose_window_never_opens_is_not_without_a_first_byte() {
    let body = vec![b'x'; 100];
    let mut play = Play::with(1, idempotent(), Some(&body), &[(4, 0)]);
    assert_eq!(play.frames(), ["SETTINGS ack", "HEADERS 1"]);
    play.time_out(1);
    assert_eq!(play.endings, [(0, Ending::TimeoutTotal)]);
}

#[test]
fn uploads_take_turns_and_end_once_each() {
    let body = vec![b'x'; 40_000];
    let mut play = Play::with(3, idempotent(), Some(&body), &[]);
    for _ in 0..40 {
        play.receive(peer().window(0, 3_000));
    }
    let ends = play.frames().iter().filter(|frame| frame.ends_with(" end")).count();
    assert_eq!(ends, 3);
    play.receive(peer().answer(3).answer(1).answer(5));
    assert_eq!(play.endings.len(), 3);
}

#[test]
fn a_new_upload_waits_behind_those_that_wait_for_the_connections_window() {
    let body = vec![b'x'; 40_000];
    let mut play = Play::with(2, idempotent(), Some(&body), &[]);
    assert!(play.frames().last().unwrap().starts_with("DATA 3 "), "the second one waits");
    play.ask(1);
    assert_eq!(play.frames(), ["HEADERS 5"]);
    play.receive(peer().window(0, 100));
    assert_eq!(play.frames(), ["DATA 3 100"]);
    play.receive(peer().window(0, 100_000));
    let ends: Vec<_> = play.frames().into_iter().filter(|frame| frame.ends_with(" end")).collect();
    assert_eq!(ends.len(), 2);
    assert!(ends[0].starts_with("DATA 3 ") && ends[1].starts_with("DATA 5 "), "{ends:?}");
}

#[test]
fn a_stream_that_stalls_while_a_thousand_are_served_is_still_known() {
    let mut play = Play::asked(2);
    for stream in (3..2003).step_by(2) {
        play.receive(peer().answer(stream));
        play.ask(1);
    }
    assert_eq!((play.endings.len(), play.client.outstanding()), (1000, 2));
    assert_eq!(play.client.next_timeout_ns(|tag| *tag as u64), Some(0));
    let mut newest = Vec::new();
    play.client.change_newest(|tag| {
        newest.push(*tag);
        true
    });
    assert_eq!(newest, [1001, 0]);
    play.receive(peer().answer(1));
    assert_eq!(play.endings.last(), Some(&(0, Ending::Ok)));
    assert_eq!(play.client.cancel().collect::<Vec<_>>(), [1001]);
}

#[test]
fn the_first_block_of_a_connection_says_that_there_is_no_table() {
    let mut play = Play::asked(2);
    let sent = std::mem::take(&mut play.sent);
    // Behind the acknowledgement.
    assert_eq!(sent[9 + 9], 0x20);
    let first = 9 + u32::from_be_bytes([0, sent[9], sent[10], sent[11]]) as usize;
    assert_eq!(sent[9 + first + 9], 0x82, ":method GET");
}
