//! Answers that are streams: notes when their parts come, by the phase of their request.
//!
//! The machine finds the parts; this gives it the rule and the time, and records what it finds. The
//! time is the kernel's arrival time if that is known, since a busy generator may read late. Runs
//! without streams do not use this.

use std::cell::RefCell;
use std::collections::BTreeMap;

use trueload_meter::{Recent, Recorded, Streams};
use trueload_wire::message::Event;
use trueload_wire::parts::{Arrived, Rule, Streaming};

use crate::generator::messages::DoneReport;
use crate::generator::slot::Tag;

/// The rule for all streams of one thread, and what was seen of them.
#[derive(Debug)]
pub struct StreamWatch {
    rule: Rule,
    /// By phase; a machine has only shared access to its rules.
    seen: RefCell<BTreeMap<u16, Seen>>,
}

/// What was seen of the streams of a phase, and of them since the last tick.
#[derive(Debug, Default)]
struct Seen {
    streams: Streams,
    first_part: Recent,
    gap: Recent,
    /// The whole streams, and the parts of all, that ticks have told.
    told: (u64, u64),
}

impl StreamWatch {
    pub(super) fn new(rule: Option<Rule>) -> Option<Box<Self>> {
        rule.map(|rule| Box::new(StreamWatch { rule, seen: RefCell::default() }))
    }

    /// Whether a stream can stall.
    pub(in crate::generator) fn has_stalls(&self) -> bool {
        self.rule.stall_ns.is_some()
    }

    /// Adds what was seen of the streams of a phase to its report.
    pub(super) fn complete(&self, report: &mut DoneReport) {
        let sum = report.meter.streams.get_or_insert_default();
        if let Some(seen) = self.seen.borrow_mut().remove(&(report.phase as u16)) {
            sum.merge(&seen.streams);
        }
    }

    /// Takes what was recorded since the last call: the first parts, and the gaps.
    pub(in crate::generator) fn take_parts(&self, phase: u16) -> [Recorded; 2] {
        let mut all = self.seen.borrow_mut();
        let Some(seen) = all.get_mut(&phase) else { return Default::default() };
        let now = (seen.streams.whole, seen.streams.parts);
        let told = std::mem::replace(&mut seen.told, now);
        [(now.0 - told.0, &mut seen.first_part), (now.1 - told.1, &mut seen.gap)]
            .map(|(ok, times)| Recorded { ok, latency: times.take(), ..Recorded::default() })
    }

    #[inline]
    fn note(&self, phase: u16, note: impl FnOnce(&mut Seen)) {
        note(self.seen.borrow_mut().entry(phase).or_default());
    }
}

/// Answers of which parts come at this time, if they are streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watching<'a> {
    pub(super) watch: Option<&'a StreamWatch>,
    pub(super) at_ns: u64,
}

impl<'a> Watching<'a> {
    #[inline]
    pub(super) fn streaming(self) -> Option<Streaming<'a>> {
        self.watch.map(|watch| Streaming { rule: &watch.rule, at_ns: self.at_ns })
    }

    /// Takes note of the parts and ends of streams.
    pub(super) fn note(self, tag: &Tag, event: Event<'_>) {
        let Some(watch) = self.watch else { return };
        match event {
            Event::Parts(Arrived { is_first, gap_ns, together }) => {
                watch.note(tag.phase, |seen| {
                    seen.streams.record_parts(is_first, gap_ns, together);
                    gap_ns.iter().for_each(|gap_ns| seen.gap.record(*gap_ns, 1));
                    if together > 0 {
                        seen.gap.record(0, together);
                    }
                });
            }
            Event::Stream(whole) => {
                let first_ns = whole.first_ns.saturating_sub(tag.scheduled_ns);
                watch.note(tag.phase, |seen| {
                    seen.streams.record_whole(first_ns, whole.parts);
                    seen.first_part.record(first_ns, 1);
                });
            }
            _ => {}
        }
    }
}
