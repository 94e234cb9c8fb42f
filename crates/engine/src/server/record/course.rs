//! The numbers of open connections and requests over time: peaks and means of an interval, and of
//! each span in it.
//!
//! Pure: the caller gives the time. Between two changes the numbers stay the same. Their product
//! with the time between is summed up, so that a mean is exact whenever the changes happen.

use trueload_meter::merged;

use crate::protocol::Concurrent;

/// A span of the series: a quarter of a second of the engine's clock, so that the spans of several
/// threads coincide.
pub(crate) const SPAN_NS: u64 = 250_000_000;
/// Spans kept of one interval: an hour of them.
const SPANS_MOST: usize = 14_400;

/// A number that goes up and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    /// The present value.
    pub(crate) now: u32,
    /// The highest value.
    pub(crate) peak: u32,
    /// Its integral over time.
    pub(crate) area_ns: u128,
}

impl Level {
    /// The same number, at the start of a new stretch of time.
    fn afresh(self) -> Self {
        Level { now: self.now, peak: self.now, area_ns: 0 }
    }

    /// The mean over a stretch of time of this length.
    pub(crate) fn mean(&self, ns: u64) -> f64 {
        if ns == 0 { f64::from(self.now) } else { self.area_ns as f64 / ns as f64 }
    }

    /// The level over a stretch of time of this length, in the protocol's form.
    pub(crate) fn report(&self, ns: u64) -> Concurrent {
        Concurrent { now: self.now, peak: self.peak, mean: self.mean(ns) }
    }

    fn pass(&mut self, ns: u64) {
        self.area_ns += u128::from(ns) * u128::from(self.now);
    }

    fn set(&mut self, value: u32) {
        self.now = value;
        self.peak = self.peak.max(value);
    }
}

// Of several threads, the sum of two peaks is at least the peak of the sum.
merged! { Level: now, peak, area_ns }

/// A stretch of time: the numbers that were open, and the counts of what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) began_ns: u64,
    pub(crate) ns: u64,
    pub(crate) connections: Level,
    pub(crate) open_requests: Level,
    pub(crate) requests: u64,
    pub(crate) answered: u64,
}

impl Stretch {
    fn next(&self, began_ns: u64) -> Self {
        let (connections, open_requests) = (self.connections.afresh(), self.open_requests.afresh());
        Stretch { began_ns, connections, open_requests, ..Stretch::default() }
    }

    fn pass(&mut self, ns: u64) {
        self.ns += ns;
        self.connections.pass(ns);
        self.open_requests.pass(ns);
    }

    /// Adds the same stretch of another thread.
    pub(crate) fn add(&mut self, other: &Stretch) {
        self.began_ns = self.began_ns.min(other.began_ns);
        self.ns = self.ns.max(other.ns);
        self.connections.merge(&other.connections);
        self.open_requests.merge(&other.open_requests);
        self.requests += other.requests;
        self.answered += other.answered;
    }
}

/// The course of one interval, up to now.
#[derive(Debug, Default)]
pub(crate) struct Course {
    whole: Stretch,
    span: Stretch,
    spans: Vec<Stretch>,
    now_ns: u64,
}

impl Course {
    /// Starts at this time, with nothing open.
    pub(crate) fn from(now_ns: u64) -> Self {
        let stretch = Stretch { began_ns: now_ns, ..Stretch::default() };
        Course { whole: stretch, span: stretch, spans: Vec::new(), now_ns }
    }

    /// Advances the time; a time in the past changes nothing.
    #[inline]
    pub(crate) fn pass(&mut self, now_ns: u64) {
        if now_ns > self.now_ns {
            self.go_on(now_ns);
        }
    }

    fn go_on(&mut self, now_ns: u64) {
        loop {
            let end_ns = (self.now_ns / SPAN_NS + 1) * SPAN_NS;
            let until_ns = now_ns.min(end_ns);
            let ns = until_ns - self.now_ns;
            self.whole.pass(ns);
            self.span.pass(ns);
            self.now_ns = until_ns;
            if until_ns < end_ns {
                return;
            }
            self.keep_span();
        }
    }

    fn keep_span(&mut self) {
        let next = self.span.next(self.now_ns);
        let span = std::mem::replace(&mut self.span, next);
        if self.spans.len() < SPANS_MOST {
            self.spans.push(span);
        }
    }

    /// Sets the number of open connections from now on.
    pub(crate) fn set_connections(&mut self, value: u32) {
        self.whole.connections.set(value);
        self.span.connections.set(value);
    }

    /// Number of connections open now.
    pub(crate) fn connections(&self) -> u32 {
        self.whole.connections.now
    }

    /// Notes that `count` requests have been read.
    #[inline]
    pub(crate) fn requested(&mut self, count: u32) {
        self.set_open_requests(self.whole.open_requests.now + count);
        self.whole.requests += u64::from(count);
        self.span.requests += u64::from(count);
    }

    /// Notes that `count` of them have been answered.
    #[inline]
    pub(crate) fn answered(&mut self, count: u32) {
        self.given_up(count);
        self.whole.answered += u64::from(count);
        self.span.answered += u64::from(count);
    }

    /// Notes that `count` of them will never be answered.
    #[inline]
    pub(crate) fn given_up(&mut self, count: u32) {
        self.set_open_requests(self.whole.open_requests.now.saturating_sub(count));
    }

    fn set_open_requests(&mut self, value: u32) {
        self.whole.open_requests.set(value);
        self.span.open_requests.set(value);
    }

    /// Ends the interval; returns the whole of it, and its spans. What is open stays open in the
    /// next one.
    pub(crate) fn take(&mut self, now_ns: u64) -> (Stretch, Vec<Stretch>) {
        self.pass(now_ns);
        if self.span.ns > 0 {
            self.keep_span();
        }
        let next = self.whole.next(self.now_ns);
        self.span = next;
        (std::mem::replace(&mut self.whole, next), std::mem::take(&mut self.spans))
    }
}
