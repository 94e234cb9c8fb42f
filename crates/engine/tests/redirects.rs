//! Redirects that are followed, played by hand: what is sent for each hop, and what counts as the
//! answer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use trueload_drive::{ConnectError, PeerClose, Program};
use trueload_engine::generator::{
    Alike, Command, Config, DoneReport, Generator, Hops, Http, Measured, OverEither, PhaseShare,
    Report, Sending, Versions,
};
use trueload_load::{Load, Stop};
use trueload_meter::{Class, index};
use trueload_wire::message::{Request, Rules};

use crate::common::{Wire, config, conn, generator, run_to};

const MS: u64 = 1_000_000;
const START_NS: u64 = 2 * MS;
const WINDOW_NS: u64 = 1_000 * MS;
const TIMEOUT_NS: u64 = 500 * MS;
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET /a/b?c HTTP/1.1\r\nHost: h:1\r\nX: y\r\n\r\n";
const POST: &str = "POST /a/b?c HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\n\r\nhi";

fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 3\r\n\r\nbye")
}

/// A request that is always the same.
fn sending(text: &str, rules: Rules) -> Sending {
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    let mut lines = head.lines();
    let mut words = lines.next().expect("a line").split(' ').map(|word| word.as_bytes().to_vec());
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a header");
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    };
    let (headers, body) = (lines.map(header).collect(), body.as_bytes().to_vec());
    let whole = Some(Arc::new(Request { method, target, headers, body }));
    let burst: Arc<[u8]> = Arc::from(text.as_bytes());
    Sending::Alike(Alike { len: burst.len(), burst, http2: None, whole, rules })
}

/// A generator with one connection in a phase.
struct Play {
    generator: Generator<OverEither<Hops>>,
    wire: Wire,
    reports: Receiver<Report>,
    _commands: Sender<Command>,
}

impl Play {
    fn begin(request: &str, most: u8) -> Self {
        Play::begin_closing(request, most, false)
    }

    /// With `close`, each hop has a connection of its own.
    fn begin_closing(request: &str, most: u8, close: bool) -> Self {
        let head_request = request.starts_with("HEAD");
        let idempotent = !request.starts_with("POST");
        let rules = Rules { head_request, idempotent, ..Rules::default() };
        let hops = Hops::new(most, false, sending(request, rules), None);
        let http = Http::new(Versions::http1(), hops, close);
        let config = Config { close, ..config(TIMEOUT_NS) };
        let (generator, commands, reports) = generator(config, http);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(1)).expect("it listens");
        let load = Load::Closed { active: [].into() };
        let stop = Stop::After(WINDOW_NS);
        let share = PhaseShare::new(load, stop, 1, START_NS);
        let mut play = Play { generator, wire, reports, _commands: commands.clone() };
        play.generator.handle_wake(&mut play.wire);
        play.connected(0);
        commands.send(Command::Phase(share)).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        play.at(0);
        play
    }

    fn connected(&mut self, index: u32) {
        self.generator.handle_time(&mut self.wire);
        self.generator.handle_connected(&mut self.wire, conn(0, index));
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The clock goes on to a moment of the window, by way of all that is due before.
    fn at(&mut self, ms: u64) {
        let now_ns = START_NS + ms * MS;
        run_to(&mut self.generator, &mut self.wire, now_ns);
    }

    fn receive_on(&mut self, index: u32, at_ms: u64, bytes: &str) {
        self.at(at_ms);
        self.generator.handle_input(&mut self.wire, conn(0, index), bytes.as_bytes(), false);
        self.generator.handle_batch_end(&mut self.wire);
    }

    fn receive(&mut self, at_ms: u64, bytes: &str) {
        self.receive_on(0, at_ms, bytes);
    }

    fn last(&self) -> String {
        self.wire.sent.last().expect("something was sent").text()
    }

    fn end(self) -> DoneReport {
        self.end_with_latencies().0
    }

    /// The report, and the latencies of all good answers as indices of histograms.
    fn end_with_latencies(mut self) -> (DoneReport, Vec<u32>) {
        self.at((WINDOW_NS + 3 * TIMEOUT_NS) / MS);
        let mut latencies = Vec::new();
        for report in self.reports.try_iter() {
            match report {
                Report::Tick(tick) => latencies.extend(tick.recorded.latency.iter()),
                Report::Done(done) => {
                    latencies.extend(done.last.latency.iter());
                    return (*done, latencies.into_iter().map(|(index, _)| index).collect());
                }
                _ => {}
            }
        }
        unreachable!("the phase is done")
    }
}

#[test]
fn a_chain_is_one_request_whose_latency_runs_to_the_final_answer() {
    let mut play = Play::begin(GET, 3);
    assert_eq!(play.last(), GET);
    play.receive(10, &redirect(302, "c"));
    assert_eq!(play.last(), GET.replace("/a/b?c", "/a/c"));
    play.receive(30, &redirect(301, "http://H:1/x/../d?e"));
    assert_eq!(play.last(), GET.replace("/a/b?c", "/d?e"));
    play.receive(60, OK);
    assert_eq!(play.last(), GET, "the next request follows at once");
    let (done, latencies) = play.end_with_latencies();
    assert_eq!(latencies, [index(60 * MS)]);
    let seen = done.meter.redirects.as_deref().expect("redirects are followed");
    assert_eq!((done.meter.ok, done.meter.issued, done.meter.stale), (1, 2, 0));
    assert_eq!(Vec::from_iter(seen.statuses.clone()), [(301, 1), (302, 1)]);
    assert_eq!(Vec::from_iter(seen.hops.clone()), [(2, 1)]);
    let statuses: Vec<_> = done.meter.statuses().collect();
    assert_eq!(statuses, [(200, 1)], "the hops are no answers");
    let failed: Vec<_> = done.meter.failed().collect();
    assert_eq!(failed, [(Class::TimeoutFirstByte, 1)]);
}

#[test]
fn the_timeout_covers_the_whole_chain() {
    let mut play = Play::begin(GET, 100);
    for at_ms in (100..=400).step_by(100) {
        play.receive(at_ms, &redirect(302, "/again"));
    }
    play.at(501);
    assert_eq!(
        play.wire.attempts.len(),
        2,
        "the request is out of time, and its connection given up"
    );
    let done = play.end();
    assert_eq!(done.meter.ok, 0);
    assert!(done.meter.failed().any(|found| found == (Class::TimeoutFirstByte, 1)));
}

#[test]
fn methods_and_bodies_go_on_as_fetch_says() {
    let get = "GET /d HTTP/1.1\r\nHost: h:1\r\n\r\n";
    let post = POST.replace("/a/b?c", "/d");
    for (status, next) in [(301, get), (302, get), (303, get), (307, &post), (308, &post)] {
        let mut play = Play::begin(POST, 2);
        play.receive(10, &redirect(status, "/d"));
        assert_eq!(play.last(), next, "{status}");
        // What has become a GET stays one.
        play.receive(20, &redirect(307, "/d"));
        assert_eq!(play.last(), next, "{status}, then 307");
        play.receive(30, OK);
        assert_eq!(play.end().meter.ok, 1);
    }
    let mut play = Play::begin(&GET.replace("GET", "HEAD"), 1);
    play.receive(10, "HTTP/1.1 303 X\r\nLocation: /d\r\nContent-Length: 9\r\n\r\n");
    assert_eq!(play.last(), "HEAD /d HTTP/1.1\r\nHost: h:1\r\nX: y\r\n\r\n");
}

#[test]
fn what_cannot_be_followed_fails_with_its_reason() {
    for (answer, reason) in [
        (redirect(302, "http://h:2/x"), "to another server: a redirect to http://h:2/x"),
        (redirect(302, "https://h:1/x"), "to another server: a redirect to https://h:1/x"),
        (redirect(302, "http:x"), "to no usable URL: a redirect to http:x"),
        (redirect(302, "/x\r\nLocation: /y"), "to no usable URL: a redirect"),
        ("HTTP/1.1 302 X\r\nContent-Length: 0\r\n\r\n".into(), "a redirect without Location"),
    ] {
        let mut play = Play::begin(GET, 3);
        play.receive(10, &answer);
        assert_eq!(play.last(), GET, "the next request, on the same connection");
        assert_eq!((play.wire.sent.len(), play.wire.attempts.len()), (2, 1));
        let done = play.end();
        assert!(done.meter.failed().any(|found| found == (Class::Redirect, 1)), "{answer}");
        assert_eq!(done.reasons, [(Class::Redirect, reason.to_owned())]);
    }
}

#[test]
fn a_loop_ends_at_the_limit() {
    let mut play = Play::begin(GET, 2);
    (1..=3).for_each(|nth| play.receive(10 * nth, &redirect(302, "/a/b?c")));
    let done = play.end();
    assert!(done.meter.failed().any(|found| found == (Class::Redirect, 1)));
    let why = "behind 2 redirects: a redirect to /a/b?c".to_owned();
    assert_eq!(done.reasons, [(Class::Redirect, why)]);
    let seen = done.meter.redirects.as_deref().expect("redirects are followed");
    assert_eq!(Vec::from_iter(seen.statuses.clone()), [(302, 2)]);
    assert!(seen.hops.is_empty());
}

#[test]
fn a_split_never_changes_what_follows() {
    let answer = format!("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n{}", redirect(302, "c"));
    for cut in 1..answer.len() {
        let mut play = Play::begin(GET, 1);
        play.receive(10, &answer[..cut]);
        assert_eq!(play.wire.sent.len(), 1, "cut at {cut}");
        play.receive(20, &answer[cut..]);
        assert_eq!(play.last(), GET.replace("/a/b?c", "/a/c"), "cut at {cut}");
        play.receive(30, OK);
        assert_eq!(play.wire.sent.len(), 3, "cut at {cut}");
    }
}

#[test]
fn each_hop_has_a_connection_of_its_own_even_if_the_server_would_keep_it() {
    let mut play = Play::begin_closing(GET, 2, true);
    for (connection, (at_ms, location)) in [(10, "/d"), (30, "/e")].into_iter().enumerate() {
        let index = connection as u32;
        play.receive_on(index, at_ms, &redirect(302, location));
        assert_eq!(play.wire.sent.len(), connection + 1, "nothing more on this connection");
        play.generator.handle_end(&mut play.wire, conn(0, index), PeerClose::Fin);
        play.generator.handle_batch_end(&mut play.wire);
        play.at(at_ms + 10);
        play.connected(index + 1);
        assert_eq!(play.wire.sent.last().map(|sent| sent.connection), Some(index + 1));
        assert_eq!(play.last(), GET.replace("/a/b?c", location));
    }
    play.receive_on(2, 50, OK);
    let (done, latencies) = play.end_with_latencies();
    assert_eq!((done.meter.ok, done.meter.stale), (1, 0));
    assert_eq!(latencies, [index(50 * MS)]);
}

#[test]
fn a_request_that_fails_with_its_next_connection_is_kept_no_longer() {
    let mut play = Play::begin_closing(GET, 3, true);
    play.receive(10, &redirect(302, "/d"));
    assert_eq!(play.generator.footprint().requests, 1, "it waits for its next connection");
    play.generator.handle_end(&mut play.wire, conn(0, 0), PeerClose::Fin);
    play.generator.handle_batch_end(&mut play.wire);
    play.at(20);
    play.generator.handle_connect_error(&mut play.wire, conn(0, 1), ConnectError::Refused);
    play.generator.handle_batch_end(&mut play.wire);
    assert_eq!(play.generator.footprint().bytes, 0, "nobody asks it any more");
}

#[test]
fn a_chain_goes_on_over_the_next_connection_and_its_time_runs_on() {
    for (answer, ends) in [
        (redirect(302, "/d").replace("Content", "Connection: close\r\nContent"), true),
        ("HTTP/1.1 302 X\r\nLocation: /d\r\n\r\nuntil the end".to_owned(), true),
        (redirect(302, "/d"), false),
    ] {
        let mut play = Play::begin(GET, 1);
        play.receive(10, &answer);
        // In the last case the server ends a kept connection under the hop.
        play.at(if ends { 10 } else { 20 });
        play.generator.handle_end(&mut play.wire, conn(0, 0), PeerClose::Fin);
        play.generator.handle_batch_end(&mut play.wire);
        play.at(40);
        assert_eq!(play.wire.attempts.len(), 2, "{answer}");
        play.connected(1);
        assert_eq!(play.last(), GET.replace("/a/b?c", "/d"), "{answer}");
        play.receive_on(1, 50, OK);
        let (done, latencies) = play.end_with_latencies();
        assert_eq!((done.meter.ok, done.meter.stale), (1, u64::from(!ends)), "{answer}");
        // A stale request's latency also counts from its schedule.
        assert_eq!(latencies, [index(50 * MS)], "{answer}");
        let seen = done.meter.redirects.as_deref().expect("redirects are followed");
        assert_eq!(Vec::from_iter(seen.hops.clone()), [(1, 1)], "{answer}");
    }
}
