//! Laws of conversations: sessions, redirects, streams and several origins.

use trueload_engine::generator::Footprint;
use trueload_load::Stop;
use trueload_meter::{Lazy, Redirects, SessionMeter, Streams};
use trueload_wire::session::{BODY_BYTES_MOST, VALUE_BYTES_MOST};

use super::{decoded, each_phase, ensure};
use crate::front::Reported;
use crate::play::Played;
use crate::scenario::{Leads, Protocol, Scenario, Talk};

/// Most bytes of a request, without its body.
const REQUEST_BYTES_MOST: usize = 1_000;
/// Most bytes that a session keeps of a site's answer, besides its body: cookies and values.
const SITE_BYTES_MOST: usize = 2_000;
/// The same of any peer's answer: its largest head, and the largest jar.
const HEAD_BYTES_MOST: usize = (256 + 16) << 10;

/// The values of a histogram, which are so small that none shares its bin.
fn sum_of(times: &Lazy) -> (u64, u64) {
    let Some(histogram) = times.encoded().map(|encoded| decoded(&encoded)) else { return (0, 0) };
    let values = histogram.iter_recorded();
    let sum = values.map(|bin| bin.value_iterated_to() * bin.count_at_value()).sum();
    (histogram.len(), sum)
}

/// Whether every request of a run has ended, and the peers know how. They do not if a part of a stream
/// may come too late.
fn is_complete(played: &Played) -> bool {
    let ended = |reported: &Reported| {
        let meter = &reported.done.meter;
        let unfinished = meter.sessions.as_ref().map_or(0, |sessions| sessions.unfinished);
        meter.cancelled + unfinished == 0 && !reported.done.partial
    };
    let known = played.scenario.talk.as_ref().is_none_or(Talk::flows);
    known
        && played.scenario.is_well_formed()
        && played.scenario.stop_ns.is_none()
        && played.front.done.iter().all(ended)
}

/// A session that has begun ends well, fails, or goes on: in the next phase, or without an end.
pub(super) fn a_session_settles_once(played: &mut Played) -> Result<(), String> {
    let reporters = played.scenario.threads * played.scenario.parts();
    for reporter in 0..reporters {
        let own = played.front.done.iter().filter(|reported| reported.thread == reporter);
        // A short phase may be over before the one ahead of it, in which its sessions began.
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|reported| reported.done.phase);
        let last = own.last().map(|reported| reported.done.phase);
        let (mut running, mut connections, mut fewer) = (0, 0, false);
        for Reported { done, .. } in own {
            let Some(sessions) = done.meter.sessions.as_ref() else { continue };
            let SessionMeter { begun, ok, failed, unfinished, latency, cut, .. } = sessions;
            let (came, ended) = (running + begun, ok + failed);
            ensure(came >= ended + unfinished, || {
                format!("thread {reporter}: {came} began, {ended} ended, {unfinished} go on")
            })?;
            running = came - ended;
            // Sessions of connections that were taken away have no outcome, nor have those at the
            // end of a phase that the next one has followed at once.
            let now = played.front.assigned[done.phase].share.connections;
            fewer |= now < connections;
            let told = *unfinished == running || fewer || Some(done.phase) != last;
            ensure(told, || format!("thread {reporter}: {running} go on, {unfinished} are told"))?;
            let timed: u64 = latency.values().sum();
            ensure(timed == *ok, || format!("{ok} sessions ended well, {timed} have a time"))?;
            let aged: u64 = cut.values().sum();
            ensure(aged == *unfinished, || format!("{unfinished} were cut, {aged} have an age"))?;
            connections = now;
        }
    }
    Ok(())
}

/// Nothing of a session is asked behind a failure, and all that is left of it counts as skipped.
pub(super) fn what_follows_a_failure_is_skipped(played: &mut Played) -> Result<(), String> {
    if let Some(asked) = &played.book.behind_failure {
        return Err(format!("{asked} came behind a failure of its session"));
    }
    let Some(talk) = played.scenario.talk.as_ref().filter(|talk| !talk.steps.is_empty()) else {
        return Ok(());
    };
    let meters = || played.front.done.iter().map(|reported| &reported.done.meter);
    let targets = || meters().flat_map(|meter| &meter.targets);
    let skipped: u64 = targets().map(|target| target.skipped).sum();
    let issued: u64 = targets().map(|target| target.issued).sum();
    let sessions = || meters().filter_map(|meter| meter.sessions.as_ref());
    let all = talk.requests();
    let ended: u64 = sessions().map(|sessions| sessions.ok + sessions.failed).sum();
    let begun: u64 = sessions().map(|sessions| sessions.begun).sum();
    let failed: u64 = meters().map(trueload_meter::Meter::failed_sum).sum();
    let most = begun * all + failed;
    ensure((ended * all..=most).contains(&(issued + skipped)), || {
        format!("{issued} asked and {skipped} skipped, of {ended} to {begun} sessions of {all}")
    })?;
    if !is_complete(played) {
        return Ok(());
    }
    let (_, failed, left) = played.book.sessions(all);
    ensure(skipped == left, || format!("{skipped} skipped, {left} left of {failed} sessions"))
}

/// A request with its redirects is one request, which has one latency. Each redirect that is
/// followed has one time, and one hop behind it.
pub(super) fn a_chain_is_one_request(played: &mut Played) -> Result<(), String> {
    let follow = played.scenario.talk.as_ref().and_then(|talk| talk.follow);
    let (mut followed, mut ended_badly) = (0, 0);
    each_phase(played, |_, meter| {
        let Some(Redirects { statuses, hops, .. }) = meter.redirects.as_deref() else {
            return ensure(follow.is_none(), || "redirects are not counted".to_owned());
        };
        let ended: u64 = hops.values().sum();
        let of_ok: u64 = hops.iter().map(|(hops, count)| u64::from(*hops) * count).sum();
        let all: u64 = statuses.values().sum();
        // An answer that was good at first may have been charged with a failure since.
        let answered = meter.ok..=meter.ok + meter.failed_sum();
        ensure(answered.contains(&ended), || format!("{ended} chains for {answered:?} answers"))?;
        let most = hops.keys().max().copied().unwrap_or(0);
        ensure(Some(most) <= follow, || format!("{most} hops, of {follow:?}"))?;
        let timed = meter.redirects.as_deref().and_then(|seen| seen.time.encoded());
        let timed = timed.map_or(0, |encoded| decoded(&encoded).len());
        ensure(timed == all, || format!("{all} redirects, {timed} times"))?;
        followed += all;
        ended_badly += meter.failed_sum() + meter.cancelled + meter.stale;
        // A chain may begin in one phase and end in another.
        ensure(of_ok <= all + meter.ok * u64::from(most), || format!("{of_ok} hops of {all}"))
    })?;
    let hops = played.book.hops;
    // A peer that breaks the protocol may answer before it reads. In circles, hops are not told
    // apart.
    let circles = played.scenario.talk.as_ref().map(|talk| talk.site.leads);
    let circles = circles.flatten() == Some(Leads::InCircles);
    let least = if played.scenario.is_well_formed() && !circles { followed } else { 0 };
    let range = least.saturating_sub(ended_badly)..=followed + ended_badly;
    ensure(range.contains(&hops), || {
        format!(
            "{hops} hops came, {followed} redirects were followed, {ended_badly} ended otherwise"
        )
    })
}

/// Each part of a stream is counted once: the first of its stream, or a gap behind another.
pub(super) fn a_part_is_counted_once(played: &mut Played) -> Result<(), String> {
    let streams = played.scenario.talk.as_ref().is_some_and(|talk| talk.stream.is_some());
    let (mut all, mut whole) = (Streams::default(), 0);
    each_phase(played, |_, meter| {
        let Some(seen) = meter.streams.as_deref() else {
            return ensure(!streams, || "streams are not counted".to_owned());
        };
        let encoded = &seen.histograms;
        let (gaps, _) = sum_of(&encoded.gap);
        let (first, _) = sum_of(&encoded.first_part);
        let (answers, parts) = sum_of(&encoded.parts_per_answer);
        let right = seen.together <= gaps && gaps <= seen.parts && parts <= seen.parts + gaps;
        ensure(right, || format!("{} parts, {gaps} gaps, {parts} of whole streams", seen.parts))?;
        ensure((first, answers) == (seen.whole, seen.whole), || {
            format!("{} streams, {first} first parts, {answers} numbers of parts", seen.whole)
        })?;
        let answered = meter.ok..=meter.ok + meter.failed_sum();
        ensure(answered.contains(&seen.whole), || {
            format!("{} whole streams of {answered:?} answers", seen.whole)
        })?;
        whole += seen.whole;
        all.merge(seen);
        Ok(())
    })?;
    if !streams || !is_complete(played) || !played.scenario.is_fair() {
        return Ok(());
    }
    let encoded = &all.histograms;
    let (gaps, _) = sum_of(&encoded.gap);
    let (_, parts) = sum_of(&encoded.parts_per_answer);
    let (true_streams, true_parts) = (played.book.streams, played.book.parts);
    let found = (whole, all.parts, parts, gaps + whole);
    ensure(found == (true_streams, true_parts, true_parts, true_parts), || {
        format!("{found:?}, of {true_streams} streams with {true_parts} parts")
    })
}

/// The most that a conversation may keep for a slot, by what its plan says.
pub(super) fn footprint_most(scenario: &Scenario) -> Footprint {
    let requests = scenario.depth;
    let body = match &scenario.protocol {
        Protocol::Http2(plan) => plan.body_bytes,
        _ => REQUEST_BYTES_MOST,
    };
    let (steps, answer) = scenario.talk.as_ref().map_or((0, 0), |talk| {
        let steps = talk.steps.len();
        let (body, head, value) = if scenario.follows_its_site() {
            (talk.more_bytes() as usize, SITE_BYTES_MOST, 0)
        } else {
            (BODY_BYTES_MOST, HEAD_BYTES_MOST, VALUE_BYTES_MOST)
        };
        (steps, if steps > 0 { body + head + steps * value } else { 0 })
    });
    // A buffer may be twice as large as what is in it.
    let bytes = 2 * (requests.max(steps) * (REQUEST_BYTES_MOST + body) + answer);
    Footprint { requests, bytes }
}

/// Law 4 for conversations: what is kept of redirects, answers, cookies and values stays within what
/// the plan permits.
pub(super) fn what_a_conversation_keeps_is_bounded(played: &mut Played) -> Result<(), String> {
    let (kept, most) = (played.footprint, footprint_most(&played.scenario));
    ensure(kept.max(most) == most, || format!("{kept:?}, and {most:?} is permitted"))
}

/// Each origin has its share of what is scheduled, whatever the others do.
pub(super) fn no_origin_starves_another(played: &mut Played) -> Result<(), String> {
    let Scenario { talk, stop_ns, .. } = &*played.scenario;
    let weights = talk.as_ref().map_or(&[][..], |talk| &talk.origins);
    if weights.is_empty() || stop_ns.is_some() {
        return Ok(());
    }
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    for (phase, assigned) in played.front.assigned.iter().enumerate() {
        let own = || played.front.done.iter().filter(|reported| reported.done.phase == phase);
        let shared =
            assigned.share.load.is_scheduled() || matches!(assigned.share.stop, Stop::Requests(_));
        if !shared || own().any(|reported| reported.done.partial) {
            continue;
        }
        let of = |origin: u32| {
            let parts = weights.len() as u32;
            let own = own().filter(|reported| reported.thread % parts == origin);
            own.fold((0, 0), |(scheduled, failed), reported| {
                let meter = &reported.done.meter;
                (scheduled + meter.scheduled, failed + meter.failed_sum())
            })
        };
        let found: Vec<_> = (0..weights.len() as u32).map(of).collect();
        // Whoever has no connection that sends has nothing to send.
        let senders = assigned.share.connections - assigned.share.idle;
        let idle = senders < weights.len() as u32;
        let all: u64 = found.iter().map(|(scheduled, _)| scheduled).sum();
        let failed: u64 = found.iter().map(|(_, failed)| failed).sum();
        for ((scheduled, _), weight) in found.iter().zip(weights) {
            // Shares are dealt in cycles of as many turns as all weights are.
            let apart = (scheduled * sum).abs_diff(all * u64::from(*weight));
            ensure(idle || apart <= sum * (sum + failed), || {
                format!("phase {phase}: {found:?} scheduled, by weights {weights:?}")
            })?;
        }
    }
    Ok(())
}
