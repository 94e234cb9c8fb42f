//! The delivery at which a message reaches its first, median, 95 % and last receiver, and what is
//! recorded then.

use super::{Deliveries, Entry};

/// The recorded ranks, as percentages of all expected receivers. They are nearest ranks
/// (NIST/SEMATECH e-Handbook §7.2.6.2), so the 95th percentile of 10 receivers is the tenth.
const PARTS_PERCENT: [u32; 4] = [0, 50, 95, 100];

/// The rank, from 1, of the receiver at `percent` of `expected`.
fn rank(expected: u32, percent: u32) -> u32 {
    let rank = (u64::from(expected) * u64::from(percent)).div_ceil(100);
    (rank as u32).max(1)
}

impl Entry {
    /// Whether no receiver is awaited any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.delivered + self.lost == self.expected
    }

    /// Sets the number of deliveries at which the next rank is reached or the message is over.
    pub(super) fn aim(&mut self) {
        let percent = PARTS_PERCENT.get(usize::from(self.mark));
        let next = percent.map_or(u32::MAX, |percent| rank(self.expected, *percent));
        self.next_mark = next.min(self.expected - self.lost);
    }

    /// Records every rank that has been reached.
    pub(super) fn note_marks(&mut self, phases: &mut [Deliveries]) {
        let mut ranked = phases.get_mut(self.sums).map(|sums| sums.histograms.ranked());
        let took_ns = self.latest_ns.saturating_sub(self.from_ns);
        while let Some(percent) = PARTS_PERCENT.get(usize::from(self.mark)) {
            if self.delivered < rank(self.expected, *percent) {
                break;
            }
            if let Some(ranked) = &mut ranked {
                ranked[usize::from(self.mark)].record(took_ns);
            }
            self.mark += 1;
        }
        self.aim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_nearest_ranks() {
        let cases = [(1, [1, 1, 1, 1]), (2, [1, 1, 2, 2]), (10, [1, 5, 10, 10])];
        let cases = cases.into_iter().chain([(20, [1, 10, 19, 20]), (1000, [1, 500, 950, 1000])]);
        for (expected, ranks) in cases {
            assert_eq!(PARTS_PERCENT.map(|percent| rank(expected, percent)), ranks, "{expected}");
        }
    }
}
