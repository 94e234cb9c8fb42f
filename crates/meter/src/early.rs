//! Answers that came before their requests can have been read.

/// Answers of a phase about which the kernel was asked, on a sample of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// How many they are.
    pub asked: u64,
    /// They came while not a byte of their request was acknowledged.
    pub unacknowledged: u64,
    /// They came sooner than anything was ever acknowledged on their connection.
    pub too_soon: u64,
}

impl Early {
    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Early) {
        self.asked += other.asked;
        self.unacknowledged += other.unacknowledged;
        self.too_soon += other.too_soon;
    }
}

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
