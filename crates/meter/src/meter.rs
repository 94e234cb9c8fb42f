//! The meter of one phase on one thread.
//!
//! Two invariants hold. Every issued request ends exactly once: as ok, failed by class, or
//! cancelled. A failed request never leaves a latency behind.

use crate::{
    Backlog, Class, Counted, Counts, Datagrams, Deflate, Early, Flow, IdleClosed, Kinds, Merge,
    Messages, Openings, Recent, Recorded, Redirects, SessionMeter, SlotSums, Streams,
    TARGETS_TRACKED_MOST, TargetMeter, TargetTrack, Times,
};

/// Status codes are 100 to 999; the parser rejects all others.
const STATUSES: usize = 1000;

/// The times of a successful request, kept until it can no longer be retracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// From the scheduled send to the last byte.
    pub latency_ns: u64,
    /// From the actual send to the last byte.
    pub service_ns: u64,
    /// From the actual send to the first byte.
    pub first_byte_ns: u64,
    /// From the connection attempt to the last byte, if the request had its own connection.
    pub total_ns: Option<u64>,
}

impl Answered {
    /// From the scheduled send to the first byte.
    fn due_to_first_byte_ns(&self) -> u64 {
        self.latency_ns.saturating_sub(self.service_ns).saturating_add(self.first_byte_ns)
    }
}

/// Counts and times of one phase.
#[derive(Debug, Default)]
pub struct Meter {
    /// Requests that the load asked for.
    pub scheduled: u64,
    /// Requests that were sent, or that were charged with the failure of the connection they
    /// needed.
    pub issued: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that were sent again after a stale connection.
    pub stale: u64,
    /// Stale requests whose connection was reset; a part of `stale`.
    pub stale_resets: u64,
    /// Requests still open at the very end.
    pub cancelled: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
    /// Connections that the peer closed soon after accepting them, before any request.
    pub dropped: u64,
    /// Connections that we half-closed after the answer and the peer did not close. Also those that
    /// we reset without waiting, because earlier ones had shown that the peer does not close.
    pub unended: u64,
    /// Connections that the peer closed while they were idle.
    pub idle_closed: IdleClosed,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The integral over time of the number of permitted requests, in ns. Of one thread it is below 0
    /// while what a gap takes off is added elsewhere.
    pub permitted_ns: i128,
    /// Latencies and connection times.
    pub times: Times,
    /// Sums over the slots.
    pub slots: SlotSums,
    /// Datagrams that settled no request or arrived out of order.
    pub datagrams: Datagrams,
    /// The flow of answers over the window.
    pub flow: Flow,
    /// The backlog of an open loop.
    pub backlog: Option<Backlog>,
    /// The same counts by target, in the order of the targets; empty if there is only one.
    pub targets: Vec<TargetMeter>,
    /// Whole sessions, if the requests belong to sessions.
    pub sessions: Option<SessionMeter>,
    /// The kinds of answer, if there is only one request and its body is not compared with an
    /// expected one.
    pub kinds: Kinds,
    /// Answers that came before their requests can have been read.
    pub early: Early,
    /// The parts of answers that are streams; none if answers are not read for them.
    pub streams: Option<Box<Streams>>,
    /// The steps of connections that are opened when their requests are due; none elsewhere.
    pub openings: Option<Box<Openings>>,
    /// The redirects that were followed; none if they are not.
    pub redirects: Option<Box<Redirects>>,
    /// The messages of conversations; none for other loads.
    pub messages: Option<Box<Messages>>,
    /// The compression of messages; none if it is not offered.
    pub deflate: Option<Box<Deflate>>,
    failed: Tally<{ Class::ALL.len() }>,
    statuses: Tally<STATUSES>,
    recent: Recent,
    /// Service times; only under an open loop, as elsewhere they equal the latencies.
    recent_service: Option<Recent>,
    /// The ok and failed counts that ticks have reported so far.
    reported: (u64, u64),
    retracted: Vec<u32>,
    /// The targets, and the stalls of streams, at the last tick.
    tracks: Vec<TargetTrack>,
    stalls: u64,
}

/// One count for each of `SIZE` things.
#[derive(Debug)]
struct Tally<const SIZE: usize>(Box<[u64]>);

impl<const SIZE: usize> Tally<SIZE> {
    /// The places with a count above 0, and that count.
    fn seen(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

impl<const SIZE: usize> Default for Tally<SIZE> {
    fn default() -> Self {
        Tally(vec![0; SIZE].into_boxed_slice())
    }
}

impl<const SIZE: usize> Merge for Tally<SIZE> {
    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

impl Meter {
    /// A meter of an open loop, which also reports the service times since the last tick.
    pub fn of_open_loop() -> Self {
        Meter { recent_service: Some(Recent::default()), ..Meter::default() }
    }

    /// Records `count` successful requests with the same times.
    #[inline]
    pub fn record_ok(&mut self, answered: &Answered, count: u64) {
        let Answered { latency_ns, service_ns, first_byte_ns, total_ns } = *answered;
        self.ok += count;
        self.times.record(latency_ns, service_ns, first_byte_ns, count);
        if let Some(total_ns) = total_ns {
            self.times.record_total(total_ns, count);
        }
        self.recent.record(latency_ns, count);
        if let Some(recent) = &mut self.recent_service {
            recent.record(service_ns, count);
        }
        if let Some(openings) = &mut self.openings {
            openings.record_first_byte(answered.due_to_first_byte_ns(), count);
        }
    }

    /// Turns a request that was recorded as successful into a failed one.
    pub fn retract_ok(&mut self, answered: &Answered, class: Class) {
        self.ok -= 1;
        self.flow.work.retract(1.0);
        self.times.retract(answered.latency_ns, answered.service_ns, answered.first_byte_ns);
        if let Some(total_ns) = answered.total_ns {
            self.times.retract_total(total_ns);
        }
        if !self.recent.retract(answered.latency_ns) {
            self.retracted.push(crate::index(answered.latency_ns));
            self.reported.0 -= 1;
        }
        if let Some(recent) = &mut self.recent_service {
            recent.retract(answered.service_ns);
        }
        if let Some(openings) = &mut self.openings {
            openings.retract_first_byte(answered.due_to_first_byte_ns());
        }
        self.record_failed(class);
    }

    /// Records a failed request.
    pub fn record_failed(&mut self, class: Class) {
        self.failed.0[class as usize] += 1;
    }

    /// Moves one failed request from one class to another.
    pub fn reclass_failed(&mut self, from: Class, to: Class) {
        self.failed.0[from as usize] -= 1;
        self.failed.0[to as usize] += 1;
    }

    /// Records `count` complete answers with this status, expected or not.
    #[inline]
    pub fn record_status(&mut self, status: u16, count: u64) {
        self.statuses.0[usize::from(status)] += count;
    }

    /// The number of failures of all classes.
    pub fn failed_sum(&self) -> u64 {
        self.failed.0.iter().sum()
    }

    /// The classes with at least one failure, with their counts.
    pub fn failed(&self) -> impl Iterator<Item = (Class, u64)> + '_ {
        self.failed.seen().map(|(class, count)| (Class::ALL[class], count))
    }

    /// The status codes that occurred, with their counts.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.statuses.seen().map(|(code, count)| (code as u16, count))
    }

    /// The number of requests that were scheduled and never sent.
    pub fn unsent(&self) -> u64 {
        self.scheduled.saturating_sub(self.issued)
    }

    /// The counts of requests up to now.
    pub fn counts(&self) -> Counts {
        Counts {
            scheduled: self.scheduled,
            unsent: self.unsent(),
            issued: self.issued,
            ok: self.ok,
            stale: self.stale,
            stale_resets: self.stale_resets,
            cancelled: self.cancelled,
            skipped: self.targets.iter().map(|target| target.skipped).sum(),
            failed: self.failed().collect(),
            statuses: self.statuses().collect(),
        }
    }

    /// Returns what was recorded since the last tick, for the [`crate::Series`] of the phase.
    pub fn tick(&mut self, second: usize) -> Recorded {
        let failed_sum = self.failed_sum();
        let (ok, failed) = (self.ok - self.reported.0, failed_sum - self.reported.1);
        self.reported = (self.ok, failed_sum);
        let retracted = std::mem::take(&mut self.retracted);
        Recorded { second, ok, failed, latency: self.recent.take(), retracted }
    }

    /// Returns what was recorded of each of the first targets since the last tick.
    pub fn tick_targets(&mut self) -> impl Iterator<Item = Recorded> + '_ {
        let count = self.targets.len().min(TARGETS_TRACKED_MOST);
        self.tracks.resize_with(count, TargetTrack::default);
        self.tracks.iter_mut().zip(&self.targets).map(|(track, target)| track.tick(target))
    }

    /// Returns the number of streams that stalled since the last tick.
    pub fn tick_stalls(&mut self) -> u64 {
        let now = self.failed.0[Class::TimeoutStall as usize];
        now.saturating_sub(std::mem::replace(&mut self.stalls, now))
    }

    /// Returns the service times since the last tick; empty unless under an open loop.
    pub fn take_service(&mut self) -> Counted {
        self.recent_service.as_mut().map(Recent::take).unwrap_or_default()
    }
}

crate::merged! {
    Meter: scheduled, issued, ok, stale, stale_resets, cancelled, reconnects, dropped, unended,
    idle_closed, bytes_in, bytes_out, permitted_ns, times, slots, datagrams, flow, backlog, targets,
    sessions, kinds, early, streams, openings, redirects, messages, deflate, failed, statuses; keeps:
    recent, recent_service, reported, retracted, tracks, stalls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bin, Series, Sparse};

    fn bins(recorded: &[Recorded]) -> Vec<Bin> {
        let mut series = Series::default();
        recorded.iter().for_each(|recorded| series.add(recorded));
        series.into_bins()
    }

    fn answered(ns: u64) -> Answered {
        Answered { latency_ns: ns, service_ns: ns, first_byte_ns: ns, total_ns: None }
    }

    #[test]
    fn an_ok_that_is_retracted_becomes_a_failure_without_a_latency() {
        for ticked in [false, true] {
            let mut meter = Meter::default();
            meter.record_ok(&answered(500), 1);
            let mut ticks = Vec::new();
            if ticked {
                ticks.push(meter.tick(0));
            }
            meter.retract_ok(&answered(500), Class::Unsolicited);
            ticks.push(meter.tick(0));
            assert_eq!((meter.ok, meter.failed_sum()), (0, 1), "ticked before: {ticked}");
            assert_eq!(meter.times.clone().encoded().latency, None);
            assert_eq!(bins(&ticks), [Bin { width_s: 1, failed: 1, ..Bin::default() }]);
        }
    }

    #[test]
    fn an_open_loop_tells_its_service_times_apart_and_a_closed_loop_none() {
        let late = Answered { latency_ns: 900, ..answered(100) };
        for (mut meter, expected) in [(Meter::of_open_loop(), 1), (Meter::default(), 0)] {
            meter.record_ok(&late, 2);
            meter.retract_ok(&late, Class::Unsolicited);
            let latency = meter.tick(0).latency.sparse();
            assert_eq!(latency, Sparse::from([(crate::index(900), 1)]));
            assert_eq!(meter.take_service().sparse().get(&100).copied().unwrap_or(0), expected);
            assert_eq!(meter.take_service(), Counted::default(), "handed over once");
        }
    }

    #[test]
    fn the_series_adds_up_to_the_counts() {
        let mut meter = Meter::default();
        meter.record_ok(&answered(500), 1);
        let first = meter.tick(0);
        meter.record_ok(&answered(700), 1);
        meter.record_failed(Class::Reset);
        let bins = bins(&[first, meter.tick(2)]);
        let ok: Vec<u64> = bins.iter().map(|bin| bin.ok).collect();
        assert_eq!((ok, bins[2].failed), (vec![1, 0, 1], 1));
    }

    #[test]
    fn merging_adds_every_count() {
        let (mut one, mut two) = (Meter::default(), Meter::default());
        one.record_failed(Class::Reset);
        two.record_failed(Class::Reset);
        two.record_failed(Class::Empty);
        two.record_status(200, 1);
        two.record_status(999, 1);
        one.merge(&two);
        let failed: Vec<_> = one.failed().collect();
        assert_eq!(failed, [(Class::Reset, 2), (Class::Empty, 1)]);
        assert_eq!(one.statuses().collect::<Vec<_>>(), [(200, 1), (999, 1)]);
    }

    fn plain_counts(meter: &mut Meter) -> [&mut u64; 11] {
        [
            &mut meter.scheduled,
            &mut meter.issued,
            &mut meter.ok,
            &mut meter.stale,
            &mut meter.stale_resets,
            &mut meter.cancelled,
            &mut meter.reconnects,
            &mut meter.dropped,
            &mut meter.unended,
            &mut meter.bytes_in,
            &mut meter.bytes_out,
        ]
    }

    #[test]
    fn merging_adds_each_count_to_its_own() {
        let (mut one, mut two) = (Meter::default(), Meter::default());
        plain_counts(&mut one).into_iter().zip(2..).for_each(|(count, value)| *count = value);
        plain_counts(&mut two)
            .into_iter()
            .zip(10..)
            .for_each(|(count, value)| *count = value * value);
        (one.permitted_ns, two.permitted_ns) = (-5, 1 << 70);
        one.merge(&two);
        assert_eq!(one.permitted_ns, (1 << 70) - 5);
        let expected: [u64; 11] = std::array::from_fn(|at| at as u64 + 2 + (at as u64 + 10).pow(2));
        assert_eq!(plain_counts(&mut one).map(|count| *count), expected);
    }

    #[test]
    fn merging_takes_targets_that_only_the_other_has() {
        let target = |ok| TargetMeter { ok, ..TargetMeter::default() };
        for (mine, theirs) in [(vec![1], vec![10, 20]), (vec![1, 2], vec![10]), (vec![], vec![10])]
        {
            let targets = |ok: &[u64]| ok.iter().copied().map(target).collect();
            let mut one = Meter { targets: targets(&mine), ..Meter::default() };
            one.merge(&Meter { targets: targets(&theirs), ..Meter::default() });
            let at = |of: &[u64], place| of.get(place).copied().unwrap_or(0);
            let expected = (0..mine.len().max(theirs.len()))
                .map(|place| at(&mine, place) + at(&theirs, place));
            assert!(one.targets.iter().map(|target| target.ok).eq(expected));
        }
    }

    #[test]
    fn a_failure_of_another_class_is_counted_once_and_told_once() {
        let mut meter = Meter { scheduled: 5, issued: 3, ..Meter::default() };
        (0..3).for_each(|_| meter.record_failed(Class::Reset));
        assert_eq!((meter.unsent(), meter.tick(0).failed), (2, 3));
        meter.reclass_failed(Class::Reset, Class::Empty);
        let failed: Vec<_> = meter.failed().collect();
        assert_eq!((failed, meter.tick(1).failed), (vec![(Class::Reset, 2), (Class::Empty, 1)], 0));
    }
}
