//! Redirects that are followed on connections with several requests, in streams, over either version.

use trueload_meter::{Class, Streams, index};

use super::peer::Answer;
use super::play::{Asks, MS, PINNED, Play, Speaks};
use super::{hops, lines, redirects, streams};

const A: &str = "GET /a";
const B: &str = "GET /b";
const C: &str = "GET /c";

fn ok() -> Answer {
    Answer::ok(&["ok\n"])
}

fn to(place: &str) -> Answer {
    Answer::redirect(place)
}

#[test]
fn a_hop_goes_behind_what_was_sent_before_it_and_its_latency_holds_the_wait() {
    for speaks in PINNED {
        let mut play = Play::begin(hops(speaks, None), speaks, Asks::at_once(3, 3));
        assert_eq!(play.asked(), [A; 3]);
        play.at(10);
        play.answer(&[(0, &to("/b"))]);
        assert_eq!(play.asked(), [B], "{speaks:?}: at once, behind the two others");
        for (ms, nth) in [(20, 1), (30, 2), (60, 3)] {
            play.at(ms);
            play.answer(&[(nth, &ok())]);
        }
        let (done, latencies) = play.end();
        assert_eq!(latencies, [20, 30, 60].map(|ms| index(ms * MS)), "{speaks:?}");
        assert_eq!(redirects(&done).0, [(0, 2), (1, 1)], "{speaks:?}");
        assert_eq!((done.meter.ok, done.meter.issued, done.meter.stale), (3, 3, 0));
    }
}

#[test]
fn several_redirects_in_one_input_go_on_in_their_order() {
    for speaks in PINNED {
        let mut play = Play::begin(hops(speaks, None), speaks, Asks::at_once(4, 5));
        play.asked();
        play.at(10);
        play.answer(&[(0, &to("/b")), (1, &ok()), (2, &to("/c")), (3, &to("/b"))]);
        assert_eq!(play.asked(), [B, C, B, A], "{speaks:?}: what is new comes behind them");
        play.at(20);
        play.answer(&[(4, &to("/c")), (5, &ok()), (6, &to("/c")), (7, &ok())]);
        assert_eq!(play.asked(), [C, C], "{speaks:?}");
        play.at(30);
        play.answer(&[(8, &ok()), (9, &ok())]);
        let (done, _) = play.end();
        let seen = (vec![(0, 2), (1, 1), (2, 2)], vec![(302, 5)]);
        assert_eq!(redirects(&done), seen, "{speaks:?}");
        assert_eq!((done.meter.ok, done.meter.failed_sum()), (5, 0), "{speaks:?}");
    }
}

#[test]
fn a_hop_whose_connection_closes_waits_for_the_next_one() {
    // The answer that announces the close is the redirect itself, or one that came before the hop
    // was answered.
    for (speaks, redirect_closes) in
        PINNED.into_iter().flat_map(|each| [(each, true), (each, false)])
    {
        let asked = if redirect_closes { vec![A, A, B] } else { vec![A, B] };
        let mut play = Play::begin(hops(speaks, None), speaks, Asks::at_once(3, 3));
        play.asked();
        play.at(10);
        if redirect_closes {
            play.answer(&[(0, &to("/b").closing())]);
        } else {
            play.answer(&[(0, &to("/b"))]);
            assert_eq!(play.asked(), [B]);
            play.answer(&[(1, &ok().closing())]);
        }
        assert_eq!(play.asked(), Vec::<String>::new(), "{speaks:?}");
        play.end_connection();
        play.at(40);
        play.connected(speaks == Speaks::Http2);
        let mut found = play.asked();
        if !redirect_closes {
            // Requests of one schedule that went stale together are alike.
            found.sort_unstable();
        }
        assert_eq!(found, asked, "{speaks:?}");
        play.at(70);
        (0..asked.len() as u32).for_each(|nth| play.answer(&[(nth, &ok())]));
        let (done, latencies) = play.end();
        assert_eq!((done.meter.ok, done.meter.stale), (3, 2), "{speaks:?}");
        assert_eq!(latencies.last(), Some(&index(70 * MS)), "{speaks:?}: its time runs on");
        assert_eq!(redirects(&done).0, [(0, 2), (1, 1)], "{speaks:?}");
    }
}

#[test]
fn a_hop_is_out_of_time_by_the_send_of_its_first_request() {
    for speaks in PINNED {
        // The second request is sent at 300 ms, and the hop behind it at 400.
        let asks = Asks { depth: 2, count: 2, every_ms: Some(300) };
        let mut play = Play::begin(hops(speaks, None), speaks, asks);
        assert_eq!(play.asked(), [A]);
        play.at(300);
        assert_eq!(play.asked(), [A]);
        play.at(400);
        play.answer(&[(0, &to("/b"))]);
        assert_eq!(play.asked(), [B]);
        play.at(590);
        play.answer(&[(1, &ok())]);
        play.at(591);
        let given_up = match speaks {
            Speaks::Http1 => play.wire.closed == [0],
            _ => !play.wire.sent.is_empty(),
        };
        assert!(given_up, "{speaks:?}: it is the oldest now, and its time was over at 500 ms");
        let (done, latencies) = play.end();
        assert_eq!(latencies, [index(290 * MS)], "{speaks:?}");
        let failed: Vec<_> = done.meter.failed().collect();
        assert_eq!(failed, [(Class::TimeoutFirstByte, 1)], "{speaks:?}");
    }
}

#[test]
fn a_hop_does_not_hide_the_send_of_the_request_before_it() {
    for speaks in PINNED {
        let mut play = Play::begin(hops(speaks, None), speaks, Asks::at_once(2, 3));
        play.at(10);
        // A new request is written, and the hop behind it, before either is handed to the kernel.
        play.answer_in_batch(&[(0, &ok()), (1, &to("/b"))], 60);
        assert_eq!(play.asked(), [A, A, A, B], "{speaks:?}");
        let mut gives_up = |ms| {
            play.at(ms);
            !play.wire.closed.is_empty() || !play.wire.take_sent().is_empty()
        };
        // The hop is out of time at 500 ms, but it is not the oldest.
        assert!(!gives_up(559), "{speaks:?}");
        assert!(gives_up(560), "{speaks:?}: 500 ms after it was sent");
    }
}

#[test]
fn the_next_connection_speaks_its_own_version_and_hops_go_on_in_it() {
    // Each connection but the last ends with its first redirect.
    for order in [[true, false, true], [true, false, false]] {
        let asks = Asks::at_once(3, 3);
        let mut play = Play::begin(hops(Speaks::Either, None), Speaks::Either, asks);
        assert_eq!(play.asked(), [A; 3], "as many as HTTP/2 may have");
        for (at_ms, place, next) in [(10, "/b", order[1]), (20, "/c", order[2])] {
            play.at(at_ms);
            play.answer(&[(0, &to(place).closing())]);
            play.end_connection();
            play.at(at_ms + 5);
            play.connected(next);
            assert_eq!(play.asked().len(), if next { 3 } else { 2 }, "{order:?}");
        }
        play.at(50);
        (0..3).for_each(|nth| play.answer(&[(nth, &ok())]));
        let (done, _) = play.end();
        assert_eq!((done.meter.ok, done.meter.failed_sum()), (3, 0), "{order:?}");
        assert_eq!(redirects(&done).1, [(302, 2)], "{order:?}");
        let account = done.account.expect("connections count");
        let over_http1 = order.iter().filter(|over_http2| !**over_http2).count() as u64;
        assert_eq!((account.connections, account.chose_http1), (3 - over_http1, over_http1));
    }
}

#[test]
fn only_the_final_answer_has_parts_and_they_are_timed_from_the_first_schedule() {
    for speaks in [Speaks::Http1, Speaks::Http2, Speaks::Either] {
        let mut play = Play::begin(hops(speaks, lines()), speaks, Asks::at_once(2, 2));
        play.asked();
        play.at(10);
        // The second redirect comes slowly: it cannot stall, as it is no stream.
        play.answer(&[(0, &to("/b")), (1, &to("/c").begun())]);
        play.at(10 + 2 * super::STALL_NS / MS);
        let rest = match speaks {
            Speaks::Http1 => b"0\r\n\r\n".to_vec(),
            _ => [&[0, 0, 0, 0, 1, 0, 0, 0, 3][..]].concat(),
        };
        play.answer_in([rest]);
        assert_eq!(play.asked(), [B, C], "{speaks:?}");
        play.at(300);
        play.answer(&[(2, &Answer::ok(&["a\nb\n", "c\n"])), (3, &Answer::ok(&["d\n"]))]);
        let (done, _) = play.end();
        assert_eq!((done.meter.ok, done.meter.failed_sum()), (2, 0), "{speaks:?}");
        assert_eq!(streams(&done), (4, 2), "{speaks:?}");
        let (mut both, seen) = (Streams::default(), done.meter.streams.expect("streams"));
        [3, 1].into_iter().for_each(|parts| both.record_whole(300 * MS, parts));
        assert_eq!(seen.histograms.first_part, both.histograms.first_part, "{speaks:?}");
    }
}

#[test]
fn a_stream_behind_a_redirect_stalls_and_one_without_parts_is_a_mismatch() {
    for speaks in PINNED {
        for (answer, class, parts) in [
            (Answer::ok(&["a\n"]).begun(), Class::TimeoutStall, 1),
            (Answer::ok(&[]), Class::Mismatch, 0),
            (Answer::ok(&["a\n"]).status(500), Class::Status, 0),
        ] {
            let mut play = Play::begin(hops(speaks, lines()), speaks, Asks::at_once(1, 1));
            play.at(10);
            play.answer(&[(0, &to("/b"))]);
            play.at(50);
            play.answer(&[(1, &answer)]);
            let closed_by = |play: &mut Play<_>, ms| {
                play.at(ms);
                play.wire.closed.len()
            };
            let stalls = class == Class::TimeoutStall && speaks == Speaks::Http1;
            assert_eq!(closed_by(&mut play, 149), 0);
            assert_eq!(closed_by(&mut play, 151), usize::from(stalls), "{speaks:?}, {class}");
            let (done, _) = play.end();
            assert_eq!(done.meter.failed().collect::<Vec<_>>(), [(class, 1)], "{speaks:?}");
            assert_eq!(streams(&done), (parts, 0), "{speaks:?}, {class}");
            assert_eq!(redirects(&done), (vec![], vec![(302, 1)]), "{speaks:?}, {class}");
        }
    }
}
