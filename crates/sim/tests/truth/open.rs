//! The open loop: percentiles against the computed truth, sends against the schedule.

use hdrhistogram::Histogram;
use trueload_engine::generator::ByLength;
use trueload_load::{Arrivals, Load, Stop};

use super::model::{Delay, MS, Model, S, quantile, truth};
use super::play::{Play, Played, play};
use super::{arrivals_ns, open, stage};

const POISSON: Arrivals = Arrivals::Poisson { seed: 7 };
const PARTS: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
/// How far a reported percentile may be from the true one.
const OFF_MOST: f64 = 0.02;
/// How far a send may be from its time: the simulated thread takes some nanoseconds for each batch and each reading of
/// the clock, and answers that wait for it move what is sent behind them.
const OFF_MOST_NS: u64 = 5_000;

/// One server under one load.
struct Case {
    what: &'static str,
    model: Model,
    seconds: u64,
    per_s: u64,
    connections: u32,
}

fn cases() -> Vec<Case> {
    let case = |what, model, seconds, per_s, connections| Case {
        what,
        model,
        seconds,
        per_s,
        connections,
    };
    let stalls = Delay::OneIn(10_000, S, MS);
    let freezes = Model { delay: Delay::Constant(10 * MS), frozen: Some((4 * S, 6 * S)) };
    vec![
        case("constant", Model::of(Delay::Constant(50 * MS)), 20, 1000, 100),
        case("constant, just enough", Model::of(Delay::Constant(50 * MS)), 20, 1000, 51),
        case("constant, too slow", Model::of(Delay::Constant(50 * MS)), 10, 1000, 40),
        case("uniform", Model::of(Delay::Uniform(50 * MS, 150 * MS)), 20, 1000, 200),
        case("uniform, nearly full", Model::of(Delay::Uniform(50 * MS, 150 * MS)), 20, 1000, 105),
        case("exponential", Model::of(Delay::Exponential(20 * MS)), 40, 1000, 200),
        case("exponential, nearly full", Model::of(Delay::Exponential(20 * MS)), 40, 1000, 22),
        case("one in 10,000 stalls", Model::of(stalls), 100, 1000, 10),
        case("one in 10,000 stalls, one connection", Model::of(stalls), 100, 500, 1),
        case("freezes for 2 s", freezes, 10, 1000, 100),
        case("freezes for 2 s, connections for all", freezes, 10, 1000, 3000),
    ]
}

fn near(reported_ns: u64, true_ns: u64) -> bool {
    reported_ns.abs_diff(true_ns) as f64 <= OFF_MOST * true_ns as f64
}

fn check_percentiles(what: &str, reported: &Histogram<u64>, true_ns: &[u64]) {
    assert_eq!(reported.len(), true_ns.len() as u64, "{what}: how many");
    for part in PARTS {
        let (seen, expected) = (reported.value_at_quantile(part), quantile(true_ns, part));
        assert!(near(seen, expected), "{what}: p{} is {seen}, in truth {expected}", part * 100.0);
    }
}

/// Never before its time, never more than scheduled, in the very order of the truth.
pub fn check_sends(what: &str, played: &Played, truth_ns: &[u64]) {
    let sent_ns: Vec<u64> = played.sent.iter().map(|sent| sent.at_ns).collect();
    assert_eq!(sent_ns.len(), truth_ns.len(), "{what}: sends");
    let off = sent_ns.iter().zip(truth_ns).map(|(seen, due)| seen.abs_diff(*due)).max();
    assert!(off.is_some_and(|ns| ns <= OFF_MOST_NS), "{what}: a send is {off:?} ns off");
}

#[test]
fn response_times_are_those_of_the_truth_within_two_percent() {
    for Case { what, model, seconds, per_s, connections } in cases() {
        for arrivals in [Arrivals::Constant, POISSON] {
            let rate = per_s as f64;
            let load = open(&[stage(seconds, rate, rate)], arrivals);
            let played = play(&Play::new(model, load, seconds * S, connections));
            let scheduled_ns = arrivals_ns(seconds, per_s, arrivals);
            let truth = truth(&model, &scheduled_ns, connections as usize, seconds * S);
            let what = format!("{what}, {arrivals:?}");
            played.adds_up();
            let meter = &played.done().meter;
            assert_eq!(meter.scheduled, scheduled_ns.len() as u64, "{what}: scheduled");
            assert_eq!(meter.unsent(), truth.unsent, "{what}: unsent");
            check_percentiles(&what, &played.latency(), &truth.response_ns);
            check_percentiles(&what, &played.service(), &truth.service_ns);
            check_sends(&what, &played, &truth.sent_ns);
            assert!(
                played.send_lag().max() <= OFF_MOST_NS,
                "{what}: waiting for a connection is no lag"
            );
        }
    }
}

#[test]
fn a_closed_loop_does_not_see_the_freeze_that_the_open_loop_reports() {
    let model = Model { delay: Delay::Constant(10 * MS), frozen: Some((4 * S, 6 * S)) };
    let load = open(&[stage(10, 1000.0, 1000.0)], Arrivals::Constant);
    let opened = play(&Play::new(model, load, 10 * S, 3000));
    let all = Load::Closed { active: Vec::new().into() };
    let closed = play(&Play::new(model, all, 10 * S, 12));

    let (in_open, in_closed) = (opened.done().meter.ok as f64, closed.done().meter.ok as f64);
    assert!((in_closed / in_open - 1.0).abs() < 0.1, "the same throughput: {in_open} {in_closed}");
    let truth = truth(&model, &arrivals_ns(10, 1000, Arrivals::Constant), 3000, 10 * S);
    for part in [0.9, 0.99] {
        let true_ns = quantile(&truth.response_ns, part);
        let (open_ns, closed_ns) =
            (opened.latency().value_at_quantile(part), closed.latency().value_at_quantile(part));
        assert!(near(open_ns, true_ns), "open: {open_ns}, in truth {true_ns}");
        assert!(closed_ns * 95 < true_ns, "closed: {closed_ns}, in truth {true_ns}");
    }
    let (open_ns, closed_ns) = (opened.latency().max(), closed.latency().max());
    assert!(near(open_ns, closed_ns), "both see the longest: {open_ns} {closed_ns}");
}

#[test]
fn a_closed_loop_hardly_sees_the_stalls_that_queue_up_under_an_open_one() {
    let model = Model::of(Delay::OneIn(10_000, S, MS));
    let load = open(&[stage(100, 500.0, 500.0)], Arrivals::Constant);
    let opened = play(&Play::new(model, load, 100 * S, 1));
    let all = Load::Closed { active: Vec::new().into() };
    let closed = play(&Play::new(model, all, 100 * S, 1));
    let (open_ns, closed_ns) =
        (opened.latency().value_at_quantile(0.99), closed.latency().value_at_quantile(0.99));
    assert!(closed_ns * 500 < open_ns, "p99: open {open_ns}, closed {closed_ns}");
}

#[test]
fn a_generator_that_stood_still_catches_up_with_the_schedule_and_no_further_and_it_shows() {
    let model = Model::of(Delay::Constant(MS));
    let load = open(&[stage(5, 1000.0, 1000.0)], Arrivals::Constant);
    let mut it = Play::new(model, load, 5 * S, 2000);
    it.generator_stalls = Some((2 * S, 3 * S));
    let played = play(&it);
    played.adds_up();
    assert_eq!((played.sent.len(), played.done().meter.unsent()), (5000, 0));
    for (k, sent) in played.sent.iter().enumerate() {
        let scheduled_ns = k as u64 * MS;
        let stalled = (2 * S..3 * S).contains(&scheduled_ns);
        let due_ns = if stalled { 3 * S } else { scheduled_ns };
        assert!(
            sent.at_ns.abs_diff(due_ns) <= OFF_MOST_NS,
            "request {k} is sent at {}",
            sent.at_ns
        );
    }
    for (what, seen) in [("latency", played.latency()), ("send lag", played.send_lag())] {
        assert!(near(seen.max(), S), "{what} {}", seen.max());
        assert!(near(seen.value_at_quantile(0.9), S / 2), "{what}: a tenth of the requests late");
    }
    let stalls: Vec<_> = played.done().lateness.stopped.seen().collect();
    let [stall] = stalls[..] else { panic!("one stall: {stalls:?}") };
    assert!(stall.ns.abs_diff(S) <= 2 * MS && stall.requests.abs_diff(1000) <= 10, "{stall:?}");
    assert_eq!(played.done().lateness.queued, ByLength::default());
}

#[test]
fn sends_that_come_late_show_though_connections_are_answered_just_then() {
    let model = Model::of(Delay::Constant(50 * MS));
    let load = open(&[stage(1, 1000.0, 1000.0)], Arrivals::Constant);
    // With 60 connections there are idle ones all the time, with 50 never.
    for (connections, lag_ns) in [(60, 10 * MS), (50, 0)] {
        let mut it = Play::new(model, load.clone(), S, connections);
        it.generator_stalls = Some((S / 2, S / 2 + 10 * MS));
        let played = play(&it);
        played.adds_up();
        let seen_ns = played.send_lag().max();
        assert!(seen_ns.abs_diff(lag_ns) <= MS / 10, "{connections} connections: {seen_ns} ns");
    }
}

#[test]
fn a_generator_that_starts_late_has_lagged_since_the_start() {
    let model = Model::of(Delay::Constant(MS));
    let load = open(&[stage(1, 1000.0, 1000.0)], Arrivals::Constant);
    let mut it = Play::new(model, load, S, 1000);
    it.generator_stalls = Some((0, S / 2));
    let played = play(&it);
    played.adds_up();
    assert!(near(played.latency().max(), S / 2 + MS), "latency {}", played.latency().max());
    assert!(near(played.send_lag().max(), S / 2), "send lag {}", played.send_lag().max());
}

#[test]
fn what_finds_no_connection_before_the_window_ends_is_unsent_and_counted() {
    let model = Model::of(Delay::Constant(100 * MS));
    let load = open(&[stage(2, 100.0, 100.0)], Arrivals::Constant);
    let played = play(&Play::new(model, load, 2 * S, 3));
    played.adds_up();
    let meter = &played.done().meter;
    // Three connections, each answered after 100 ms and two ways: 20 sends each in 2 s.
    assert_eq!((meter.scheduled, meter.issued, meter.unsent()), (200, 60, 140));
}

#[test]
fn eight_threads_send_the_rate_that_was_asked_for_exactly() {
    for (per_s, seconds) in [(100u64, 3u64), (999, 1), (7, 2), (1, 3)] {
        let rate = per_s as f64;
        let model = Model::of(Delay::Constant(MS));
        let load = open(&[stage(seconds, rate, rate)], Arrivals::Constant);
        let played = play(&Play { threads: 8, ..Play::new(model, load, seconds * S, 64) });
        let expected = arrivals_ns(seconds, per_s, Arrivals::Constant);
        check_sends(&format!("{per_s}/s over {seconds} s"), &played, &expected);
    }
}

#[test]
fn several_requests_are_in_flight_on_a_connection_only_when_pipelining_allows_it() {
    for depth in [1, 4] {
        let model = Model::of(Delay::Constant(100 * MS));
        let load = open(&[stage(3, 200.0, 200.0)], POISSON);
        let played = play(&Play { depth, ..Play::new(model, load, 3 * S, 8) });
        played.adds_up();
        assert_eq!(played.in_flight_most, depth);
    }
}

#[test]
fn steps_and_ramps_send_their_area() {
    let stages =
        [stage(2, 100.0, 100.0), stage(4, 100.0, 500.0), stage(2, 0.0, 0.0), stage(2, 50.0, 50.0)];
    // Per second: two flat, the ramp's trapezes, silence, then flat again.
    let expected = [100.0, 100.0, 150.0, 250.0, 350.0, 450.0, 0.0, 0.0, 50.0, 50.0];
    for (arrivals, within) in [(Arrivals::Constant, 0.0), (POISSON, 5.0)] {
        let model = Model::of(Delay::Constant(MS));
        let played = play(&Play::new(model, open(&stages, arrivals), 10 * S, 20));
        played.adds_up();
        for (second, area) in expected.iter().enumerate() {
            let second_ns = second as u64 * S..(second as u64 + 1) * S;
            let count = played.sent.iter().filter(|sent| second_ns.contains(&sent.at_ns)).count();
            // Poisson's count has the standard deviation √area.
            let most = 1.0 + within * f64::sqrt(*area);
            let off = (count as f64 - area).abs();
            assert!(off <= most && (*area > 0.0 || count == 0), "{arrivals:?} {second}: {count}");
        }
    }
}

#[test]
fn a_run_by_requests_ends_when_the_last_one_is_answered_though_the_schedule_goes_on() {
    for arrivals in [Arrivals::Constant, POISSON] {
        let model = Model::of(Delay::Constant(50 * MS));
        let load = open(&[stage(3600, 1000.0, 1000.0)], arrivals);
        let it = Play { stop: Stop::Requests(100), ..Play::new(model, load, S, 200) };
        let played = play(&it);
        played.adds_up();
        let meter = &played.done().meter;
        assert_eq!((meter.scheduled, meter.ok), (100, 100), "{arrivals:?}");
    }
}

#[test]
fn a_run_by_requests_is_not_given_up_while_the_schedule_has_nothing_to_send() {
    // Three timeouts and 2 s are 182 s; one arrival is 400 s behind the other.
    let load = open(&[stage(3600, 0.0025, 0.0025)], Arrivals::Constant);
    let model = Model::of(Delay::Constant(50 * MS));
    let it = Play { stop: Stop::Requests(3), ..Play::new(model, load, S, 2) };
    let played = play(&it);
    played.adds_up();
    let meter = &played.done().meter;
    assert_eq!((meter.scheduled, meter.ok, meter.unsent()), (3, 3, 0));
}
