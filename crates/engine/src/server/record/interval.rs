//! The contents of one interval of a record: added up over threads, then converted to the
//! protocol's form.

use std::collections::BTreeMap;

use trueload_meter::Spread;

use super::course::{SPAN_NS, Stretch};
use crate::protocol::{self, Concurrent, Span};

/// The status of a good answer.
const OK: u16 = 200;

/// The data from one mark to the next. See [`protocol::Interval`] for the meaning of each number.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    pub(super) accepted: u64,
    pub(super) closed: u64,
    pub(super) aborted: u64,
    pub(super) dropped: u64,
    pub(super) half_sent: u64,
    pub(super) malformed: u64,
    pub(super) first_request_ns: Option<u64>,
    pub(super) last_answer_ns: Option<u64>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) gap_ns: Spread,
    pub(super) delay_error_ns: Spread,
    statuses: Vec<(u16, u64)>,
    faults: BTreeMap<&'static str, u64>,
    requests_per_connection: Spread,
    used_once: u64,
    unused: u64,
    whole: Stretch,
    spans: Vec<Stretch>,
    threads: u32,
}

impl Interval {
    pub(super) fn begin(now_ns: u64) -> Self {
        let whole = Stretch { began_ns: now_ns, ..Stretch::default() };
        Interval { whole, threads: 1, ..Interval::default() }
    }

    /// Notes that `count` answers of this status were handed over.
    #[inline]
    pub(super) fn answered_with(&mut self, status: u16, count: u64) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, sum)) => *sum += count,
            None => self.statuses.push((status, count)),
        }
    }

    /// Notes `count` faults of this name.
    pub(super) fn met(&mut self, fault: &'static str, count: u64) {
        *self.faults.entry(fault).or_default() += count;
    }

    /// Notes that a connection carried this many requests.
    pub(super) fn used(&mut self, requests: u64) {
        match requests {
            0 => self.unused += 1,
            1 => self.used_once += 1,
            _ => {}
        }
        self.requests_per_connection.record(requests, u64::from(requests > 0));
    }

    /// Sets the course of the interval, at its end.
    pub(super) fn settle(&mut self, whole: Stretch, spans: Vec<Stretch>) {
        (self.whole, self.spans) = (whole, spans);
    }

    /// Adds the data of another thread for the same interval.
    pub fn merge(&mut self, other: &Interval) {
        self.accepted += other.accepted;
        self.closed += other.closed;
        self.aborted += other.aborted;
        self.dropped += other.dropped;
        self.half_sent += other.half_sent;
        self.malformed += other.malformed;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.used_once += other.used_once;
        self.unused += other.unused;
        self.threads += other.threads;
        let firsts = [self.first_request_ns, other.first_request_ns];
        self.first_request_ns = firsts.into_iter().flatten().min();
        self.last_answer_ns = self.last_answer_ns.max(other.last_answer_ns);
        self.gap_ns.merge(&other.gap_ns);
        self.delay_error_ns.merge(&other.delay_error_ns);
        self.requests_per_connection.merge(&other.requests_per_connection);
        other.statuses.iter().for_each(|(status, count)| self.answered_with(*status, *count));
        other.faults.iter().for_each(|(fault, count)| self.met(fault, *count));
        self.whole.add(&other.whole);
        self.merge_spans(&other.spans);
    }

    /// Merges spans: those of the same quarter of a second become one.
    fn merge_spans(&mut self, others: &[Stretch]) {
        let place = |span: &Stretch| span.began_ns / SPAN_NS;
        let mut merged: BTreeMap<u64, Stretch> =
            self.spans.drain(..).map(|span| (place(&span), span)).collect();
        for span in others {
            merged.entry(place(span)).and_modify(|known| known.add(span)).or_insert(*span);
        }
        self.spans = merged.into_values().collect();
    }

    /// The interval in the protocol's form.
    pub fn report(&self, id: String) -> protocol::Interval {
        let whole = &self.whole;
        let statuses = self.statuses.iter().map(|(status, count)| (status.to_string(), *count));
        let statuses: BTreeMap<String, u64> = statuses.collect();
        protocol::Interval {
            id,
            began_ns: whole.began_ns,
            at_ns: whole.began_ns + whole.ns,
            threads: self.threads,
            requests: whole.requests,
            answered: whole.answered,
            ok: statuses.get(&OK.to_string()).copied().unwrap_or(0),
            statuses,
            aborted: self.aborted,
            dropped: self.dropped,
            half_sent: self.half_sent,
            malformed: self.malformed,
            faults: self.faults.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect(),
            first_request_ns: self.first_request_ns,
            last_answer_ns: self.last_answer_ns,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            accepted: self.accepted,
            closed: self.closed,
            connections: concurrent(&whole.connections, whole.ns),
            open_requests: concurrent(&whole.open_requests, whole.ns),
            requests_per_connection: self.requests_per_connection.figures(),
            used_once: self.used_once,
            unused: self.unused,
            gap_ns: self.gap_ns.figures(),
            delay_error_ns: self.delay_error_ns.figures(),
            span_ns: SPAN_NS,
            series: self.spans.iter().map(span).collect(),
        }
    }
}

fn concurrent(level: &super::course::Level, ns: u64) -> Concurrent {
    Concurrent { now: level.now, peak: level.peak, mean: level.mean(ns) }
}

fn span(stretch: &Stretch) -> Span {
    Span {
        began_ns: stretch.began_ns,
        ns: stretch.ns,
        requests: stretch.requests,
        answered: stretch.answered,
        connections_peak: stretch.connections.peak,
        connections_mean: stretch.connections.mean(stretch.ns),
        open_requests_peak: stretch.open_requests.peak,
        open_requests_mean: stretch.open_requests.mean(stretch.ns),
    }
}
