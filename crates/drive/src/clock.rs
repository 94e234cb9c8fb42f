//! The one clock: monotonic, shared by all threads of an engine, in ns since its start.

use std::time::{Duration, Instant, SystemTime};

/// A monotonic clock whose zero is the engine's start; jumps of the wall clock do not touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts at 0 now.
    #[must_use]
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    /// Nanoseconds since the start.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The wall clock's time at 0, as the time since 1970 in UTC, as the wall clock is set now.
    #[must_use]
    pub fn unix_time_at_0(&self) -> Duration {
        unix_time().saturating_sub(self.origin.elapsed())
    }
}

/// The wall clock, as the time since 1970 in UTC; a clock that is set before then shows 1970.
#[must_use]
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
