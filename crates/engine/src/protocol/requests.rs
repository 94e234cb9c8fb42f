//! The protocol's requests to the server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origins::is_first;

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
    /// Whether placeholders are filled in at each send: `{counter}`, `{random}`, `{column}` of
    /// the data and `{env:NAME}`, in path, header values and body. A body then gets its Content-Length. In a text
    /// with a placeholder, `{{` stands for `{`. Values are escaped by where they go; `{+column}`
    /// keeps reserved characters, `{column|raw}` all, and `{column|json}` makes JSON of a value.
    #[serde(default)]
    pub template: bool,
}

/// One of several requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetPlan {
    /// Its name in results, or null.
    pub name: Option<String>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
    /// The index of its origin.
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
