//! The contents of one interval of a record: added up over threads, then converted to the
//! protocol's form.

use std::collections::BTreeMap;

use trueload_meter::{Spread, merged};

use super::course::{SPAN_NS, Stretch};
use crate::protocol::{self, Span};

/// The status of a good answer.
const OK: u16 = 200;

/// The data from one mark to the next.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The numbers that need no conversion; see there for the meaning of each.
    pub(super) counts: protocol::Interval,
    pub(super) gap_ns: Spread,
    pub(super) delay_error_ns: Spread,
    statuses: Vec<(u16, u64)>,
    requests_per_connection: Spread,
    whole: Stretch,
    spans: Vec<Stretch>,
}

impl Interval {
    pub(super) fn begin(now_ns: u64) -> Self {
        let whole = Stretch { began_ns: now_ns, ..Stretch::default() };
        let counts = protocol::Interval { threads: 1, ..protocol::Interval::default() };
        Interval { whole, counts, ..Interval::default() }
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
    pub(super) fn met(&mut self, fault: &str, count: u64) {
        *self.counts.faults.entry(fault.to_owned()).or_default() += count;
    }

    /// Notes that a connection carried this many requests.
    pub(super) fn used(&mut self, requests: u64) {
        match requests {
            0 => self.counts.unused += 1,
            1 => self.counts.used_once += 1,
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
        self.counts.merge(&other.counts);
        let firsts = [self.counts.first_request_ns, other.counts.first_request_ns];
        self.counts.first_request_ns = firsts.into_iter().flatten().min();
        self.gap_ns.merge(&other.gap_ns);
        self.delay_error_ns.merge(&other.delay_error_ns);
        self.requests_per_connection.merge(&other.requests_per_connection);
        other.statuses.iter().for_each(|(status, count)| self.answered_with(*status, *count));
        other.counts.faults.iter().for_each(|(fault, count)| self.met(fault, *count));
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
            requests: whole.requests,
            answered: whole.answered,
            ok: statuses.get(&OK.to_string()).copied().unwrap_or(0),
            statuses,
            connections: whole.connections.report(whole.ns),
            open_requests: whole.open_requests.report(whole.ns),
            requests_per_connection: self.requests_per_connection.figures(),
            gap_ns: self.gap_ns.figures(),
            delay_error_ns: self.delay_error_ns.figures(),
            span_ns: SPAN_NS,
            series: self.spans.iter().map(span).collect(),
            ..self.counts.clone()
        }
    }
}

merged! {
    protocol::Interval: accepted, closed, aborted, dropped, half_sent, malformed, bytes_in, bytes_out,
    used_once, unused, threads;
    most: last_answer_ns;
    keeps: id, began_ns, at_ns, requests, answered, ok, statuses, faults, first_request_ns,
    connections, open_requests, requests_per_connection, gap_ns, delay_error_ns, span_ns, series
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
