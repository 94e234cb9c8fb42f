//! The series of a phase over several engines, and what one of them keeps of its own. Pure; by the
//! rules of the front (`Series` in `engines/merge.py`, `condensed` in `engines/told.py`).

use std::collections::BTreeMap;

use trueload_meter::Packed;

use crate::protocol::{Second, Sparse};

use super::ticks::add;

/// Bins of one engine's own series; in a longer phase one stands for several seconds.
pub(super) const OWN_MOST: u32 = 120;

/// Seconds added up, by their number since the common start.
#[derive(Debug)]
pub(super) struct Series {
    width_s: u32,
    bins: BTreeMap<u32, (u64, u64, Sparse)>,
}

impl Default for Series {
    fn default() -> Self {
        Series { width_s: 1, bins: BTreeMap::new() }
    }
}

impl Series {
    /// Adds the seconds of one more engine.
    pub(super) fn add(&mut self, seconds: &[Second]) {
        for second in seconds {
            if second.width_s > self.width_s {
                self.coarsen(second.width_s);
            }
            let t_s = second.t_s / self.width_s * self.width_s;
            let (ok, failed, latency) = self.bins.entry(t_s).or_default();
            *ok += second.ok;
            *failed += second.failed;
            add(latency, &second.latency.sparse());
        }
    }

    /// Widens the bins to those of an engine that ran for longer; widths are powers of two.
    fn coarsen(&mut self, width_s: u32) {
        let before = self.sums();
        *self = Series { width_s, bins: BTreeMap::new() };
        self.add(&before);
    }

    /// The sums of all seconds that any engine had.
    pub(super) fn sums(&self) -> Vec<Second> {
        let second = |(t_s, (ok, failed, latency)): (&u32, &(u64, u64, Sparse))| Second {
            t_s: *t_s,
            width_s: self.width_s,
            ok: *ok,
            failed: *failed,
            latency: Packed::of(latency),
        };
        self.bins.iter().map(second).collect()
    }
}

/// The counts of one engine's series, in at most [`OWN_MOST`] bins and without latencies.
pub(super) fn condensed(series: &[Second]) -> Vec<Second> {
    let mut width_s = series.iter().map(|second| second.width_s).max().unwrap_or(1);
    let last_s = series.iter().map(|second| second.t_s).max().unwrap_or(0);
    while last_s / width_s >= OWN_MOST {
        width_s *= 2;
    }
    let bare = |second: &Second| Second { width_s, latency: Packed::default(), ..second.clone() };
    let mut sum = Series { width_s, bins: BTreeMap::new() };
    sum.add(&series.iter().map(bare).collect::<Vec<_>>());
    sum.sums()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn second(t_s: u32, width_s: u32, ok: u64, latency: &Sparse) -> Second {
        Second { t_s, width_s, ok, failed: ok / 2, latency: Packed::of(latency) }
    }

    proptest! {
        #[test]
        fn a_series_is_the_sum_of_its_parts_whatever_their_widths(
            parts in prop::collection::vec(
                (0_u32..3, prop::collection::vec((0_u32..400, 0_u64..50), 0..20)), 1..6,
            ),
        ) {
            let (mut series, mut ok, mut latency) = (Series::default(), 0, Sparse::new());
            for (power, bins) in parts {
                let own: Vec<Second> = bins
                    .iter()
                    .map(|(place, ok)| second(place << power, 1 << power, *ok, &Sparse::from([(*place, *ok)])))
                    .collect();
                for each in &own {
                    ok += each.ok;
                    add(&mut latency, &each.latency.sparse());
                }
                let few = condensed(&own);
                prop_assert!(few.len() <= OWN_MOST as usize);
                prop_assert_eq!(few.iter().map(|each| each.ok).sum::<u64>(), own.iter().map(|each| each.ok).sum::<u64>());
                series.add(&own);
            }
            let sums = series.sums();
            prop_assert_eq!(sums.iter().map(|each| each.ok).sum::<u64>(), ok);
            let mut found = Sparse::new();
            for each in &sums {
                prop_assert_eq!(each.t_s % each.width_s, 0);
                add(&mut found, &each.latency.sparse());
            }
            prop_assert_eq!(found, latency);
        }
    }

    #[test]
    fn seconds_are_added_by_their_number() {
        let mut series = Series::default();
        series.add(&[second(0, 1, 4, &Sparse::from([(9, 4)])), second(1, 1, 6, &Sparse::new())]);
        series.add(&[second(1, 1, 2, &Sparse::from([(9, 2)]))]);
        let sums: Vec<(u32, u64, u64)> =
            series.sums().iter().map(|each| (each.t_s, each.ok, each.failed)).collect();
        assert_eq!(sums, [(0, 4, 2), (1, 8, 4)]);
    }
}
