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
    /// The request. Where messages are exchanged, its body is what is sent. Path, header values and
    /// body may have placeholders: `{name}` of a value that an earlier step takes or of a column of
    /// `data`, `{counter}` (of the session), `{vu}`, `{repeat}`, `{random}`, and `{stamp}` for when a
    /// message is sent. In a text with a placeholder, `{{` stands for `{`. The
    /// Content-Length of a body is added.
    pub request: RequestPlan,
    /// The request upgrades the connection to a WebSocket; the engine adds what RFC 6455 has in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upgrade: bool,
    /// Messages are exchanged over a connection that was upgraded; null for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesPlan>,
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
    /// The users that have this step; null for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<UsersPlan>,
}

/// Some of the users. They are numbered from 0 and divided into groups of `of`; in each group these
/// are the `count` users from place `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsersPlan {
    /// The place of the first of them in its group, from 0.
    pub first: u32,
    /// The number of them in each group.
    pub count: u32,
    /// The number of users in a group.
    pub of: u32,
}

/// The messages of a step of a conversation over WebSocket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesPlan {
    /// The body of the request is sent as text; else as binary data.
    pub text: bool,
    /// The message that ends the step; null for a step that ends when its message is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<MessagePlan>,
    /// The longest wait for that message, in ns; null for `timeout_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ns: Option<u64>,
    /// Messages are awaited one after the other until the load ends; `repeat` is 1, and nothing is
    /// sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub endless: bool,
}

/// What the awaited message is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MessagePlan {
    /// Any message.
    Any,
    /// Any binary message.
    Binary,
    /// This text, which may have placeholders.
    Text {
        /// The text.
        text: String,
    },
    /// A text that begins so.
    Prefix {
        /// The beginning, which may have placeholders.
        text: String,
    },
    /// A message from which a value can be taken.
    Has {
        /// Where the value is.
        from: FromPlan,
        /// The value, which may have placeholders; null for any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
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
