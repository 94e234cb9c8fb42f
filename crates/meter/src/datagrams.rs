//! What became of datagrams beside the requests that they settled.

/// Datagrams of one phase that settled nothing, or not in their turn. Those that were lost are failed requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Answers to requests that had been given up as lost.
    pub late: u64,
    /// Second answers to requests that had been answered.
    pub duplicated: u64,
    /// Answers that settled a request behind the answer to one sent later.
    pub reordered: u64,
    /// Datagrams that were an answer to nothing that was sent.
    pub unsolicited: u64,
    /// Datagrams of ours that found no room, or that the kernel refused: they never left.
    pub dropped: u64,
    /// Datagrams that came and found the queue of our socket full.
    pub overflowed: u64,
}

impl Datagrams {
    /// Adds those of another thread, or of another batch.
    pub fn merge(&mut self, other: &Datagrams) {
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.unsolicited += other.unsolicited;
        self.dropped += other.dropped;
        self.overflowed += other.overflowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_each_count_to_its_own() {
        let of = |late, by| Datagrams {
            late,
            duplicated: late + by,
            reordered: late + 2 * by,
            unsolicited: late + 3 * by,
            dropped: late + 4 * by,
            overflowed: late + 5 * by,
        };
        let mut sum = of(2, 1);
        sum.merge(&of(10, 10));
        assert_eq!(sum, of(12, 11));
    }
}
