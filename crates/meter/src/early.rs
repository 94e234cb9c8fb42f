//! Answers that came before their requests can have been read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answers that came before the server can have read their requests. They are checked against the
/// kernel's state, on a sample of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// The number of answers checked.
    pub asked: u64,
    /// Answers that came before the peer's kernel had acknowledged a byte of their request.
    pub unacknowledged: u64,
    /// Answers that came sooner than the shortest round trip seen on their connection.
    pub too_soon: u64,
}

impl Early {
    /// Whether no answer was checked.
    pub fn is_none(&self) -> bool {
        self.asked == 0
    }
}

crate::merged! { Early: asked, unacknowledged, too_soon }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_each_count_to_its_own() {
        let mut one = Early { asked: 1, unacknowledged: 2, too_soon: 3 };
        one.merge(&Early { asked: 10, unacknowledged: 20, too_soon: 30 });
        assert_eq!(one, Early { asked: 11, unacknowledged: 22, too_soon: 33 });
    }
}
