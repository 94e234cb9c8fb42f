//! Redirects that were followed: how many, and how long each took.
//!
//! A redirect is recorded when it has come whole, so those of a request that fails later are in.
//! The number of hops is recorded with a request that ends well.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Lazy;

/// The redirects that were followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirects {
    /// The number of redirects that were followed, by status code. Those of requests that failed
    /// later are included.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub statuses: BTreeMap<u16, u64>,
    /// The number of successful requests, by how many redirects came before their final answers.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub hops: BTreeMap<u8, u64>,
    /// The time that each redirect took, in ns: from the send of its request to its last byte.
    /// HdrHistogram V2, compressed, base64; null when empty.
    #[schemars(with = "Option<String>")]
    pub time: Lazy,
}

impl Redirects {
    /// Records a redirect that is followed; it took this long.
    pub fn record_followed(&mut self, status: u16, took_ns: u64) {
        *self.statuses.entry(status).or_default() += 1;
        self.time.record(took_ns);
    }

    /// Records requests that ended well after so many redirects each.
    pub fn record_ok(&mut self, hops: u8, count: u64) {
        *self.hops.entry(hops).or_default() += count;
    }
}

crate::merged! { Redirects: statuses, hops, time }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazy::decoded;

    #[test]
    fn redirects_of_threads_add_up() {
        let (mut one, mut two) = (Redirects::default(), Redirects::default());
        one.record_followed(302, 500);
        one.record_ok(1, 1);
        two.record_followed(302, 700);
        two.record_followed(307, 90);
        two.record_ok(2, 1);
        two.record_ok(0, 5);
        one.merge(&two);
        assert_eq!(Vec::from_iter(one.statuses.clone()), [(302, 2), (307, 1)]);
        assert_eq!(Vec::from_iter(one.hops.clone()), [(0, 5), (1, 1), (2, 1)]);
        let time = decoded(&one.time.encoded().expect("some"));
        assert_eq!((time.len(), time.max()), (3, 700));
        assert_eq!(Redirects::default().time.encoded(), None);
    }
}
