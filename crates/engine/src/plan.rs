//! Converts a plan to a generator's configuration; everything is checked here, once.

use std::sync::Arc;

use trueload_drive::{Rates, Settings};
use trueload_load::{Arrivals, Load, Recording, Stop};
use trueload_wire::http2::hpack::TABLE_BYTES_MOST;
use trueload_wire::http2::window::{WINDOW_FIRST, WINDOW_MOST};
use trueload_wire::tls::client;

use crate::blobs::Blobs;
use crate::failure::{Failure, refuse_if, refused};
use crate::generator::{Config, NewPart};
use crate::protocol::{
    ArrivalsPlan, DriverPlan, ExchangePlan, FaultsPlan, GeneratePlan, LoadPlan, PROTOCOL, PartPlan,
    PhasePlan, StopPlan, StreamEndPlan, StreamKindPlan,
};
use crate::threads::THREADS_MOST;
use crate::{exchange, follow, loading, origins, replay, request, scenario, secrets};

/// Most connections of one engine.
const CONNECTIONS_MOST: u32 = 10_000_000;
/// Most requests in flight per connection.
const PIPELINE_MOST: u32 = 65_536;
/// Most parts that engines share a load by: each has as many as its weight.
const PARTS_MOST: u32 = 1 << 20;
/// Most messages of a broadcast in flight: each has a bit for every client.
const CONCURRENT_MOST: u32 = 65_536;
/// Most phases of one engine: every request in flight names its phase by 16 bits.
const PHASES_MOST: usize = 1 << 16;
/// A tenth of the smallest send lag that the verdict warns of (design §6, `send-lag`: 250 us).
const SEND_QUANTUM_NS: u64 = 25_000;
/// The longest spin: beyond a scheduler's slice it saves nothing.
const SPIN_NS_MOST: u64 = 10_000_000;
/// While a server works on a request, it notices nothing else.
const WORK_NS_MOST: u64 = 1_000_000_000;
/// The longest time that answers may wait for each other: beyond it they are late rather than
/// together.
const COALESCE_NS_MOST: u64 = 1_000_000;
/// Highest rate at which a connection is slow, in bytes per second.
const SLOW_MOST_PER_S: u64 = 1 << 30;
/// Most requests per second of an open loop.
const RATE_MOST_PER_S: f64 = 1e9;

/// Whether all blobs that a plan names have come.
pub(crate) fn is_complete(plan: &GeneratePlan, blobs: &Blobs) -> bool {
    let bodies = request::all(plan).flat_map(|(_, request, expect)| {
        [request.body_sha256.as_ref(), expect.body_sha256.as_ref()]
    });
    let own = plan.tls.iter().map(AsRef::as_ref);
    let tls = own.chain(plan.origins.iter().filter_map(|origin| origin.tls.as_ref()));
    let payload = plan.exchange.iter().filter_map(exchange::payload);
    let unread = plan.data.iter().filter(|_| blobs.rows().is_none());
    let pieces = unread.flat_map(|data| &data.blobs);
    let recorded = plan.replay.iter().filter(|_| blobs.replay().is_none()).flat_map(replay::named);
    let tls = tls.flat_map(secrets::named);
    blobs.hold(bodies.flatten().chain(tls).chain(payload).chain(pieces).chain(recorded))
}

/// Refuses a number that is 0, or too large.
fn within(field: &str, value: u64, most: u64) -> Result<(), Failure> {
    match value {
        0 => refused(format_args!("{field}: must not be 0")),
        value if value > most => refused(format_args!("{field}: must be at most {most}")),
        _ => Ok(()),
    }
}

/// Refuses a plan that cannot be carried out, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    refuse_if!(plan.protocol != PROTOCOL, "protocol: must be {PROTOCOL}");
    refuse_if!(plan.addresses.is_empty() && plan.origins.is_empty(), "addresses: must name one");
    within("connections", plan.connections.into(), CONNECTIONS_MOST.into())?;
    within("pipeline", plan.pipeline.into(), PIPELINE_MOST.into())?;
    within("threads", plan.threads.into(), THREADS_MOST.into())?;
    within("timeout_ns", plan.timeout_ns, u64::MAX / 8)?;
    within("connect_rate_per_s", plan.connect_rate_per_s.into(), 1_000_000_000)?;
    if let Some(refill) = plan.refill {
        within("refill", refill.into(), plan.pipeline.into())?;
    }
    check_spin(plan.spin_ns)?;
    if plan.coalesce_ns > COALESCE_NS_MOST {
        return refused(format_args!("coalesce_ns: must be at most {COALESCE_NS_MOST}"));
    }
    check_part(plan)?;
    check_http2(plan)?;
    loading::check(plan)?;
    check_stream(plan)?;
    check_connect_open(plan)?;
    check_rates(plan)?;
    let offers = match &plan.exchange {
        Some(ExchangePlan::WsEcho { dialect, .. }) => dialect.is_none(),
        _ => scenario::is_conversation(plan),
    };
    let why = "deflate: is for echoes without a dialect and conversations, over WebSocket";
    refuse_if!(plan.deflate && !offers, "{why}");
    follow::check(plan)?;
    origins::check(plan)?;
    if plan.replay.is_some() {
        replay::check(plan)
    } else if plan.exchange.is_some() {
        exchange::check(plan)
    } else if !plan.scenario.is_empty() {
        scenario::check(plan)
    } else {
        request::check(plan)
    }
}

/// Refuses windows that HTTP/2 does not allow, and options that do not work with HTTP/2.
fn check_http2(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(http2) = plan.http2 else { return Ok(()) };
    if !(1..=WINDOW_MOST).contains(&http2.stream_window) {
        return refused("http2.stream_window: must be 1 to 2^31 - 1");
    }
    if !(WINDOW_FIRST..=WINDOW_MOST).contains(&http2.connection_window) {
        return refused("http2.connection_window: must be 65,535 to 2^31 - 1");
    }
    if http2.header_table_bytes > TABLE_BYTES_MOST {
        return refused("http2.header_table_bytes: must be at most 1 MiB");
    }
    if let Some(depth) = http2.http1_pipeline {
        let all_secure = plan.origins.iter().all(|origin| origin.tls.is_some());
        if plan.tls.is_none() && (plan.origins.is_empty() || !all_secure) {
            return refused("http2.http1_pipeline: needs TLS, which negotiates the version");
        }
        within("http2.http1_pipeline", depth.into(), PIPELINE_MOST.into())?;
    }
    refuse_if!(plan.exchange.is_some(), "http2: excludes exchange");
    Ok(())
}

/// Refuses connections that are opened when requests are due, and are to be kept.
fn check_connect_open(plan: &GeneratePlan) -> Result<(), Failure> {
    let kept = !plan.close || plan.exchange.is_some() || !plan.scenario.is_empty();
    let is_conversation = scenario::is_conversation(plan);
    if plan.connect_open && kept && !is_conversation {
        return refused("connect_open: needs close, and excludes exchange and scenario");
    }
    let pauses = plan.scenario.first().is_some_and(|step| step.think.most_ns > 0);
    refuse_if!(plan.connect_open && pauses, "connect_open: its first step must not pause");
    Ok(())
}

/// Refuses slow connections that cannot be had.
fn check_rates(plan: &GeneratePlan) -> Result<(), Failure> {
    let rates =
        [("read_rate_per_s", plan.read_rate_per_s), ("write_rate_per_s", plan.write_rate_per_s)];
    for (field, rate) in rates {
        let Some(rate) = rate else { continue };
        within(field, rate, SLOW_MOST_PER_S)?;
        refuse_if!(exchange::is_of_datagrams(plan), "{field}: excludes datagrams");
    }
    Ok(())
}

/// Refuses streams that cannot be read or never stall.
fn check_stream(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(stream) = &plan.stream else { return Ok(()) };
    refuse_if!(plan.exchange.is_some(), "stream: excludes exchange");
    let is_event = matches!(stream.end, Some(StreamEndPlan::Event { .. }));
    refuse_if!(is_event && stream.kind != StreamKindPlan::Sse, "stream.end: only sse has events");
    stream.stall_ns.map_or(Ok(()), |ns| within("stream.stall_ns", ns, u64::MAX / 8))
}

/// Refuses an invalid part, or one that would have nothing to do.
fn check_part(plan: &GeneratePlan) -> Result<(), Failure> {
    let part = &plan.part;
    refuse_if!(part.of == 0 || part.of > PARTS_MOST, "part: must be one of 1 to {PARTS_MOST}");
    if part.places().is_none() {
        return refused(request::PARTS);
    }
    let broadcast = matches!(plan.exchange, Some(ExchangePlan::WsBroadcast { .. }));
    if !part.more.is_empty() && (broadcast || !plan.origins.is_empty()) {
        return refused("part.more: excludes ws_broadcast and origins");
    }
    if part.slots(plan.connections, plan.threads) == 0 {
        return refused("part: has no connection; name more connections");
    }
    Ok(())
}

/// Refuses a spin that would keep a thread from ever going to sleep.
pub(crate) fn check_spin(spin_ns: u64) -> Result<(), Failure> {
    refuse_if!(spin_ns > SPIN_NS_MOST, "spin_ns: must be at most {SPIN_NS_MOST}");
    Ok(())
}

/// Refuses faults that cannot be produced as requested.
pub(crate) fn check_faults(faults: &FaultsPlan) -> Result<(), Failure> {
    let refused =
        |field: &str, what: &str| refused(format_args!("service.faults.{field}: must {what}"));
    for (field, share) in faults.shares() {
        if !(0.0..=1.0).contains(&share) {
            return refused(field, "be 0 to 1");
        }
    }
    let sum: f64 = faults.shares().iter().map(|(_, share)| share).sum();
    // Shares that make up the whole may sum to slightly more by rounding.
    if sum > 1.0 + 1e-9 {
        return refused("error_share", "leave the shares a sum of 1 at most");
    }
    if faults.slow_share > 0.0 && faults.slow_ns == 0 {
        return refused("slow_ns", "not be 0 where answers are slow");
    }
    if faults.work_ns > WORK_NS_MOST {
        return refused("work_ns", &format!("be at most {WORK_NS_MOST}"));
    }
    for (field, after) in
        [("close_after", faults.close_after), ("goaway_after", faults.goaway_after)]
    {
        if after == Some(0) {
            return refused(field, "not be 0");
        }
    }
    Ok(())
}

pub(crate) fn settings(driver: DriverPlan, spin_ns: u64, rates: Rates) -> Settings {
    Settings { choice: driver, spin_ns, rates }
}

/// How fast each connection of a generator reads and writes.
pub(crate) fn rates(plan: &GeneratePlan) -> Rates {
    let per_s = |rate: Option<u64>| rate.unwrap_or(0);
    Rates { read_per_s: per_s(plan.read_rate_per_s), write_per_s: per_s(plan.write_rate_per_s) }
}

/// Refuses one more phase if there have been too many.
pub(crate) fn check_phases(before: usize) -> Result<(), Failure> {
    refuse_if!(
        before >= PHASES_MOST,
        "phase: one engine runs at most {PHASES_MOST}; start another"
    );
    Ok(())
}

/// Refuses a phase that cannot be carried out, or not with this plan, naming the field.
pub(crate) fn check_phase(plan: &GeneratePlan, phase: &PhasePlan) -> Result<(), Failure> {
    check_load(plan, phase)?;
    exchange::check_phase(plan, phase)?;
    origins::check_phase(plan, phase)?;
    replay::check_phase(plan, phase)
}

/// Refuses another part of a load that cannot be divided again, or a part without a connection.
pub(crate) fn check_share(plan: &GeneratePlan, part: &PartPlan) -> Result<(), Failure> {
    let is_broadcast = matches!(plan.exchange, Some(ExchangePlan::WsBroadcast { .. }));
    let is_numbered = plan.data.is_some() || plan.replay.is_some() || !plan.targets.is_empty();
    let is_fixed = plan.connect_open || !plan.origins.is_empty() || !plan.scenario.is_empty();
    if is_broadcast || is_numbered || is_fixed {
        return refused(
            "share: excludes ws_broadcast, targets, data, scenario, replay, origins and \
             connect_open",
        );
    }
    check_part(&GeneratePlan { part: part.clone(), ..plan.clone() })
}

fn check_load(plan: &GeneratePlan, phase: &PhasePlan) -> Result<(), Failure> {
    let opens = matches!(phase.load, LoadPlan::Open { .. }) && phase.idle == 0;
    if plan.connect_open && !opens {
        return refused("load: with connect_open it must be open, and no connection idle");
    }
    refuse_if!(phase.connections == Some(0), "connections: must not be 0");
    if phase.from_ns > 0 {
        check_share(plan, &plan.part)?;
        check_divisible(phase)?;
    }
    if phase.connections.is_some_and(|connections| phase.idle > connections) {
        return refused("idle: must be at most connections");
    }
    let (field, stages, most) = match &phase.load {
        LoadPlan::Turns { concurrent } if (1..=CONCURRENT_MOST).contains(concurrent) => {
            return Ok(());
        }
        LoadPlan::Turns { .. } => {
            return refused(format_args!("load.concurrent: must be 1 to {CONCURRENT_MOST}"));
        }
        LoadPlan::Closed { active } => ("load.active", active, f64::from(CONNECTIONS_MOST)),
        LoadPlan::Open { stages, .. } if stages.is_empty() => {
            return refused("load.stages: must name one");
        }
        LoadPlan::Open { stages, .. } => ("load.stages", stages, RATE_MOST_PER_S),
    };
    for (index, stage) in stages.iter().enumerate() {
        if ![stage.from, stage.to].iter().all(|value| (0.0..=most).contains(value)) {
            return refused(format_args!("{field}[{index}]: from and to must be 0 to {most}"));
        }
    }
    Ok(())
}

/// Refuses a phase that cannot be divided again while it lasts.
pub(crate) fn check_divisible(phase: &PhasePlan) -> Result<(), Failure> {
    let by_time = matches!(phase.stop, StopPlan::Duration { ns } if phase.from_ns < ns);
    let is_even = match &phase.load {
        LoadPlan::Closed { active } => active.is_empty(),
        LoadPlan::Open { .. } => true,
        LoadPlan::Turns { .. } => false,
    };
    if by_time && is_even && phase.idle == 0 {
        return Ok(());
    }
    let needs = "a duration, all connections active, and none idle";
    refused(format_args!("phase: to be divided again it needs {needs}"))
}

/// The load of a phase; `recording` is that of the plan's replay.
pub(crate) fn load(plan: &LoadPlan, recording: Option<&Arc<Recording>>) -> Load {
    match plan {
        LoadPlan::Closed { active } => Load::Closed { active: active.as_slice().into() },
        LoadPlan::Turns { concurrent } => Load::Turns { concurrent: *concurrent },
        LoadPlan::Open { stages, arrivals, seed, from_ns } => {
            let arrivals = match (arrivals, recording) {
                (ArrivalsPlan::Recorded, Some(recording)) => {
                    return Load::Recorded { recording: Arc::clone(recording), from_ns: *from_ns };
                }
                (ArrivalsPlan::Poisson, _) => Arrivals::Poisson { seed: *seed },
                (ArrivalsPlan::Constant | ArrivalsPlan::Recorded, _) => Arrivals::Constant,
            };
            Load::Open { stages: stages.as_slice().into(), arrivals }
        }
    }
}

pub(crate) fn stop(plan: &StopPlan, load: &Load) -> Stop {
    match (plan, load) {
        (StopPlan::Duration { ns }, _) => Stop::After(*ns),
        // There are no more requests than those that were recorded.
        (StopPlan::Requests { count }, Load::Recorded { recording, from_ns }) => {
            Stop::Requests((*count).min(recording.count() - recording.before(*from_ns)))
        }
        (StopPlan::Requests { count }, _) => Stop::Requests(*count),
    }
}

/// The configuration of one thread.
pub(crate) fn config(
    plan: &GeneratePlan,
    tls: Option<&client::Options>,
    thread: u32,
) -> Result<Config, Failure> {
    let depth = plan.depth();
    let rate = u64::from(plan.connect_rate_per_s);
    let own_parts = plan.part.more.len() as u64 + 1;
    let NewPart { thread, threads, turns, .. } = part_of_thread(plan, thread, 0);
    Ok(Config {
        addresses: plan.addresses.iter().map(|address| address.0.clone()).collect(),
        local_addresses: plan.local_addresses.clone(),
        depth,
        refill: plan.refill_places(),
        close: plan.close,
        connect_open: plan.connect_open,
        tls: tls.map(secrets::client_setup).transpose()?,
        timeout_ns: plan.timeout_ns,
        connect_timeout_ns: plan.timeout_ns,
        send_quantum_ns: SEND_QUANTUM_NS,
        coalesce_ns: if plan.spin_ns > 0 { 0 } else { plan.coalesce_ns },
        connect_interval_ns: 1_000_000_000 * u64::from(threads) / rate / own_parts,
        seed: plan.seed,
        thread,
        threads,
        origin: 0,
        origins: 1,
        places: None,
        turns,
    })
}

/// The part of one thread in its engine's part, from `from_ns` of a phase on.
pub(crate) fn part_of_thread(plan: &GeneratePlan, thread: u32, from_ns: u64) -> NewPart {
    let turns = plan.part.places().filter(|_| !plan.part.more.is_empty());
    NewPart {
        from_ns,
        thread: plan.part.thread(thread),
        threads: plan.threads * plan.part.of,
        turns: turns.map(|turns| turns.of_thread(thread, plan.threads)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_phases_than_a_request_can_name() {
        let last = usize::from(u16::MAX);
        for (before, taken) in [(0, true), (last, true), (last + 1, false)] {
            let found = check_phases(before).map_err(|failure| failure.to_string());
            assert_eq!(found.is_ok(), taken, "after {before} phases: {found:?}");
        }
    }
}
