//! When to send and when to stop, as pure values.
//!
//! A load says how many requests may be sent by now. A stop rule says when the last one has been
//! sent. Shares divide work over threads and slots without losing any to rounding. A mix selects
//! the next of several requests. Origins divide a load over several servers. A row order says which
//! row of data a request takes. A recording has the times of requests that are sent again.
//!
//! Must not know: the clock. Elapsed time is an argument.

mod mix;
mod origins;
mod recorded;
mod rows;
mod schedule;

use std::sync::Arc;

pub use mix::{Mix, RANDOM_MOST, random};
pub use origins::{Origins, Places};
pub use recorded::{RecordedTimes, Recording, SendTimes};
pub use rows::{RowOrder, Takers};
pub use schedule::{Arrivals, Schedule, Stage, value_at};

/// When to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Each free slot sends at once.
    Closed {
        /// The number of slots that take part, over time; empty for all of them.
        active: Arc<[Stage]>,
    },
    /// Requests are sent at their scheduled times, whether or not earlier ones have been answered.
    Open {
        /// Requests per second over all threads, over time.
        stages: Arc<[Stage]>,
        /// The spacing of arrivals.
        arrivals: Arrivals,
    },
    /// Requests are sent at recorded times, likewise.
    Recorded {
        /// The times, and which request is sent at each.
        recording: Arc<Recording>,
        /// The time of the recording at which the load begins.
        from_ns: u64,
    },
    /// A fixed number of requests is in flight over all slots; the slots send them in turn.
    Turns {
        /// In flight at once.
        concurrent: u32,
    },
}

impl Load {
    /// Whether requests are sent at scheduled times: an open loop.
    pub fn is_scheduled(&self) -> bool {
        matches!(self, Load::Open { .. } | Load::Recorded { .. })
    }
}

/// When to stop sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time, in ns.
    After(u64),
    /// After this many requests.
    Requests(u64),
}

/// The part of `total` that share `index` of `parts` receives; the first shares take the remainder.
pub fn share(total: u64, parts: u64, index: u64) -> u64 {
    if parts == 0 {
        return 0;
    }
    total / parts + u64::from(index < total % parts)
}

/// The number of slots that thread `index` of `threads` gets when slots 0 to `total` - 1 are dealt
/// out round-robin.
pub fn dealt(total: u32, threads: u32, index: u32) -> u32 {
    share(u64::from(total), u64::from(threads), u64::from(index)) as u32
}

/// The slot that was dealt to thread `index` of `threads` as its `key`-th, counted from 0.
#[inline]
pub fn dealt_slot(key: u32, threads: u32, index: u32) -> u32 {
    key * threads + index
}

/// The number of slots that must be free before a connection is filled again: half the depth. With
/// less, a server that answers one by one would cost one small write per answer.
pub fn refill(depth: usize) -> usize {
    depth.div_ceil(2)
}

/// A back-off that doubles from [`BACKOFF_FIRST_NS`] to [`BACKOFF_MOST_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

/// The first pause after a violation or a failed connection attempt (design §7).
pub const BACKOFF_FIRST_NS: u64 = 10_000_000;
/// The longest pause (design §7).
pub const BACKOFF_MOST_NS: u64 = 1_000_000_000;

impl Backoff {
    /// The pause before the next attempt, in ns.
    pub fn pause(&mut self) -> u64 {
        let doubled = BACKOFF_FIRST_NS << self.failures.min(10);
        self.failures += 1;
        doubled.min(BACKOFF_MOST_NS)
    }

    /// Resets the back-off after a success: the next pause is the first again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_and_differ_by_at_most_one(total in 0u64..1_000_000, parts in 1u64..300) {
            let shares: Vec<u64> = (0..parts).map(|index| share(total, parts, index)).collect();
            prop_assert_eq!(shares.iter().sum::<u64>(), total);
            prop_assert!(shares.is_sorted_by(|one, next| one >= next));
            prop_assert!(shares.first().zip(shares.last()).is_some_and(|(most, least)| most - least <= 1));
        }
    }

    proptest! {
        #[test]
        fn each_slot_is_dealt_to_one_thread_and_no_request_is_lost_between_them(
            slots in 1u32..2000, threads in 1u32..64, requests in 0u64..100_000,
        ) {
            let mut all = Vec::new();
            let mut sum = 0;
            for index in 0..threads {
                for key in 0..dealt(slots, threads, index) {
                    let slot = dealt_slot(key, threads, index);
                    sum += share(requests, u64::from(slots), u64::from(slot));
                    all.push(slot);
                }
            }
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..slots));
            prop_assert_eq!(sum, requests);
        }
    }

    #[test]
    fn a_hundred_connections_on_eight_threads_are_a_hundred() {
        let dealt: Vec<u32> = (0..8).map(|index| dealt(100, 8, index)).collect();
        assert_eq!(dealt, [13, 13, 13, 13, 12, 12, 12, 12]);
    }

    #[test]
    fn the_back_off_doubles_from_ten_milliseconds_to_a_second_and_starts_anew() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..9).map(|_| backoff.pause() / 1_000_000).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.reset();
        assert_eq!(backoff.pause(), BACKOFF_FIRST_NS);
    }

    #[test]
    fn a_connection_is_refilled_at_half_its_depth() {
        assert_eq!([1, 2, 3, 16].map(refill), [1, 1, 2, 8]);
    }
}
