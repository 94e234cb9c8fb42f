//! Laws of the load: arrivals over all threads, and requests that are held back.

use trueload_load::{Load, Schedule, Stop};

use super::{decoded, each_phase, ensure};
use crate::front::Reported;
use crate::play::Played;
use crate::scenario::{MS, Protocol, Trick};

/// From this many requests of a thread on, one of them was held back.
const HELD_FROM: u64 = 2_900;

/// All threads together schedule each arrival of an open loop once, also where one of them joins
/// the others.
pub(super) fn each_arrival_is_scheduled_once(played: &mut Played) -> Result<(), String> {
    if played.scenario.has_sessions() {
        return Ok(());
    }
    for (phase, assigned) in played.front.assigned.iter().enumerate() {
        let share = &assigned.share;
        let (Load::Open { stages, arrivals }, Stop::After(ns)) = (&share.load, share.stop) else {
            continue;
        };
        let own = || played.front.done.iter().filter(|reported| reported.done.phase == phase);
        let cut = own().any(|reported| {
            reported.done.partial || reported.done.data.is_some_and(|data| data.spent)
        });
        let senders = share.connections - share.idle;
        if cut || played.front.stopped_early() || senders < played.scenario.parts() {
            continue;
        }
        let joined_ns = played.front.joined_ns.filter(|_| phase == 0);
        let mut whole = Schedule::new(stages, *arrivals, 0, 1);
        let mut expected = whole.skip_until(joined_ns.unwrap_or(ns));
        if let Some(from_ns) = joined_ns {
            expected += Schedule::from(stages, *arrivals, 0, 1, None, from_ns).skip_until(ns);
        }
        let scheduled: u64 = own().map(|reported| reported.done.meter.scheduled).sum();
        let failed: u64 = own().map(|reported| reported.done.meter.failed_sum()).sum();
        // A violation that could be charged to no open request is one more.
        ensure((expected..=expected + failed).contains(&scheduled), || {
            format!("phase {phase}: {scheduled} scheduled, of {expected} arrivals")
        })?;
    }
    Ok(())
}

/// With fair peers, an arrival of an open loop waits only while every connection is busy: no longer
/// than the requests that are sent take.
pub(super) fn nothing_waits_beside_a_free_connection(played: &mut Played) -> Result<(), String> {
    if !played.scenario.is_fair() || played.scenario.stop_ns.is_some() {
        return Ok(());
    }
    let busy_ns = (2 * played.scenario.slowest_ns() + 10 * MS) as f64;
    each_phase(played, |Reported { done, .. }, meter| {
        let share = &played.front.assigned[done.phase].share;
        let (Load::Open { .. }, Stop::After(ns)) = (&share.load, share.stop) else { return Ok(()) };
        let spent = done.data.is_some_and(|data| data.spent);
        let whole = meter.sessions.is_none() && !done.partial && !spent && share.idle == 0;
        if !whole || meter.scheduled == 0 || played.front.joined_ns.is_some() {
            return Ok(());
        }
        // The first arrival that was not sent came so long before the end, if they came evenly. The
        // last one may be due as the phase ends, too late to be sent.
        let waited = meter.unsent().saturating_sub(1);
        let waited_ns = ns as f64 * waited as f64 / meter.scheduled as f64;
        let slots = f64::from(done.established.max(1));
        let most_ns = (meter.issued as f64 + slots) * busy_ns;
        ensure(waited_ns * slots <= 4.0 * most_ns, || {
            format!(
                "{} of {} arrivals waited beside {slots} connections, which sent {}",
                meter.unsent(),
                meter.scheduled,
                meter.issued
            )
        })
    })
}

/// A latency counts from when a request was due, and its service time from when it was first sent:
/// no latency is the shorter one, also through redirects.
pub(super) fn a_latency_has_the_exchange_in_it(played: &mut Played) -> Result<(), String> {
    if matches!(played.scenario.protocol, Protocol::Broadcast { .. }) {
        return Ok(());
    }
    // A send has the time at which the hand-over of its whole group began, which may be before it
    // was due.
    let kernels = played.kernels.iter();
    let group_ns = kernels.map(|kernel| kernel.seen.hand_over_most_ns).max().unwrap_or(0);
    each_phase(played, |reported, _| {
        let times = reported.times();
        let (Some(latency), Some(service)) = (&times.latency, &times.service) else {
            return Ok(());
        };
        // What holds for each request holds for each rank.
        let (latency, service) = (decoded(latency), decoded(service));
        let (mut latencies, mut counted, mut latency_ns) = (latency.iter_recorded(), 0, 0);
        let mut below = 0;
        for step in service.iter_recorded() {
            // The first of these ranks has the shortest latency.
            while counted <= below
                && let Some(longer) = latencies.next()
            {
                counted += longer.count_since_last_iteration();
                latency_ns = longer.value_iterated_to();
            }
            let service_ns = step.value_iterated_to();
            // Histograms keep three digits.
            let most_ns = latency_ns + latency_ns / 500 + group_ns;
            ensure(most_ns >= service_ns, || {
                format!("{latency_ns} ns with an exchange of {service_ns} ns, at rank {below}")
            })?;
            below += step.count_since_last_iteration();
        }
        Ok(())
    })
}

/// A peer that sends answers ahead, over so long a way that it gains by it, is found out: sooner or
/// later its answer comes while the request is held back.
pub(super) fn guesses_are_found_out(played: &mut Played) -> Result<(), String> {
    let guesses = |tricks: &[(u32, Trick)]| matches!(tricks, [(0, Trick::Guess(..))]);
    let all = played.scenario.peers.iter().all(|manner| guesses(&manner.tricks));
    let http = matches!(played.scenario.protocol, Protocol::Http(_));
    if !all || !http || played.scenario.peers.is_empty() || played.scenario.stop_ns.is_some() {
        return Ok(());
    }
    each_phase(played, |_, meter| {
        let violations: u64 = meter
            .failed()
            .filter(|(class, _)| class.name() == "unsolicited")
            .map(|(_, count)| count)
            .sum();
        let known = meter.early.asked > 0 && meter.issued >= HELD_FROM;
        ensure(violations > 0 || !known, || {
            format!("{} requests, and no answer came before its request", meter.issued)
        })
    })
}
