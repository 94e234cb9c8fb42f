//! When a request counts as sent: when it is handed to the kernel, never when it was queued.

use std::sync::Arc;

use hdrhistogram::Histogram;
use trueload_load::{Arrivals, Load};

use super::model::{Delay, MS, Model, S, quantile};
use super::play::{Play, play};
use super::{open, stage};

/// What the kernel takes for a send over loopback.
const COST_NS: u64 = 4_500;
const PARTS: [f64; 4] = [0.01, 0.5, 0.99, 1.0];
/// Histograms keep three digits.
const ROUNDING: f64 = 0.001;

fn loads() -> [(&'static str, Load); 2] {
    let steady = open(&[stage(2, 20_000.0, 20_000.0)], Arrivals::Poisson { seed: 7 });
    [("closed", Load::Closed { active: Arc::from([]) }), ("open", steady)]
}

#[test]
fn a_send_is_stamped_while_the_kernel_takes_it() {
    let model = Model::of(Delay::Uniform(MS, 3 * MS));
    for (what, load) in loads() {
        let played = play(&Play { send_cost_ns: COST_NS, ..Play::new(model, load, 2 * S, 64) });
        played.adds_up();
        let mut truth_ns = played.served_ns();
        truth_ns.sort_unstable();
        check_off_by_half_a_send(what, &played.service(), &truth_ns);
    }
}

#[test]
fn round_trip_and_receive_lag_of_watched_connections_are_told_apart() {
    let model = Model::of(Delay::Uniform(MS, 3 * MS));
    for (what, load) in loads() {
        let played = play(&Play { send_cost_ns: COST_NS, ..Play::new(model, load, 2 * S, 64) });
        let (lag, trip) = (played.receive_lag(), played.round_trip());
        let watched_ns = played.watched_ns();
        let watched = watched_ns.len() as u64;
        assert_eq!((lag.len(), trip.len()), (watched, watched), "{what}: each has both");
        let share = watched as f64 / played.latency().len() as f64;
        assert!((0.04..0.09).contains(&share), "{what}: one in sixteen, not {share}");
        let (mut trips_ns, mut lags_ns): (Vec<u64>, Vec<u64>) = watched_ns.into_iter().unzip();
        trips_ns.sort_unstable();
        lags_ns.sort_unstable();
        check_off_by_half_a_send(what, &trip, &trips_ns);
        for part in PARTS {
            let (seen, truth) = (lag.value_at_quantile(part), quantile(&lags_ns, part));
            // Lags are kept to two digits.
            let rounding = truth / 100 + 1;
            assert!(seen.abs_diff(truth) <= rounding, "{what}, {part}: {seen}, in truth {truth}");
        }
        assert!(lags_ns.last() > Some(&COST_NS), "{what}: some answers did wait for sends");
    }
}

/// A send is stamped in the middle of the time that the kernel takes for it: times are off by half of that at most.
fn check_off_by_half_a_send(what: &str, seen: &Histogram<u64>, truth_ns: &[u64]) {
    for part in PARTS {
        let (seen, truth) = (seen.value_at_quantile(part), quantile(truth_ns, part));
        let rounding = (truth as f64 * ROUNDING) as u64 + 1;
        let off = seen.abs_diff(truth).saturating_sub(rounding);
        assert!(off <= COST_NS / 2, "{what}, {part}: {seen} ns, in truth {truth}");
    }
}

#[test]
fn the_send_lag_is_what_requests_waited_for_the_kernel() {
    // 64 answers at once: the last of the next requests waits for 63 others.
    let model = Model::of(Delay::Constant(MS));
    let (_, closed) = &loads()[0];
    let played = play(&Play { send_cost_ns: COST_NS, ..Play::new(model, closed.clone(), S, 64) });
    let lag = played.send_lag();
    assert_eq!(lag.len(), played.done().meter.issued, "each request has one");
    assert!(lag.min() >= COST_NS / 2, "none is sent in no time: {} ns", lag.min());
    assert!(lag.max() <= 64 * COST_NS * 2, "{} ns", lag.max());
    let (latency, lag) = (played.latency().mean(), lag.mean());
    let spent = latency - played.service().mean();
    assert!((spent - lag).abs() <= ROUNDING * latency, "{spent} ns, of which {lag} in lag");
}
