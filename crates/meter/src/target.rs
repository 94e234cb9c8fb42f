//! The outcomes of the requests to one target, where a phase has several targets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::is_zero;
use crate::{Class, Kinds, Sparse, index};

/// Counts and latencies of the requests to one target. The fields are those of `Counts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TargetCounts")]
pub struct TargetMeter {
    /// Requests that were sent, and requests whose connection failed before they could be sent.
    pub issued: u64,
    /// Requests that were answered as expected.
    pub ok: u64,
    /// Requests that were sent again, because the server had just closed their connection.
    pub stale: u64,
    /// Requests that were still open at the very end.
    pub cancelled: u64,
    /// Requests of a session that were not sent, because one before them failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Redirects that were followed, including those of requests that failed later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redirects: u64,
    /// Failed requests, by class.
    pub failed: BTreeMap<Class, u64>,
    /// Complete answers by status code, expected or not.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub statuses: BTreeMap<u16, u64>,
    /// Latencies of the successful requests, as a sparse histogram. Below 128, the index of a value
    /// v (in ns) is v itself. Above, with e = floor(log2 v) - 6, it is 64 e + (v >> e).
    pub latency: Sparse,
    /// The kinds of answer to these requests.
    #[serde(default, skip_serializing_if = "Kinds::is_empty")]
    pub kinds: Kinds,
}

impl TargetMeter {
    /// Records `count` successful requests with the same latency.
    pub fn record_ok(&mut self, latency_ns: u64, count: u64) {
        self.ok += count;
        *self.latency.entry(index(latency_ns)).or_default() += count;
    }

    /// Turns a request that was recorded as successful into a failed one.
    pub fn retract_ok(&mut self, latency_ns: u64, class: Class) {
        self.ok -= 1;
        take_one(&mut self.latency, index(latency_ns));
        self.record_failed(class);
    }

    /// Records a failed request.
    pub fn record_failed(&mut self, class: Class) {
        *self.failed.entry(class).or_default() += 1;
    }

    /// Moves one failed request from one class to another.
    pub fn reclass_failed(&mut self, from: Class, to: Class) {
        take_one(&mut self.failed, from);
        self.record_failed(to);
    }

    /// Records `count` complete answers with this status.
    pub fn record_status(&mut self, status: u16, count: u64) {
        *self.statuses.entry(status).or_default() += count;
    }
}

crate::merged! {
    TargetMeter: issued, ok, stale, cancelled, skipped, redirects, failed, statuses, latency, kinds
}

fn take_one<K: Ord + Copy>(counts: &mut BTreeMap<K, u64>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_leaves_nothing_behind() {
        let mut target = TargetMeter { issued: 2, ..TargetMeter::default() };
        target.record_ok(500, 1);
        target.retract_ok(500, Class::Unsolicited);
        target.record_failed(Class::Reset);
        target.reclass_failed(Class::Reset, Class::Unsolicited);
        assert_eq!((target.ok, target.latency.len()), (0, 0));
        assert_eq!(target.failed, BTreeMap::from([(Class::Unsolicited, 2)]));
    }

    #[test]
    fn merging_adds_every_count() {
        let mut one =
            TargetMeter { issued: 10, stale: 20, cancelled: 30, ..TargetMeter::default() };
        (one.skipped, one.redirects) = (40, 50);
        one.record_ok(500, 1);
        one.record_status(200, 1);
        let mut sum = TargetMeter { issued: 2, stale: 3, cancelled: 4, skipped: 5, ..one.clone() };
        sum.record_failed(Class::Reset);
        sum.merge(&one);
        assert_eq!((sum.issued, sum.stale, sum.cancelled, sum.skipped), (12, 23, 34, 45));
        assert_eq!(sum.redirects, 100);
        assert_eq!((sum.ok, sum.statuses[&200], sum.failed[&Class::Reset]), (2, 2, 1));
        assert_eq!(sum.latency.values().sum::<u64>(), 2);
    }
}
