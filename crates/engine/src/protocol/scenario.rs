//! The protocol's sessions: the steps of a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::requests::{ExpectPlan, RequestPlan};

/// One step of every session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepPlan {
    /// Its name in results.
    pub name: String,
    /// The request. Path, header values and body may have placeholders: `{name}` of a value that an
    /// earlier step takes or of a column of `data`, `{counter}` (of the session), `{vu}`,
    /// `{repeat}` and `{random}`. In a text with a placeholder, `{{` stands for `{`. The
    /// Content-Length of a body is added.
    pub request: RequestPlan,
    /// What counts as a good answer to it.
    pub expect: ExpectPlan,
    /// The values that are taken from the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub take: Vec<TakePlan>,
    /// The pause before each of its requests.
    #[serde(default)]
    pub think: ThinkPlan,
    /// How many times it is sent in a row.
    pub repeat: u32,
}

/// A value that is taken from an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakePlan {
    /// Its name: a letter or `_`, then letters, digits, `_` and `-`.
    pub value: String,
    /// Where it is.
    pub from: FromPlan,
}

/// Where a value is in an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromPlan {
    /// A member of the body, which is JSON.
    Json {
        /// JSON pointer (RFC 6901).
        pointer: String,
    },
    /// The first header of a name.
    Header {
        /// Its name.
        name: String,
    },
    /// A cookie that the answer sets.
    Cookie {
        /// Its name.
        name: String,
    },
    /// The first group of the first match in the body.
    Regex {
        /// Regular expression.
        pattern: String,
    },
}

/// A pause of random length, uniformly distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkPlan {
    /// The shortest pause, in ns.
    pub least_ns: u64,
    /// The longest pause, in ns.
    pub most_ns: u64,
}
