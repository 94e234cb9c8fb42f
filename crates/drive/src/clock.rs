//! The one clock: monotonic, shared by all threads of an engine, in ns.

use std::time::{Duration, Instant, SystemTime};

/// The time at the engine's start. A year, so that what began before can be told as well: an engine
/// may join a load that others have sent for long.
const START_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// A monotonic clock; jumps of the wall clock do not touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    /// Nanoseconds, from a year at the start on.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        START_NS + self.origin.elapsed().as_nanos() as u64
    }

    /// The wall clock's time at 0, as the time since 1970 in UTC, as the wall clock is set now.
    pub fn unix_time_at_0(&self) -> Duration {
        unix_time().saturating_sub(Duration::from_nanos(self.now_ns()))
    }
}

/// The wall clock, as the time since 1970 in UTC; a clock that is set before then shows 1970.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
