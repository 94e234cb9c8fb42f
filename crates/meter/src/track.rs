//! What was recorded of one target since the last tick: the difference to what was known then, so
//! that recording takes no more time.

use crate::{Counted, Recorded, TargetMeter};

/// The number of targets, from the first, that ticks tell one by one: more would make ticks large.
pub const TARGETS_TRACKED_MOST: usize = 32;

/// The counts of a target at the last tick.
#[derive(Clone, Debug, Default)]
pub struct TargetTrack {
    latency: Vec<(u32, u64)>,
    failed: u64,
}

impl TargetTrack {
    /// Returns what was recorded since the last tick. It is called on a generator's thread, so it
    /// reads both lists side by side.
    pub fn tick(&mut self, target: &TargetMeter) -> Recorded {
        let now = target.latency.iter().map(|(index, count)| (*index, *count)).collect();
        let before = std::mem::replace(&mut self.latency, now);
        let mut before = before.into_iter().peekable();
        let (mut more, mut retracted) = (Vec::new(), Vec::new());
        let mut take_back = |index, count| retracted.extend((0..count).map(|_| index));
        for (index, count) in &self.latency {
            while let Some((gone, count)) = before.next_if(|(at, _)| at < index) {
                take_back(gone, count);
            }
            let known = before.next_if(|(at, _)| at == index).map_or(0, |(_, known)| known);
            take_back(*index, known.saturating_sub(*count));
            if *count > known {
                more.push((*index, count - known));
            }
        }
        before.for_each(|(gone, count)| take_back(gone, count));
        let failed = target.failed.values().sum::<u64>();
        let failed_before = std::mem::replace(&mut self.failed, failed);
        Recorded {
            ok: more.iter().map(|(_, count)| count).sum(),
            failed: failed.saturating_sub(failed_before),
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
        target.record_ok(80_000, 1);
        target.record_failed(Class::Reset);
        series.add(&track.tick(&target));
        (0..4).for_each(|_| target.retract_ok(500, Class::Unsolicited));
        target.retract_ok(80_000, Class::Unsolicited);
        target.record_ok(70, 1);
        let told = track.tick(&target);
        assert_eq!((told.ok, told.failed, told.retracted.len()), (1, 5, 5));
        series.add(&told);
        let bins = series.into_bins();
        assert_eq!((bins[0].ok, bins[0].failed), (target.ok, 6));
        assert_eq!(bins[0].latency.sparse(), target.latency);
    }
}
