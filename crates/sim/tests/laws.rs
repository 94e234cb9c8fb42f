//! Every law can be broken: a run that went well is tampered with, and the law must tell.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stage, Stop};
use trueload_meter::{Answered, Backlog, Class, Deliveries, SessionMeter, Streams};
use trueload_sim::laws;
use trueload_sim::peers::{Spoken, Versions};
use trueload_sim::play::{Played, play};
use trueload_sim::scenario::{MS, Manner, S, Scenario, Step, Style, Talk, Trick};
use trueload_wire::account::Account;

/// The laws that are broken when a good run is changed so.
fn broken(tamper: impl FnOnce(&mut Played)) -> Vec<&'static str> {
    let mut played = play(&Arc::new(Scenario::default()), false);
    tamper(&mut played);
    laws::check(&mut played).into_iter().map(|(law, _)| law).collect()
}

#[test]
fn a_good_run_breaks_no_law() {
    assert_eq!(broken(|_| {}), [""; 0]);
}

/// A way to spoil a good run.
type Tamper = fn(&mut Played);

/// Each law, and ways to break it.
const TAMPERS: &[(&str, Tamper)] = &[
    ("no slot hangs", |played| played.front.ended = 0),
    ("no slot hangs", |played| played.kernels[0].seen.stuck = Some("it stands".to_owned())),
    ("the ledger adds up", |played| {
        let mut meter = take_meter(played);
        meter.issued += 1;
        meter.scheduled += 1;
        played.front.done[0].done.meter = meter;
    }),
    ("what was asked for is sent or unsent", |played| {
        played.front.done[0].done.meter.scheduled -= 1;
    }),
    ("one response settles one request", |played| {
        played.front.done[0].done.meter.record_status(200, 1);
    }),
    ("the end comes in time", |played| played.front.done[0].at_ns += 10 * S),
    ("a failed request leaves no time behind", |played| {
        played.front.done[0].done.meter.times.record(1, 1, 1, 1);
    }),
    ("the peers count the same", |played| {
        let mut meter = take_meter(played);
        meter.issued -= 1;
        meter.retract_ok(&fastest(), Class::Reset);
        played.front.done[0].done.meter = meter;
    }),
    ("time does not go backwards", |played| played.front.done[0].done.done_ns = 0),
    ("time does not go backwards", |played| {
        let first = played.front.stages[0];
        played.front.stages.push((first.0, first.1, first.2, 0));
    }),
    ("bytes are those that went through the kernel", |played| {
        played.front.done[0].done.meter.bytes_in += 1;
    }),
    ("bytes are those that went through the kernel", |played| {
        played.front.done[0].done.meter.bytes_out -= 1;
    }),
    ("no connection has more requests than its depth", |played| {
        played.kernels[0].seen.requests_open_most = 2;
    }),
    ("requests take no more time than is permitted", |played| {
        played.front.done[0].done.meter.permitted_ns = 0;
    }),
    ("requests take no more time than is permitted", |played| {
        let done = &mut played.front.done[0].done;
        done.meter.permitted_ns = i128::from(2 * (done.stopped_ns - done.started_ns) + 1);
    }),
    ("ticks come in their turn", |played| played.front.done[0].done.last.second += 1),
    ("nobody is accused falsely", |played| {
        played.front.done[0].done.meter.dropped = 1;
    }),
    ("ticks stay within bounds", |played| played.front.set_ups[0].1.established = 3),
    ("memory is bounded", |played| played.kernels[0].seen.copied_most = 1 << 20),
    ("memory is bounded", |played| played.kernels[0].seen.open_most = 3),
    ("datagrams are told apart", |played| {
        played.front.done[0].done.meter.datagrams.unsolicited = 1;
    }),
    ("each delivery is had once or lost", |played| {
        let of = Deliveries { expected: 1, ..Deliveries::default() };
        played.front.done[0].done.deliveries = Some(of);
    }),
    ("nobody is accused falsely", |played| {
        played.front.done[0].done.meter.record_failed(Class::Reset);
    }),
    ("service times are true", |played| {
        let service_ns = &mut played.kernels[0].seen.service_ns;
        service_ns.iter_mut().for_each(|ns| *ns += MS);
    }),
    ("service times are true", |played| {
        let service_ns = &mut played.kernels[0].seen.service_ns;
        service_ns.iter_mut().for_each(|ns| *ns /= 2);
    }),
    ("answers flow when they come", |played| {
        played.front.done[0].done.meter.flow.note(0, 1_000_000);
    }),
    ("a backlog is of what was scheduled", |played| {
        let mut backlog = Backlog::of(1, 0);
        backlog.at_end = 1_000_000;
        played.front.done[0].done.meter.backlog = Some(backlog);
    }),
    ("a backlog is of what was scheduled", |played| {
        let mut backlog = Backlog::of(1, 0);
        backlog.note(0, 1, 1_000_000);
        played.front.done[0].done.meter.backlog = Some(backlog);
    }),
    ("what is sent is as the protocol has it", |played| {
        played.kernels[0].seen.mistake = Some("a stream too many".to_owned());
    }),
    ("an answer that counts was sent whole", |played| {
        played.kernels[0].seen.whole = Some(19);
    }),
    ("a request is asked again once at most", |played| {
        played.kernels[0].seen.repeats_most = 3;
    }),
    ("a connection counts as what it speaks", |played| {
        let http1 = Spoken { established: 2, used: 1 };
        played.kernels[0].seen.versions = Some(Versions { http1, ..Versions::default() });
    }),
    ("a connection counts as what it speaks", |played| {
        let account = Account { chose_http1: 2, ..Account::default() };
        played.front.done[0].done.account = Some(account);
        let http1 = Spoken { established: 1, used: 1 };
        played.kernels[0].seen.versions = Some(Versions { http1, ..Versions::default() });
    }),
    ("no wait is left out of the latency", |played| {
        let account = Account { open_ns: u128::from(10 * S), ..Account::default() };
        played.front.done[0].done.account = Some(account);
    }),
    ("a session settles once", |played| {
        let sessions = SessionMeter { begun: 1, ..SessionMeter::default() };
        played.front.done[0].done.meter.sessions = Some(sessions);
    }),
    ("a session settles once", |played| {
        let sessions = SessionMeter { begun: 1, ok: 1, failed: 1, ..SessionMeter::default() };
        played.front.done[0].done.meter.sessions = Some(sessions);
    }),
    ("what follows a failure is skipped", |played| {
        played.book.behind_failure = Some("GET /s/0/1/1/1/0/0/0".to_owned());
    }),
    ("what follows a failure is skipped", |played| {
        let step = Step { method: "GET", repeat: 3, think_ns: (0, 0), takes: None };
        talk(played, Talk { steps: vec![step], ..Talk::default() });
        let sessions = SessionMeter { begun: 1, failed: 1, ..SessionMeter::default() };
        played.front.done[0].done.meter.sessions = Some(sessions);
    }),
    ("a chain is one request", |played| {
        talk(played, Talk { follow: Some(1), ..Talk::default() });
    }),
    ("a chain is one request", |played| {
        talk(played, Talk { follow: Some(1), ..Talk::default() });
        let redirects = played.front.done[0].done.meter.redirects.get_or_insert_default();
        redirects.record_followed(302, 1);
        redirects.record_ok(1, 20);
    }),
    ("a part is counted once", |played| {
        let mut streams = Streams::default();
        streams.record_parts(true, None, 0);
        streams.record_whole(1, 3);
        played.front.done[0].done.meter.streams = Some(streams.into());
    }),
    ("no origin starves another", |played| {
        talk(played, Talk { origins: vec![1, 1], ..Talk::default() });
    }),
    ("what a conversation keeps is bounded", |played| played.footprint.requests = 2),
    ("what a conversation keeps is bounded", |played| played.footprint.bytes = 10_000),
    ("each arrival is scheduled once", |played| {
        let stages = [Stage { ns: S, from: 10.0, to: 10.0 }].into();
        let share = &mut played.front.assigned[0].share;
        share.load = Load::Open { stages, arrivals: Arrivals::Constant };
        share.stop = Stop::After(S);
    }),
    ("nothing waits beside a free connection", |played| {
        let stages = [Stage { ns: 9 * S, from: 10.0, to: 10.0 }].into();
        let share = &mut played.front.assigned[0].share;
        share.load = Load::Open { stages, arrivals: Arrivals::Constant };
        share.stop = Stop::After(9 * S);
        let meter = &mut played.front.done[0].done.meter;
        (meter.scheduled, meter.issued) = (90, 1);
    }),
    ("a latency has the exchange in it", |played| {
        let meter = &mut played.front.done[0].done.meter;
        let slow = Answered { service_ns: S, ..fastest() };
        (0..9).for_each(|_| meter.record_ok(&slow, 100));
    }),
    ("guesses are found out", |played| {
        let tricks = vec![(0, Trick::Guess(MS, 9))];
        Arc::make_mut(&mut played.scenario).peers = vec![Manner { tricks, ..Manner::default() }];
        let meter = &mut played.front.done[0].done.meter;
        (meter.early.asked, meter.issued) = (1, 10_000);
    }),
];

fn talk(played: &mut Played, talk: Talk) {
    Arc::make_mut(&mut played.scenario).talk = Some(talk);
}

fn take_meter(played: &mut Played) -> trueload_meter::Meter {
    std::mem::take(&mut played.front.done[0].done.meter)
}

#[test]
fn each_law_tells_what_breaks_it() {
    for (law, tamper) in TAMPERS {
        let broken = broken(tamper);
        assert!(broken.contains(law), "{law}: {broken:?}");
    }
    let tampered = |law: &str| TAMPERS.iter().any(|(broken, _)| *broken == law);
    assert!(laws::LAWS.iter().all(|(law, _)| tampered(law)), "each law has a row");
}

/// Times that are in no run.
fn fastest() -> Answered {
    Answered { latency_ns: 1, service_ns: 1, first_byte_ns: 1, total_ns: None }
}

#[test]
fn a_status_that_is_no_success_excuses_no_other_failure() {
    let broken = |class: Class| {
        let mut scenario = Scenario::default();
        scenario.peers[0].style = Style::Status(600);
        let mut played = play(&Arc::new(scenario), false);
        assert_eq!(played.front.done[0].done.meter.failed_sum(), 20);
        played.front.done[0].done.meter.reclass_failed(Class::Status, class);
        laws::check(&mut played).into_iter().map(|(law, _)| law).collect::<Vec<_>>()
    };
    assert_eq!(broken(Class::Status), [""; 0]);
    assert!(broken(Class::Framing).contains(&"nobody is accused falsely"));
}

#[test]
fn a_connection_too_many_in_a_tick_is_reported() {
    let broken = broken(|played| {
        let tick = trueload_engine::generator::TickReport { open: u32::MAX, ..Default::default() };
        played.front.ticks.push((0, 0, tick));
    });
    assert_eq!(broken, ["ticks come in their turn", "ticks stay within bounds"]);
}
