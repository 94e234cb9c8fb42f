//! The protocol's counts of answers that came before their requests can have been read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answers about which the kernel was asked, on a sample of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// How many they are.
    pub asked: u64,
    /// They came while the peer's kernel had not acknowledged a byte of their request.
    pub unacknowledged: u64,
    /// They came sooner than the shortest round trip that our kernel has seen on their connection.
    pub too_soon: u64,
}

impl Early {
    /// Whether no answer was asked about.
    pub(crate) fn is_none(&self) -> bool {
        self.asked == 0
    }
}

impl From<trueload_meter::Early> for Early {
    fn from(found: trueload_meter::Early) -> Self {
        let trueload_meter::Early { asked, unacknowledged, too_soon } = found;
        Early { asked, unacknowledged, too_soon }
    }
}
