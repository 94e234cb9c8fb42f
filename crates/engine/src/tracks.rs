//! The parts of the traffic over time: the first parts and gaps of streams, and each target or step.
//!
//! Only the first targets have a track, and each track has few bins. Otherwise a session of a
//! hundred steps would make measurements large.

use trueload_meter::{Bin, Packed, Recorded, Series, Sparse, TARGETS_TRACKED_MOST};

use crate::protocol::{GeneratePlan, Track};
use crate::sums;

/// The most bins of each series; a report draws fewer points.
const BINS_MOST: usize = 240;
/// The tracks of streams: the first parts, and the gaps.
const OF_STREAMS: usize = 2;

/// The tracks of a phase over all threads.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    /// For each origin, the track of each part that its reporters tell.
    places: Vec<Vec<usize>>,
    series: Vec<Series>,
    /// What was recorded since the last tick that was reported.
    fresh: Vec<(u64, u64, Sparse)>,
}

impl Tracks {
    pub(crate) fn of(plan: &GeneratePlan) -> Self {
        let streams = if plan.stream.is_some() { OF_STREAMS } else { 0 };
        let targets = plan.targets.iter().map(|target| target.origin as usize);
        let origins: Vec<_> = targets.chain(plan.scenario.iter().map(|_| 0)).collect();
        Tracks::with(streams, &origins, plan.origins.len().max(1))
    }

    /// `of_targets` has the origin of each target.
    fn with(streams: usize, of_targets: &[usize], origins: usize) -> Self {
        let mut places = vec![Vec::from_iter(0..streams); origins];
        (streams..).zip(of_targets).for_each(|(at, origin)| places[*origin].push(at));
        let count = streams + of_targets.len().min(TARGETS_TRACKED_MOST);
        let series = vec![Series::of(BINS_MOST); count];
        Tracks { places, series, fresh: vec![Default::default(); count] }
    }

    /// Adds what a thread, or its part for one origin, recorded.
    pub(crate) fn add(&mut self, reporter: u32, recorded: &[Recorded]) {
        let places = &self.places[reporter as usize % self.places.len()];
        for (at, one) in places.iter().zip(recorded) {
            if let (Some(series), Some(fresh)) = (self.series.get_mut(*at), self.fresh.get_mut(*at))
            {
                series.add(one);
                (fresh.0, fresh.1) = (fresh.0 + one.ok, fresh.1 + one.failed);
                sums::add(&mut fresh.2, one.latency.iter());
            }
        }
    }

    /// Takes what was recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<Track> {
        let fresh = self.fresh.iter_mut().map(std::mem::take);
        fresh
            .map(|(ok, failed, latency)| Track { ok, failed, latency: Packed::of(&latency) })
            .collect()
    }

    /// All that was recorded, over time.
    pub(crate) fn into_bins(self) -> Vec<Vec<Bin>> {
        self.series.into_iter().map(Series::into_bins).collect()
    }
}

#[cfg(test)]
mod tests {
    use trueload_meter::Counted;

    use super::*;

    fn recorded(ok: u64) -> Recorded {
        Recorded { ok, latency: Counted::of(&[(7, ok)]), ..Recorded::default() }
    }

    #[test]
    fn a_target_of_another_origin_has_its_own_place_and_the_last_of_many_none() {
        let of_targets: Vec<_> = (0..40).map(|at| usize::from(at != 0 && at != 39)).collect();
        let mut tracks = Tracks::with(2, &of_targets, 2);
        let told = [1, 2, 3, 4].map(recorded);
        (0..2).for_each(|reporter| tracks.add(reporter, &told));
        let ok: Vec<_> = tracks.take().iter().map(|track| track.ok).collect();
        assert_eq!((ok.len(), &ok[..5]), (34, &[2, 4, 3, 3, 4][..]), "streams, then targets");
        assert!(tracks.take().iter().all(|track| *track == Track::default()), "told once");
        let bins = tracks.into_bins();
        assert_eq!(bins.iter().map(|bins| bins.len()).sum::<usize>(), 5);
        assert_eq!(bins[4][0].latency.sparse(), Sparse::from([(7, 4)]));
    }

    #[test]
    fn series_of_parts_have_few_bins_however_long_the_phase() {
        let mut tracks = Tracks::with(0, &[0], 1);
        for second in 0..5_000 {
            tracks.add(0, &[Recorded { second, ..recorded(1) }]);
        }
        let bins = tracks.into_bins().remove(0);
        assert_eq!((bins.len(), bins[0].width_s), (157, 32));
        assert_eq!(bins.iter().map(|bin| bin.ok).sum::<u64>(), 5_000);
    }
}
