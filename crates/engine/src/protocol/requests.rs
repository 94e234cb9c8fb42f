//! The protocol's requests to the server, and the counts of each target.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;
use super::kinds::Kinds;
use super::origins::is_first;
use super::{Sparse, numbered};

/// A request: its head is exactly `method`, `path`, `headers`, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPlan {
    /// The method, as sent.
    pub method: String,
    /// The request target, as sent.
    pub path: String,
    /// Name and value, as sent. The front adds Host, Content-Length and Connection.
    pub headers: Vec<(String, String)>,
    /// The body's SHA-256 in hex (see `blob`), or null for none.
    pub body_sha256: Option<String>,
    /// Each sending fills in `{counter}`, `{random}` and `{column}` of the data in path, header values and
    /// body, and adds the Content-Length of a body; in a text that has one of them, `{{` stands for `{`. In a
    /// path, values are percent-encoded; `{+column}` keeps what has a meaning there.
    #[serde(default)]
    pub template: bool,
}

/// One of several requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPlan {
    /// How it is called in results, or null.
    pub name: Option<String>,
    /// How often it has its turn, in relation to the others.
    pub weight: u32,
    /// Which of several origins it is of.
    #[serde(default, skip_serializing_if = "is_first")]
    pub origin: u32,
    /// What is sent.
    pub request: RequestPlan,
    /// What counts as a good answer to it.
    pub expect: ExpectPlan,
}

/// Bytes named by their SHA-256.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// Hex, lower case.
    pub sha256: String,
    /// The bytes, base64 with padding.
    pub base64: String,
}

/// What counts as a good answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectPlan {
    /// Accepted status codes; null for any 2xx.
    pub statuses: Option<Vec<u16>>,
    /// SHA-256 in hex of the exact body (see `blob`); null for any.
    pub body_sha256: Option<String>,
}

/// Requests of one target: the fields as in `Counts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetCounts {
    /// Sent, or charged with the failure of the connection they needed.
    pub issued: u64,
    /// Answered as expected.
    pub ok: u64,
    /// Sent again after a stale connection.
    pub stale: u64,
    /// Open at the very end.
    pub cancelled: u64,
    /// Requests of a session that were not sent, because one before them failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Redirects that were followed, also those of requests that failed later.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redirects: u64,
    /// Failures by class.
    pub failed: BTreeMap<String, u64>,
    /// Complete answers by status code, expected or not.
    pub statuses: BTreeMap<String, u64>,
    /// Latencies of those that ended well.
    #[serde(deserialize_with = "numbered::read")]
    pub latency: Sparse,
    /// Their kinds.
    #[serde(default, skip_serializing_if = "Kinds::is_empty")]
    pub kinds: Kinds,
}
