//! What one engine told of a phase in its ticks: all that is known of the phase if the engine is lost
//! before it has ended it. Pure.

use std::mem;

use crate::protocol::Tick;

use super::series::OWN_MOST;
use super::ticks::add;

const NS_PER_S: u64 = 1_000_000_000;

/// The first tick, and the last one of each second; of long phases of every second second, and so on.
#[derive(Debug)]
pub(super) struct Told {
    first: Option<Tick>,
    kept: Vec<(u64, Tick)>,
    width_s: u64,
}

impl Default for Told {
    fn default() -> Self {
        Told { first: None, kept: Vec::new(), width_s: 1 }
    }
}

impl Told {
    /// Adds a tick, timed on our clock.
    pub(super) fn add(&mut self, tick: Tick) {
        let Some(first) = &self.first else {
            self.first = Some(tick);
            return;
        };
        let place = tick.at_ns.saturating_sub(first.at_ns) / NS_PER_S / self.width_s;
        self.keep(place, tick);
        while self.kept.len() > OWN_MOST as usize {
            self.width_s *= 2;
            for (place, tick) in mem::take(&mut self.kept) {
                self.keep(place / 2, tick);
            }
        }
    }

    /// Totals are those of the later tick; latencies are added up, so that none is lost.
    fn keep(&mut self, place: u64, mut tick: Tick) {
        match self.kept.last_mut() {
            Some((last, before)) if *last >= place => {
                add(&mut tick.latency, &before.latency);
                add(&mut tick.service, &before.service);
                *before = tick;
            }
            _ => self.kept.push((place, tick)),
        }
    }

    /// Returns the ticks.
    pub(super) fn into_ticks(self) -> impl Iterator<Item = Tick> {
        self.first.into_iter().chain(self.kept.into_iter().map(|(_, tick)| tick))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticks::tests::tick;
    use super::*;
    use crate::protocol::Sparse;

    #[test]
    fn however_long_a_phase_was_few_ticks_tell_all_of_it() {
        for count in [0_u64, 1, 2, 400, 4_000] {
            let mut told = Told::default();
            for number in 0..count {
                let latency = Sparse::from([(number as u32 % 7, 1)]);
                told.add(tick(number * 250_000_000, number + 1, latency));
            }
            let kept: Vec<Tick> = told.into_ticks().collect();
            assert!(kept.len() <= 1 + OWN_MOST as usize, "{count}: {} are kept", kept.len());
            assert_eq!(kept.last().map_or(0, |tick| tick.counts.ok), count);
            let latencies: u64 = kept.iter().flat_map(|tick| tick.latency.values()).sum();
            assert_eq!(latencies, count);
            assert!(kept.is_sorted_by_key(|tick| tick.at_ns));
            let ends = kept.first().zip(kept.last());
            assert!(ends.is_none_or(|(first, _)| first.counts.ok == 1), "the first one is kept");
        }
    }
}
