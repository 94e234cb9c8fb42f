//! How every request ends, by what the peer sends.

use trueload_wire::exchange::{Disposition, Ending, Exchange, PeerClose};
use trueload_wire::http2::frame::{ErrorCode, Kind};
use trueload_wire::message::Rules;

use super::peer::{OK, Peer};
use super::play::{BROWSER, Play, idempotent};
use super::tables::{peer, rows};
use Disposition::{Broken, Open, Unsolicited};
use Ending::{Framing, H2FrameSize, H2Goaway, H2Protocol, H2Stream, Ok as Good};

#[test]
fn every_request_ends_as_the_peer_has_it() {
    for (sentence, peer, endings, link) in rows() {
        let mut play = Play::asked(3);
        play.receive(peer);
        assert_eq!((play.endings, play.link), (endings, link), "{sentence}");
    }
}

#[test]
fn a_split_never_changes_what_is_received() {
    for (sentence, peer, endings, link) in rows() {
        let mut play = Play::asked(3);
        for byte in &peer.0 {
            play.deliver(std::slice::from_ref(byte));
            if matches!(play.link, Broken | Unsolicited) {
                break;
            }
        }
        assert_eq!((&play.endings, play.link), (&endings, link), "{sentence}, byte by byte");
        // Long ones are floods of the same.
        for cut in 1..peer.0.len().min(300) {
            let mut play = Play::asked(3);
            if !matches!(play.deliver(&peer.0[..cut]), Broken | Unsolicited) {
                play.deliver(&peer.0[cut..]);
            }
            assert_eq!((&play.endings, play.link), (&endings, link), "{sentence}, cut at {cut}");
        }
    }
}

#[test]
fn what_the_peer_did_not_process_is_asked_again_whatever_its_method() {
    use Ending::{Empty, StaleGoaway, StaleRefused};
    let goaway = |last| peer().goaway(last, ErrorCode::NoError);
    let refused = || peer().reset(3, ErrorCode::RefusedStream);
    let half = [b'x'; 100_000];
    for (sentence, body, peer, endings) in [
        ("above GOAWAY", None, goaway(1), vec![(1, StaleGoaway)]),
        ("above a GOAWAY with an error", None, calm(), vec![(0, StaleGoaway), (1, StaleGoaway)]),
        ("above the second GOAWAY", None, goaway(3).goaway(1, ErrorCode::NoError), {
            vec![(1, StaleGoaway)]
        }),
        ("refused", None, refused(), vec![(1, StaleRefused)]),
        ("its body half sent, above GOAWAY", Some(&half[..]), goaway(1), vec![(1, StaleGoaway)]),
        ("its body half sent, refused", Some(&half), refused(), vec![(1, StaleRefused)]),
        ("an answer had begun, above GOAWAY", None, begun().goaway(1, ErrorCode::NoError), {
            vec![(1, H2Goaway)]
        }),
        ("an answer had begun, refused", None, begun().reset(3, ErrorCode::RefusedStream), {
            vec![(1, H2Stream)]
        }),
        ("reset otherwise", None, peer().reset(3, ErrorCode::Cancel), vec![(1, H2Stream)]),
    ] {
        for rules in [Rules::default(), idempotent()] {
            let mut play = Play::with(2, rules, body, &[]);
            play.receive(peer.clone());
            assert_eq!(play.endings, endings, "{sentence}");
        }
    }
    let mut play = Play::with(2, Rules::default(), None, &[]);
    play.receive(peer().answer(1));
    play.end(PeerClose::Fin);
    assert_eq!(play.endings, [(0, Good), (1, Empty)], "an end says nothing of it");
}

fn begun() -> Peer {
    peer().headers(3, &[(":status", "103")], false)
}

fn calm() -> Peer {
    peer().goaway(0, ErrorCode::EnhanceYourCalm)
}

#[test]
fn an_upload_that_is_asked_again_sends_nothing_more_on_its_stream() {
    let body = [b'x'; 100_000];
    for peer in [peer().reset(1, ErrorCode::RefusedStream), calm()] {
        let mut play = Play::with(1, Rules::default(), Some(&body), &[]);
        play.frames();
        play.receive(peer.window(0, 1 << 20));
        assert_eq!(play.frames(), [""; 0]);
        assert_eq!((play.endings.len(), play.client.outstanding()), (1, 0));
    }
}

#[test]
fn a_request_in_flight_beside_unsolicited_bytes_is_not_reset() {
    for (sentence, peer, before) in [
        ("an answer twice", peer().answer(1).answer(1), vec![(0, Good)]),
        ("an answer behind a reset", peer().reset(1, ErrorCode::Cancel).answer(1), {
            vec![(0, H2Stream)]
        }),
    ] {
        let mut play = Play::asked(3);
        assert_eq!(play.receive(peer), Unsolicited, "{sentence}");
        assert_eq!(play.endings, before, "the request settled last is charged first: {sentence}");
        play.end(PeerClose::Reset);
        assert_eq!(play.endings[1..], [(2, H2Protocol), (1, H2Protocol)], "{sentence}");
    }
}

#[test]
fn bytes_beside_no_request_are_unsolicited_or_break_the_connection() {
    let push = peer().frame(Kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82]);
    for (sentence, peer, broken) in [
        ("an answer", peer().answer(1), None),
        ("an answer on a stream of the server", peer().answer(2), None),
        ("DATA", peer().data(1, b"a", true), None),
        ("a push", push, None),
        ("a reset", peer().reset(1, ErrorCode::Cancel), Some(H2Protocol)),
        ("a window", peer().window(1, 1), Some(H2Protocol)),
    ] {
        let mut play = Play::asked(0);
        assert_eq!(play.receive(peer), Unsolicited, "{sentence}");
        assert_eq!(play.endings, [], "{sentence}");
        let why = play.client.standing().broken;
        assert_eq!(why.map(|(ending, _)| ending), broken, "{sentence}");
    }
}

#[test]
fn an_end_of_the_connection_ends_each_request_by_what_had_come() {
    use Ending::{Empty, Reset, Stale, StaleBehind, StaleReset, Truncated, UnusedEnd, UnusedReset};
    let begun = || peer().headers(1, OK, false);
    let answered = || peer().answer(1);
    let away = || peer().goaway(5, ErrorCode::InternalError);
    let two = [(3, 2)];
    let (fin, rst) = (PeerClose::Fin, PeerClose::Reset);
    for (sentence, count, settings, peer, end, endings) in [
        ("nothing had come", 2, &[][..], peer(), fin, vec![(0, Empty), (1, Empty)]),
        ("nothing to the only one", 1, &[], peer(), fin, vec![(0, UnusedEnd)]),
        ("one had begun", 2, &[], begun(), fin, vec![(0, Truncated), (1, Empty)]),
        ("one had an answer", 3, &[], answered(), fin, vec![(0, Good), (1, Stale), (2, Stale)]),
        ("a reset of two", 2, &[], peer(), rst, vec![(0, Reset), (1, Reset)]),
        ("a reset of one", 1, &[], peer(), rst, vec![(0, UnusedReset)]),
        ("a reset of the last", 2, &[], answered(), rst, vec![(0, Good), (1, StaleReset)]),
        ("a reset of one that had begun", 1, &[], begun(), rst, vec![(0, Reset)]),
        ("a GOAWAY with an error", 2, &[], away(), fin, vec![(0, H2Goaway), (1, H2Goaway)]),
        (
            "two had no stream",
            4,
            &two,
            answered(),
            fin,
            vec![(0, Good), (1, Stale), (2, Stale), (3, StaleBehind)],
        ),
        ("none had one", 1, &[(3, 0)], peer(), fin, vec![(0, Stale)]),
        ("none had one at a reset", 1, &[(3, 0)], peer(), rst, vec![(0, Reset)]),
    ] {
        let mut play = Play::with(count, idempotent(), None, settings);
        play.receive(peer);
        play.end(end);
        assert_eq!(play.endings, endings, "{sentence}");
        assert_eq!(play.client.outstanding(), 0);
    }
}

#[test]
fn what_cannot_be_http_2_is_refused_before_a_request_is_sent() {
    let begins = "the peer does not begin with SETTINGS";
    for (bytes, ending, why) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], H2Protocol, "the peer answers in HTTP/1"),
        (b"HTTP/1.0", H2Protocol, "the peer answers in HTTP/1"),
        (b"HTTQ/2 whatever", H2FrameSize, "a frame is longer than allowed"),
        (&peer().ping(false).0, H2Protocol, begins),
        (&peer().ack().0, H2Protocol, begins),
        (&peer().data(1, b"x", true).0, H2Protocol, begins),
        (&peer().settings(&[(2, 1)]).0, H2Protocol, "a server that announces push"),
    ] {
        for cut in 0..bytes.len().min(12) {
            let mut play = Play::opening(BROWSER);
            let mut link = play.deliver(&bytes[..cut]);
            if link == Disposition::Opening {
                link = play.deliver(&bytes[cut..]);
            }
            assert_eq!(link, Disposition::Refused, "{bytes:?} cut at {cut}");
            assert_eq!(play.client.standing().broken, Some((ending, why)), "{bytes:?}");
        }
    }
    let mut play = Play::opening(BROWSER);
    assert_eq!(play.receive(peer().settings(&[(3, 5), (99, 1)])), Open);
    assert_eq!(play.frames(), ["SETTINGS ack"]);
}

#[test]
fn a_connection_on_which_nothing_comes_any_more_is_given_up() {
    let mut play = Play::asked(2);
    play.receive(peer().headers(3, OK, false));
    assert_eq!(play.time_out(2), Open);
    // Those after it are out of time, and not even the PING is acknowledged.
    play.ask(3);
    assert_eq!(play.time_out(3), Broken);
    let ended = play.endings.split_off(2);
    let late = [2, 3, 4].map(|tag| (tag, Ending::TimeoutFirstByte));
    assert_eq!(ended, late, "those that were not late yet, too");
    assert_eq!(play.client.outstanding(), 0);
}

#[test]
fn a_slow_server_that_acknowledges_a_ping_keeps_its_connection() {
    let mut play = Play::asked(1);
    for late in 1..10 {
        assert_eq!(play.time_out(late), Open, "{late}");
        assert_eq!(play.receive(peer().pong()), Open);
        play.ask(1);
    }
}

#[test]
fn what_was_sent_before_others_were_out_of_time_does_not_end_the_connection() {
    let mut play = Play::asked(3);
    for late in 1..=3 {
        assert_eq!(play.time_out(late), Open, "{late}");
    }
}

#[test]
fn a_late_request_ends_alone_and_what_was_under_way_to_it_is_late() {
    let mut play = Play::asked(3);
    play.frames();
    play.receive(peer().headers(1, OK, false));
    assert_eq!(play.time_out(2), Open);
    assert_eq!(play.endings, [(0, Ending::TimeoutTotal), (1, Ending::TimeoutFirstByte)]);
    assert_eq!(play.frames(), ["RST 1 Cancel", "RST 3 Cancel", "PING"]);
    // The peer has not read that yet. What it sends still reaches the table.
    let insert = [0x88, 0x40, 1, b'x', 1, b'y'];
    let late = peer().data(1, b"ab", true).frame(Kind::HEADERS, 5, 3, &insert);
    assert_eq!(play.receive(late), Open);
    assert_eq!(play.receive(peer().frame(Kind::HEADERS, 5, 5, &[0x88, 0xbe])), Open);
    assert_eq!(play.endings.len(), 3);
    // Now it has.
    assert_eq!(play.receive(peer().pong()), Open);
    assert_eq!(play.receive(peer().data(1, b"ab", true)), Unsolicited);
}

#[test]
fn a_second_round_of_resets_is_told_by_a_second_ping() {
    let mut play = Play::asked(2);
    play.frames();
    play.time_out(1);
    play.time_out(2);
    assert_eq!(play.frames(), ["RST 1 Cancel", "PING", "RST 3 Cancel"]);
    play.receive(peer().pong());
    assert_eq!(play.frames(), ["PING"]);
    assert_eq!(play.receive(peer().answer(3)), Open, "it may be late");
    assert_eq!(play.receive(peer().pong().answer(3)), Unsolicited);
}

#[test]
fn an_answer_tells_its_status_its_content_and_when_it_began() {
    let mut play = Play::asked(1);
    play.receive(peer().headers(1, &[(":status", "201")], false).data(1, b"hello", true));
    let outcome = play.outcomes[0];
    assert_eq!((outcome.status, outcome.complete, outcome.first_byte_ns), (Some(201), true, 7));
    assert_eq!(outcome.content.map(|content| content.bytes), Some(5));
    assert!(play.client.standing().answered);
}

#[test]
fn an_expected_body_is_held_against_what_comes() {
    for (head_request, body, ending) in [
        (false, &b"ab"[..], Good),
        (false, b"ac", Ending::Mismatch),
        (false, b"a", Ending::Mismatch),
        (true, b"", Good),
        (true, b"ab", Framing),
    ] {
        let rules = Rules { body: Some(b"ab".to_vec()), head_request, ..Rules::default() };
        let mut play = Play::with(1, rules, None, &[]);
        play.receive(peer().headers(1, OK, body.is_empty()));
        if !body.is_empty() {
            play.receive(peer().data(1, body, true));
        }
        assert_eq!(play.endings, [(0, ending)], "{body:?}");
    }
}
