//! Connections that the peer closed while they were idle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections that the peer closed after at least 100 ms without an outstanding request. It may
/// have sent a 408 first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleClosed {
    /// The number of connections.
    pub count: u64,
    /// The shortest idle time before such a close, in ns; 0 if there was none.
    pub after_ns: u64,
}

impl IdleClosed {
    /// Counts one connection that had been idle for `quiet_ns`.
    pub fn note(&mut self, quiet_ns: u64) {
        self.merge(&IdleClosed { count: 1, after_ns: quiet_ns });
    }

    /// Adds the counts of another thread or host.
    pub fn merge(&mut self, other: &IdleClosed) {
        let all = [*self, *other].into_iter().filter(|each| each.count > 0);
        let after_ns = all.map(|each| each.after_ns).min().unwrap_or(0);
        *self = IdleClosed { count: self.count + other.count, after_ns };
    }
}

crate::merge::own!(IdleClosed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_is_kept_of_all() {
        let mut sum = IdleClosed::default();
        sum.merge(&IdleClosed::default());
        assert_eq!(sum, IdleClosed::default());
        for (quiet_ns, expected) in [(500, (1, 500)), (700, (2, 500)), (300, (3, 300))] {
            sum.note(quiet_ns);
            assert_eq!((sum.count, sum.after_ns), expected);
        }
        sum.merge(&IdleClosed::default());
        assert_eq!((sum.count, sum.after_ns), (3, 300));
    }
}
