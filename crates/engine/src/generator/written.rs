//! What is to be stamped of requests that were written.

/// Requests of one slot that were written, and are still to be stamped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) key: u32,
    pub(super) phase: u16,
    /// The number of them that count in the send lag.
    pub(super) count: u32,
    /// The time at which they could have been sent: they were due, and a connection was free.
    pub(super) could_ns: u64,
}

impl Written {
    /// A request that has waited for other reasons than this generator, and has no lag of ours.
    pub(super) fn without_lag(key: u32) -> Self {
        Written { key, phase: 0, count: 0, could_ns: 0 }
    }
}
