//! What was recorded of one target since the last tick: the difference to what was known then, so
//! that recording takes no more time.

use crate::{Counted, Recorded, Sparse, TargetMeter};

/// Of so many targets, the first ones, ticks tell each by itself: with more, they would be large.
pub const TARGETS_TRACKED_MOST: usize = 32;

/// The counts of a target at the last tick.
#[derive(Clone, Debug, Default)]
pub struct TargetTrack {
    latency: Sparse,
    failed: u64,
}

impl TargetTrack {
    /// Returns what was recorded since the last tick.
    pub fn tick(&mut self, target: &TargetMeter) -> Recorded {
        let (mut more, mut retracted) = (target.latency.clone(), Vec::new());
        for (index, before) in &self.latency {
            let now = more.remove(index).unwrap_or(0);
            if now > *before {
                more.insert(*index, now - before);
            }
            retracted.extend((now..*before).map(|_| *index));
        }
        let failed = target.failed.values().sum::<u64>();
        let before = std::mem::replace(&mut self.failed, failed);
        self.latency.clone_from(&target.latency);
        Recorded {
            ok: more.values().sum(),
            failed: failed.saturating_sub(before),
            latency: Counted::of(&more),
            retracted,
            ..Recorded::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Series};

    #[test]
    fn ticks_add_up_to_the_target_with_what_was_taken_back() {
        let (mut target, mut track) = (TargetMeter::default(), TargetTrack::default());
        let mut series = Series::default();
        target.record_ok(500, 3);
        series.add(&track.tick(&target));
        assert_eq!(track.tick(&target), Recorded::default(), "nothing is told twice");
        target.record_ok(500, 1);
        target.record_ok(9_000, 2);
        target.record_failed(Class::Reset);
        series.add(&track.tick(&target));
        (0..4).for_each(|_| target.retract_ok(500, Class::Unsolicited));
        target.record_ok(70, 1);
        let told = track.tick(&target);
        assert_eq!((told.ok, told.failed, told.retracted.len()), (1, 4, 4));
        series.add(&told);
        let bins = series.into_bins();
        assert_eq!((bins[0].ok, bins[0].failed), (target.ok, 5));
        assert_eq!(bins[0].latency.sparse(), target.latency);
    }
}
