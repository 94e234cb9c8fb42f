//! Connections that the peer ended while they were idle.

/// How many, and after how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleClosed {
    /// Connections.
    pub count: u64,
    /// The shortest time that one had been idle for; 0 when none was ended.
    pub after_ns: u64,
}

impl IdleClosed {
    /// One more, which had been idle for so long.
    pub fn note(&mut self, quiet_ns: u64) {
        self.merge(IdleClosed { count: 1, after_ns: quiet_ns });
    }

    /// Adds another thread's or host's.
    pub fn merge(&mut self, other: IdleClosed) {
        let all = [*self, other].into_iter().filter(|each| each.count > 0);
        let after_ns = all.map(|each| each.after_ns).min().unwrap_or(0);
        *self = IdleClosed { count: self.count + other.count, after_ns };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_is_kept_of_all() {
        let mut sum = IdleClosed::default();
        sum.merge(IdleClosed::default());
        assert_eq!(sum, IdleClosed::default());
        for (quiet_ns, expected) in [(500, (1, 500)), (700, (2, 500)), (300, (3, 300))] {
            sum.note(quiet_ns);
            assert_eq!((sum.count, sum.after_ns), expected);
        }
        sum.merge(IdleClosed::default());
        assert_eq!((sum.count, sum.after_ns), (3, 300));
    }
}
