//! Whether others were served while a request waited. Without it, a server that stops for everybody
//! would look as if it starved some connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wait counts as long from this time on (design §6, `starvation`) …
pub(super) const LONG_WAIT_NS: u64 = 1_000_000_000;
/// … if at least this many other requests are answered meanwhile …
const LONG_WAIT_OTHERS: u64 = 100;
/// … and others are served for at least one part in so many of the wait. A server that stops for
/// everybody answers what it has in hand first, and everything at once when it goes on.
const LONG_WAIT_PARTS: u64 = 2;
/// If no answer comes for this long, nobody is being served.
const PAUSE_NS: u64 = 100_000_000;
/// The resolution of the times at which answers came.
const GRAIN_NS: u64 = 10_000_000;

/// The answers that all threads have got so far.
#[derive(Debug, Default)]
pub struct Served {
    count: AtomicU64,
    /// When answers came, to within [`GRAIN_NS`]: the last one …
    last_ns: AtomicU64,
    /// … the first one since the last pause …
    resumed_ns: AtomicU64,
    /// … and the last one before that pause.
    paused_ns: AtomicU64,
}

/// What one thread knows of the answers that all have got.
#[derive(Debug, Default)]
pub(super) struct ServedSeen {
    /// Requests answered in this batch; added to `all` once per batch.
    here: u64,
    count: u64,
    last_ns: u64,
    all: Arc<Served>,
}

impl ServedSeen {
    pub(super) fn new(all: Arc<Served>) -> Self {
        ServedSeen { here: 0, count: 0, last_ns: 0, all }
    }

    /// Adds answers of this batch.
    #[inline]
    pub(super) fn add(&mut self, count: u64) {
        self.here += count;
    }

    /// The number of answers before this batch.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Ends a batch: shares its answers with the other threads, and learns of theirs.
    #[inline]
    pub(super) fn end_batch(&mut self, now_ns: u64) {
        let here = std::mem::take(&mut self.here);
        if here > 0 {
            self.count = self.all.count.fetch_add(here, Ordering::Relaxed) + here;
            if now_ns >= self.last_ns + GRAIN_NS {
                self.note_time(now_ns);
            }
        } else {
            // A thread whose requests all wait must still see those of other threads answered.
            self.count = self.all.count.load(Ordering::Relaxed);
        }
    }

    #[cold]
    fn note_time(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
        let before_ns = self.all.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        if now_ns >= before_ns + PAUSE_NS {
            self.all.paused_ns.store(before_ns, Ordering::Relaxed);
            self.all.resumed_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Whether a server went on serving others while a request waited from `sent_ns` to `now_ns`.
    /// `before` requests had been answered when it was sent.
    pub(super) fn went_on(&self, before: u64, sent_ns: u64, now_ns: u64) -> bool {
        let read = |time: &AtomicU64| time.load(Ordering::Relaxed);
        let (paused_ns, resumed_ns) = (read(&self.all.paused_ns), read(&self.all.resumed_ns));
        let served_ns = paused_ns.saturating_sub(sent_ns)
            + read(&self.all.last_ns).saturating_sub(resumed_ns.max(sent_ns));
        let others = self.count.saturating_sub(before);
        others >= LONG_WAIT_OTHERS && served_ns * LONG_WAIT_PARTS >= now_ns.saturating_sub(sent_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = LONG_WAIT_NS;
    const MS: u64 = S / 1000;

    /// Whether others were served while a request waited for 2 s. A batch is the time in ms at which
    /// answers came, and their number.
    fn went_on(batches: &[(u64, u64)]) -> bool {
        let mut seen = ServedSeen::new(Arc::default());
        seen.add(7);
        seen.end_batch(5 * S);
        let before = seen.count();
        for &(at_ms, count) in batches {
            seen.add(count);
            seen.end_batch(5 * S + at_ms * MS);
        }
        seen.end_batch(7 * S);
        seen.went_on(before, 5 * S, 7 * S)
    }

    #[test]
    fn others_are_served_only_if_their_answers_spread_over_the_wait() {
        let every = |ms: u64| (1..2000 / ms).map(|n| (n * ms, 64)).collect::<Vec<_>>();
        assert!(went_on(&every(20)));
        assert!(went_on(&every(500)), "a slow server answers all in turns");
        assert!(!went_on(&[(1, 64), (2, 64), (1990, 64), (1995, 64)]), "it stopped for everybody");
        assert!(!went_on(&[(1, 5_000), (1999, 5_000)]));
        assert!(went_on(&[(50, 64), (1000, 64), (1500, 64)]), "half of the wait");
        assert!(!went_on(&[(50, 64), (900, 64), (1500, 64)]));
        assert!(!went_on(&[(500, 33), (1000, 33), (1500, 33)]), "too few to tell");
    }

    #[test]
    fn a_thread_that_waits_sees_what_others_are_answered() {
        let all = Arc::new(Served::default());
        let (mut here, mut there) = (ServedSeen::new(all.clone()), ServedSeen::new(all));
        for at_ms in (0..2000).step_by(50) {
            there.add(10);
            there.end_batch(5 * S + at_ms * MS);
            here.end_batch(5 * S + at_ms * MS);
        }
        assert!(here.went_on(0, 5 * S, 7 * S));
    }
}
