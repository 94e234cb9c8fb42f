//! The protocol's answers that are streams: how their parts are told apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_wire::parts::{End, Kind, Rule};

/// What the parts of an answer are, and when it has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamPlan {
    /// What a part is.
    pub kind: StreamKindPlan,
    /// What must come behind the last part; null for the end of the body.
    #[serde(default)]
    pub end: Option<StreamEndPlan>,
    /// The longest time without a part once the first has come; null for any time.
    #[serde(default)]
    pub stall_ns: Option<u64>,
}

/// What a part of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamKindPlan {
    /// A server-sent event.
    Sse,
    /// A chunk of HTTP/1.1, or a DATA frame of HTTP/2.
    Chunks,
    /// A line.
    Jsonl,
}

/// What ends a stream. It is not counted as a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StreamEndPlan {
    /// A part with this content.
    Content {
        /// The whole content of the part.
        text: String,
    },
    /// A server-sent event of this type.
    Event {
        /// The type of the event.
        name: String,
    },
}

impl From<StreamPlan> for Rule {
    fn from(plan: StreamPlan) -> Self {
        let kind = match plan.kind {
            StreamKindPlan::Sse => Kind::Events,
            StreamKindPlan::Chunks => Kind::Chunks,
            StreamKindPlan::Jsonl => Kind::Lines,
        };
        let end = match plan.end {
            None => End::Body,
            Some(StreamEndPlan::Content { text }) => End::Content(text.into_bytes()),
            Some(StreamEndPlan::Event { name }) => End::Event(name.into_bytes()),
        };
        Rule { kind, end, stall_ns: plan.stall_ns }
    }
}
