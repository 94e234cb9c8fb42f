//! Combines the ticks of several engines into those of one, by the rule of the front
//! (`engines/ticks.py`). Pure.
//!
//! How: totals are the sum of each engine's latest tick. What ended since an engine's previous tick
//! is added up until a merged tick includes it. A merged tick is due when every engine has sent a
//! tick, or one has sent its second: an engine that lags does not hold up the others.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::protocol::{Counts, Sparse, Tick};

/// An engine's ticks are 250 ms apart.
const APART_NS: u64 = 200_000_000;

/// The ticks of one phase.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    merged_ns: Option<u64>,
    latest: BTreeMap<u32, Tick>,
    fresh: BTreeSet<u32>,
    /// Whether something came that no merged tick has included yet.
    pending: bool,
    latency: Sparse,
    service: Sparse,
}

impl Ticks {
    /// Adds a tick of one of `count` engines, timed on our clock; returns a merged tick if one is due.
    pub(super) fn receive(&mut self, child: u32, tick: &Tick, count: usize) -> Option<Tick> {
        let apart = self.merged_ns.is_none_or(|ns| tick.at_ns >= ns + APART_NS);
        let due = if apart && self.fresh.contains(&child) { self.rest() } else { None };
        add(&mut self.latency, &tick.latency);
        add(&mut self.service, &tick.service);
        self.latest.insert(child, without_times(tick));
        self.fresh.insert(child);
        self.pending = true;
        if due.is_none() && self.fresh.len() >= count { self.rest() } else { due }
    }

    /// A merged tick of what none has included yet; none if there is nothing.
    pub(super) fn rest(&mut self) -> Option<Tick> {
        if !mem::take(&mut self.pending) {
            return None;
        }
        self.fresh.clear();
        let mut latest = self.latest.values();
        let mut sum = latest.next()?.clone();
        for tick in latest {
            add_counts(&mut sum.counts, &tick.counts);
            sum.at_ns = sum.at_ns.max(tick.at_ns);
            sum.open += tick.open;
            sum.bytes_in += tick.bytes_in;
            sum.bytes_out += tick.bytes_out;
            sum.busiest_ns = sum.busiest_ns.max(tick.busiest_ns);
        }
        sum.latency = mem::take(&mut self.latency);
        sum.service = mem::take(&mut self.service);
        self.merged_ns = Some(sum.at_ns);
        Some(sum)
    }

    /// Waits for this engine no longer. What it has told stays in the totals.
    pub(super) fn without(&mut self, child: u32) {
        self.fresh.remove(&child);
    }
}

/// Adds counts by index.
pub(super) fn add(sum: &mut Sparse, part: &Sparse) {
    if sum.is_empty() {
        sum.clone_from(part);
        return;
    }
    for (index, count) in part {
        *sum.entry(*index).or_default() += count;
    }
}

/// A tick's totals.
fn without_times(tick: &Tick) -> Tick {
    Tick {
        at_ns: tick.at_ns,
        id: tick.id.clone(),
        counts: tick.counts.clone(),
        latency: Sparse::new(),
        service: Sparse::new(),
        open: tick.open,
        bytes_in: tick.bytes_in,
        bytes_out: tick.bytes_out,
        busiest_ns: tick.busiest_ns,
    }
}

fn add_counts(sum: &mut Counts, part: &Counts) {
    // Every field is named here, so that a new one cannot be forgotten.
    let Counts {
        scheduled,
        unsent,
        issued,
        ok,
        stale,
        stale_resets,
        cancelled,
        skipped,
        failed,
        statuses,
    } = part;
    sum.scheduled += scheduled;
    sum.unsent += unsent;
    sum.issued += issued;
    sum.ok += ok;
    sum.stale += stale;
    sum.stale_resets += stale_resets;
    sum.cancelled += cancelled;
    sum.skipped += skipped;
    for (into, from) in [(&mut sum.failed, failed), (&mut sum.statuses, statuses)] {
        for (name, count) in from {
            *into.entry(name.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A tick of the phase `window`; its latencies are those since the tick before.
    pub(in crate::aggregate) fn tick(at_ns: u64, ok: u64, latency: Sparse) -> Tick {
        Tick {
            at_ns,
            id: Some("window".into()),
            counts: Counts {
                issued: ok + 2,
                ok,
                failed: BTreeMap::from([(format!("class-{}", ok % 3), 2)]),
                ..Counts::default()
            },
            service: latency.clone(),
            latency,
            open: 3,
            bytes_in: ok * 7,
            bytes_out: ok * 5,
            busiest_ns: ok * 11,
        }
    }

    fn sum_of(parts: impl Iterator<Item = Sparse>) -> Sparse {
        parts.fold(Sparse::new(), |mut sum, part| {
            add(&mut sum, &part);
            sum
        })
    }

    proptest! {
        #[test]
        fn merged_ticks_are_the_sum_of_their_parts(
            order in prop::collection::vec(
                (0_u32..5, 1_u64..100, prop::collection::btree_map(0_u32..40, 1_u64..9, 0..6)),
                1..60,
            ),
            lost in prop::option::of(0_u32..5),
        ) {
            let (mut ticks, mut merged) = (Ticks::default(), Vec::new());
            let (mut told, mut last) = (Vec::new(), BTreeMap::<u32, Tick>::new());
            for (number, (child, more, latency)) in order.into_iter().enumerate() {
                if lost == Some(child) && number > 20 {
                    ticks.without(child);
                    continue;
                }
                let ok = last.get(&child).map_or(0, |tick| tick.counts.ok) + more;
                let sent = tick(number as u64 * 50_000_000, ok, latency);
                told.push(sent.latency.clone());
                last.insert(child, sent.clone());
                merged.extend(ticks.receive(child, &sent, 5));
            }
            merged.extend(ticks.rest());
            prop_assert!(ticks.rest().is_none());
            let whole = merged.last().expect("something was told");
            prop_assert_eq!(whole.counts.ok, last.values().map(|tick| tick.counts.ok).sum::<u64>());
            prop_assert_eq!(whole.counts.issued, whole.counts.ok + 2 * last.len() as u64);
            let failed: u64 = whole.counts.failed.values().sum();
            prop_assert_eq!(failed, 2 * last.len() as u64);
            prop_assert_eq!(u64::from(whole.open), 3 * last.len() as u64);
            prop_assert_eq!(whole.bytes_in, 7 * whole.counts.ok);
            prop_assert_eq!(whole.bytes_out, 5 * whole.counts.ok);
            prop_assert_eq!(whole.busiest_ns, last.values().map(|tick| tick.busiest_ns).max().unwrap_or(0));
            let told = sum_of(told.into_iter());
            prop_assert_eq!(&sum_of(merged.iter().map(|tick| tick.latency.clone())), &told);
            prop_assert_eq!(&sum_of(merged.iter().map(|tick| tick.service.clone())), &told);
        }
    }

    #[test]
    fn a_merged_tick_is_due_when_all_have_sent_one_or_one_its_second() {
        let mut ticks = Ticks::default();
        assert!(ticks.receive(1, &tick(1, 1, Sparse::new()), 2).is_none(), "the other has not");
        assert!(ticks.receive(2, &tick(2, 1, Sparse::new()), 2).is_some(), "all have");
        assert!(ticks.receive(1, &tick(250_000_000, 2, Sparse::new()), 2).is_none());
        let due = ticks.receive(1, &tick(500_000_000, 3, Sparse::new()), 2).expect("its second");
        assert_eq!(due.counts.ok, 2 + 1, "as both had told before");
    }
}
