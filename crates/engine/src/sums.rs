//! Sums up the threads' reports in the protocol's form. Pure.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use trueload_drive::{Address, peak_rss_bytes};
use trueload_meter::{
    Bin, Class, EncodedTimes, Meter, Series, SlowSlot, Sparse, SumNs, TargetMeter,
};
use trueload_wire::tls::Secured;

use crate::exchange;
use crate::generator::{self, ByLength, Connected, DoneReport, Taken, TickReport};
use crate::protocol::{
    Connections, Counts, DataUse, Deliveries, DeliveryHistograms, Flow, GeneratePlan, Generator,
    Histograms, Http2, Lateness, Measurement, Second, Sessions, Slots, Stalls, TargetCounts, Tick,
    Tls,
};
use crate::threads::Driven;

/// Adds counts to a sparse histogram.
pub(crate) fn add(into: &mut Sparse, from: impl Iterator<Item = (u32, u64)>) {
    for (index, count) in from {
        *into.entry(index).or_default() += count;
    }
}

/// Counts by the class's name.
pub(crate) fn by_class(counts: &[(Class, u64)]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (class, count) in counts {
        *sums.entry(class.name().to_owned()).or_default() += count;
    }
    sums
}

/// The first reason of each class why connections failed.
pub(crate) fn reasons(found: &[(Class, String)]) -> BTreeMap<String, String> {
    let mut first = BTreeMap::new();
    for (class, why) in found {
        first.entry(class.name().to_owned()).or_insert_with(|| why.clone());
    }
    first
}

/// The result of a handshake in the protocol's form.
pub(crate) fn tls(secured: &Secured) -> Tls {
    Tls {
        version: secured.version.to_owned(),
        cipher: secured.cipher.clone(),
        alpn: secured.alpn.clone(),
    }
}

fn by_status(counts: &[(u16, u64)]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (status, count) in counts {
        *sums.entry(status.to_string()).or_default() += count;
    }
    sums
}

/// The sum of the threads' connection reports.
pub(crate) fn connected(threads: &[(u32, Connected)]) -> Connected {
    let began_ns = threads.iter().map(|(_, thread)| thread.began_ns).min().unwrap_or(0);
    let mut sum = Connected { began_ns, ..Connected::default() };
    for (_, thread) in threads {
        sum.latest_ns = sum.latest_ns.max(thread.latest_ns);
        sum.established += thread.established;
        sum.failed.extend(&thread.failed);
        sum.reasons.extend_from_slice(&thread.reasons);
        sum.secured = sum.secured.or_else(|| thread.secured.clone());
        sum.address = sum.address.or_else(|| thread.address.clone());
    }
    sum
}

/// The totals of the latest ticks of all threads as one tick.
pub(crate) fn tick(at_ns: u64, id: &str, threads: &[TickReport]) -> Tick {
    let mut counts = [0; 7];
    let (mut failed, mut statuses) = (Vec::new(), Vec::new());
    let mut sum = Tick {
        at_ns,
        id: Some(id.to_owned()),
        counts: Counts::default(),
        latency: Sparse::new(),
        service: Sparse::new(),
        open: 0,
        bytes_in: 0,
        bytes_out: 0,
        busiest_ns: 0,
    };
    for thread in threads {
        counts.iter_mut().zip(thread.counts).for_each(|(sum, count)| *sum += count);
        failed.extend(&thread.failed);
        statuses.extend(&thread.statuses);
        sum.open += thread.open;
        sum.bytes_in += thread.bytes_in;
        sum.bytes_out += thread.bytes_out;
    }
    let [scheduled, unsent, issued, ok, stale, stale_resets, cancelled] = counts;
    let (failed, statuses) = (by_class(&failed), by_status(&statuses));
    let skipped = 0; // The phase's end tells.
    sum.counts = Counts {
        scheduled,
        unsent,
        issued,
        ok,
        stale,
        stale_resets,
        cancelled,
        skipped,
        failed,
        statuses,
    };
    sum
}

fn counts(meter: &Meter) -> Counts {
    Counts {
        scheduled: meter.scheduled,
        unsent: meter.unsent(),
        issued: meter.issued,
        ok: meter.ok,
        stale: meter.stale,
        stale_resets: meter.stale_resets,
        cancelled: meter.cancelled,
        skipped: meter.targets.iter().map(|target| target.skipped).sum(),
        failed: by_class(&meter.failed().collect::<Vec<_>>()),
        statuses: by_status(&meter.statuses().collect::<Vec<_>>()),
    }
}

/// The measurement of one phase over all threads.
pub(crate) fn measurement(
    plan: &GeneratePlan,
    driven: &Driven,
    requested: u32,
    set_up: &Connected,
    threads: Vec<DoneReport>,
) -> Measurement {
    let started_ns = threads.iter().map(|thread| thread.started_ns).min().unwrap_or(0);
    let began_ns = threads.iter().map(|thread| thread.began_ns).min().unwrap_or(0);
    let stopped_ns = threads.iter().map(|thread| thread.stopped_ns).max().unwrap_or(0);
    let done_ns = threads.iter().map(|thread| thread.done_ns).max().unwrap_or(0);
    let window_ns = stopped_ns.saturating_sub(started_ns);
    let established = threads.iter().map(|thread| thread.established).sum();
    let idle_open = threads.iter().map(|thread| thread.idle_open).sum();
    let partial = threads.iter().any(|thread| thread.partial);
    let generator = generator(plan, driven, &threads);
    let found: Vec<_> = threads.iter().flat_map(|thread| thread.reasons.clone()).collect();
    let (reasons, deliveries, http2) = (reasons(&found), deliveries(&threads), http2(&threads));
    let mut meter = merged(threads.into_iter().map(|thread| thread.meter));
    let (handshakes_full, handshakes_resumed) = meter.times.handshakes();
    let times = std::mem::take(&mut meter.times).encoded();
    Measurement {
        started_ns,
        began_ns,
        window_ns,
        drain_ns: done_ns.saturating_sub(stopped_ns),
        partial,
        counts: counts(&meter),
        bytes_in: meter.bytes_in,
        bytes_out: meter.bytes_out,
        histograms: histograms(times),
        connections: Connections {
            requested,
            established,
            failed: by_class(&set_up.failed),
            set_up_ns: set_up.latest_ns.saturating_sub(set_up.began_ns),
            idle_open,
            reconnects: meter.reconnects,
            dropped: meter.dropped,
            unended: meter.unended,
            idle_closed: meter.idle_closed.into(),
            down: meter.slots.down,
            outage_ns: meter.slots.outage_ns,
            outages: meter.slots.outages,
            handshakes_full,
            handshakes_resumed,
            reasons,
            family: family(plan, set_up).to_owned(),
        },
        slots: slots(&meter),
        series: Vec::new(),
        flow: Some(Flow::of(&meter, window_ns)),
        generator,
        targets: is_by_target(plan).then(|| meter.targets.iter().map(target).collect()),
        sessions: meter.sessions.as_ref().map(Sessions::from),
        origins: Vec::new(),
        data: None,
        deliveries,
        datagrams: exchange::is_of_datagrams(plan).then(|| meter.datagrams.into()),
        http2,
        kinds: (&meter.kinds).into(),
        early: meter.early.into(),
        streams: meter.streams.as_deref().map(Into::into),
        openings: meter.openings.as_deref().map(Into::into),
        redirects: meter.redirects.as_deref().map(Into::into),
    }
}

fn histograms(times: EncodedTimes) -> Histograms {
    Histograms {
        latency: times.latency,
        service: times.service,
        connect: times.connect,
        handshake: times.handshake,
        first_byte: times.first_byte,
        total: times.total,
        send_lag: times.send_lag,
        receive_lag: times.receive_lag,
        round_trip: times.round_trip,
    }
}

/// Whether requests are counted by target or step.
fn is_by_target(plan: &GeneratePlan) -> bool {
    !plan.targets.is_empty() || !plan.scenario.is_empty()
}

/// The family of the addresses that were connected to, or were to be.
fn family(plan: &GeneratePlan, set_up: &Connected) -> &'static str {
    let ipv6 = |address: &Address| matches!(address, Address::Ip(SocketAddr::V6(_)));
    match set_up.address.as_ref() {
        Some(Address::Unix(_)) => "unix",
        Some(address) if ipv6(address) => "ipv6",
        None if every_address(plan).all(ipv6) => "ipv6",
        Some(_) | None => "ipv4",
    }
}

fn every_address(plan: &GeneratePlan) -> impl Iterator<Item = &Address> {
    let of_origins = plan.origins.iter().flat_map(|origin| &origin.addresses);
    plan.addresses.iter().chain(of_origins).map(|address| &address.0)
}

/// The rows that the requests of all origins took; the threads of one origin know the same.
pub(crate) fn data(origins: usize, reports: &[(u32, DoneReport)]) -> Option<DataUse> {
    let mut by_origin = vec![Taken::default(); origins.max(1)];
    let mut found = None;
    for (reporter, taken) in reports.iter().filter_map(|(at, done)| Some((*at, done.data?))) {
        let origin = reporter as usize % by_origin.len();
        by_origin[origin].taken = by_origin[origin].taken.max(taken.taken);
        let sum = found.get_or_insert(DataUse::default());
        (sum.rows, sum.spent) = (taken.rows, sum.spent || taken.spent);
    }
    let taken = by_origin.iter().map(|origin| origin.taken).sum();
    found.map(|sum| DataUse { taken, ..sum })
}

/// The counts of HTTP/2 connections.
fn http2(threads: &[DoneReport]) -> Option<Http2> {
    let accounts = threads.iter().filter_map(|thread| thread.account);
    let sum = accounts.reduce(|mut sum, account| {
        sum.merge(&account);
        sum
    });
    sum.as_ref().map(Http2::from)
}

/// The fate of a broadcast at its receivers.
fn deliveries(threads: &[DoneReport]) -> Option<Deliveries> {
    let mut sum: Option<trueload_meter::Deliveries> = None;
    for found in threads.iter().filter_map(|thread| thread.deliveries.as_ref()) {
        sum.get_or_insert_default().merge(found);
    }
    let sum = sum?;
    Some(Deliveries {
        expected: sum.expected,
        delivered: sum.delivered,
        lost: sum.lost,
        duplicate: sum.duplicate,
        out_of_order: sum.out_of_order,
        untimed: sum.untimed,
        negative: sum.negative,
        negative_max_ns: sum.negative_ns_max,
        histograms: DeliveryHistograms {
            delivery: sum.delivery(),
            first: sum.first(),
            median: sum.median(),
            p95: sum.p95(),
            last: sum.last(),
            spread: sum.spread(),
        },
    })
}

/// Merges all meters into the first, so that a single one is not copied.
fn merged(meters: impl Iterator<Item = Meter>) -> Meter {
    let mut sum: Option<Meter> = None;
    for meter in meters {
        match &mut sum {
            None => sum = Some(meter),
            Some(sum) => sum.merge(&meter),
        }
    }
    sum.unwrap_or_default()
}

fn target(meter: &TargetMeter) -> TargetCounts {
    TargetCounts {
        issued: meter.issued,
        ok: meter.ok,
        stale: meter.stale,
        cancelled: meter.cancelled,
        skipped: meter.skipped,
        redirects: meter.redirects,
        failed: by_class(
            &meter.failed.iter().map(|(class, count)| (*class, *count)).collect::<Vec<_>>(),
        ),
        statuses: by_status(
            &meter.statuses.iter().map(|(code, count)| (*code, *count)).collect::<Vec<_>>(),
        ),
        latency: meter.latency.clone(),
        kinds: (&meter.kinds).into(),
    }
}

fn slots(meter: &Meter) -> Slots {
    let sums = meter.slots.clone();
    Slots {
        asked: sums.asked,
        never_answered: sums.never_answered,
        answers_sum: sums.answers_sum,
        answers_sum_squares: sums.answers_sum_squares,
        answers_min: sums.answers_min,
        answers_max: sums.answers_max,
        means: sums
            .means
            .iter()
            .map(|((mean, answers), slots)| (*mean, *answers, *slots))
            .collect(),
        long_waits_ns: sums.slow.iter().map(|slow| slow.waits.longest_ns).collect(),
        long_waits: sums.slow.iter().map(long_waits).collect(),
        permitted_ns: SumNs::try_from(meter.permitted_ns).unwrap_or(0),
    }
}

/// The record of a slot that waited long: its requests, its waits of each length, and its
/// connections that were never answered.
fn long_waits(slow: &SlowSlot) -> Vec<u64> {
    let counts = slow.waits.at_least.into_iter().chain(slow.waits.unanswered).map(u64::from);
    std::iter::once(slow.ended).chain(counts).collect()
}

/// The series of a phase over time.
pub(crate) fn series(series: Series) -> Vec<Second> {
    let width_s = series.width_s() as u32;
    let bins = (0..).zip(series.into_bins());
    let entry = |(place, bin): (u32, Bin)| {
        let Bin { ok, failed, latency } = bin;
        Second { t_s: place * width_s, width_s, ok, failed, latency }
    };
    bins.map(entry).collect()
}

/// The time between the first and the last thread to begin; none with a single thread.
fn start_skew_ns(plan: &GeneratePlan, threads: &[DoneReport]) -> Option<u64> {
    let began_ns = || threads.iter().map(|thread| thread.began_ns);
    let (first_ns, last_ns) = (began_ns().min()?, began_ns().max()?);
    (plan.threads > 1).then(|| last_ns - first_ns)
}

/// The busy time. Polls without an event look like work but are not: a thread that spins has time
/// to spare.
fn busy(wanted_ns: u64, spun_ns: u64) -> u64 {
    wanted_ns.saturating_sub(spun_ns)
}

/// The stalls of all threads.
fn lateness(threads: &[DoneReport]) -> Lateness {
    let waited_ns =
        threads.iter().map(|thread| thread.used.wanted_ns.saturating_sub(thread.used.cpu_ns));
    let mut sum = generator::Lateness::default();
    for thread in threads {
        sum.stopped.merge(&thread.lateness.stopped);
        sum.queued.merge(&thread.lateness.queued);
    }
    Lateness {
        waited_ns: waited_ns.max().unwrap_or(0),
        stopped: by_length(&sum.stopped),
        queued: by_length(&sum.queued),
    }
}

fn by_length(stalls: &ByLength) -> Vec<Stalls> {
    let report = |(at_least_ns, seen): (u64, generator::Stalls)| Stalls {
        at_least_ns,
        count: seen.count,
        ns: seen.ns,
        requests: seen.requests,
    };
    stalls.seen().map(report).collect()
}

fn generator(plan: &GeneratePlan, driven: &Driven, threads: &[DoneReport]) -> Generator {
    // Of the time since a thread began: its engine may have joined others late in the window.
    let shares = threads.iter().map(|thread| {
        let busy_ns = busy(thread.used.wanted_ns, thread.spun_ns);
        busy_ns as f64 / thread.stopped_ns.saturating_sub(thread.began_ns).max(1) as f64
    });
    let saturation = shares.fold(0.0, f64::max);
    Generator {
        driver: driven.driver.clone(),
        driver_note: driven.note.clone(),
        refill: plan.refill_places() as u32,
        spin_ns: plan.spin_ns,
        spun_ns: threads.iter().map(|thread| thread.spun_ns).sum(),
        coalesced_ns: threads.iter().map(|thread| thread.coalesced_ns).max().unwrap_or(0),
        threads: plan.threads,
        cpus: plan.cpus.clone(),
        start_skew_ns: start_skew_ns(plan, threads),
        cpu_ns: threads.iter().map(|thread| thread.used.cpu_ns).sum(),
        saturation: saturation.min(1.0),
        peak_rss_bytes: peak_rss_bytes(),
        lateness: lateness(threads),
        machine: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_polls_in_vain_is_not_busy() {
        let cases = [(900, 0, 900), (900, 800, 100), (1000, 1000, 0), (500, 600, 0)];
        for (wanted_ns, spun_ns, busy_ns) in cases {
            assert_eq!(busy(wanted_ns, spun_ns), busy_ns, "{wanted_ns} less {spun_ns}");
        }
    }
}
