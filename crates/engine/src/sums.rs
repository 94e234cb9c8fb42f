//! Sums up the threads' reports in the protocol's form. Pure.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use trueload_drive::{Address, peak_rss_bytes};
use trueload_meter::{Class, Merge, SlotSums, SumNs};
use trueload_wire::account::Account;

use crate::exchange;
use crate::generator::{self, Connected, DoneReport, TickReport};
use crate::protocol::{Connections, DataUse, GeneratePlan, Generator, Lateness, Measurement, Tick};
use crate::threads::Driven;

pub(crate) fn add<K: Ord>(into: &mut BTreeMap<K, u64>, from: impl Iterator<Item = (K, u64)>) {
    for (key, count) in from {
        *into.entry(key).or_default() += count;
    }
}

pub(crate) fn by_class(counts: &[(Class, u64)]) -> BTreeMap<Class, u64> {
    let mut sums = BTreeMap::new();
    add(&mut sums, counts.iter().copied());
    sums
}

/// The first reason of each class why connections failed.
pub(crate) fn reasons(found: &[(Class, String)]) -> BTreeMap<Class, String> {
    let mut first = BTreeMap::new();
    for (class, why) in found {
        first.entry(*class).or_insert_with(|| why.clone());
    }
    first
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
    let mut sum = Tick { at_ns, id: Some(id.to_owned()), ..Tick::default() };
    for thread in threads {
        sum.counts.merge(&thread.counts);
        sum.open += thread.open;
        sum.bytes_in += thread.bytes_in;
        sum.bytes_out += thread.bytes_out;
    }
    sum
}

/// The measurement of one phase over all threads.
pub(crate) fn measurement(
    plan: &GeneratePlan,
    driven: &Driven,
    requested: u32,
    set_up: &Connected,
    mut threads: Vec<DoneReport>,
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
    let (reasons, http2) = (reasons(&found), http2(&threads));
    let deliveries = merged(threads.iter_mut().filter_map(|thread| thread.deliveries.take()));
    let mut meter = merged(threads.into_iter().map(|thread| thread.meter)).unwrap_or_default();
    let (handshakes_full, handshakes_resumed) = meter.times.handshakes();
    let times = std::mem::take(&mut meter.times).encoded();
    let permitted_ns = SumNs::try_from(meter.permitted_ns).unwrap_or(0);
    Measurement {
        started_ns,
        began_ns,
        window_ns,
        drain_ns: done_ns.saturating_sub(stopped_ns),
        partial,
        counts: meter.counts(),
        bytes_in: meter.bytes_in,
        bytes_out: meter.bytes_out,
        histograms: times,
        connections: Connections {
            requested,
            established,
            failed: by_class(&set_up.failed),
            set_up_ns: set_up.latest_ns.saturating_sub(set_up.began_ns),
            idle_open,
            reconnects: meter.reconnects,
            dropped: meter.dropped,
            unended: meter.unended,
            idle_closed: meter.idle_closed,
            down: meter.slots.down,
            outage_ns: meter.slots.outage_ns,
            outages: meter.slots.outages,
            handshakes_full,
            handshakes_resumed,
            reasons,
            family: family(plan, set_up).to_owned(),
        },
        slots: SlotSums { permitted_ns, ..meter.slots },
        series: Vec::new(),
        tracks: Vec::new(),
        flow: Some(meter.flow.report(window_ns, meter.backlog)),
        generator,
        targets: is_by_target(plan).then_some(meter.targets),
        sessions: meter.sessions,
        origins: Vec::new(),
        data: None,
        deliveries,
        datagrams: exchange::is_of_datagrams(plan).then_some(meter.datagrams),
        http2,
        kinds: meter.kinds,
        early: meter.early,
        streams: meter.streams,
        openings: meter.openings,
        redirects: meter.redirects,
        messages: meter.messages,
        deflate: meter.deflate,
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
    let mut by_origin = vec![DataUse::default(); origins.max(1)];
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
fn http2(threads: &[DoneReport]) -> Option<Account> {
    let accounts = threads.iter().filter_map(|thread| thread.account);
    let mut sum = accounts.reduce(|mut sum, account| {
        sum.merge(&account);
        sum
    })?;
    sum.http1 += sum.chose_http1;
    Some(sum)
}

fn merged<T: Merge>(parts: impl Iterator<Item = T>) -> Option<T> {
    parts.reduce(|mut sum, part| {
        sum.merge(&part);
        sum
    })
}

/// The time between the first and the last thread to begin; none with a single thread.
fn start_skew_ns(plan: &GeneratePlan, threads: &[DoneReport]) -> Option<u64> {
    let began_ns = || threads.iter().map(|thread| thread.began_ns);
    let (first_ns, last_ns) = (began_ns().min()?, began_ns().max()?);
    (plan.threads > 1).then(|| last_ns - first_ns)
}

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
        stopped: sum.stopped.seen().collect(),
        queued: sum.queued.seen().collect(),
    }
}

fn generator(plan: &GeneratePlan, driven: &Driven, threads: &[DoneReport]) -> Generator {
    // Of the time since a thread began: its engine may have joined others late in the window.
    let shares = threads.iter().map(|thread| {
        // Polls without an event look like work but are not: a thread that spins has time to spare.
        let busy_ns = thread.used.wanted_ns.saturating_sub(thread.spun_ns);
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
