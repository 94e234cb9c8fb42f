//! The reference server in virtual time: one thread of it, a wire that only writes down.

mod http2;
mod streams;
mod timeouts;
mod unread;
mod world;

use std::time::Duration;

use proptest::prelude::*;
use trueload_drive::{PeerClose, Program};
use trueload_engine::protocol::FaultsPlan;

use crate::common::Sent;

use world::{MS, NOVEMBER_1994_S, World};

fn get(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").into_bytes()
}

#[test]
fn the_date_is_the_wall_clock_of_the_driver() {
    let mut world = World::new();
    let mut date = |unix_s| {
        world.wire.epoch = Duration::from_secs(unix_s);
        world.pass(world.wire.now_ns + 250 * MS);
        world.wire.sent.clear();
        world.receive(&get("/", ""));
        let sent = world.sent();
        let line = sent.lines().find_map(|line| line.strip_prefix("Date: ")).map(str::to_owned);
        line.expect("a date")
    };
    assert_eq!(date(NOVEMBER_1994_S), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(date(NOVEMBER_1994_S + 1), "Sun, 06 Nov 1994 08:49:38 GMT");
    assert_eq!(date(4_102_444_800), "Fri, 01 Jan 2100 00:00:00 GMT");
}

#[test]
fn the_first_answer_has_a_date() {
    let mut world = World::new();
    world.receive(&get("/", ""));
    assert!(
        world.sent().contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        "{}",
        world.sent()
    );
}

#[test]
fn a_redirect_says_where_it_leads_with_its_status() {
    for (path, head) in [
        ("/redirect/3", "302 Found\r\n/redirect/2"),
        ("/redirect/1/307", "307 Temporary Redirect\r\n/"),
    ] {
        let mut world = World::new();
        world.receive(&get(path, ""));
        let sent = world.sent();
        let (status, location) = head.split_once("\r\n").expect("two");
        assert!(sent.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{sent}");
        assert!(sent.contains(&format!("\r\nLocation: {location}\r\n")), "{sent}");
        assert!(sent.ends_with("\r\n\r\nredirected\n"), "{sent}");
    }
}

#[test]
fn a_wait_is_answered_when_its_time_has_come_and_not_before() {
    let mut world = World::new();
    world.receive(&get("/wait/10", ""));
    world.pass(10 * MS - 1);
    assert_eq!(world.sent(), "");
    world.pass(10 * MS);
    assert_eq!(world.wire.sent.len(), 1);
    assert_eq!(world.wire.sent[0].at_ns, 10 * MS);
    assert!(world.sent().ends_with("\r\n\r\nok"), "{}", world.sent());
}

#[test]
fn answers_due_just_after_others_leave_together_and_one_alone_at_its_time() {
    const US: u64 = 1_000;
    let mut world = World::new();
    let after_us = [0, 5, 24, 26, 51, 300];
    for (index, after_us) in (1..).zip(after_us) {
        let conn = world.accept(index);
        world.wire.now_ns = after_us * US;
        world.server.handle_input(&mut world.wire, conn, &get("/wait/10", ""), false);
    }
    world.pass(11 * MS);
    let left_us: Vec<u64> =
        world.wire.sent.iter().map(|sent| (sent.at_ns - 10 * MS) / US).collect();
    assert_eq!(left_us, [0, 25, 25, 50, 75, 300]);
}

#[test]
fn answers_leave_in_the_order_of_their_requests_those_that_wait_included() {
    let mut world = World::new();
    world.receive(&[get("/wait/20", ""), get("/", ""), get("/wait/5", ""), get("/x", "")].concat());
    world.pass(19 * MS);
    assert_eq!(world.sent(), "", "the first one holds back the rest");
    world.pass(20 * MS);
    assert_eq!(world.statuses(), ["200", "200", "200", "404"]);
    let sent = world.sent();
    let places = ["\r\n\r\nok", "Hello, World!", "not found"].map(|text| sent.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{sent}");
}

#[test]
fn what_is_due_leaves_between_the_requests_of_a_burst() {
    let mut world = World::recording();
    world.receive(&get("/wait/1", ""));
    world.wire.step_ns = MS / 100;
    let other = world.accept(1);
    for _ in 0..150 {
        world.server.handle_input(&mut world.wire, other, &get("/wait/9", ""), false);
    }
    let Sent { at_ns, bytes, .. } = world.wire.sent.first().expect("the batch is not over yet");
    assert!(bytes.ends_with(b"\r\n\r\nok") && (MS..MS + MS / 10).contains(at_ns), "{at_ns} ns");
    let error = world.mark().delay_error_ns.expect("an answer that waited");
    assert!(error.count == 1 && error.max < MS / 5, "{error:?}");
}

#[test]
fn a_delay_begins_when_its_request_is_read_and_not_with_the_batch() {
    let mut world = World::new();
    world.wire.step_ns = 3 * MS;
    world.receive(&get("/wait/10", ""));
    world.wire.step_ns = 0;
    world.pass(13 * MS - 1);
    assert_eq!(world.sent(), "");
    world.pass(13 * MS);
    assert_eq!(world.statuses(), ["200"]);
}

#[test]
fn a_close_that_was_asked_for_ends_the_connection_after_its_answer() {
    for (fields, waits) in [("Connection: close\r\n", false), ("Connection: close\r\n", true)] {
        let mut world = World::new();
        world.receive(&get(if waits { "/wait/3" } else { "/" }, fields));
        world.pass(3 * MS);
        assert_eq!(world.statuses(), ["200"]);
        assert!(world.sent().contains("Connection: close\r\n"));
        assert!(world.is_closed());
        let seen = world.seen();
        assert_eq!((seen.requests, seen.responses, seen.open), (1, 1, 0));
    }
}

#[test]
fn what_is_not_http_is_refused_once_and_counted() {
    let mut world = World::new();
    world.receive(b"HELO mail\r\n\r\n");
    assert_eq!(world.statuses(), ["400"]);
    assert!(world.is_closed());
    let seen = world.seen();
    assert_eq!((seen.malformed, seen.requests, seen.responses), (1, 0, 0));
}

#[test]
fn a_request_that_would_have_to_be_repaired_is_refused() {
    let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    for (sentence, request) in [
        ("a folded field", post("X: y\r\n z\r\n")),
        ("equal lengths", post("Content-Length: 2\r\nContent-Length: 2\r\n") + "ab"),
        ("a list of them", post("Content-Length: 2, 2\r\n") + "ab"),
        (
            "a length behind the body",
            post("Transfer-Encoding: chunked\r\n") + "0\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let mut world = World::new();
        world.receive(request.as_bytes());
        assert_eq!(world.statuses(), ["400"], "{sentence}");
        assert!(world.is_closed(), "{sentence}");
        assert_eq!(world.seen().malformed, 1, "{sentence}");
    }
}

#[test]
fn a_later_minor_version_is_answered_as_http11() {
    let mut world = World::new();
    world.receive(b"GET / HTTP/1.2\r\nHost: h\r\n\r\n");
    assert_eq!(world.statuses(), ["200"]);
    assert!(world.sent().starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(!world.is_closed());
}

#[test]
fn a_client_that_leaves_while_its_answer_waits_is_counted_as_aborted() {
    let mut world = World::new();
    world.receive(&[get("/wait/50", ""), get("/", "")].concat());
    world.server.handle_end(&mut world.wire, world.conn, PeerClose::Reset);
    world.pass(100 * MS);
    assert_eq!(world.sent(), "");
    let seen = world.seen();
    assert_eq!((seen.aborted, seen.waiting, seen.open, seen.requests), (2, 0, 0, 2));
}

#[test]
fn a_head_request_gets_the_head_alone_and_an_awaited_body_is_asked_for() {
    let mut world = World::new();
    world.receive(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(world.sent().contains("Content-Length: 13\r\n") && world.sent().ends_with("\r\n\r\n"));
    world.receive(
        b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    );
    assert!(world.sent().ends_with("HTTP/1.1 100 Continue\r\n\r\n"), "{}", world.sent());
    world.receive(b"abc");
    assert_eq!(world.statuses(), ["200", "100", "200"]);
}

#[test]
fn a_record_tells_what_was_seen_since_the_mark_before() {
    let mut world = World::recording();
    world.receive(&[get("/", ""), get("/wait/20", "")].concat());
    world.receive(b"GET / HT");
    world.pass(10 * MS);
    let first = world.mark();
    assert_eq!((first.requests, first.answered, first.ok, first.accepted), (2, 1, 1, 1));
    assert_eq!((first.open_requests.now, first.open_requests.peak), (1, 1));
    assert!((first.open_requests.mean - 1.0).abs() < 1e-9, "{:?}", first.open_requests);
    world.pass(30 * MS);
    world.server.handle_end(&mut world.wire, world.conn, PeerClose::Fin);
    world.pass(40 * MS);
    let second = world.mark();
    assert_eq!((second.requests, second.answered, second.accepted, second.closed), (0, 1, 0, 1));
    assert_eq!((second.half_sent, second.aborted, second.unused), (1, 0, 1));
    assert_eq!((second.began_ns, second.at_ns), (10 * MS, 40 * MS));
    assert_eq!(second.last_answer_ns, Some(20 * MS));
    let bytes = first.bytes_out + second.bytes_out;
    assert_eq!(bytes, world.sent().len() as u64);
    let (requests, at_once) = (first.bytes_in + second.bytes_in, get("/", "").len());
    assert_eq!(requests, (at_once + get("/wait/20", "").len() + 8) as u64);
}

#[test]
fn a_server_with_a_record_answers_and_counts_as_one_without() {
    let asked = [get("/", "").repeat(70), get("/wait/3", ""), get("/x", ""), get("/", "")].concat();
    let (mut plain, mut recording) = (World::new(), World::recording());
    for world in [&mut plain, &mut recording] {
        world.receive(&asked);
        world.pass(5 * MS);
    }
    let seen = recording.mark();
    assert_eq!((seen.answered, seen.ok, seen.statuses.get("404")), (73, 72, Some(&1)));
    assert_eq!(seen.delay_error_ns.map(|error| (error.count, error.max)), Some((1, 0)));
    assert_eq!(recording.sent_undated(), plain.sent_undated());
    assert_eq!(recording.seen(), plain.seen());
}

#[test]
fn an_error_is_an_answer_with_status_500_also_where_it_has_to_wait() {
    let mut world = World::failing(FaultsPlan { error_share: 1.0, ..FaultsPlan::default() });
    world.receive(&[get("/", ""), get("/", ""), get("/wait/2", "")].concat());
    world.pass(2 * MS);
    assert_eq!(world.statuses(), ["500", "500", "500"]);
    let seen = world.mark();
    assert_eq!((seen.answered, seen.ok, seen.statuses.get("500")), (3, 0, Some(&3)));
    assert_eq!(seen.faults.get("error"), Some(&3));
}

#[test]
fn each_request_takes_its_work_and_is_answered_as_without() {
    let mut world = World::failing(FaultsPlan { work_ns: 2_000, ..FaultsPlan::default() });
    world.wire.step_ns = 100;
    for round in 1..=3_u64 {
        let began_ns = world.wire.now_ns;
        world.receive(&get("/", "").repeat(round as usize));
        let took_ns = world.wire.now_ns - began_ns;
        assert!((2_000 * round..2_300 * round).contains(&took_ns), "{round}: {took_ns} ns");
    }
    assert_eq!(world.statuses(), ["200"; 6]);
    assert!(world.mark().faults.is_empty());
}

#[test]
fn a_reset_comes_instead_of_the_answer_at_the_time_of_the_answer() {
    let mut world = World::failing(FaultsPlan { reset_share: 1.0, ..FaultsPlan::default() });
    world.receive(&get("/wait/5", ""));
    world.pass(5 * MS - 1);
    assert!(!world.is_closed());
    world.pass(5 * MS);
    assert!(!world.wire.reset.is_empty() && world.sent().is_empty());
    let seen = world.mark();
    assert_eq!((seen.requests, seen.answered, seen.dropped, seen.closed), (1, 0, 1, 1));
    assert_eq!(seen.faults.get("reset"), Some(&1));
}

#[test]
fn a_stall_holds_back_its_answer_and_one_without_an_end_for_ever() {
    for (stall_ns, answered) in [(Some(30 * MS), 1), (None, 0)] {
        let plan = FaultsPlan { stall_share: 1.0, stall_ns, ..FaultsPlan::default() };
        let mut world = World::failing(plan);
        world.receive(&get("/", ""));
        world.pass(30 * MS - 1);
        assert_eq!(world.sent(), "");
        world.pass(100_000 * MS);
        assert_eq!(world.statuses().len(), answered, "{stall_ns:?}");
        let seen = world.mark();
        assert_eq!((seen.faults.get("stall"), seen.aborted), (Some(&1), 0));
        assert_eq!(seen.open_requests.now as usize, 1 - answered);
    }
}

#[test]
fn a_slow_body_comes_in_pieces_over_its_time_and_those_behind_it_after_it() {
    let plan = FaultsPlan { slow_share: 1.0, slow_ns: 40 * MS, ..FaultsPlan::default() };
    let mut world = World::failing(plan);
    world.receive(&[get("/", ""), get("/", "")].concat());
    world.pass(100 * MS);
    let times: Vec<u64> = world.wire.sent.iter().map(|sent| sent.at_ns / MS).collect();
    assert_eq!(times, [0, 10, 20, 30, 40, 50, 60, 70, 80]);
    assert_eq!(
        world.sent().matches("Hello, World!").count(),
        2,
        "whole in the end: {}",
        world.sent()
    );
    let seen = world.mark();
    assert_eq!((seen.answered, seen.faults.get("slow")), (2, Some(&2)));
}

#[test]
fn a_connection_is_closed_after_so_many_requests_with_or_without_a_word() {
    for close_silently in [false, true] {
        let plan = FaultsPlan { close_after: Some(2), close_silently, ..FaultsPlan::default() };
        let mut world = World::failing(plan);
        world.receive(&get("/", ""));
        assert!(!world.is_closed());
        world.receive(&get("/wait/1", ""));
        world.pass(MS);
        assert!(world.is_closed() && world.wire.reset.is_empty());
        assert_eq!(world.statuses(), ["200", "200"]);
        assert_eq!(world.sent().contains("Connection: close"), !close_silently);
        assert_eq!(world.mark().faults.get("close"), Some(&1));
    }
}

proptest! {
    #[test]
    fn a_split_never_changes_what_is_answered(
        runs in prop::collection::vec(
            (prop::sample::select(vec!["/", "/perf", "/nope", "/wait/1"]), prop_oneof![1..4_usize, 60..140_usize]),
            1..6,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes: Vec<u8> =
            runs.iter().flat_map(|(path, times)| get(path, "").repeat(*times)).collect();
        let mut whole = World::new();
        whole.receive(&bytes);
        whole.pass(20 * MS);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut split = World::new();
        for pair in places.windows(2).filter(|pair| pair[0] < pair[1]) {
            split.receive(&bytes[pair[0]..pair[1]]);
        }
        split.pass(20 * MS);
        let asked: usize = runs.iter().map(|(_, times)| times).sum();
        prop_assert_eq!(whole.statuses().len(), asked);
        prop_assert_eq!(split.sent_undated(), whole.sent_undated());
        prop_assert_eq!(split.seen(), whole.seen());
    }
}
