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
    /// The ages of the sessions under way when the phase began, likewise: the sum of the latencies
    /// so far.
    #[serde(default)]
    pub entered: Sparse,
    /// The ages of the sessions that had not ended when the phase ended.
    #[serde(default)]
    pub cut: Sparse,
}

impl SessionMeter {
    /// Notes a session that is under way when the phase begins.
    pub fn enter(&mut self, age_ns: u64) {
        *self.entered.entry(index(age_ns)).or_default() += 1;
    }

    /// Notes a session that has not ended when the phase ends.
    pub fn cut(&mut self, age_ns: u64) {
        self.unfinished += 1;
        *self.cut.entry(index(age_ns)).or_default() += 1;
    }

    /// Records a session of which every request ended well.
    pub fn record_ok(&mut self, latency_ns: u64) {
        self.ok += 1;
        *self.latency.entry(index(latency_ns)).or_default() += 1;
    }
}

crate::merged! { SessionMeter: begun, ok, failed, unfinished, latency, entered, cut }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_every_count() {
        let mut one = SessionMeter { begun: 4, failed: 2, ..Default::default() };
        one.record_ok(500);
        one.enter(70);
        one.cut(90);
        let mut sum = one.clone();
        sum.merge(&one);
        assert_eq!((sum.begun, sum.ok, sum.failed, sum.unfinished), (8, 2, 4, 2));
        assert_eq!(sum.latency.values().sum::<u64>(), 2);
        assert_eq!((sum.entered, sum.cut), (Sparse::from([(70, 2)]), Sparse::from([(90, 2)])));
    }
}
