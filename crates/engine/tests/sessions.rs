//! Virtual users, played by hand: which request follows which, when, and how it is counted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use trueload_wire::message::{Names, Rules, Site, Texts};

use trueload_drive::{ConnectError, PeerClose, Program};
use trueload_engine::data::Rows;
use trueload_engine::generator::{
    Command, DoneReport, Generator, Http, OverEither, PhaseShare, Report, Requests, Scenario,
    StepPace, Target, Text, Users, Versions,
};
use trueload_load::{Arrivals, Load, Mix, RowOrder, Stage, Stop};
use trueload_meter::{Class, SessionMeter, Sparse};
use trueload_wire::session::{Extractor, Script, Take};

use crate::common::{Wire, config, conn, done, generator, run_to};

const MS: u64 = 1_000_000;
const START_NS: u64 = 2 * MS;
const WINDOW_NS: u64 = 1_000 * MS;
const TIMEOUT_NS: u64 = 500 * MS;
const LOG_IN: &str = "HTTP/1.1 200 OK\r\nX-Id: 7\r\nSet-Cookie: s=1; Path=/\r\n\
                      Content-Length: 13\r\n\r\n{\"token\":\"t\"}";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NO: &str = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";

/// A log-in, two pages with a pause of 10 ms before each, and a purchase.
fn scenario() -> Scenario {
    scenario_with(b"{vu}:{counter}", None)
}

/// The same with the body of the log-in, and rows of a column `user`.
fn scenario_with(body: &[u8], data: Option<(Arc<Rows>, RowOrder)>) -> Scenario {
    let site = Site { host: "h".to_owned(), secure: false };
    let columns = data.iter().map(|_| "user".to_owned()).collect();
    let names = Names { columns, ..Names::default() };
    let mut script = Script::new(site).with_names(names);
    let own = [("Own".to_owned(), "{token} {id}".to_owned())];
    let taken = |value: &str, from| Take { value: value.to_owned(), from };
    let takes = vec![
        taken("token", Extractor::json("/token").expect("a pointer")),
        taken("id", Extractor::Header("X-Id".to_owned())),
    ];
    let step = |method, path, headers, body| Texts { method, path, headers, body };
    let mut add = |texts: Texts<'_>, takes| script.add(&texts, takes).expect("known values");
    add(step("POST", "/login", &[], Some(body)), takes);
    add(step("GET", "/page/{repeat}", &own, None), Vec::new());
    add(step("POST", "/buy", &own, Some(b"")), Vec::new());
    let pace = |repeat, ms| StepPace {
        repeat,
        think_least_ns: ms * MS,
        think_most_ns: ms * MS,
        ..StepPace::default()
    };
    let paces = [pace(1, 0), pace(2, 10), pace(1, 0)];
    let rules = |idempotent| Rules { idempotent, ..Rules::default() };
    let target = |idempotent| {
        let (text, whole) = (Text::Session, None);
        Target { text, whole, rules: rules(idempotent) }
    };
    let targets = vec![target(false), target(true), target(false)];
    let order = Mix::new(&[1]).expect("an order");
    let requests = Requests::new(targets, order, 1, true, (0, 1)).in_sessions(paces, data);
    let script = Arc::new(script);
    Scenario {
        script,
        requests: Arc::new(requests),
        follow: None,
        seed: 1,
        run: 1,
        unix_time: Duration::ZERO,
        stream: None,
    }
}

/// A generator with one user in a phase, played by hand.
struct Play {
    generator: Generator<OverEither<Users>>,
    wire: Wire,
    reports: Receiver<Report>,
    commands: Sender<Command>,
}

impl Play {
    /// The user is connected, and the phase has begun.
    fn begin(load: Load) -> Self {
        Self::within(load, WINDOW_NS)
    }

    fn within(load: Load, window_ns: u64) -> Self {
        Self::of(scenario(), load, window_ns)
    }

    /// The phase ends with so many sessions.
    fn counted(open: bool, sessions: u64) -> Self {
        let stages = [Stage { ns: WINDOW_NS, from: 100.0, to: 100.0 }].into();
        let load = if open {
            Load::Open { stages, arrivals: Arrivals::Constant }
        } else {
            Load::Closed { active: [].into() }
        };
        Self::until(scenario(), load, Stop::Requests(sessions))
    }

    fn of(scenario: Scenario, load: Load, window_ns: u64) -> Self {
        Self::until(scenario, load, Stop::After(window_ns))
    }

    fn until(scenario: Scenario, load: Load, stop: Stop) -> Self {
        let users = Http::new(Versions::http1(), Users::new(scenario), false);
        let (generator, commands, reports) = generator(config(TIMEOUT_NS), users);
        let wire = Wire { now_ns: MS, ..Wire::default() };
        commands.send(Command::Connections(1)).expect("it listens");
        let share = PhaseShare::new(load, stop, 1, START_NS);
        let mut play = Play { generator, wire, reports, commands };
        play.generator.handle_wake(&mut play.wire);
        play.connected(0);
        play.commands.send(Command::Phase(share)).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        play.at(0);
        play
    }

    fn closed() -> Self {
        Self::begin(Load::Closed { active: [].into() })
    }

    /// The clock goes on to a moment of the window, by way of all that is due before.
    fn at(&mut self, ms: u64) {
        self.at_ns(START_NS + ms * MS);
    }

    fn at_ns(&mut self, now_ns: u64) {
        run_to(&mut self.generator, &mut self.wire, now_ns);
    }

    fn connected(&mut self, connection: u32) {
        self.generator.handle_connected(&mut self.wire, conn(0, connection));
        self.generator.handle_batch_end(&mut self.wire);
    }

    fn refused(&mut self, connection: u32) {
        let (wire, why) = (&mut self.wire, ConnectError::Refused);
        self.generator.handle_connect_error(wire, conn(0, connection), why);
        self.generator.handle_batch_end(&mut self.wire);
    }

    fn receive(&mut self, connection: u32, text: &str) {
        let bytes = text.as_bytes();
        self.generator.handle_input(&mut self.wire, conn(0, connection), bytes, false);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// An answer comes at a moment.
    fn answer(&mut self, ms: u64, text: &str) {
        self.at(ms);
        self.receive(0, text);
    }

    fn close(&mut self, connection: u32) {
        let (wire, fin) = (&mut self.wire, PeerClose::Fin);
        self.generator.handle_end(wire, conn(0, connection), fin);
        self.generator.handle_batch_end(&mut self.wire);
    }

    /// The requests that were sent since the last time: method, path and what differs.
    fn sent(&mut self) -> Vec<(u32, String)> {
        self.wire.take_sent().iter().map(|sent| (sent.connection, sent.text())).collect()
    }

    /// Method and path of the request that was sent since the last time, if any.
    fn asked(&mut self) -> Option<String> {
        let sent = self.sent();
        assert!(sent.len() < 2, "{sent:?}");
        sent.first().and_then(|(_, text)| Some(text.split_once(" HTTP/")?.0.to_owned()))
    }

    fn done(&mut self) -> DoneReport {
        done(&self.reports)
    }

    /// The phase ends, with nothing more to come.
    fn end(mut self) -> DoneReport {
        self.at((WINDOW_NS + 2 * TIMEOUT_NS) / MS + 1_000);
        self.done()
    }
}

fn sessions(done: &DoneReport) -> &SessionMeter {
    done.meter.sessions.as_ref().expect("sessions")
}

/// For each step: issued, ok, skipped.
fn steps(done: &DoneReport) -> Vec<(u64, u64, u64)> {
    let targets = done.meter.targets.iter();
    targets.map(|target| (target.issued, target.ok, target.skipped)).collect()
}

#[test]
fn steps_follow_in_order_with_values_cookies_and_pauses_that_no_time_contains() {
    let mut play = Play::closed();
    let login = "POST /login HTTP/1.1\r\nContent-Length: 3\r\n\r\n1:0".to_owned();
    assert_eq!(play.sent(), [(0, login)]);
    play.answer(5, LOG_IN);
    assert_eq!(play.asked(), None, "the user pauses");
    play.at(14);
    assert_eq!(play.asked(), None);
    play.at(15);
    let page = "GET /page/1 HTTP/1.1\r\nOwn: t 7\r\nCookie: s=1\r\n\r\n".to_owned();
    assert_eq!(play.sent(), [(0, page)]);
    play.answer(18, OK);
    play.at(28);
    assert_eq!(play.asked().as_deref(), Some("GET /page/2"));
    play.answer(30, OK);
    assert_eq!(play.asked().as_deref(), Some("POST /buy"), "no pause, no wait");
    play.answer(37, OK);
    let login = "POST /login HTTP/1.1\r\nContent-Length: 3\r\n\r\n1:1".to_owned();
    assert_eq!(play.sent(), [(0, login)], "the next session knows nothing of this one");
    let done = play.end();
    let took_ns = (5 + 3 + 2 + 7) * MS;
    assert_eq!(
        sessions(&done).latency.keys().copied().collect::<Vec<_>>(),
        [trueload_meter::index(took_ns)]
    );
    let (ok, failed) = (sessions(&done).ok, sessions(&done).failed);
    assert_eq!((sessions(&done).begun, ok, failed), (2, 1, 1), "the second is never answered");
    assert_eq!(steps(&done), [(2, 1, 0), (2, 2, 2), (1, 1, 1)]);
    // 20 of the window's milliseconds were pauses, in which the load permits nothing.
    let behind_ns = 37 * MS + TIMEOUT_NS;
    let pauses_ns = 20 * MS;
    assert!(done.meter.permitted_ns <= i128::from(WINDOW_NS - pauses_ns));
    assert!(done.meter.permitted_ns >= i128::from(behind_ns - pauses_ns));
}

#[test]
fn ticks_and_the_report_tell_the_answers_of_each_step_once() {
    let mut play = Play::closed();
    for (ms, text) in [(5, LOG_IN), (18, OK), (30, OK), (300, NO), (310, LOG_IN), (330, OK)] {
        play.answer(ms, text);
    }
    play.at((WINDOW_NS + 2 * TIMEOUT_NS) / MS + 1_000);
    let mut sums: Vec<(u64, u64, Sparse)> = vec![Default::default(); 3];
    let mut steps = Vec::new();
    for report in play.reports.try_iter() {
        let tracks = match report {
            Report::Tick(tick) => tick.tracks,
            Report::Done(done) => {
                steps = done.meter.targets;
                done.last_tracks
            }
            _ => continue,
        };
        assert_eq!(tracks.len(), 3, "one for each step");
        for (sum, track) in sums.iter_mut().zip(&tracks) {
            (sum.0, sum.1) = (sum.0 + track.ok, sum.1 + track.failed);
            track.latency.iter().for_each(|(at, count)| *sum.2.entry(at).or_default() += count);
        }
    }
    for (sum, step) in sums.iter().zip(&steps) {
        assert_eq!(*sum, (step.ok, step.failed.values().sum(), step.latency.clone()));
    }
    assert!(steps[2].failed.values().sum::<u64>() > 0 && steps[0].ok == 2, "{steps:?}");
}

#[test]
fn a_request_that_fails_ends_its_session_and_those_behind_it_are_skipped() {
    for (answer, class) in [(NO, Class::Status), (OK, Class::Extract)] {
        let mut play = Play::closed();
        play.answer(5, answer);
        assert_eq!(play.sent().len(), 2, "the next session begins at once");
        play.commands.send(Command::Stop).expect("it listens");
        play.generator.handle_wake(&mut play.wire);
        let done = play.done();
        assert_eq!((sessions(&done).failed, sessions(&done).unfinished), (1, 1), "{class}");
        assert_eq!(steps(&done), [(2, 0, 0), (0, 0, 2), (0, 0, 1)], "{class}");
        assert_eq!(done.meter.failed().collect::<Vec<_>>(), [(class, 1)]);
        assert_eq!(done.meter.cancelled, 1, "the request under way was not the server's failure");
    }
}

#[test]
fn a_session_that_a_phase_cuts_leaves_its_age_to_it_and_to_the_next() {
    let load = Load::Closed { active: [].into() };
    let mut play = Play::within(load.clone(), 100 * MS);
    let start_ns = START_NS + 100 * MS;
    let stop = Stop::After(200 * MS);
    let next = PhaseShare::new(load, stop, 1, start_ns);
    play.commands.send(Command::Phase(next)).expect("it listens");
    play.generator.handle_wake(&mut play.wire);
    play.answer(5, LOG_IN);
    play.answer(18, OK);
    // The second page is asked for at 28 ms, and the first phase ends at 100 ms.
    play.answer(130, OK);
    let first = play.done();
    assert_eq!((sessions(&first).begun, sessions(&first).entered.len()), (1, 0));
    play.answer(140, OK);
    play.answer(150, LOG_IN);
    // The page is due at 160 ms, and comes in the drain: its session has no time to go on.
    play.answer(310, OK);
    let second = play.end();
    let of = |ms: u64| [(trueload_meter::index(ms * MS), 1)].into();
    let SessionMeter { begun, ok, unfinished, entered, cut, .. } = sessions(&second);
    assert_eq!((*begun, *ok, *unfinished), (1, 1, 1));
    assert_eq!(entered, &of(5 + 3 + 72));
    assert_eq!(cut, &of(10 + 150));
}

#[test]
fn a_session_goes_on_over_a_new_connection() {
    let mut play = Play::closed();
    play.answer(5, LOG_IN);
    play.sent();
    play.close(0);
    assert_eq!(play.wire.attempts.len(), 2);
    play.at(40);
    play.connected(1);
    let page = "GET /page/1 HTTP/1.1\r\nOwn: t 7\r\nCookie: s=1\r\n\r\n".to_owned();
    assert_eq!(play.sent(), [(1, page.clone())], "its pause is long over");
    // The request goes stale: the same one is sent again.
    play.at(45);
    play.receive(1, OK);
    play.at(55);
    let second = play.sent();
    assert_eq!(second[0].1, page.replace("/1 ", "/2 "));
    play.close(1);
    play.connected(2);
    assert_eq!(play.sent(), [(2, second[0].1.clone())]);
    play.at(60);
    play.receive(2, OK);
    let done = play.end();
    assert_eq!((done.meter.stale, sessions(&done).begun), (1, 1));
    // The first page was due 15 ms after the start, and waited for the connection.
    let latencies: Vec<_> = done.meter.targets[1].latency.keys().copied().collect();
    assert_eq!(latencies, [5 * MS, 30 * MS].map(trueload_meter::index));
}

#[test]
fn an_open_loop_schedules_sessions_and_steps_come_before_new_ones() {
    let stages = [Stage { ns: WINDOW_NS, from: 100.0, to: 100.0 }].into();
    let mut play = Play::begin(Load::Open { stages, arrivals: Arrivals::Constant });
    assert_eq!(play.asked().as_deref(), Some("POST /login"));
    for (ms, text, asked) in [
        (2, LOG_IN, None),
        (12, "", Some("GET /page/1")),
        (14, OK, None),
        (24, "", Some("GET /page/2")),
        (26, OK, Some("POST /buy")),
        // Two more have been due meanwhile: the first is late by what it waited.
        (30, OK, Some("POST /login")),
    ] {
        if text.is_empty() {
            play.at(ms)
        } else {
            play.answer(ms, text)
        }
        assert_eq!(play.asked().as_deref(), asked, "at {ms} ms");
    }
    play.answer(31, LOG_IN);
    let done = play.end();
    let first = done.meter.targets[0].latency.clone();
    let took: Vec<_> = first.keys().copied().collect();
    let (one, other) = (took[0], took[took.len() - 1]);
    assert_eq!((first.values().sum::<u64>(), took.len()), (2, 2));
    assert_eq!(one, trueload_meter::index(2 * MS), "from its schedule");
    assert_eq!(other, trueload_meter::index(21 * MS), "it waited for the user");
    let begun = sessions(&done).begun;
    assert_eq!(done.meter.scheduled, done.meter.issued + 100 - begun, "others never began");
}

/// The rows of a column `user`, with one value each.
fn rows(values: &[&str]) -> Arc<Rows> {
    let mut rows = Rows::of_columns(1);
    values.iter().for_each(|value| rows.push(std::iter::once(value.as_bytes())));
    Arc::new(rows.complete())
}

#[test]
fn a_session_has_one_row_and_a_run_whose_rows_are_used_up_ends_with_its_last_session() {
    let stages = || [Stage { ns: WINDOW_NS, from: 100.0, to: 100.0 }].into();
    for open in [false, true] {
        let load = if open {
            Load::Open { stages: stages(), arrivals: Arrivals::Constant }
        } else {
            Load::Closed { active: [].into() }
        };
        let data = (rows(&["anna", "b c"]), RowOrder::Unique);
        let scenario = scenario_with(br#"{"user":"{user}"}"#, Some(data));
        let mut play = Play::of(scenario, load, WINDOW_NS);
        for (session, user) in [(0, "anna"), (1, "b c")] {
            let sent = play.sent();
            let body = format!(r#"{{"user":"{user}"}}"#);
            assert!(sent[0].1.ends_with(&body), "{sent:?}");
            let at = 30 * session;
            for (ms, text) in [(2, LOG_IN), (14, OK), (26, OK), (30, OK)] {
                play.at(at + ms - 1);
                play.sent();
                play.answer(at + ms, text);
            }
        }
        assert_eq!(play.asked(), None, "there is no third row");
        play.at(500);
        let done = play.done();
        let SessionMeter { begun, ok, failed, unfinished, .. } = *sessions(&done);
        assert_eq!((begun, ok, failed, unfinished), (2, 2, 0, 0), "open: {open}");
        let data = done.data.map(|data| (data.rows, data.taken, data.spent));
        assert_eq!(data, Some((2, 2, true)));
        assert_eq!(done.stopped_ns, START_NS + 60 * MS, "the end of the last session");
        assert_eq!(done.meter.scheduled, done.meter.issued, "no row, no session");
    }
}

#[test]
fn a_number_of_sessions_are_begun_and_the_run_ends_with_the_last_of_them() {
    for open in [false, true] {
        let mut play = Play::counted(open, 2);
        for (ms, text) in [(2, LOG_IN), (14, OK), (26, OK), (30, OK), (32, NO)] {
            play.answer(ms, text);
        }
        play.at(500);
        let done = play.done();
        let SessionMeter { begun, ok, failed, unfinished, .. } = *sessions(&done);
        assert_eq!((begun, ok, failed, unfinished), (2, 1, 1, 0), "open: {open}");
        assert_eq!(done.stopped_ns, START_NS + 32 * MS, "when the last one failed");
        assert_eq!((done.meter.issued, done.meter.scheduled, done.meter.unsent()), (5, 5, 0));
        assert_eq!(steps(&done), [(2, 1, 0), (2, 2, 2), (1, 1, 1)], "those of one are skipped");
    }
}

#[test]
fn the_last_session_goes_on_over_a_new_connection_and_fails_without_one() {
    for refused in [false, true] {
        let mut play = Play::counted(false, 1);
        play.answer(2, LOG_IN);
        play.at(5);
        play.close(0);
        play.at(6);
        assert_eq!(play.wire.attempts.len(), 2, "it pauses, and has requests to send");
        if refused {
            play.refused(1);
        } else {
            play.connected(1);
            for ms in [14, 26, 30] {
                play.at(ms);
                play.receive(1, OK);
            }
        }
        play.at(500);
        let done = play.done();
        let SessionMeter { begun, ok, failed, .. } = *sessions(&done);
        assert_eq!((begun, ok, failed), (1, u64::from(!refused), u64::from(refused)));
        let charged: Vec<_> = done.meter.failed().collect();
        assert_eq!(charged, if refused { vec![(Class::ConnectRefused, 1)] } else { vec![] });
        let list = if refused { (1, 0, 1) } else { (2, 2, 0) };
        assert_eq!(steps(&done)[1], list, "the request that it could not send has failed");
    }
}

#[test]
fn a_user_that_is_told_something_while_it_pauses_has_a_failed_session() {
    let mut play = Play::closed();
    play.answer(5, LOG_IN);
    play.answer(8, OK);
    play.at(30);
    assert_eq!(play.wire.attempts.len(), 2, "the connection cannot be trusted");
    let done = play.end();
    assert_eq!(sessions(&done).failed, 1);
    assert_eq!(steps(&done)[1].2, 2);
}

/// The value of a sorted list at a share, by nearest rank.
fn percentile(sorted: &[u64], share: f64) -> u64 {
    sorted[((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len()) - 1]
}

/// The same of a histogram: the middle of the bucket.
fn percentile_of(latency: &trueload_meter::Sparse, share: f64) -> u64 {
    let total: u64 = latency.values().sum();
    let rank = ((total as f64 * share).ceil() as u64).clamp(1, total);
    let mut seen = 0;
    let place = latency.iter().find(|(_, count)| {
        seen += **count;
        seen >= rank
    });
    let index = u64::from(*place.expect("a rank within the total").0);
    // The index of a value v is 64 e + (v >> e).
    let exponent = (index / 64).saturating_sub(1);
    ((index - 64 * exponent) << exponent) + (1 << exponent) / 2
}

#[test]
fn percentiles_of_each_step_and_session_are_those_that_the_server_took() {
    let mut play = Play::within(Load::Closed { active: [].into() }, 200_000 * MS);
    // The times that a server takes, drawn evenly: log-in, pages, purchase.
    let (mut state, bounds_us) = (1_u64, [(20_000, 60_000), (5_000, 15_000), (300, 30_000)]);
    let mut drawn = |from_us: u64, to_us: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        1_000 * (from_us + (state >> 33) % (to_us - from_us))
    };
    let mut took: [Vec<u64>; 4] = Default::default();
    let (mut now_ns, mut session_ns) = (START_NS, 0);
    while now_ns < START_NS + 190_000 * MS {
        let Some(asked) = play.asked() else {
            now_ns += 10 * MS;
            play.at_ns(now_ns);
            continue;
        };
        let step = ["POST /login", "GET /page", "POST /buy"]
            .iter()
            .position(|path| asked.starts_with(path))
            .expect("a request of the scenario");
        let ns = drawn(bounds_us[step].0, bounds_us[step].1);
        took[step].push(ns);
        (now_ns, session_ns) = (now_ns + ns, session_ns + ns);
        play.at_ns(now_ns);
        if step == 2 {
            took[3].push(std::mem::take(&mut session_ns));
        }
        play.receive(0, if step == 0 { LOG_IN } else { OK });
    }
    play.commands.send(Command::Stop).expect("it listens");
    play.generator.handle_wake(&mut play.wire);
    let done = play.done();
    assert!(took[3].len() > 1_000, "{} sessions", took[3].len());
    let steps = done.meter.targets.iter().map(|target| &target.latency);
    let found = steps.chain([&sessions(&done).latency]);
    for (name, (found, took)) in
        ["log in", "page", "buy", "session"].iter().zip(found.zip(&mut took))
    {
        took.sort_unstable();
        assert_eq!(found.values().sum::<u64>(), took.len() as u64, "{name}");
        for share in [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99] {
            let (measured, known) = (percentile_of(found, share), percentile(took, share));
            let off = measured.abs_diff(known) as f64 / known as f64;
            assert!(off < 0.02, "{name}, p{}: {measured} ns for {known} ns", share * 100.0);
        }
    }
}
