//! The counts of the requests of a phase.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Class;

/// Counts of the requests of one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Requests that the load asked for.
    pub scheduled: u64,
    /// Requests that were scheduled and not sent.
    pub unsent: u64,
    /// Requests that were sent, and requests whose connection failed before they could be sent. At
    /// the end, `issued = ok + failed + cancelled`.
    pub issued: u64,
    /// Requests that were answered as expected.
    pub ok: u64,
    /// Requests that were sent again, because the server had just closed their connection.
    pub stale: u64,
    /// The part of `stale` whose connection was reset.
    pub stale_resets: u64,
    /// Requests that were still open at the very end.
    pub cancelled: u64,
    /// Requests of a session that were not sent, because one before them failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Failed requests, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Complete answers by status code, expected or not.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub statuses: BTreeMap<u16, u64>,
}

crate::merged! {
    Counts: scheduled, unsent, issued, ok, stale, stale_resets, cancelled, skipped, failed, statuses
}

/// Whether a count is zero, so that JSON leaves it out.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes it so
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_each_count_to_its_own() {
        let of = |first: u64, by: u64| Counts {
            scheduled: first,
            unsent: first + by,
            issued: first + 2 * by,
            ok: first + 3 * by,
            stale: first + 4 * by,
            stale_resets: first + 5 * by,
            cancelled: first + 6 * by,
            skipped: first + 7 * by,
            failed: BTreeMap::from([(Class::Reset, first + 8 * by)]),
            statuses: BTreeMap::from([(200, first + 9 * by)]),
        };
        let mut sum = of(2, 1);
        sum.merge(&of(10, 10));
        assert_eq!(sum, of(12, 11));
    }
}
