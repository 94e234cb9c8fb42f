//! The laws that hold for every run, each a function with a name (design §7, and what a kernel that is played can see).

mod http2;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use trueload_load::{Load, Stop};
use trueload_meter::{Early, Meter, Series};

use crate::front::{Front, Reported};
use crate::play::{Played, STEPS_MOST};
use crate::scenario::{MS, Protocol, S, Scenario, Style, US};

/// What a generator may keep unsent for one connection beyond its requests: answers to pings, and what it copies ahead
/// (`ANSWERS_BYTES_MOST` and `COPIED_BYTES_MOST` of the generator), the answers to one read of pings, and a send under way.
const WAITING_BYTES_MOST: usize = 768 * 1024;

/// Between two ticks.
const TICK_NS: u64 = S / 4;

/// A law: its name, and what checks it.
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
];

/// The laws that are broken, each with how.
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

/// Every phase that was told is over at every thread, and every thread ends when it is told to.
fn no_slot_hangs(played: &mut Played) -> Result<(), String> {
    if let Some(stuck) = played.kernels.iter().find_map(|kernel| kernel.seen.stuck.clone()) {
        return Err(stuck);
    }
    let Played { front, scenario, steps, .. } = played;
    ensure(*steps < STEPS_MOST, || "it never comes to rest".to_owned())?;
    ensure(front.ended == scenario.threads, || {
        let done: Vec<_> = front.assigned.iter().map(|assigned| assigned.done).collect();
        format!("{} of {} threads ended, phases done {done:?}", front.ended, scenario.threads)
    })
}

/// Law 1.
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

/// Law 1 for what the load asked for; under a number of requests it is exactly that.
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
            (sums.0 + meter.scheduled, sums.1 + meter.failed_sum())
        });
        let idle = assigned.share.connections == assigned.share.idle;
        // A violation that no request came to pay for is a failure of its own, beyond what was asked for.
        ensure((count..=count + failed).contains(&scheduled) || idle, || {
            format!("phase {phase}: {scheduled} scheduled of {count}")
        })?;
    }
    Ok(())
}

/// Law 2: complete answers by status are those that settled a request.
fn one_response_settles_one_request(played: &mut Played) -> Result<(), String> {
    if !matches!(played.scenario.protocol, Protocol::Http(_) | Protocol::Http2(_)) {
        return Ok(());
    }
    each_phase(played, |_, meter| {
        let failed: BTreeMap<_, _> =
            meter.failed().map(|(class, count)| (class.name(), count)).collect();
        let of = |class| failed.get(class).copied().unwrap_or(0);
        let settled = meter.ok + of("status") + of("mismatch");
        let answered: u64 = meter.statuses().map(|(_, count)| count).sum();
        // An answer that was settled and then charged with what came behind it was complete, too.
        let violations =
            ["unsolicited", "tls.protocol", "limit"].into_iter().chain(http2::VIOLATIONS);
        let most = settled + violations.map(of).sum::<u64>();
        ensure((settled..=most).contains(&answered), || {
            format!("{answered} complete answers settled {settled} requests")
        })
    })
}

/// Law 3, phase by phase; that there is an end at all is for [`no_slot_hangs`].
fn the_end_comes_in_time(played: &mut Played) -> Result<(), String> {
    let slack_ns = slack_ns(played);
    let Played { scenario, front, .. } = &*played;
    let last = front.assigned.len().saturating_sub(1);
    // Engines that share a broadcast wait for each other's messages, and before that for one that has no client left: it
    // gives a number of requests up after three time-outs and 2 s.
    let shared = scenario.threads > 1 && matches!(scenario.protocol, Protocol::Broadcast { .. });
    let by_requests =
        front.assigned.iter().any(|assigned| matches!(assigned.share.stop, Stop::Requests(_)));
    let patience_ns = if by_requests { 3 * scenario.timeout_ns + 2 * S } else { 0 };
    let settling_ns = patience_ns + scenario.timeout_ns + 2 * scenario.front_ns + 100 * MS;
    let settling_ns = if shared { settling_ns } else { 0 };
    each_phase(played, |reported, _| {
        let done = &reported.done;
        let share = &front.assigned[done.phase].share;
        // What came before may still be open: the last phase waits for it.
        let before_ns =
            front.done.iter().filter(|other| done.phase == last && other.done.phase < last);
        let before_ns = before_ns.map(|other| other.at_ns).max().unwrap_or(0);
        let most_ns =
            done.stopped_ns.max(before_ns) + scenario.timeout_ns + settling_ns + 2 * S + slack_ns;
        ensure(reported.at_ns <= most_ns, || {
            format!("stopped at {}, over at {}", done.stopped_ns, reported.at_ns)
        })?;
        let Stop::After(ns) = share.stop else { return Ok(()) };
        ensure(done.stopped_ns == share.start_ns + ns || done.partial, || {
            format!("told to stop at {}, stopped at {}", share.start_ns + ns, done.stopped_ns)
        })
    })
}

/// What a batch may add to a time that was promised.
fn slack_ns(played: &Played) -> u64 {
    let batch_ns = played.kernels.iter().map(|kernel| kernel.seen.batch_most_ns).max();
    let kernel = &played.scenario.kernel;
    batch_ns.unwrap_or(0) + kernel.late_ns + kernel.coalesce_ns + 100 * US
}

/// Law 6: as many values in each histogram as requests ended well.
fn a_failed_request_leaves_no_time_behind(played: &mut Played) -> Result<(), String> {
    let close = played.scenario.close;
    each_phase(played, |_, meter| {
        let times = meter.times.clone().encoded();
        let mut histograms = vec![("latency", times.latency), ("service", times.service)];
        histograms.push(("first byte", times.first_byte));
        if close {
            histograms.push(("total", times.total));
        }
        for (name, encoded) in histograms {
            let count = encoded.map_or(0, |encoded| decoded(&encoded).len());
            ensure(count == meter.ok, || format!("{} ok, {count} times of {name}", meter.ok))?;
        }
        Ok(())
    })
}

/// The histogram that the meter wrote.
#[must_use]
pub fn decoded(encoded: &str) -> Histogram<u64> {
    let bytes = STANDARD.decode(encoded).expect("the meter writes base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("the meter writes a histogram")
}

/// Law 7: what has come to the peers is what was sent, less what never got there.
fn the_peers_count_the_same(played: &mut Played) -> Result<(), String> {
    let at_peers: u64 = played.kernels.iter().map(super::kernel::Kernel::requests_at_peers).sum();
    let meters = || played.front.done.iter().map(|reported| &reported.done.meter);
    let sent: u64 = meters().map(|meter| meter.issued + meter.stale).sum();
    ensure(at_peers <= sent, || format!("{at_peers} at the peers, {sent} sent"))?;
    if !played.scenario.is_fair() {
        return Ok(());
    }
    let ok: u64 = meters().map(|meter| meter.ok).sum();
    ensure(at_peers >= ok, || format!("{at_peers} at the peers, {ok} answered"))
}

/// Bytes of all phases, against what was read and sent. What an opening handshake takes is no phase's, nor is what a
/// wrong peer sends before the first of them; TLS adds its own.
fn bytes_are_those_that_went_through_the_kernel(played: &mut Played) -> Result<(), String> {
    let Scenario { protocol, tls, stop_ns, peers, .. } = &*played.scenario;
    // Peers that a test brings may speak TLS by themselves.
    if *tls || peers.is_empty() {
        return Ok(());
    }
    use Protocol::{Broadcast, Http2, Ws};
    let opens = matches!(protocol, Broadcast { .. } | Http2(_) | Ws { .. });
    let all_read = played.scenario.is_fair() && stop_ns.is_none() && !opens;
    for (thread, kernel) in played.kernels.iter().enumerate() {
        let done = played.front.done.iter().filter(|reported| reported.thread as usize == thread);
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

/// As the peers see it, where they answer everything.
fn no_connection_has_more_requests_than_its_depth(played: &mut Played) -> Result<(), String> {
    let Scenario { depth, protocol, .. } = &*played.scenario;
    if !played.scenario.is_fair() || matches!(protocol, Protocol::Broadcast { .. }) {
        return Ok(());
    }
    let most = played.kernels.iter().map(|kernel| kernel.seen.requests_open_most).max();
    let most = most.unwrap_or(0);
    ensure(most <= *depth as u64, || format!("{most} at once, its depth is {depth}"))
}

/// Little's law, as the check of that name has it.
fn requests_take_no_more_time_than_is_permitted(played: &mut Played) -> Result<(), String> {
    let slack_ns = slack_ns(played);
    let Scenario { depth, protocol, .. } = &*played.scenario;
    if !played.scenario.is_fair() || matches!(protocol, Protocol::Broadcast { .. }) {
        return Ok(());
    }
    each_phase(played, |Reported { done, .. }, meter| {
        // The check is for closed loops: in an open one a place is free for longer than it is permitted.
        if matches!(played.front.assigned[done.phase].share.load, Load::Open { .. }) {
            return Ok(());
        }
        let places = u64::from(played.scenario.connections_most()) * *depth as u64;
        let most_ns = places * done.stopped_ns.saturating_sub(done.started_ns);
        ensure(meter.permitted_ns <= most_ns, || {
            format!("{} ns are permitted, of {most_ns} at most", meter.permitted_ns)
        })?;
        let service = meter.times.clone().encoded().service.map(|encoded| decoded(&encoded));
        let taken_ns = service.map_or(0.0, |service| service.mean() * service.len() as f64);
        // What is sent in time may end behind it.
        let behind_ns = places * (done.done_ns.saturating_sub(done.stopped_ns) + slack_ns);
        let most_ns = (meter.permitted_ns + behind_ns) as f64 * 1.002;
        ensure(taken_ns <= most_ns, || {
            format!("{taken_ns} ns taken, {} permitted, {behind_ns} behind", meter.permitted_ns)
        })
    })
}

/// Starts, ends and reports of each thread follow each other.
fn time_does_not_go_backwards(played: &mut Played) -> Result<(), String> {
    let mut before = vec![0; played.scenario.threads as usize];
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

/// At most one for each quarter of a second that its phase has lasted, while that is not over, and of the second in which
/// it fell due: a long batch may report it later than that, and the next one soon behind it.
fn ticks_come_in_their_turn(played: &mut Played) -> Result<(), String> {
    let Front { ticks, .. } = &played.front;
    each_phase(played, |Reported { thread, done, at_ns }, _| {
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
        // What ends with a second belongs to it.
        let last = done.done_ns.saturating_sub(done.started_ns + 1) / S;
        ensure(done.last.second as u64 == last, || {
            format!("it ends in second {}, which is {last}", done.last.second)
        })
    })
}

/// What a tick says can be.
fn ticks_stay_within_bounds(played: &mut Played) -> Result<(), String> {
    let connections = played.scenario.connections_most();
    for (thread, at_ns, tick) in &played.front.ticks {
        let [scheduled, unsent, issued, ok, _, _, cancelled] = tick.counts;
        let failed: u64 = tick.failed.iter().map(|(_, count)| count).sum();
        ensure(tick.open <= connections, || {
            format!(
                "thread {thread} at {at_ns}: {} of {connections} connections are open",
                tick.open
            )
        })?;
        ensure(scheduled == issued + unsent && ok + failed + cancelled <= issued, || {
            format!("thread {thread} at {at_ns}: {:?}, {failed} failed", tick.counts)
        })?;
    }
    let set_ups = &played.front.set_ups;
    let too_many = set_ups.iter().find(|(_, set_up)| set_up.established > connections);
    ensure(too_many.is_none(), || format!("{too_many:?}"))
}

/// Law 4, as far as a kernel sees it.
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

/// Every delivery of a broadcast comes or counts as lost; with a right peer none is lost.
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

/// Datagrams that settle nothing are those that the network doubled, or that came behind their time-out.
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

/// A peer that answers everything rightly causes no failure, or only that of its status.
fn nobody_is_accused_falsely(played: &mut Played) -> Result<(), String> {
    if !played.scenario.is_well_formed() {
        return Ok(());
    }
    let fair = played.scenario.is_fair();
    each_phase(played, |reported, meter| {
        let failed: Vec<_> =
            meter.failed().filter(|(class, _)| fair || class.name() != "status").collect();
        ensure(failed.is_empty(), || format!("{failed:?}, {:?}", reported.done.reasons))?;
        let early = meter.early;
        ensure(early == (Early { asked: early.asked, ..Early::default() }), || {
            format!("answers came too early: {early:?}")
        })?;
        ensure(meter.dropped == 0, || format!("{} connections were dropped", meter.dropped))
    })
}

/// Each answer is in the flow of one phase at most, and what was worked on it is in their windows once at most.
fn answers_flow_when_they_come(played: &mut Played) -> Result<(), String> {
    for thread in 0..played.scenario.threads {
        let own = played.front.done.iter().filter(|reported| reported.thread == thread);
        let (mut flowed, mut worked, mut answered) = (0, 0.0, 0);
        for Reported { done, .. } in own {
            let flow = &done.meter.flow;
            flowed += flow.answered().iter().sum::<u64>();
            worked += flow.work.answers().iter().sum::<f64>();
            // What was answered well may have been taken back since.
            answered += done.meter.ok + done.meter.failed_sum();
        }
        ensure(flowed <= answered, || format!("thread {thread}: {flowed} of {answered} flowed"))?;
        let most = answered as f64 + 1e-3;
        ensure(worked <= most, || format!("thread {thread}: {worked} of {answered} worked on"))?;
    }
    Ok(())
}

/// No more is unanswered at an open loop's end than was scheduled in it or open before it, and each good answer has its
/// latency by the time of the schedule.
fn a_backlog_is_of_what_was_scheduled(played: &mut Played) -> Result<(), String> {
    each_phase(played, |_, meter| {
        let Some(backlog) = &meter.backlog else { return Ok(()) };
        let most = backlog.at_start + meter.scheduled;
        ensure(backlog.at_end <= most, || format!("{} unanswered, of {most}", backlog.at_end))?;
        let timed: u64 = backlog.answered().iter().sum();
        // What was answered well may have been taken back since.
        let answered = meter.ok..=meter.ok + meter.failed_sum();
        ensure(answered.contains(&timed), || format!("{timed} latencies, {answered:?} answers"))
    })
}

/// Against peers that answer rightly the service times are what the kernels saw: none is longer by more than it takes to
/// hand sends over, so none was stamped before that began, and none is shorter by more than a batch takes.
fn service_times_are_true(played: &mut Played) -> Result<(), String> {
    let Scenario { kernel, .. } = &*played.scenario;
    let roomy = kernel.room == usize::MAX && kernel.send_most == usize::MAX;
    // An answer that lasts until the end of its connection is read before it is known to be whole.
    let until_end = played.scenario.peers.iter().any(|manner| manner.style == Style::UntilEnd);
    // The time of a broadcast is not that of its receipt alone.
    let broadcast = matches!(played.scenario.protocol, Protocol::Broadcast { .. });
    // Where a request begins among the bytes of TLS is not known.
    let known =
        !broadcast && !played.scenario.tls && played.scenario.is_fair() && roomy && !until_end;
    if !known || played.scenario.stop_ns.is_some() {
        return Ok(());
    }
    // What has to wait for a stream is sent later than it is asked: its time is the longer one.
    let waits = http2::waits(&played.scenario);
    for (thread, kernel) in played.kernels.iter().enumerate() {
        let mut truth = kernel.seen.service_ns.clone();
        truth.sort_unstable();
        let mut recorded = Vec::new();
        for reported in &played.front.done {
            if reported.thread as usize == thread
                && let Some(service) = reported.done.meter.times.clone().encoded().service
            {
                for bin in decoded(&service).iter_recorded() {
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
            // Three digits: a value is told by the highest that its bin holds.
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
