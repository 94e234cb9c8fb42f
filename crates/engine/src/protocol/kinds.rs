//! The protocol's counts of the kinds of answer that ended requests well.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answers to one request, by what their bodies were like. Empty where each body was held against the one expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// A few kinds.
    pub known: Vec<Kind>,
    /// Answers of others, by their length alone.
    pub other: Vec<OtherKinds>,
}

/// Answers whose bodies were alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Length of their bodies.
    pub bytes: u64,
    /// A sketch of their bodies, in hex. The fewer bytes two bodies differ in, the more of its eight bytes are equal.
    pub sketch: String,
    /// How many they are.
    pub count: u64,
    /// How many answers to the same request had come on its thread before the first of them.
    pub before: u64,
}

/// Answers of other kinds, whose bodies have about the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherKinds {
    /// The bit length of their length: 0 for empty bodies, 1 for 1 byte, 2 for 2 or 3, and so on.
    pub bits: u32,
    /// How many they are.
    pub count: u64,
    /// How many answers to the same request had come on its thread before the first of them.
    pub before: u64,
}

impl Kinds {
    /// Whether no body was looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

impl From<&trueload_meter::Kinds> for Kinds {
    fn from(found: &trueload_meter::Kinds) -> Self {
        let known = found.known().iter().map(|kind| Kind {
            bytes: kind.bytes,
            sketch: format!("{:016x}", kind.sketch),
            count: kind.count,
            before: kind.before,
        });
        let other = found.other().iter().map(|(bits, others)| OtherKinds {
            bits: u32::from(*bits),
            count: others.count,
            before: others.before,
        });
        Kinds { known: known.collect(), other: other.collect() }
    }
}
