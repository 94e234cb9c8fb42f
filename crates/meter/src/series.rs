//! The counts of a phase over time, in bins of one second. After an hour the bins become wider, so
//! that a run of days takes no more memory than one of an hour.
//!
//! How it works: the width of all bins is the same power of two of seconds. When there would be
//! too many bins ([`BINS_MOST`]), each pair of neighbours is merged, which loses only time
//! resolution. The width depends only on the last second, so the bins of several threads and hosts
//! align. One bin is open, the one last added to; the others are packed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Counted, Packed, Sparse};

/// The maximum number of bins in a series.
pub const BINS_MOST: usize = 3600;

/// The counts of one thread since its previous tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The second of the phase that the counts belong to.
    pub second: usize,
    /// Successful requests.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Latencies of the successful requests.
    pub latency: Counted,
    /// Latencies, by index, of requests reported earlier as successful that turned out to have
    /// failed.
    pub retracted: Vec<u32>,
}

/// The counts of one second of a phase, or of several after an hour. Requests are counted when they
/// settle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Second")]
pub struct Bin {
    /// The start of this entry, in seconds from the start of the phase.
    pub t_s: u32,
    /// The length of this entry in seconds: a power of two, the same for all entries.
    #[serde(default = "one")]
    pub width_s: u32,
    /// Successful requests.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Latencies of the successful requests as a packed sparse histogram, in base64. Its counts, in
    /// order of index, are zigzag LEB128 numbers, as in HdrHistogram V2. A negative number stands
    /// for that many indices with no count.
    #[schemars(with = "String", extend("contentEncoding" = "base64"))]
    pub latency: Packed,
}

fn one() -> u32 {
    1
}

/// The bins of a phase, from its start.
#[derive(Clone, Debug)]
pub struct Series {
    most: usize,
    width_s: u32,
    bins: Vec<Bin>,
    /// The index of the open bin, and its latencies, which are not in the bin itself.
    open: usize,
    latency: Sparse,
}

impl Default for Series {
    fn default() -> Self {
        Series::of(BINS_MOST)
    }
}

impl Series {
    /// A series of at most this many bins.
    pub fn of(most: usize) -> Self {
        Series { most, width_s: 1, bins: Vec::new(), open: 0, latency: Sparse::new() }
    }

    /// The index of the bin that holds this second.
    fn place(&self, second: usize) -> usize {
        second / self.width_s as usize
    }

    /// Adds the counts of a thread.
    pub fn add(&mut self, recorded: &Recorded) {
        while self.place(recorded.second) >= self.most {
            self.coarsen();
        }
        self.reopen(self.place(recorded.second));
        if let Some(bin) = self.bins.get_mut(self.open) {
            bin.ok += recorded.ok;
            bin.failed += recorded.failed;
        }
        for (index, count) in recorded.latency.iter() {
            *self.latency.entry(index).or_default() += count;
        }
        recorded.retracted.iter().for_each(|index| self.retract(*index));
    }

    /// The bins in order of time.
    pub fn into_bins(mut self) -> Vec<Bin> {
        self.close();
        self.bins
    }

    fn close(&mut self) {
        if let Some(bin) = self.bins.get_mut(self.open) {
            bin.latency = Packed::of(&std::mem::take(&mut self.latency));
        }
    }

    fn reopen(&mut self, place: usize) {
        if place == self.open && place < self.bins.len() {
            return;
        }
        self.close();
        for next in self.bins.len()..=place {
            let width_s = self.width_s;
            self.bins.push(Bin { t_s: next as u32 * width_s, width_s, ..Bin::default() });
        }
        self.open = place;
        self.latency = std::mem::take(&mut self.bins[place].latency).sparse();
    }

    /// Merges each pair of neighbouring bins.
    fn coarsen(&mut self) {
        self.close();
        let merged = self.bins.chunks(2).map(|pair| {
            let mut latency = Sparse::new();
            for (index, count) in pair.iter().flat_map(|bin| bin.latency.iter()) {
                *latency.entry(index).or_default() += count;
            }
            Bin {
                t_s: pair[0].t_s,
                width_s: 2 * self.width_s,
                ok: pair.iter().map(|bin| bin.ok).sum(),
                failed: pair.iter().map(|bin| bin.failed).sum(),
                latency: Packed::of(&latency),
            }
        });
        self.bins = merged.collect();
        self.width_s *= 2;
        self.open = self.bins.len();
    }

    /// Takes back the latest successful request with a latency of this index, which turned out to
    /// have failed.
    fn retract(&mut self, index: u32) {
        for place in (0..self.bins.len()).rev() {
            self.reopen(place);
            if let Some(count) = self.latency.get_mut(&index).filter(|count| **count > 0) {
                *count -= 1;
                self.bins[place].ok -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recent;

    fn recorded(second: usize, latencies_ns: impl IntoIterator<Item = u64>) -> Recorded {
        let mut recent = Recent::default();
        let mut ok = 0;
        for latency_ns in latencies_ns {
            recent.record(latency_ns, 1);
            ok += 1;
        }
        Recorded { second, ok, failed: 1, latency: recent.take(), retracted: Vec::new() }
    }

    /// The size of all packed latencies.
    fn packed_bytes(series: &Series) -> usize {
        series.bins.iter().map(|bin| bin.latency.as_bytes().len()).sum()
    }

    fn of(seconds: usize) -> Series {
        let mut series = Series::default();
        (0..seconds).for_each(|second| series.add(&recorded(second, [second as u64, 7_000_000])));
        series
    }

    #[test]
    fn bins_become_wider_and_never_more_than_an_hour_of_seconds() {
        for (seconds, width_s, bins) in [
            (1, 1, 1),
            (BINS_MOST, 1, BINS_MOST),
            (BINS_MOST + 1, 2, BINS_MOST / 2 + 1),
            (2 * BINS_MOST, 2, BINS_MOST),
            (2 * BINS_MOST + 1, 4, BINS_MOST / 2 + 1),
            (86_400, 32, 2700),
        ] {
            let series = of(seconds);
            assert_eq!(series.width_s, width_s, "{seconds} s");
            let found = series.into_bins();
            assert_eq!(found.len(), bins, "{seconds} s");
            let times = found.iter().map(|bin| (bin.t_s, bin.width_s));
            let expected = (0..bins as u32).map(|place| (place * width_s, width_s));
            assert!(times.eq(expected), "{seconds} s");
        }
    }

    #[test]
    fn wider_bins_lose_nothing() {
        for seconds in [10, BINS_MOST, BINS_MOST + 1, 3 * BINS_MOST] {
            let bins = of(seconds).into_bins();
            let ok: u64 = bins.iter().map(|bin| bin.ok).sum();
            let failed: u64 = bins.iter().map(|bin| bin.failed).sum();
            assert_eq!((ok, failed), (2 * seconds as u64, seconds as u64));
            let slow = crate::index(7_000_000);
            let counts = bins.iter().flat_map(|bin| bin.latency.iter());
            let (of_slow, of_all) = counts.fold((0, 0), |(of_slow, of_all), (index, count)| {
                (of_slow + if index == slow { count } else { 0 }, of_all + count)
            });
            assert_eq!((of_slow, of_all), (seconds as u64, 2 * seconds as u64));
        }
    }

    #[test]
    fn what_is_retracted_leaves_the_latest_bin_that_has_it() {
        let mut series = of(3);
        let retracted = vec![crate::index(7_000_000), crate::index(1), crate::index(99_999)];
        series.add(&Recorded { second: 2, retracted, ..Recorded::default() });
        let ok: Vec<u64> = series.into_bins().iter().map(|bin| bin.ok).collect();
        assert_eq!(ok, [2, 1, 1], "an index that nobody has changes nothing");
        let mut series = of(1);
        let retracted = vec![crate::index(7_000_000); 2];
        series.add(&Recorded { retracted, ..Recorded::default() });
        assert_eq!(series.into_bins()[0].ok, 1, "one that was taken back already changes nothing");
    }

    #[test]
    fn packed_bytes_are_those_of_all_bins_but_the_one_that_is_open() {
        let series = of(3);
        let held = packed_bytes(&series);
        let packed = series.into_bins();
        let expected = packed[..2].iter().map(|bin| bin.latency.as_bytes().len()).sum::<usize>();
        assert!(expected > 0);
        assert_eq!(held, expected);
    }

    #[test]
    fn threads_that_tick_in_turn_fill_the_same_bins() {
        let mut series = Series::default();
        for (thread, second) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)] {
            series.add(&recorded(second, [thread]));
        }
        let bins = series.into_bins();
        for bin in &bins {
            assert_eq!((bin.ok, bin.latency.sparse()), (2, Sparse::from([(0, 1), (1, 1)])));
        }
        assert_eq!(bins.len(), 3);
    }

    /// Ten thousand latencies of one second, spread over 50 us to 50 ms as those of a busy server are.
    fn busy_second(second: usize, state: &mut u64) -> Recorded {
        let mut recent = Recent::default();
        for _ in 0..10_000 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let share = (*state >> 40) as f64 / (1u64 << 24) as f64;
            recent.record((50_000.0 * 1000.0_f64.powf(share * share)) as u64, 1);
        }
        Recorded { second, ok: 10_000, failed: 0, latency: recent.take(), retracted: Vec::new() }
    }

    #[test]
    fn a_day_at_10_000_requests_a_second_takes_less_than_100_mb() {
        let mut state = 1;
        // One second of each bin in all its variety, as a bin has no more indices than that; the others in short.
        let busy: Vec<Recorded> = (0..8).map(|n| busy_second(n, &mut state)).collect();
        let mut series = Series::default();
        for second in 0..86_400 {
            let short = Recorded { second, ok: 10_000, ..recorded(second, [60_000, 40_000_000]) };
            let whole = Recorded { second, ..busy[second / 32 % 8].clone() };
            series.add(if second % 32 == 0 { &whole } else { &short });
            let look = second % 2000 == 0;
            assert!(!look || packed_bytes(&series) < 20_000_000, "at {second} s");
        }
        let bins = series.into_bins();
        assert!(bins.len() <= BINS_MOST);
        assert_eq!(bins.iter().map(|bin| bin.ok).sum::<u64>(), 864_000_000);
        let held = bins.len() * size_of::<Bin>();
        let packed: usize = bins.iter().map(|bin| bin.latency.as_bytes().len()).sum();
        assert!(held + packed < 20_000_000, "{held} and {packed} bytes");
    }
}
