//! Whether others were served while a request waited. Without it, a server that stops for everybody
//! would look as if it starved some connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wait counts as long from this time on (design §6, `starvation`) …
pub(super) const LONG_WAIT_NS: u64 = 1_000_000_000;
/// … if at least this many other requests are answered meanwhile …
const LONG_WAIT_OTHERS: u64 = 100;
/// … and it goes on so: another is answered after the wait was long, or as many are as take this
/// many turns. A server that stops has about one turn in hand, which it answers before.
const LONG_WAIT_TURNS: u64 = 4;

/// The answers that all threads have got so far.
#[derive(Debug, Default)]
pub struct Served {
    count: AtomicU64,
    /// When the last of them came, to within a batch.
    last_ns: AtomicU64,
}

/// What one thread knows of the answers that all have got.
#[derive(Debug)]
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
            self.last_ns = now_ns;
            self.all.last_ns.store(now_ns, Ordering::Relaxed);
            self.count = self.all.count.fetch_add(here, Ordering::Relaxed) + here;
        } else {
            // A thread whose requests all wait must still see those of other threads answered.
            self.last_ns = self.all.last_ns.load(Ordering::Relaxed);
            self.count = self.all.count.load(Ordering::Relaxed);
        }
    }

    /// Whether a server went on serving others after it got a request at `sent_ns`, when `before`
    /// had been answered. `turn` requests may be in flight over all connections.
    pub(super) fn went_on(&self, before: u64, sent_ns: u64, turn: u64) -> bool {
        let others = self.count.saturating_sub(before);
        let long = self.last_ns >= sent_ns + LONG_WAIT_NS || others >= LONG_WAIT_TURNS * turn;
        others >= LONG_WAIT_OTHERS && long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = LONG_WAIT_NS;
    const MS: u64 = S / 1000;

    #[test]
    fn a_server_that_stops_for_everybody_has_served_one_turn_and_no_more() {
        for (others, last_ns, turn, went_on) in [
            (100, 5 * S + MS, 1, true),
            (99, 5 * S + MS, 1, false),
            (100, 5 * S + MS, 64, false),
            (255, 5 * S + MS, 64, false),
            (256, 5 * S + MS, 64, true),
            (100, 6 * S - 1, 64, false),
            (100, 6 * S, 64, true),
            (99, 9 * S, 64, false),
        ] {
            let mut seen = ServedSeen::new(Arc::default());
            seen.add(7);
            seen.end_batch(5 * S);
            let before = seen.count();
            seen.add(others);
            seen.end_batch(last_ns);
            seen.end_batch(20 * S);
            let found = seen.went_on(before, 5 * S, turn);
            assert_eq!(found, went_on, "{others} until {last_ns}, {turn} in flight");
        }
    }
}
