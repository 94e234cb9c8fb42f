//! The protocol's redirects that were followed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Redirects that were followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirects {
    /// Redirects that were followed, by status code, also those of requests that failed later.
    pub statuses: BTreeMap<String, u64>,
    /// Requests that ended well, by the number of redirects before their final answers.
    pub hops: BTreeMap<String, u64>,
    /// How long each redirect took: from the send of the request, or from the redirect before it, to its last byte.
    /// HdrHistogram V2 compressed, base64; null when empty.
    pub time: Option<String>,
}

impl From<&trueload_meter::Redirects> for Redirects {
    fn from(seen: &trueload_meter::Redirects) -> Self {
        let statuses = seen.statuses.iter().map(|(status, count)| (status.to_string(), *count));
        let hops = seen.hops.iter().map(|(hops, count)| (hops.to_string(), *count));
        Redirects { statuses: statuses.collect(), hops: hops.collect(), time: seen.encoded() }
    }
}
