//! Every row of the table of faults, replayed at the generator in virtual time.
//!
//! Each row is played whole, byte by byte and in random pieces, with and without a way between
//! the two ends: what comes out must be what the row says, and the laws of the design must hold.

mod bodies;
mod closing;
mod crossings;
mod how;
mod idle_ends;
mod messages;
#[path = "../../../wire/tests/tls/pair.rs"]
#[allow(dead_code)]
mod pair;
mod peer;
mod random;
mod secure;
mod storms;
mod table;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use trueload_wire::message::{self, Rules, Texts};

use trueload_engine::generator::{
    Http1, OverHttp1, Plain, Protocol, Requests, Sending, Target, TcpEcho, Text, WsEcho,
};
use trueload_load::{Load, Mix, Stop, refill};
use trueload_meter::{IdleClosed, Meter, TargetMeter};
use trueload_sim::kernel::Setups;
use trueload_sim::laws;
use trueload_sim::peers::Peers;
use trueload_sim::play::{Cast, Played, play_as};
use trueload_sim::scenario::{self, HttpPlan, MS, PhasePlan, S, Scenario};
use trueload_wire::echo::Messages;
use trueload_wire::http1::template::Template;
use trueload_wire::websocket::Kind;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::Outgoing;

use how::{Cut, How};
use peer::Scripted;
use table::{Case, Out};

const LATENCY_NS: u64 = 50_000;
const BURST_BYTES: usize = 64 * 1024;

const WHOLE: How = How {
    cut: Cut::Whole,
    latency_ns: LATENCY_NS,
    timers_first: false,
    several: false,
    room: usize::MAX,
};

/// What a run left.
#[derive(Debug)]
struct Seen {
    scheduled: u64,
    unsent: u64,
    issued: u64,
    ok: u64,
    stale: u64,
    stale_resets: u64,
    cancelled: u64,
    failed: BTreeMap<String, u64>,
    statuses: BTreeMap<String, u64>,
    reconnects: u64,
    took_ns: u64,
    requests_at_peer: u64,
    copied_most: usize,
    /// Connections whose peers received our end before they were closed.
    ended_by_us: u64,
    /// Connections that we reset.
    reset_by_us: u64,
    unended: u64,
    dropped: u64,
    idle_closed: IdleClosed,
    permitted_ns: i128,
    /// Attempts to connect.
    attempts: u64,
    /// The laws of the simulation that are broken, each with how.
    broken: Vec<(&'static str, String)>,
}

/// A row as the simulation knows it, under a closed loop of as many requests as it says.
fn scenario_of(case: &Case, how: How) -> Scenario {
    let timeout_ns = case.timeout_ms * MS;
    let size = table::MESSAGE_BYTES;
    let protocol = match case.protocol {
        table::Protocol::Http => scenario::Protocol::Http(HttpPlan {
            method: "GET",
            several: how.several,
            expect_body: case.expect_body.is_some(),
        }),
        table::Protocol::Tcp => scenario::Protocol::Tcp { size, half_close: case.half_close },
        table::Protocol::Ws => scenario::Protocol::Ws { size },
    };
    let phase = PhasePlan {
        load: Load::Closed { active: Arc::default() },
        stop: Stop::Requests(case.requests),
        connections: case.connections,
        idle: 0,
        pause_ns: 0,
        // What peers send before they are asked has come by then.
        not_before_ns: timeout_ns + 100 * MS,
    };
    Scenario {
        seed: how.seed(),
        protocol,
        connections: case.connections,
        depth: case.depth,
        refill: refill(case.depth),
        close: case.close,
        timeout_ns,
        connect_timeout_ns: timeout_ns,
        connect_interval_ns: 10_000,
        phases: vec![phase],
        kernel: how.kernel(),
        peers: Vec::new(),
        ..Scenario::default()
    }
}

fn http_of(case: &Case, several: bool) -> OverHttp1<Plain> {
    let body = case.body.as_deref().unwrap_or("");
    let length = match case.body {
        Some(_) => format!("Content-Length: {}\r\n", body.len()),
        None => String::new(),
    };
    let close = if case.close { "Connection: close\r\n" } else { "" };
    let method = &case.method;
    let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n{length}{close}\r\n{body}");
    let rules = Rules {
        statuses: (!case.expect_status.is_empty()).then(|| case.expect_status.clone()),
        body: case.expect_body.clone().map(String::into_bytes),
        head_request: method == "HEAD",
        idempotent: method != "POST",
        ..Rules::default()
    };
    if several {
        return http1(Sending::Several(several_of(case, &rules)));
    }
    // As a plan has it, long requests are not held in a row.
    let times = if request.len() > BURST_BYTES { 1 } else { case.depth };
    http1(Sending::http1(request.repeat(times).into_bytes().into(), times, rules))
}

fn http1(sending: Sending) -> OverHttp1<Plain> {
    OverHttp1::new(Http1::default(), Plain::new(sending, None), false)
}

/// The row's request three times over, once with a place to fill in.
fn several_of(case: &Case, rules: &Rules) -> Arc<Requests> {
    let number = ("X-Number".to_owned(), "{counter} {random}".to_owned());
    let target = |with: Option<&(String, String)>| {
        let host = ("Host".to_owned(), "a".to_owned());
        let close = ("Connection".to_owned(), "close".to_owned());
        let headers: Vec<_> = [Some(&host), with, case.close.then_some(&close)]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let body = case.body.as_deref().map(str::as_bytes);
        let texts = Texts { method: &case.method, path: "/", headers: &headers, body };
        let text = Text::Http1(Template::of(&message::Template::new(
            &texts,
            Some(&message::Names::default()),
        )));
        Target { text, whole: None, rules: rules.clone() }
    };
    let order = Mix::new(&[2, 1, 1]).unwrap();
    Arc::new(Requests::new(
        vec![target(None), target(Some(&number)), target(None)],
        order,
        1,
        true,
        (0, 1),
    ))
}

/// Plays a row in its protocol.
fn play(case: &Case, how: How) -> Result<Seen, String> {
    match case.protocol {
        table::Protocol::Http => play_in(http_of(case, how.several), case, how),
        table::Protocol::Tcp => {
            let messages = Messages::new(table::PAYLOAD.into(), table::MESSAGE_BYTES).unwrap();
            play_in(TcpEcho::new(messages, case.half_close), case, how)
        }
        table::Protocol::Ws => {
            let messages = Messages::new(table::PAYLOAD.into(), table::MESSAGE_BYTES).unwrap();
            let host = ("Host".to_owned(), "a".to_owned());
            let opening = Opening::new("/echo", &[host]).unwrap();
            play_in(WsEcho::new(opening, Outgoing::Plain(messages, Kind::Text), 1), case, how)
        }
    }
}

/// Plays a row under a closed loop.
fn play_in(protocol: impl Protocol + 'static, case: &Case, how: How) -> Result<Seen, String> {
    play_under(scenario_of(case, how), protocol, case, how)
}

/// Plays a row from the set-up of its connections to the end of its one phase.
fn play_under(
    scenario: Scenario,
    protocol: impl Protocol + 'static,
    case: &Case,
    how: How,
) -> Result<Seen, String> {
    let server = case.tls.as_deref().and_then(secure::server);
    let peers = Scripted::new(case, server, how.cut.comes_apart());
    let peers = Rc::new(RefCell::new(peers));
    let protocol = RefCell::new(Some(protocol));
    let cast = Cast {
        protocol: &|_| protocol.take().expect("there is one thread"),
        program: &|generator| generator,
        peers: &|_| -> Box<dyn Peers> { Box::new(Rc::clone(&peers)) },
        tls: Setups { client: case.tls.as_deref().map(secure::client), server: None },
    };
    let mut played = play_as(&Arc::new(scenario), false, &cast);
    let broken = laws::check(&mut played);
    let Some(reported) = played.front.done.first() else {
        return Err(format!("not over: {broken:?}"));
    };
    if how.several && case.protocol == table::Protocol::Http {
        check_targets(&reported.done.meter)?;
    }
    let ended_by_us = peers.borrow().ended_by_us();
    Ok(seen(&played, broken, ended_by_us))
}

/// What became of the targets is what became of all, and each had its share of the turns.
fn check_targets(all: &Meter) -> Result<(), String> {
    let mut sum = TargetMeter::default();
    all.targets.iter().for_each(|target| sum.merge(target));
    let failed: BTreeMap<_, _> = all.failed().collect();
    let statuses: BTreeMap<_, _> = all.statuses().collect();
    check(
        (sum.issued, sum.ok, sum.stale, sum.cancelled)
            == (all.issued, all.ok, all.stale, all.cancelled),
        "counts of targets",
    )?;
    check(sum.failed == failed, "failures of targets")?;
    check(sum.statuses == statuses, "statuses of targets")?;
    check(sum.latency.values().sum::<u64>() == all.ok, "latencies of targets")?;
    let [twice, once, last] = &all.targets[..] else { return Err("targets".to_owned()) };
    check(twice.issued.abs_diff(once.issued + last.issued) <= 1, "turns")?;
    check(once.issued.abs_diff(last.issued) <= 1, "turns")
}

fn seen(played: &Played, broken: Vec<(&'static str, String)>, ended_by_us: u64) -> Seen {
    let (done, kernel) = (&played.front.done[0].done, &played.kernels[0]);
    let meter = &done.meter;
    Seen {
        scheduled: meter.scheduled,
        unsent: meter.unsent(),
        issued: meter.issued,
        ok: meter.ok,
        stale: meter.stale,
        stale_resets: meter.stale_resets,
        cancelled: meter.cancelled,
        failed: meter.failed().map(|(class, count)| (class.name().to_owned(), count)).collect(),
        statuses: meter.statuses().map(|(code, count)| (code.to_string(), count)).collect(),
        reconnects: meter.reconnects,
        took_ns: done.done_ns - done.started_ns,
        requests_at_peer: kernel.requests_at_peers(),
        copied_most: kernel.seen.copied_most,
        ended_by_us,
        reset_by_us: kernel.seen.resets,
        unended: meter.unended,
        dropped: meter.dropped,
        idle_closed: meter.idle_closed,
        permitted_ns: meter.permitted_ns,
        attempts: kernel.seen.attempts,
        broken,
    }
}

/// Each of `ok` within its timeout, then the patience of a run by requests (three timeouts and 2 s
/// since the last that ended well), then the timeout and 2 s of law 3.
fn law_3_ns(case: &Case, ok: u64) -> u64 {
    case.timeout_ms * MS * (ok + 4) + 4 * S
}

fn check(condition: bool, what: impl Into<String>) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what.into()) }
}

/// The laws of the simulation, and what a row with a script lets be said more exactly.
fn check_laws(case: &Case, seen: &Seen) -> Result<(), String> {
    check(seen.broken.is_empty(), format!("{:?}", seen.broken))?;
    let of = |class: &str| seen.failed.get(class).copied().unwrap_or(0);
    check(seen.stale_resets <= seen.stale, "law 1: stale")?;
    check(seen.scheduled == seen.issued + seen.unsent, "law 1: what was asked for")?;
    check(seen.took_ns <= law_3_ns(case, seen.ok), "law 3")?;
    let never: u64 = seen
        .failed
        .iter()
        .filter(|(class, _)| {
            class.starts_with("connect.") || class.starts_with("local.") || *class == "ws.handshake"
        })
        .map(|(_, count)| count)
        .sum();
    let lost = ["closed_pipelined", "unsolicited", "reset", "empty", "timeout.first_byte"];
    let above = |class: &String| {
        ["tls.", "ws."].iter().any(|layer| class.starts_with(layer)) || class == "timeout.tls"
    };
    let lost_above: u64 =
        seen.failed.iter().filter(|(class, _)| above(class)).map(|(_, count)| count).sum();
    let opening =
        ["truncated", "limit", "timeout.total"].iter().map(|class| of(class)).sum::<u64>();
    let opening = if case.protocol == table::Protocol::Ws { opening } else { 0 };
    let maybe = lost_above
        + opening
        + lost.iter().map(|class| of(class)).sum::<u64>()
        + seen.cancelled
        + seen.stale;
    let most = seen.issued + seen.stale - never;
    let least = most.saturating_sub(maybe);
    check((least..=most).contains(&seen.requests_at_peer), "law 7")
}

/// What the row says must come out.
fn check_out(case: &Case, out: &Out, seen: &Seen) -> Result<(), String> {
    check(seen.scheduled == case.requests, "asked for")?;
    let each = out.each.as_slice();
    if each.is_empty() {
        check(out.ok.holds(seen.ok), format!("ok {:?}", out.ok))?;
        for class in seen.failed.keys().chain(out.failed.keys()) {
            let count = seen.failed.get(class).copied().unwrap_or(0);
            let expected = out.failed.get(class).copied().unwrap_or_default();
            check(expected.holds(count), format!("{class} {expected:?}"))?;
        }
    } else {
        let ok = (seen.ok > 0).then_some("ok");
        let failed = seen.failed.iter().filter(|(_, count)| **count > 0);
        let mut endings = failed.map(|(class, _)| class.as_str()).chain(ok);
        check(endings.all(|ending| each.iter().any(|one| one == ending)), format!("{each:?}"))?;
    }
    check(out.stale.holds(seen.stale), format!("stale {:?}", out.stale))?;
    let resets = out.stale_resets;
    check(resets.holds(seen.stale_resets), format!("stale resets {resets:?}"))?;
    check(out.unsent.holds(seen.unsent), format!("unsent {:?}", out.unsent))?;
    check(seen.cancelled == 0, "cancelled")?;
    if let Some(reconnects) = out.reconnects {
        check(reconnects.holds(seen.reconnects), format!("reconnects {reconnects:?}"))?;
    }
    match &out.statuses {
        Some(statuses) => check(&seen.statuses == statuses, format!("statuses {statuses:?}")),
        None => Ok(()),
    }
}

fn check_case(case: &Case, how: How) -> Result<(), String> {
    let seen = play(case, how)?;
    let out = case.apart.as_ref().filter(|_| how.cut.comes_apart()).unwrap_or(&case.out);
    check_laws(case, &seen)
        .and_then(|()| check_out(case, out, &seen))
        .map_err(|what| format!("{what}: {seen:?}"))
}

/// Plays every row so, and tells all that went wrong at once.
fn check_all(how: How) {
    let cases = table::load();
    assert!(cases.len() > 200, "the table has shrunk to {} rows", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let wrong = check_case(case, how).err()?;
            Some(format!("{}\n    {wrong}", case.name))
        })
        .collect();
    let (count, all) = (wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{how:?}: {count} of {all} rows\n{}", wrong.join("\n"));
}

#[test]
fn each_row_comes_out_as_it_says_when_bytes_come_whole() {
    check_all(WHOLE);
}

#[test]
fn each_row_comes_out_the_same_byte_by_byte() {
    check_all(How { cut: Cut::Bytes, ..WHOLE });
}

#[test]
fn each_row_comes_out_the_same_in_random_pieces() {
    for seed in 1..=4 {
        check_all(How { cut: Cut::Random(seed), ..WHOLE });
    }
}

#[test]
fn each_row_comes_out_the_same_in_pieces_that_come_in_one_batch() {
    for seed in 1..=2 {
        check_all(How { cut: Cut::Batch(seed), ..WHOLE });
    }
}

#[test]
fn each_row_comes_out_the_same_when_answers_take_no_time_at_all() {
    check_all(How { latency_ns: 0, ..WHOLE });
}

#[test]
fn each_row_comes_out_the_same_when_requests_leave_in_pieces() {
    for room in [1, 40] {
        check_all(How { room, ..WHOLE });
    }
}

#[test]
fn each_row_comes_out_the_same_when_its_request_is_one_of_several() {
    check_all(How { several: true, ..WHOLE });
    check_all(How { several: true, cut: Cut::Random(1), ..WHOLE });
}

/// Over TLS bytes come apart at its records, wherever else they are cut: either outcome of a row will do.
fn check_over_tls(how: How) {
    let secure = |case: &Case| case.protocol != table::Protocol::Tcp && case.tls.is_none();
    let plain = table::load().into_iter().filter(secure);
    let cases: Vec<Case> =
        plain.map(|case| Case { tls: Some("good".to_owned()), ..case }).collect();
    assert!(cases.len() > 200, "the table has shrunk to {} rows", cases.len());
    let either = |case: &Case| {
        let seen = play(case, how)?;
        let out = check_laws(case, &seen).and_then(|()| check_out(case, &case.out, &seen));
        let apart = case.apart.as_ref().map_or(out.clone(), |apart| check_out(case, apart, &seen));
        out.or(apart).map_err(|what| format!("{what}: {seen:?}"))
    };
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}\n    {}", case.name, either(case).err()?)))
        .collect();
    let (count, all) = (wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{how:?}: {count} of {all} rows\n{}", wrong.join("\n"));
}

#[test]
fn each_row_comes_out_the_same_over_tls() {
    check_over_tls(WHOLE);
}

#[test]
fn each_row_comes_out_the_same_over_tls_in_random_pieces() {
    for cut in [Cut::Random(1), Cut::Batch(1)] {
        check_over_tls(How { cut, ..WHOLE });
    }
}

#[test]
fn a_timer_that_goes_before_a_socket_at_the_same_moment_changes_no_row() {
    check_all(How { latency_ns: 0, timers_first: true, ..WHOLE });
}
