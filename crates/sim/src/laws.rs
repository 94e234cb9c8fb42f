//! The laws that hold for every run, each a named function. They come from the design (§7) and from
//! what a simulated kernel can see.

mod http2;
mod load;
mod talk;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use trueload_load::Stop;
use trueload_meter::{Counts, Early, Meter, Series};

use crate::front::{Front, Reported};
use crate::play::{Played, STEPS_MOST};
use crate::scenario::{MS, Protocol, S, Scenario, Style, US};

/// The maximum number of unsent bytes that a generator may keep for one connection beyond its
/// requests. It allows for answers to pings and for data copied ahead (`ANSWERS_BYTES_MOST` and
/// `COPIED_BYTES_MOST` of the generator). It also allows for the answers to one read of pings, and
/// for a send in progress.
const WAITING_BYTES_MOST: usize = 768 * 1024;

/// The time between two ticks.
const TICK_NS: u64 = S / 4;

/// A law: its name and the function that checks it.
type Law = (&'static str, fn(&mut Played) -> Result<(), String>);

/// Every law.
pub const LAWS: &[Law] = &[
    ("no slot hangs", no_slot_hangs),
    ("the ledger adds up", the_ledger_adds_up),
    ("what was asked for is sent or unsent", what_was_asked_for_is_sent_or_unsent),
    ("one response settles one request", one_response_settles_one_request),
    ("the end comes in time", the_end_comes_in_time),
    ("a failed request leaves no time behind", a_failed_request_leaves_no_time_behind),
    ("the peers count the same", the_peers_count_the_same),
    ("bytes are those that went through the kernel", bytes_are_those_that_went_through_the_kernel),
    (
        "no connection has more requests than its depth",
        no_connection_has_more_requests_than_its_depth,
    ),
    ("requests take no more time than is permitted", requests_take_no_more_time_than_is_permitted),
    ("time does not go backwards", time_does_not_go_backwards),
    ("ticks come in their turn", ticks_come_in_their_turn),
    ("ticks stay within bounds", ticks_stay_within_bounds),
    ("memory is bounded", memory_is_bounded),
    ("each delivery is had once or lost", each_delivery_is_had_once_or_lost),
    ("datagrams are told apart", datagrams_are_told_apart),
    ("nobody is accused falsely", nobody_is_accused_falsely),
    ("service times are true", service_times_are_true),
    ("answers flow when they come", answers_flow_when_they_come),
    ("a backlog is of what was scheduled", a_backlog_is_of_what_was_scheduled),
    ("what is sent is as the protocol has it", http2::what_is_sent_is_as_the_protocol_has_it),
    ("an answer that counts was sent whole", http2::an_answer_that_counts_was_sent_whole),
    ("a request is asked again once at most", http2::a_request_is_asked_again_once_at_most),
    ("a connection counts as what it speaks", http2::a_connection_counts_as_what_it_speaks),
    ("no wait is left out of the latency", http2::no_wait_is_left_out_of_the_latency),
    ("a session settles once", talk::a_session_settles_once),
    ("what follows a failure is skipped", talk::what_follows_a_failure_is_skipped),
    ("a chain is one request", talk::a_chain_is_one_request),
    ("a part is counted once", talk::a_part_is_counted_once),
    ("no origin starves another", talk::no_origin_starves_another),
    ("what a conversation keeps is bounded", talk::what_a_conversation_keeps_is_bounded),
    ("each arrival is scheduled once", load::each_arrival_is_scheduled_once),
    ("nothing waits beside a free connection", load::nothing_waits_beside_a_free_connection),
    ("a latency has the exchange in it", load::a_latency_has_the_exchange_in_it),
    ("guesses are found out", load::guesses_are_found_out),
];

/// Checks every law. Returns the broken ones, each with an explanation.
#[must_use]
pub fn check(played: &mut Played) -> Vec<(&'static str, String)> {
    let broken = |(name, law): &Law| law(played).err().map(|how| (*name, how));
    LAWS.iter().filter_map(broken).collect()
}

fn ensure(holds: bool, how: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(how()) }
}

fn each_phase(
    played: &Played,
    mut law: impl FnMut(&Reported, &Meter) -> Result<(), String>,
) -> Result<(), String> {
    let mut reports = played.front.done.iter();
    reports.try_for_each(|reported| {
        law(reported, &reported.done.meter).map_err(|how| {
            format!("thread {}, phase {}: {how}", reported.thread, reported.done.phase)
        })
    })
}

/// Every announced phase ends on every thread, and every thread ends when it is told to.
fn no_slot_hangs(played: &mut Played) -> Result<(), String> {
    if let Some(stuck) = played.kernels.iter().find_map(|kernel| kernel.seen.stuck.clone()) {
        return Err(stuck);
    }
    let Played { front, scenario, steps, .. } = played;
    ensure(*steps < STEPS_MOST, || "it never comes to rest".to_owned())?;
    ensure(front.ended == scenario.threads * scenario.parts(), || {
        let done: Vec<_> = front.assigned.iter().map(|assigned| assigned.done).collect();
        format!("{} of {} threads ended, phases done {done:?}", front.ended, scenario.threads)
    })
}

/// Law 1: every issued request ended as good, failed or cancelled, and the sums by second and by
/// target agree with the totals.
fn the_ledger_adds_up(played: &mut Played) -> Result<(), String> {
    let ticks = &played.front.ticks;
    each_phase(played, |reported, meter| {
        let ended = meter.ok + meter.failed_sum() + meter.cancelled;
        ensure(meter.issued == ended, || format!("issued {} but {ended} ended", meter.issued))?;
        let (phase, thread) = (reported.done.phase, reported.thread);
        let mut series = Series::default();
        let ticks = ticks.iter().filter(|(of, _, tick)| (*of, tick.phase) == (thread, phase));
        ticks.for_each(|(_, _, tick)| series.add(&tick.recorded));
        series.add(&reported.done.last);
        let bins = series.into_bins();
        let sums = bins.iter().fold((0, 0), |sums, bin| (sums.0 + bin.ok, sums.1 + bin.failed));
        ensure(sums == (meter.ok, meter.failed_sum()), || {
            format!("ok {} and failed {}, by seconds {sums:?}", meter.ok, meter.failed_sum())
        })?;
        if meter.targets.is_empty() {
            return Ok(());
        }
        let of_targets = meter.targets.iter().fold([0; 4], |sums, target| {
            let counts = [target.issued, target.ok, target.stale, target.cancelled];
            std::array::from_fn(|index| sums[index] + counts[index])
        });
        let of_all = [meter.issued, meter.ok, meter.stale, meter.cancelled];
        ensure(of_targets == of_all, || format!("{of_all:?}, by targets {of_targets:?}"))
    })
}

/// Law 1 for the load: no more requests are issued than scheduled. A phase with a fixed number of
/// requests schedules exactly that many, plus at most one for each failure.
fn what_was_asked_for_is_sent_or_unsent(played: &mut Played) -> Result<(), String> {
    each_phase(played, |_, meter| {
        ensure(meter.scheduled >= meter.issued, || {
            format!("{} scheduled, {} issued", meter.scheduled, meter.issued)
        })
    })?;
    if played.front.stopped && !played.front.is_over() {
        return Ok(());
    }
    for (phase, assigned) in played.front.assigned.iter().enumerate() {
        let Stop::Requests(count) = assigned.share.stop else { continue };
        let reports = played.front.done.iter().filter(|reported| reported.done.phase == phase);
        let (scheduled, failed) = reports.fold((0, 0), |sums, reported| {
            let meter = &reported.done.meter;
            // A number of requests is one of sessions, if there are sessions.
            let begun = meter.sessions.as_ref().map(|sessions| sessions.begun);
            (sums.0 + begun.unwrap_or(meter.scheduled), sums.1 + meter.failed_sum())
        });
        // Each origin needs a connection that sends.
        let senders = assigned.share.connections - assigned.share.idle;
        let idle = senders < played.scenario.parts();
        let sessions = played.scenario.has_sessions();
        let rows = played.scenario.talk.as_ref().is_some_and(|talk| talk.rows.is_some());
        // A phase that is cut short or without hope begins no more sessions, nor does one without rows.
        let partial = played.front.done.iter().any(|reported| reported.done.partial);
        let hopeless = sessions && (partial || !played.scenario.is_well_formed());
        let least = if sessions { count.saturating_sub(failed) } else { count };
        let least = if rows || hopeless { 0 } else { least };
        // A violation that could be charged to no open request counts as a failure of its own,
        // beyond the requests asked for.
        ensure((least..=count + failed).contains(&scheduled) || idle, || {
            format!("phase {phase}: {scheduled} scheduled of {count}")
        })?;
    }
    Ok(())
}

/// Law 2: the complete answers, counted by status, are those that settled a request.
fn one_response_settles_one_request(played: &mut Played) -> Result<(), String> {
    if !matches!(played.scenario.protocol, Protocol::Http(_) | Protocol::Http2(_)) {
        return Ok(());
    }
    each_phase(played, |_, meter| {
        let failed: BTreeMap<_, _> =
            meter.failed().map(|(class, count)| (class.name(), count)).collect();
        let of = |class| failed.get(class).copied().unwrap_or(0);
        let streams = played.scenario.talk.as_ref().is_some_and(|talk| talk.stream.is_some());
        // A stream may be cut although its answer is complete.
        let cut = if streams { of("truncated") } else { 0 };
        let ends = ["status", "mismatch", "extract", "encoded", "redirect"];
        let settled = meter.ok + ends.into_iter().map(of).sum::<u64>();
        let answered: u64 = meter.statuses().map(|(_, count)| count).sum();
        // An answer may settle a request that is then charged with bytes that came after it. That
        // answer was complete, too.
        let violations =
            ["unsolicited", "tls.protocol", "limit"].into_iter().chain(http2::VIOLATIONS);
        let most = settled + cut + violations.map(of).sum::<u64>();
        ensure((settled..=most).contains(&answered), || {
            format!("{answered} complete answers settled {settled} requests")
        })
    })
}

/// Law 3, for each phase: the end comes in time. [`no_slot_hangs`] checks that there is an end at
/// all.
fn the_end_comes_in_time(played: &mut Played) -> Result<(), String> {
    let slack_ns = slack_ns(played);
    let Played { scenario, front, .. } = &*played;
    let last = front.assigned.len().saturating_sub(1);
    // Engines that share a broadcast wait for each other's messages. Before that they may wait for
    // an engine that has no client left. That engine gives up a phase with a number of requests
    // after three timeouts and 2 s.
    let shared = scenario.threads > 1 && matches!(scenario.protocol, Protocol::Broadcast { .. });
    let by_requests =
        front.assigned.iter().any(|assigned| matches!(assigned.share.stop, Stop::Requests(_)));
    let patience_ns = if by_requests { 3 * scenario.timeout_ns + 2 * S } else { 0 };
    let settling_ns = patience_ns + scenario.timeout_ns + 2 * scenario.front_ns + 100 * MS;
    let settling_ns = if shared { settling_ns } else { 0 };
    each_phase(played, |reported, _| {
        let done = &reported.done;
        let share = &front.assigned[done.phase].share;
        // Requests of earlier phases may still be open, and the last phase waits for them.
        let before_ns =
            front.done.iter().filter(|other| done.phase == last && other.done.phase < last);
        let before_ns = before_ns.map(|other| other.at_ns).max().unwrap_or(0);
        let most_ns =
            done.stopped_ns.max(before_ns) + scenario.timeout_ns + settling_ns + 2 * S + slack_ns;
        ensure(reported.at_ns <= most_ns, || {
            format!("stopped at {}, over at {}", done.stopped_ns, reported.at_ns)
        })?;
        let Stop::After(ns) = share.stop else { return Ok(()) };
        let spent = done.data.is_some_and(|data| data.spent);
        ensure(done.stopped_ns == share.start_ns + ns || done.partial || spent, || {
            format!("told to stop at {}, stopped at {}", share.start_ns + ns, done.stopped_ns)
        })
    })
}

/// The time by which a batch may delay a promised time, in ns.
fn slack_ns(played: &Played) -> u64 {
    let batch_ns = played.kernels.iter().map(|kernel| kernel.seen.batch_most_ns).max();
    let kernel = &played.scenario.kernel;
    batch_ns.unwrap_or(0) + kernel.late_ns + kernel.coalesce_ns + 100 * US
}

/// Law 6: each histogram has exactly one value for each good request.
fn a_failed_request_leaves_no_time_behind(played: &mut Played) -> Result<(), String> {
    let close = played.scenario.close;
    each_phase(played, |reported, meter| {
        let times = reported.times();
        let mut histograms = vec![("latency", &times.latency), ("service", &times.service)];
        histograms.push(("first byte", &times.first_byte));
        if close {
            histograms.push(("total", &times.total));
        }
        for (name, encoded) in histograms {
            let count = encoded.as_deref().map_or(0, |encoded| decoded(encoded).len());
            ensure(count == meter.ok, || format!("{} ok, {count} times of {name}", meter.ok))?;
        }
        Ok(())
    })
}

/// Decodes a histogram that the meter wrote.
#[must_use]
pub fn decoded(encoded: &str) -> Histogram<u64> {
    let bytes = STANDARD.decode(encoded).expect("the meter writes base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("the meter writes a histogram")
}

/// Law 7: the peers receive no more requests than were sent, and fair peers at least as many as
/// were answered.
fn the_peers_count_the_same(played: &mut Played) -> Result<(), String> {
    let at_peers: u64 = played.kernels.iter().map(super::kernel::Kernel::requests_at_peers).sum();
    let meters = || played.front.done.iter().map(|reported| &reported.done.meter);
    let followed = |meter: &Meter| {
        meter.redirects.as_ref().map_or(0, |seen| seen.statuses.values().sum::<u64>())
    };
    let sent: u64 = meters().map(|meter| meter.issued + meter.stale + followed(meter)).sum();
    ensure(at_peers <= sent, || format!("{at_peers} at the peers, {sent} sent"))?;
    if !played.scenario.is_fair() {
        return Ok(());
    }
    // An upgrade is a step of a conversation, and no message.
    let upgrades = |meter: &Meter| match played.scenario.protocol {
        Protocol::Chat { .. } => meter.targets[0].ok,
        _ => 0,
    };
    let ok: u64 = meters().map(|meter| meter.ok - upgrades(meter)).sum();
    ensure(at_peers >= ok, || format!("{at_peers} at the peers, {ok} answered"))
}

/// The bytes of all phases agree with those that went through the kernel. Opening handshakes belong
/// to no phase, nor does what a faulty peer sends before the first phase. Runs over TLS are not
/// checked, because TLS adds its own bytes.
fn bytes_are_those_that_went_through_the_kernel(played: &mut Played) -> Result<(), String> {
    let Scenario { protocol, tls, stop_ns, peers, .. } = &*played.scenario;
    // Peers that a test supplies may speak TLS themselves.
    if *tls || peers.is_empty() {
        return Ok(());
    }
    use Protocol::{Broadcast, Chat, Http2, Ws};
    let opens = matches!(protocol, Broadcast { .. } | Chat { .. } | Http2(_) | Ws { .. });
    let all_read = played.scenario.is_fair() && stop_ns.is_none() && !opens;
    for (thread, kernel) in played.kernels.iter().enumerate() {
        let done = &played.front.done;
        let done = done.iter().filter(|reported| reported.kernel(&played.scenario) == thread);
        let (read, sent) = done.fold((0, 0), |(read, sent), Reported { done, .. }| {
            (read + done.meter.bytes_in, sent + done.meter.bytes_out)
        });
        let (true_read, true_sent) = (kernel.seen.bytes_read, kernel.seen.bytes_sent);
        let holds = if all_read { read == true_read } else { read <= true_read };
        ensure(holds, || format!("thread {thread}: {read} bytes read, {true_read} are true"))?;
        let holds = if opens { sent <= true_sent } else { sent == true_sent };
        ensure(holds, || format!("thread {thread}: {sent} bytes sent, {true_sent} are true"))?;
    }
    Ok(())
}

/// No connection has more open requests than its depth, as seen by peers that answer everything.
fn no_connection_has_more_requests_than_its_depth(played: &mut Played) -> Result<(), String> {
    let Scenario { depth, protocol, .. } = &*played.scenario;
    if !played.scenario.is_fair() || matches!(protocol, Protocol::Broadcast { .. }) {
        return Ok(());
    }
    let most = played.kernels.iter().map(|kernel| kernel.seen.requests_open_most).max();
    let most = most.unwrap_or(0);
    ensure(most <= *depth as u64, || format!("{most} at once, its depth is {depth}"))
}

/// Little's law, as in the check of that name: the service times sum to no more than the time
/// permitted.
fn requests_take_no_more_time_than_is_permitted(played: &mut Played) -> Result<(), String> {
    let slack_ns = slack_ns(played);
    let Scenario { depth, protocol, .. } = &*played.scenario;
    if !played.scenario.is_fair() || matches!(protocol, Protocol::Broadcast { .. }) {
        return Ok(());
    }
    each_phase(played, |reported, meter| {
        let done = &reported.done;
        // The check is for closed loops. In an open loop a connection's places are free for longer
        // than requests are permitted.
        if played.front.assigned[done.phase].share.load.is_scheduled() {
            return Ok(());
        }
        let places = u64::from(played.scenario.connections_most()) * *depth as u64;
        let most_ns = places * done.stopped_ns.saturating_sub(done.started_ns);
        ensure(meter.permitted_ns <= i128::from(most_ns), || {
            format!("{} ns are permitted, of {most_ns} at most", meter.permitted_ns)
        })?;
        let service = reported.times().service.as_deref().map(decoded);
        let taken_ns = service.map_or(0.0, |service| service.mean() * service.len() as f64);
        // A request sent within the phase may end after it.
        let behind_ns = places * (done.done_ns.saturating_sub(done.stopped_ns) + slack_ns);
        let most_ns = (meter.permitted_ns + i128::from(behind_ns)) as f64 * 1.002;
        ensure(taken_ns <= most_ns, || {
            format!("{taken_ns} ns taken, {} permitted, {behind_ns} behind", meter.permitted_ns)
        })
    })
}

/// The starts, ends and reports of each thread follow each other in time.
fn time_does_not_go_backwards(played: &mut Played) -> Result<(), String> {
    let reporters = played.scenario.threads * played.scenario.parts();
    let mut before = vec![0; reporters as usize];
    for (thread, now_ns, phase, at_ns) in &played.front.stages {
        let before_ns = std::mem::replace(&mut before[*thread as usize], *at_ns);
        ensure(*at_ns >= before_ns && at_ns <= now_ns, || {
            format!(
                "thread {thread}, phase {phase}: {at_ns} told at {now_ns}, before it {before_ns}"
            )
        })?;
    }
    each_phase(played, |reported, _| {
        let done = &reported.done;
        let times = [done.started_ns, done.stopped_ns, done.done_ns, reported.at_ns];
        ensure(times.is_sorted() && done.began_ns >= done.started_ns, || format!("{times:?}"))
    })
}

/// Tick number n of a phase is due n quarters of a second after the start. It comes no earlier, and
/// no later than the report of the phase. It belongs to a second from the one in which it fell due
/// to the one in which it was reported. A long batch may delay a tick's report, and the next one
/// may follow soon after.
fn ticks_come_in_their_turn(played: &mut Played) -> Result<(), String> {
    let Front { ticks, .. } = &played.front;
    each_phase(played, |Reported { thread, done, at_ns, .. }, _| {
        let own = ticks.iter().filter(|(of, _, tick)| (*of, tick.phase) == (*thread, done.phase));
        let mut before = 0;
        for (number, (_, tick_ns, tick)) in (1..).zip(own) {
            let (since_ns, due_ns) = (tick_ns.saturating_sub(done.started_ns), number * TICK_NS);
            ensure(since_ns >= due_ns && tick_ns <= at_ns, || {
                format!("tick {number} after {since_ns} ns, and not after {due_ns} ns")
            })?;
            let seconds = before.max((due_ns - 1) / S)..=since_ns / S;
            let second = tick.recorded.second as u64;
            ensure(seconds.contains(&second), || format!("second {second}, not {seconds:?}"))?;
            before = second;
        }
        // A phase that ends exactly with a second belongs to that second.
        let last = done.done_ns.saturating_sub(done.started_ns + 1) / S;
        ensure(done.last.second as u64 == last, || {
            format!("it ends in second {}, which is {last}", done.last.second)
        })
    })
}

/// The values in each tick are possible.
fn ticks_stay_within_bounds(played: &mut Played) -> Result<(), String> {
    let connections = played.scenario.connections_most();
    for (thread, at_ns, tick) in &played.front.ticks {
        let Counts { scheduled, unsent, issued, ok, cancelled, failed, .. } = &tick.counts;
        let failed: u64 = failed.values().sum();
        ensure(tick.open <= connections, || {
            format!(
                "thread {thread} at {at_ns}: {} of {connections} connections are open",
                tick.open
            )
        })?;
        ensure(*scheduled == issued + unsent && ok + failed + cancelled <= *issued, || {
            format!("thread {thread} at {at_ns}: {:?}", tick.counts)
        })?;
    }
    let set_ups = &played.front.set_ups;
    let too_many = set_ups.iter().find(|(_, set_up)| set_up.established > connections);
    ensure(too_many.is_none(), || format!("{too_many:?}"))
}

/// Law 4, as far as a kernel can see it: unsent bytes and open sockets stay within bounds.
fn memory_is_bounded(played: &mut Played) -> Result<(), String> {
    let depth = played.scenario.depth;
    for kernel in &played.kernels {
        let most = WAITING_BYTES_MOST + 2 * depth * 1024;
        let copied = kernel.seen.copied_most;
        ensure(copied <= most, || format!("{copied} bytes are copied to wait on one connection"))?;
        let (open, slots) = (kernel.seen.open_most, played.scenario.connections_most());
        ensure(open <= slots, || format!("{open} sockets for {slots} connections"))?;
    }
    Ok(())
}

/// Every delivery of a broadcast arrives or counts as lost. With a fair peer none is lost.
fn each_delivery_is_had_once_or_lost(played: &mut Played) -> Result<(), String> {
    let fair = played.scenario.is_fair();
    each_phase(played, |reported, meter| {
        let Some(of) = &reported.done.deliveries else { return Ok(()) };
        let right = of.lost + of.duplicate + of.out_of_order == 0 || !fair;
        ensure(of.expected == of.delivered + of.lost && right, || {
            let [expected, delivered, lost] = [of.expected, of.delivered, of.lost];
            format!(
                "{expected} expected, {delivered} delivered, {lost} lost, {} twice",
                of.duplicate
            )
        })?;
        ensure(of.delivered >= meter.ok || !fair, || {
            format!("{} ok, {} delivered", meter.ok, of.delivered)
        })
    })
}

/// Datagrams that settle nothing were duplicated by the network, or came after their timeout.
fn datagrams_are_told_apart(played: &mut Played) -> Result<(), String> {
    let mut sum = trueload_meter::Datagrams::default();
    let mut failed = 0;
    for reported in &played.front.done {
        sum.merge(&reported.done.meter.datagrams);
        failed += reported.done.meter.failed_sum() + reported.done.meter.cancelled;
    }
    let twice: u64 = played.kernels.iter().map(|kernel| kernel.seen.datagrams_twice).sum();
    let right = sum.unsolicited == 0 && sum.duplicated <= twice && sum.late <= failed;
    ensure(right, || format!("{sum:?}, {twice} came twice, {failed} failed"))
}

/// A peer that answers everything rightly causes no failure, except for an unsuccessful status that
/// it sends.
fn nobody_is_accused_falsely(played: &mut Played) -> Result<(), String> {
    if !played.scenario.is_well_formed() {
        return Ok(());
    }
    let excused = played.scenario.excuses();
    each_phase(played, |reported, meter| {
        let failed: Vec<_> =
            meter.failed().filter(|(class, _)| !excused.contains(&class.name())).collect();
        ensure(failed.is_empty(), || format!("{failed:?}, {:?}", reported.done.reasons))?;
        let early = meter.early;
        ensure(early == (Early { asked: early.asked, ..Early::default() }), || {
            format!("answers came too early: {early:?}")
        })?;
        ensure(meter.dropped == 0, || format!("{} connections were dropped", meter.dropped))
    })
}

/// Each answer counts in the flow of at most one phase. The work on it counts at most once over all
/// windows.
fn answers_flow_when_they_come(played: &mut Played) -> Result<(), String> {
    for thread in 0..played.scenario.threads * played.scenario.parts() {
        let own = played.front.done.iter().filter(|reported| reported.thread == thread);
        let (mut flowed, mut worked, mut answered) = (0, 0.0, 0);
        for Reported { done, .. } in own {
            let flow = &done.meter.flow;
            flowed += flow.answered().iter().sum::<u64>();
            worked += flow.work.answers().iter().sum::<f64>();
            // An answer that was good at first may have been charged with a failure since.
            answered += done.meter.ok + done.meter.failed_sum();
        }
        ensure(flowed <= answered, || format!("thread {thread}: {flowed} of {answered} flowed"))?;
        let most = answered as f64 + 1e-3;
        ensure(worked <= most, || format!("thread {thread}: {worked} of {answered} worked on"))?;
    }
    Ok(())
}

/// At most as many requests are unanswered at an open loop's end as were open before it or
/// scheduled in it. Each good answer has a latency, measured from its scheduled time.
fn a_backlog_is_of_what_was_scheduled(played: &mut Played) -> Result<(), String> {
    each_phase(played, |_, meter| {
        let Some(backlog) = &meter.backlog else { return Ok(()) };
        let most = backlog.at_start + meter.scheduled;
        ensure(backlog.at_end <= most, || format!("{} unanswered, of {most}", backlog.at_end))?;
        let timed: u64 = backlog.answered.iter().sum();
        // An answer that was good at first may have been charged with a failure since.
        let answered = meter.ok..=meter.ok + meter.failed_sum();
        ensure(answered.contains(&timed), || format!("{timed} latencies, {answered:?} answers"))
    })
}

/// With fair peers, the recorded service times are those that the kernels saw. None is longer by
/// more than it takes to hand sends over, so none was stamped before the hand-over began. None is
/// shorter by more than a batch takes.
fn service_times_are_true(played: &mut Played) -> Result<(), String> {
    let Scenario { kernel, .. } = &*played.scenario;
    let roomy = kernel.room == usize::MAX && kernel.send_most == usize::MAX;
    // An answer that lasts until its connection ends is read before it is known to be complete.
    let until_end = played.scenario.peers.iter().any(|manner| manner.style == Style::UntilEnd);
    // The service time of a broadcast covers more than the arrival of its receipt.
    let broadcast = matches!(played.scenario.protocol, Protocol::Broadcast { .. });
    // The peers do not time an upgrade, which is a step of a conversation.
    let chat = matches!(played.scenario.protocol, Protocol::Chat { .. });
    // Over TLS it is unknown where a request begins in the byte stream.
    let known = !broadcast
        && !chat
        && !played.scenario.tls
        && played.scenario.is_fair()
        && roomy
        && !until_end;
    let known = known && !played.scenario.hops_move();
    if !known || played.scenario.stop_ns.is_some() {
        return Ok(());
    }
    // A request that waits for a free stream is sent later than it is asked for, and its recorded
    // time is the longer one.
    let waits = http2::waits(&played.scenario);
    for (thread, kernel) in played.kernels.iter().enumerate() {
        let mut truth = kernel.seen.service_ns.clone();
        truth.sort_unstable();
        let mut recorded = Vec::new();
        for reported in &played.front.done {
            if reported.kernel(&played.scenario) == thread
                && let Some(service) = &reported.times().service
            {
                for bin in decoded(service).iter_recorded() {
                    let count = bin.count_at_value() as usize;
                    recorded.extend(std::iter::repeat_n(bin.value_iterated_to(), count));
                }
            }
        }
        recorded.sort_unstable();
        ensure(truth.len() == recorded.len(), || {
            format!("thread {thread}: {} answers, {} recorded", truth.len(), recorded.len())
        })?;
        let batch_ns = kernel.seen.batch_most_ns;
        let hand_over_ns = kernel.seen.hand_over_most_ns;
        for (rank, (true_ns, recorded_ns)) in truth.iter().zip(&recorded).enumerate() {
            // Histograms keep three digits: each value stands for the highest one in its bin.
            let least_ns = true_ns.saturating_sub(batch_ns);
            let most_ns = true_ns + hand_over_ns;
            let most_ns = if waits { u64::MAX } else { most_ns + most_ns / 500 + 1 };
            ensure((least_ns..=most_ns).contains(recorded_ns), || {
                format!(
                    "thread {thread}, rank {rank}: {recorded_ns} ns recorded, {true_ns} ns are true, a batch takes {batch_ns} ns"
                )
            })?;
        }
    }
    Ok(())
}
