//! The reference server in virtual time: one thread of it, a wire that only writes down.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use proptest::prelude::*;
use trueload_drive::{ConnectError, Net, PeerClose, Program, Remote, Token};
use trueload_engine::outlet::Outlet;
use trueload_engine::protocol::{FaultsPlan, Interval};
use trueload_engine::server::{Command, Faults, Report, Seen, Server, Watch};

const MS: u64 = 1_000_000;
/// The Date of RFC 9110 §5.6.7: Sun, 06 Nov 1994 08:49:37 GMT.
const NOVEMBER_1994_S: u64 = 784_111_777;
const TOKEN: Token = Token { index: 0, generation: 0 };

/// What the server has said, when, and whether it has closed.
#[derive(Default)]
struct Wire {
    now_ns: u64,
    unix_time: Duration,
    /// How much time passes until the clock is read again.
    step_ns: u64,
    said: Vec<(u64, String)>,
    closed: bool,
    reset: bool,
}

impl Net for Wire {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn read_clock(&mut self) {
        self.now_ns += self.step_ns;
    }

    fn unix_time(&self) -> Duration {
        self.unix_time
    }

    fn connect(&mut self, _: u32, _: Remote<'_>, _: Option<IpAddr>) -> Result<Token, ConnectError> {
        unreachable!("a server does not connect")
    }

    fn send(&mut self, _token: Token, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).expect("the server says ASCII");
        self.said.push((self.now_ns, text));
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.send(token, &bytes[range]);
    }

    fn end_sending(&mut self, _: Token) {}

    fn close(&mut self, _token: Token) {
        self.closed = true;
    }

    fn reset(&mut self, _token: Token) {
        (self.closed, self.reset) = (true, true);
    }

    fn finish(&mut self, _token: Token) {
        self.closed = true;
    }
}

/// A server with one connection, and the clock in hand.
struct World {
    server: Server,
    wire: Wire,
    key: u32,
    commands: Sender<Command>,
    reports: Receiver<Report>,
}

impl World {
    fn new() -> Self {
        Self::with(|server| server)
    }

    /// With a server that keeps a record.
    fn recording() -> Self {
        Self::with(|server| server.with_record(0))
    }

    /// With a record, and with these faults.
    fn failing(plan: FaultsPlan) -> Self {
        Self::with(|server| server.with_record(0).with_faults(Faults::new(plan, 0)))
    }

    fn with(habits: impl Fn(Server) -> Server) -> Self {
        let (commands, inbox) = channel();
        let (sink, reports) = channel();
        let watch = Watch::new(0, inbox, Outlet::to(sink, |report| report));
        let mut server = habits(Server::new(None, watch));
        let unix_time = Duration::from_secs(NOVEMBER_1994_S);
        let mut wire = Wire { unix_time, ..Wire::default() };
        let key = server.handle_accepted(&mut wire, TOKEN);
        World { server, wire, key, commands, reports }
    }

    fn hear(&mut self, text: &[u8]) {
        self.server.handle_input(&mut self.wire, self.key, TOKEN, text, false);
    }

    /// Lets time pass up to `until_ns`, waking the server whenever it asks for it.
    fn pass(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.server.wake_at_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.wire.now_ns = at_ns.max(self.wire.now_ns);
            self.server.handle_time(&mut self.wire);
            self.server.handle_batch_end(&mut self.wire);
        }
        self.wire.now_ns = until_ns;
    }

    fn said(&self) -> String {
        self.wire.said.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// What was said, but for the clock.
    fn said_undated(&self) -> Vec<String> {
        let said = self.said();
        said.lines().filter(|line| !line.starts_with("Date: ")).map(str::to_owned).collect()
    }

    fn statuses(&self) -> Vec<String> {
        let said = self.said();
        let heads = said.match_indices("HTTP/1.1 ").map(|(at, _)| said[at + 9..at + 12].to_owned());
        heads.collect()
    }

    /// What was seen since the mark before.
    fn mark(&mut self) -> Interval {
        self.commands.send(Command::Mark).expect("the server listens");
        self.server.handle_wake(&mut self.wire);
        match self.reports.try_iter().last() {
            Some(Report::Marked { interval, .. }) => interval.report("m".into()),
            other => panic!("no interval: {other:?}"),
        }
    }

    fn seen(mut self) -> Seen {
        self.commands.send(Command::Stop).expect("the server listens");
        self.server.handle_wake(&mut self.wire);
        assert!(self.server.is_done());
        match self.reports.try_iter().last() {
            Some(Report::Counts { seen, ended: true, .. }) => seen,
            other => panic!("no last report: {other:?}"),
        }
    }
}

fn get(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").into_bytes()
}

#[test]
fn the_date_is_the_wall_clock_of_the_driver() {
    let mut world = World::new();
    let mut date = |unix_s| {
        world.wire.unix_time = Duration::from_secs(unix_s);
        world.pass(world.wire.now_ns + 250 * MS);
        world.wire.said.clear();
        world.hear(&get("/", ""));
        let said = world.said();
        let line = said.lines().find_map(|line| line.strip_prefix("Date: ")).map(str::to_owned);
        line.expect("a date")
    };
    assert_eq!(date(NOVEMBER_1994_S), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(date(NOVEMBER_1994_S + 1), "Sun, 06 Nov 1994 08:49:38 GMT");
    assert_eq!(date(4_102_444_800), "Fri, 01 Jan 2100 00:00:00 GMT");
}

#[test]
fn the_first_answer_has_a_date() {
    let mut world = World::new();
    world.hear(&get("/", ""));
    assert!(
        world.said().contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        "{}",
        world.said()
    );
}

#[test]
fn a_wait_is_answered_when_its_time_has_come_and_not_before() {
    let mut world = World::new();
    world.hear(&get("/wait/10", ""));
    world.pass(10 * MS - 1);
    assert_eq!(world.said(), "");
    world.pass(10 * MS);
    assert_eq!(world.wire.said.len(), 1);
    assert_eq!(world.wire.said[0].0, 10 * MS);
    assert!(world.said().ends_with("\r\n\r\nok"), "{}", world.said());
}

#[test]
fn answers_leave_in_the_order_of_their_requests_those_that_wait_included() {
    let mut world = World::new();
    world.hear(&[get("/wait/20", ""), get("/", ""), get("/wait/5", ""), get("/x", "")].concat());
    world.pass(19 * MS);
    assert_eq!(world.said(), "", "the first one holds back the rest");
    world.pass(20 * MS);
    assert_eq!(world.statuses(), ["200", "200", "200", "404"]);
    let said = world.said();
    let places = ["\r\n\r\nok", "Hello, World!", "not found"].map(|text| said.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{said}");
}

#[test]
fn what_is_due_leaves_between_the_requests_of_a_burst() {
    let mut world = World::recording();
    world.hear(&get("/wait/1", ""));
    world.wire.step_ns = MS / 100;
    let other = Token { index: 1, generation: 0 };
    let key = world.server.handle_accepted(&mut world.wire, other);
    for _ in 0..150 {
        world.server.handle_input(&mut world.wire, key, other, &get("/wait/9", ""), false);
    }
    let (at_ns, said) = world.wire.said.first().expect("the batch is not over yet");
    assert!(said.ends_with("\r\n\r\nok") && (MS..MS + MS / 10).contains(at_ns), "{at_ns} ns");
    let error = world.mark().delay_error_ns.expect("an answer that waited");
    assert!(error.count == 1 && error.max < MS / 5, "{error:?}");
}

#[test]
fn a_delay_begins_when_its_request_is_read_and_not_with_the_batch() {
    let mut world = World::new();
    world.wire.step_ns = 3 * MS;
    world.hear(&get("/wait/10", ""));
    world.wire.step_ns = 0;
    world.pass(13 * MS - 1);
    assert_eq!(world.said(), "");
    world.pass(13 * MS);
    assert_eq!(world.statuses(), ["200"]);
}

#[test]
fn a_close_that_was_asked_for_ends_the_connection_after_its_answer() {
    for (fields, waits) in [("Connection: close\r\n", false), ("Connection: close\r\n", true)] {
        let mut world = World::new();
        world.hear(&get(if waits { "/wait/3" } else { "/" }, fields));
        world.pass(3 * MS);
        assert_eq!(world.statuses(), ["200"]);
        assert!(world.said().contains("Connection: close\r\n"));
        assert!(world.wire.closed);
        let seen = world.seen();
        assert_eq!((seen.requests, seen.responses, seen.open), (1, 1, 0));
    }
}

#[test]
fn what_is_not_http_is_refused_once_and_counted() {
    let mut world = World::new();
    world.hear(b"HELO mail\r\n\r\n");
    assert_eq!(world.statuses(), ["400"]);
    assert!(world.wire.closed);
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
        world.hear(request.as_bytes());
        assert_eq!(world.statuses(), ["400"], "{sentence}");
        assert!(world.wire.closed, "{sentence}");
        assert_eq!(world.seen().malformed, 1, "{sentence}");
    }
}

#[test]
fn a_later_minor_version_is_answered_as_http11() {
    let mut world = World::new();
    world.hear(b"GET / HTTP/1.2\r\nHost: h\r\n\r\n");
    assert_eq!(world.statuses(), ["200"]);
    assert!(world.said().starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(!world.wire.closed);
}

#[test]
fn a_client_that_leaves_while_its_answer_waits_is_counted_as_aborted() {
    let mut world = World::new();
    world.hear(&[get("/wait/50", ""), get("/", "")].concat());
    world.server.handle_end(&mut world.wire, world.key, TOKEN, PeerClose::Reset);
    world.pass(100 * MS);
    assert_eq!(world.said(), "");
    let seen = world.seen();
    assert_eq!((seen.aborted, seen.waiting, seen.open, seen.requests), (2, 0, 0, 2));
}

#[test]
fn a_head_request_gets_the_head_alone_and_an_awaited_body_is_asked_for() {
    let mut world = World::new();
    world.hear(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(world.said().contains("Content-Length: 13\r\n") && world.said().ends_with("\r\n\r\n"));
    world.hear(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert!(world.said().ends_with("HTTP/1.1 100 Continue\r\n\r\n"), "{}", world.said());
    world.hear(b"abc");
    assert_eq!(world.statuses(), ["200", "100", "200"]);
}

#[test]
fn a_record_tells_what_was_seen_since_the_mark_before() {
    let mut world = World::recording();
    world.hear(&[get("/", ""), get("/wait/20", "")].concat());
    world.hear(b"GET / HT");
    world.pass(10 * MS);
    let first = world.mark();
    assert_eq!((first.requests, first.answered, first.ok, first.accepted), (2, 1, 1, 1));
    assert_eq!((first.open_requests.now, first.open_requests.peak), (1, 1));
    assert!((first.open_requests.mean - 1.0).abs() < 1e-9, "{:?}", first.open_requests);
    world.pass(30 * MS);
    world.server.handle_end(&mut world.wire, world.key, TOKEN, PeerClose::Fin);
    world.pass(40 * MS);
    let second = world.mark();
    assert_eq!((second.requests, second.answered, second.accepted, second.closed), (0, 1, 0, 1));
    assert_eq!((second.half_sent, second.aborted, second.unused), (1, 0, 1));
    assert_eq!((second.began_ns, second.at_ns), (10 * MS, 40 * MS));
    assert_eq!(second.last_answer_ns, Some(20 * MS));
    let bytes = first.bytes_out + second.bytes_out;
    assert_eq!(bytes, world.said().len() as u64);
    let (requests, at_once) = (first.bytes_in + second.bytes_in, get("/", "").len());
    assert_eq!(requests, (at_once + get("/wait/20", "").len() + 8) as u64);
}

#[test]
fn a_server_with_a_record_answers_and_counts_as_one_without() {
    let asked = [get("/", "").repeat(70), get("/wait/3", ""), get("/x", ""), get("/", "")].concat();
    let (mut plain, mut recording) = (World::new(), World::recording());
    for world in [&mut plain, &mut recording] {
        world.hear(&asked);
        world.pass(5 * MS);
    }
    let seen = recording.mark();
    assert_eq!((seen.answered, seen.ok, seen.statuses.get("404")), (73, 72, Some(&1)));
    assert_eq!(seen.delay_error_ns.map(|error| (error.count, error.max)), Some((1, 0)));
    assert_eq!(recording.said_undated(), plain.said_undated());
    assert_eq!(recording.seen(), plain.seen());
}

#[test]
fn an_error_is_an_answer_with_status_500_also_where_it_has_to_wait() {
    let mut world = World::failing(FaultsPlan { error_share: 1.0, ..FaultsPlan::default() });
    world.hear(&[get("/", ""), get("/", ""), get("/wait/2", "")].concat());
    world.pass(2 * MS);
    assert_eq!(world.statuses(), ["500", "500", "500"]);
    let seen = world.mark();
    assert_eq!((seen.answered, seen.ok, seen.statuses.get("500")), (3, 0, Some(&3)));
    assert_eq!(seen.faults.get("error"), Some(&3));
}

#[test]
fn a_reset_comes_instead_of_the_answer_at_the_time_of_the_answer() {
    let mut world = World::failing(FaultsPlan { reset_share: 1.0, ..FaultsPlan::default() });
    world.hear(&get("/wait/5", ""));
    world.pass(5 * MS - 1);
    assert!(!world.wire.closed);
    world.pass(5 * MS);
    assert!(world.wire.reset && world.said().is_empty());
    let seen = world.mark();
    assert_eq!((seen.requests, seen.answered, seen.dropped, seen.closed), (1, 0, 1, 1));
    assert_eq!(seen.faults.get("reset"), Some(&1));
}

#[test]
fn a_stall_holds_back_its_answer_and_one_without_an_end_for_ever() {
    for (stall_ns, answered) in [(Some(30 * MS), 1), (None, 0)] {
        let plan = FaultsPlan { stall_share: 1.0, stall_ns, ..FaultsPlan::default() };
        let mut world = World::failing(plan);
        world.hear(&get("/", ""));
        world.pass(30 * MS - 1);
        assert_eq!(world.said(), "");
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
    world.hear(&[get("/", ""), get("/", "")].concat());
    world.pass(100 * MS);
    let body_at = |(at_ns, text): &(u64, String)| (at_ns / MS, text.len() > 20, text.clone());
    let said: Vec<_> = world.wire.said.iter().map(body_at).collect();
    let times: Vec<u64> = said.iter().map(|(at, _, _)| *at).collect();
    assert_eq!(times, [0, 10, 20, 30, 40, 50, 60, 70, 80]);
    assert_eq!(world.said().matches("Hello, World!").count(), 2, "whole in the end: {said:?}");
    let seen = world.mark();
    assert_eq!((seen.answered, seen.faults.get("slow")), (2, Some(&2)));
}

#[test]
fn a_connection_is_closed_after_so_many_requests_with_or_without_a_word() {
    for close_silently in [false, true] {
        let plan = FaultsPlan { close_after: Some(2), close_silently, ..FaultsPlan::default() };
        let mut world = World::failing(plan);
        world.hear(&get("/", ""));
        assert!(!world.wire.closed);
        world.hear(&get("/wait/1", ""));
        world.pass(MS);
        assert!(world.wire.closed && !world.wire.reset);
        assert_eq!(world.statuses(), ["200", "200"]);
        assert_eq!(world.said().contains("Connection: close"), !close_silently);
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
        whole.hear(&bytes);
        whole.pass(20 * MS);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut split = World::new();
        for pair in places.windows(2).filter(|pair| pair[0] < pair[1]) {
            split.hear(&bytes[pair[0]..pair[1]]);
        }
        split.pass(20 * MS);
        let asked: usize = runs.iter().map(|(_, times)| times).sum();
        prop_assert_eq!(whole.statuses().len(), asked);
        prop_assert_eq!(split.said_undated(), whole.said_undated());
        prop_assert_eq!(split.seen(), whole.seen());
    }
}
