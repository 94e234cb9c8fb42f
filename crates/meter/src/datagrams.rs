//! Counts of datagrams beyond the requests that they settled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Datagrams of one phase that settled no request or arrived out of order. A request without an
/// answer in time counts as failed, of class `lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Answers to requests that had been given up as lost.
    pub late: u64,
    /// Second answers to requests that had been answered.
    pub duplicated: u64,
    /// Answers that arrived after the answer to a later request of the same socket.
    pub reordered: u64,
    /// Datagrams that answer no request that was sent.
    pub unsolicited: u64,
    /// Our own datagrams that were never sent: they found no room, or the kernel refused them.
    /// Their requests count as lost.
    pub dropped: u64,
    /// Incoming datagrams that the kernel dropped because our socket's queue was full. Their
    /// requests count as lost, although the network did not lose them.
    pub overflowed: u64,
}

crate::merged! { Datagrams: late, duplicated, reordered, unsolicited, dropped, overflowed }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_each_count_to_its_own() {
        let of = |late, by| Datagrams {
            late,
            duplicated: late + by,
            reordered: late + 2 * by,
            unsolicited: late + 3 * by,
            dropped: late + 4 * by,
            overflowed: late + 5 * by,
        };
        let mut sum = of(2, 1);
        sum.merge(&of(10, 10));
        assert_eq!(sum, of(12, 11));
    }
}
