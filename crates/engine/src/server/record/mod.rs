//! What the reference server of HTTP saw of its clients, kept only if the plan asks for a record.
//!
//! Pure: it is told what happens on each connection, and when. A mark takes the data since the
//! previous mark and starts a new interval; what is open stays open. A mark at any moment loses
//! nothing and counts nothing twice: intervals add up to what a single interval would have held.
//!
//! Must not know: sockets, routes, how answers are written.

mod course;
mod interval;

use super::Fault;
use course::Course;
pub use interval::Interval;

/// The state of one open connection.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    open: bool,
    /// Requests of this interval.
    requests: u64,
    /// Requests read and not yet answered.
    unanswered: u32,
    /// The time at which the last answer left, if nothing has come since.
    answered_ns: Option<u64>,
}

/// The way a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// By the client: in the middle of a request, or between two.
    ByClient {
        /// A part of a request had come.
        half_sent: bool,
    },
    /// By the server.
    ByServer,
}

/// The record of one thread.
#[derive(Debug)]
pub struct Record {
    interval: Interval,
    course: Course,
    traces: Vec<Trace>,
}

impl Record {
    /// Starts a record now, without connections.
    pub fn begin(now_ns: u64) -> Self {
        let interval = Interval::begin(now_ns);
        Record { interval, course: Course::from(now_ns), traces: Vec::new() }
    }

    /// Advances the time.
    #[inline]
    pub fn pass(&mut self, now_ns: u64) {
        self.course.pass(now_ns);
    }

    /// Notes an accepted connection; `key` is its place until it is closed.
    pub fn opened(&mut self, now_ns: u64, key: u32) {
        self.pass(now_ns);
        let at = key as usize;
        if self.traces.len() <= at {
            self.traces.resize(at + 1, Trace::default());
        }
        self.traces[at] = Trace { open: true, ..Trace::default() };
        self.interval.counts.accepted += 1;
        self.course.set_connections(self.course.connections() + 1);
    }

    /// Notes the end of a connection; its open requests will never be answered.
    pub fn closed(&mut self, now_ns: u64, key: u32, how: Closed) {
        self.pass(now_ns);
        let Some(trace) = self.traces.get_mut(key as usize).filter(|trace| trace.open) else {
            return;
        };
        let trace = std::mem::take(trace);
        self.course.set_connections(self.course.connections() - 1);
        self.course.given_up(trace.unanswered);
        let unanswered = u64::from(trace.unanswered);
        self.interval.counts.closed += 1;
        self.interval.used(trace.requests);
        match how {
            Closed::ByServer => self.interval.counts.dropped += unanswered,
            Closed::ByClient { half_sent } => {
                self.interval.counts.aborted += unanswered;
                self.interval.counts.half_sent += u64::from(half_sent);
            }
        }
    }

    /// Notes that `count` requests were read to their end.
    #[inline]
    pub fn requested(&mut self, now_ns: u64, key: u32, count: u32) {
        self.pass(now_ns);
        self.course.requested(count);
        self.interval.counts.first_request_ns.get_or_insert(now_ns);
        let Some(trace) = self.traces.get_mut(key as usize) else { return };
        trace.requests += u64::from(count);
        trace.unanswered += count;
        if let Some(answered_ns) = trace.answered_ns.take() {
            self.interval.gap_ns.record(now_ns.saturating_sub(answered_ns), 1);
        }
    }

    /// Notes that `count` answers were handed over.
    #[inline]
    pub fn answered(&mut self, now_ns: u64, key: u32, status: u16, count: u32) {
        self.pass(now_ns);
        self.course.answered(count);
        self.interval.counts.last_answer_ns = Some(now_ns);
        self.interval.answered_with(status, count.into());
        let Some(trace) = self.traces.get_mut(key as usize) else { return };
        trace.unanswered -= count;
        trace.answered_ns = (trace.unanswered == 0).then_some(now_ns);
    }

    /// Notes a request that will not be answered although its connection goes on: the client has
    /// given it up, or the server.
    pub fn unanswered(&mut self, now_ns: u64, key: u32, by_client: bool) {
        self.pass(now_ns);
        self.course.given_up(1);
        match by_client {
            true => self.interval.counts.aborted += 1,
            false => self.interval.counts.dropped += 1,
        }
        let Some(trace) = self.traces.get_mut(key as usize) else { return };
        trace.unanswered -= 1;
        trace.answered_ns = (trace.unanswered == 0).then_some(now_ns);
    }

    /// Notes that an answer left this much later than it was due.
    #[inline]
    pub fn delayed(&mut self, error_ns: u64) {
        self.interval.delay_error_ns.record(error_ns, 1);
    }

    /// Notes a deliberate fault.
    pub fn fault(&mut self, fault: Fault) {
        self.interval.met(fault.name(), 1);
    }

    /// Notes input that was not HTTP.
    pub fn malformed(&mut self) {
        self.interval.counts.malformed += 1;
    }

    /// Notes received bytes.
    #[inline]
    pub fn note_received(&mut self, bytes: usize) {
        self.interval.counts.bytes_in += bytes as u64;
    }

    /// Notes bytes that were handed over.
    #[inline]
    pub fn note_sent(&mut self, bytes: usize) {
        self.interval.counts.bytes_out += bytes as u64;
    }

    /// Ends the interval and begins the next.
    pub fn mark(&mut self, now_ns: u64) -> Interval {
        let (whole, spans) = self.course.take(now_ns);
        let mut ended = std::mem::replace(&mut self.interval, Interval::begin(now_ns));
        for trace in self.traces.iter_mut().filter(|trace| trace.open) {
            ended.used(std::mem::take(&mut trace.requests));
        }
        ended.settle(whole, spans);
        ended
    }
}

#[cfg(test)]
mod tests;
