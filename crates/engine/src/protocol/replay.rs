//! The protocol's recorded traffic: requests that are sent again, each at its recorded time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recorded traffic. An open loop whose arrivals are `recorded` sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayPlan {
    /// What was recorded, for people.
    pub about: String,
    /// Entries in all.
    pub count: u64,
    /// The SHA-256 of each piece of the requests, in their order (see `blob`). A piece is whole lines, each a
    /// request as in `RecordedRequest`.
    pub requests: Vec<String>,
    /// The SHA-256 of each piece of the entries, which are in order of time. An entry is 12 bytes, little endian: 8 for
    /// its time in ns from the start, 4 for the index of its request.
    pub entries: Vec<String>,
}

/// A request of recorded traffic, as a line of a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedRequest {
    /// The method, as sent.
    pub method: String,
    /// The request target, as sent.
    pub path: String,
    /// Name and value, as sent. The front adds Host, Content-Length and Connection.
    pub headers: Vec<(String, String)>,
    /// Whether each character of the headers' values stands for one byte (Latin-1), because they are not UTF-8.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latin1: bool,
    /// The body, base64 with padding; left out for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Accepted status codes; left out for those of the plan's `expect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statuses: Option<Vec<u16>>,
}
