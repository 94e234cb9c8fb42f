//! Several phases over the same clients: more of them, fewer, those that come back, and a stop in the middle.

use trueload_load::Stop;
use trueload_meter::Lazy;
use trueload_sim::scenario::{PhasePlan, S};
use trueload_wire::shootout::Dialect;

use super::peer::{Fault, Way};
use super::{Outcome, Play, counts, turns};

fn play(fault: Fault, dialect: Dialect, phases: Vec<PhasePlan>) -> Outcome {
    let outcome = Play::new(fault, dialect, phases).play();
    assert_eq!(outcome.broken, [], "{}", dialect.name());
    outcome
}

#[test]
fn clients_are_added_and_taken_away_between_phases() {
    let rows = [(4, 10), (9, 20), (2, 5), (70, 3)];
    let phases = rows.map(|(clients, messages)| turns(clients, 4, Stop::Requests(messages)));
    let outcome = play(Fault::None, Dialect::Phoenix, phases.into());
    for (((clients, messages), connected), done) in
        rows.iter().zip(&outcome.connected).zip(&outcome.done)
    {
        assert_eq!((connected.established, connected.failed.len()), (*clients, 0));
        let all = messages * u64::from(*clients);
        assert_eq!(counts(done), [all, all, 0, 0, 0], "{clients} clients");
        let meter = &done[0].meter;
        assert_eq!((meter.ok, meter.failed_sum()), (*messages, 0), "{clients} clients");
        let of = &done[0].deliveries.as_ref().expect("deliveries").histograms;
        let times = [&of.delivery, &of.first, &of.median, &of.p95, &of.last];
        assert!(!times.into_iter().any(Lazy::is_empty));
    }
}

#[test]
fn who_was_dropped_loses_all_until_connections_are_asked_for_again() {
    let phases = vec![
        turns(4, 1, Stop::Requests(4)),
        turns(4, 1, Stop::Requests(3)),
        turns(5, 1, Stop::Requests(3)),
    ];
    let outcome = play(Fault::DropsHalf(Way::Fin), Dialect::Json, phases);
    let [_, after, again] = &outcome.done[..] else { panic!("three phases") };
    assert_eq!(counts(after), [12, 6, 6, 0, 0]);
    let failed = after[0].meter.failed().map(|(class, _)| class.name());
    assert_eq!(failed.collect::<Vec<_>>(), ["lost"]);
    assert_eq!(outcome.connected[1].failed, []);
    assert_eq!(counts(again), [15, 15, 0, 0, 0]);
}

#[test]
fn clients_of_phoenix_give_a_sign_of_life_every_half_minute_and_others_none() {
    for (dialect, each) in [(Dialect::Phoenix, 2), (Dialect::Json, 0)] {
        let phase = PhasePlan { pause_ns: 60 * S, ..turns(100, 4, Stop::Requests(10)) };
        let outcome = play(Fault::None, dialect, vec![phase]);
        assert!(outcome.heartbeats.abs_diff(each * 100) <= 2, "{}", outcome.heartbeats);
        assert_eq!(counts(&outcome.done[0]), [1000, 1000, 0, 0, 0], "{}", dialect.name());
    }
}

#[test]
fn a_phase_by_time_sends_in_turns_until_it_is_over() {
    let outcome = play(Fault::None, Dialect::Binary, vec![turns(3, 2, Stop::After(S / 100))]);
    let meter = &outcome.done[0][0].meter;
    assert!(meter.ok > 100 && meter.failed_sum() == 0, "{}", meter.ok);
    assert_eq!(counts(&outcome.done[0]), [3 * meter.ok, 3 * meter.ok, 0, 0, 0]);
    let sums = &meter.slots;
    assert_eq!(sums.asked, 3);
    assert!(sums.answers_max - sums.answers_min <= 1, "in turn: {sums:?}");
    assert_eq!(meter.permitted_ns, i128::from(2 * S / 100));
}

#[test]
fn what_is_open_when_the_engine_is_stopped_is_neither_delivered_nor_lost() {
    let mut it = Play::new(Fault::Misses, Dialect::Json, vec![turns(4, 2, Stop::Requests(10))]);
    it.scenario.stop_ns = Some(S / 2);
    let outcome = it.play();
    assert_eq!(outcome.broken, []);
    let done = &outcome.done[0];
    assert!(done[0].partial);
    assert_eq!((counts(done), done[0].meter.ok), ([39, 39, 0, 0, 0], 10));
}
