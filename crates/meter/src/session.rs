//! The outcomes of whole sessions, where several requests in order make up a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Sparse, index};

/// Counts and times of the sessions of one phase. A session belongs to the phase in which it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sessions")]
pub struct SessionMeter {
    /// Sessions that began in the phase.
    pub begun: u64,
    /// Sessions in which every request succeeded.
    pub ok: u64,
    /// Sessions that ended because a request failed. The requests after it were skipped.
    pub failed: u64,
    /// Sessions that had not ended when the phase ended.
    pub unfinished: u64,
    /// The times of successful sessions, as a sparse histogram (see `TargetCounts`). Each is the
    /// sum of its requests' latencies, without the pauses.
    pub latency: Sparse,
}

impl SessionMeter {
    /// Records a session of which every request ended well.
    pub fn record_ok(&mut self, latency_ns: u64) {
        self.ok += 1;
        *self.latency.entry(index(latency_ns)).or_default() += 1;
    }
}

crate::merged! { SessionMeter: begun, ok, failed, unfinished, latency }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_every_count() {
        let mut one = SessionMeter { begun: 4, failed: 2, unfinished: 1, ..Default::default() };
        one.record_ok(500);
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!((sum.begun, sum.ok, sum.failed, sum.unfinished), (8, 2, 4, 2));
        assert_eq!(sum.latency.values().sum::<u64>(), 2);
    }
}
