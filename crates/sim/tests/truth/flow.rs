//! The flow of answers: when none came, how many did in each part, and how a queue grows.

use std::sync::Arc;

use trueload_load::{Arrivals, Load, Stop};
use trueload_meter::{Backlog, Flow, Sparse, index};

use super::model::{Delay, MS, Model, ONE_WAY_NS, S};
use super::play::{Play, Played, play};
use super::{open, stage};

/// A moment, and a step of the histogram, at most.
const OFF_MOST: f64 = 0.03;

fn closed() -> Load {
    Load::Closed { active: Arc::from([]) }
}

fn frozen(from_ns: u64, to_ns: u64) -> Model {
    Model { frozen: Some((from_ns, to_ns)), ..Model::of(Delay::Constant(10 * MS)) }
}

/// The flow over all threads.
fn flow(played: &Played) -> Flow {
    let mut sum = played.done().meter.flow.clone();
    played.done[1..].iter().for_each(|done| sum.merge(&done.meter.flow));
    sum
}

/// The backlog over all threads.
fn backlog(played: &Played) -> Backlog {
    let mut sum = Backlog::default();
    played.done.iter().for_each(|done| sum.merge(done.meter.backlog.as_ref().expect("open loop")));
    sum
}

/// How many gaps are at least so long.
fn longer(gaps: &Sparse, than_ns: u64) -> u64 {
    gaps.range(index(than_ns)..).map(|(_, count)| count).sum()
}

#[test]
fn a_server_that_stands_still_leaves_one_gap_however_many_threads_there_are() {
    for threads in [1, 3] {
        let model = frozen(4 * S, 6 * S);
        let played = play(&Play { threads, ..Play::new(model, closed(), 10 * S, 12) });
        let gaps = flow(&played).gaps(10 * S);
        let off = |share: f64| (2.0 * S as f64 * share) as u64;
        assert_eq!(longer(&gaps, 20 * MS), 1, "{threads} threads: {gaps:?}");
        assert_eq!(longer(&gaps, off(1.0 - OFF_MOST)), 1, "{threads} threads: {gaps:?}");
        assert_eq!(longer(&gaps, off(1.0 + OFF_MOST)), 0, "{threads} threads: {gaps:?}");
    }
}

#[test]
fn a_server_that_stands_still_at_the_end_leaves_a_gap_until_then() {
    let played = play(&Play::new(frozen(9 * S, 20 * S), closed(), 10 * S, 12));
    let gaps = flow(&played).gaps(10 * S);
    assert_eq!((longer(&gaps, 900 * MS), longer(&gaps, 1_100 * MS)), (1, 0), "{gaps:?}");
}

#[test]
fn a_generator_that_stands_still_leaves_no_gap() {
    let mut it = Play::new(Model::of(Delay::Constant(10 * MS)), closed(), 5 * S, 12);
    it.generator_stalls = Some((2 * S, 3 * S));
    let gaps = flow(&play(&it)).gaps(5 * S);
    assert_eq!(longer(&gaps, 50 * MS), 0, "{gaps:?}");
}

#[test]
fn answers_are_counted_in_the_part_in_which_they_came() {
    let played = play(&Play::new(frozen(S, 2 * S), closed(), 4 * S, 10));
    let flow = flow(&played);
    let of_part = |at: usize| at as u64 * flow.part_ns();
    let during = |from_ns, to_ns| {
        let parts = flow.answered().iter().enumerate();
        let these = parts.filter(|(at, _)| (from_ns..to_ns).contains(&of_part(*at)));
        these.map(|(_, count)| count).sum::<u64>()
    };
    assert!(flow.answered().len() >= 120, "{} parts", flow.answered().len());
    let (before, meanwhile) = (during(0, S), during(S + 20 * MS, 2 * S - 20 * MS));
    assert_eq!(meanwhile, 0);
    // Ten connections, 100 answers a second each.
    assert!(before.abs_diff(1000) <= 20, "{before}");
}

#[test]
fn a_closed_loop_works_at_its_rate_however_long_its_answers_take() {
    for (delay_ns, window_ns, threads) in [
        (S, 2_100 * MS, 1),
        (2_200 * MS, 10 * S, 2),
        (900 * MS, 5 * S, 1),
        (2 * S, S, 3),
        (5 * MS, 5 * S, 1),
        (70 * MS, S, 2),
    ] {
        let model = Model::of(Delay::Constant(delay_ns));
        let played = play(&Play { threads, ..Play::new(model, closed(), window_ns, 64) });
        let found: f64 = flow(&played).work.answers().iter().sum();
        let truth = 64.0 * window_ns as f64 / (delay_ns + 2 * ONE_WAY_NS) as f64;
        let what = format!("{delay_ns} ns in {window_ns}: {found} of {truth}");
        assert!((found / truth - 1.0).abs() < 0.02, "{what}");
    }
}

#[test]
fn of_a_number_of_requests_the_flow_ends_when_the_first_connection_has_no_more() {
    let model = Model::of(Delay::OneIn(1000, 4 * S, MS));
    let it = Play { stop: Stop::Requests(1000), ..Play::new(model, closed(), S, 10) };
    let played = play(&it);
    let done = played.done();
    let window_ns = done.stopped_ns - done.started_ns;
    let whole_ns = flow(&played).whole_ns(window_ns);
    assert!(window_ns >= 4 * S, "one answer takes long: {window_ns}");
    assert!((90 * MS..120 * MS).contains(&whole_ns), "100 requests a connection: {whole_ns}");
}

#[test]
fn a_queue_grows_and_a_pipe_fills() {
    let load = open(&[stage(4, 1000.0, 1000.0)], Arrivals::Constant);
    for (what, delay_ns, connections, at_end, grows) in [
        // 500 connections at one answer a second each carry half of the rate.
        ("a queue", S, 500, 2500, true),
        ("a pipe", S, 5000, 1000, false),
        ("neither", MS, 100, 2, false),
    ] {
        let model = Model::of(Delay::Constant(delay_ns));
        let played = play(&Play::new(model, load.clone(), 4 * S, connections));
        let backlog = backlog(&played);
        assert_eq!(backlog.at_start, 0, "{what}");
        assert!(backlog.at_end.abs_diff(at_end) <= 2, "{what}: {}", backlog.at_end);
        let latencies = backlog.latency_sum_ns.into_iter().zip(backlog.answered);
        let means: Vec<_> =
            latencies.filter_map(|(sum_ns, count)| sum_ns.checked_div(count.into())).collect();
        let first_ns = delay_ns + 2 * ONE_WAY_NS;
        assert!(
            means.len() > 1 && means[0].abs_diff(first_ns.into()) <= u128::from(S / 3),
            "{what}: {means:?}"
        );
        let last_ns = means[means.len() - 1];
        assert_eq!(last_ns > means[0] + u128::from(S / 10), grows, "{what}: {means:?}");
    }
}

#[test]
fn of_a_number_of_requests_the_backlog_is_what_is_open_when_the_last_one_is_sent() {
    let load = open(&[stage(3600, 1000.0, 1000.0)], Arrivals::Constant);
    let model = Model::of(Delay::Constant(S));
    for threads in [1, 2] {
        let stop = Stop::Requests(3000);
        let it = Play { threads, stop, ..Play::new(model, load.clone(), S, 5000) };
        let backlog = backlog(&play(&it));
        assert!(backlog.at_end.abs_diff(1000) <= 2, "{threads} threads: {}", backlog.at_end);
    }
}

#[test]
fn times_of_two_days_add_up() {
    let hours = |count: u64| count * 3_600 * S;
    let (window_ns, delay_ns) = (hours(48), hours(47));
    let load = open(&[stage(11, 10_000.0, 10_000.0), stage(172_789, 0.0, 0.0)], Arrivals::Constant);
    for load in [load, closed()] {
        let model = Model::of(Delay::Constant(delay_ns));
        let play_it = Play::new(model, load.clone(), window_ns, 11);
        let played = play(&Play { depth: 10_000, timeout_ns: hours(49), ..play_it });
        let meter = &played.done().meter;
        assert!(meter.ok >= 110_000, "{} answers", meter.ok);
        let beyond = i128::from(u64::MAX);
        let permitted_ns = meter.permitted_ns;
        assert!(load != closed() || permitted_ns > beyond, "{permitted_ns} ns permitted");
        if load != closed() {
            let waited_ns: u128 = backlog(&played).latency_sum_ns.iter().sum();
            assert!(waited_ns >= 110_000 * u128::from(delay_ns) && waited_ns > beyond as u128);
        }
    }
}
