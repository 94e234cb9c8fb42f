//! Answers that are streams: notes when their parts come, by the phase of their request.
//!
//! The machine finds the parts; this gives it the rule and the time, and records what it finds. The
//! time is the kernel's arrival time if that is known, since a busy generator may read late. Runs
//! without streams do not use this.

use std::cell::RefCell;

use trueload_meter::Streams;
use trueload_wire::http1::client::{Rulebook, Rules};
use trueload_wire::parts::{Arrived, Rule, Streaming, Whole};

use super::messages::DoneReport;
use super::slot::Tag;

/// The rule for all streams of one thread, and what was seen of them.
#[derive(Debug)]
pub(super) struct Watch {
    rule: Rule,
    /// By phase; a machine has only shared access to its rules.
    seen: RefCell<Vec<(u16, Streams)>>,
}

impl Watch {
    pub(super) fn new(rule: Rule) -> Self {
        Watch { rule, seen: RefCell::default() }
    }

    /// Whether a stream can stall.
    pub(super) fn has_stalls(&self) -> bool {
        self.rule.stall_ns.is_some()
    }

    /// The rules for answers of which parts come at this time.
    pub(super) fn over<'a, R>(&'a self, rules: &'a R, at_ns: u64) -> Watched<'a, R> {
        Watched { rules, watch: self, at_ns }
    }

    /// Adds what was seen of the streams of a phase to its report.
    pub(super) fn complete(&self, report: &mut DoneReport) {
        let mut seen = self.seen.borrow_mut();
        let sum = report.meter.streams.get_or_insert_default();
        seen.retain(|(phase, streams)| {
            let ours = usize::from(*phase) == report.phase;
            if ours {
                sum.merge(streams);
            }
            !ours
        });
    }

    #[inline]
    fn note(&self, phase: u16, note: impl FnOnce(&mut Streams)) {
        let mut seen = self.seen.borrow_mut();
        match seen.iter_mut().find(|(of, _)| *of == phase) {
            Some((_, streams)) => note(streams),
            None => {
                let mut streams = Streams::default();
                note(&mut streams);
                seen.push((phase, streams));
            }
        }
    }
}

/// The rules for answers that are streams.
#[derive(Debug)]
pub(super) struct Watched<'a, R> {
    rules: &'a R,
    watch: &'a Watch,
    at_ns: u64,
}

impl<R: Rulebook<Tag>> Rulebook<Tag> for Watched<'_, R> {
    #[inline]
    fn rules_of(&self, tag: &Tag) -> &Rules {
        self.rules.rules_of(tag)
    }

    #[inline]
    fn streaming(&self) -> Option<Streaming<'_>> {
        Some(Streaming { rule: &self.watch.rule, at_ns: self.at_ns })
    }

    #[inline]
    fn note_parts(&self, tag: &Tag, arrived: Arrived) {
        let Arrived { is_first, gap_ns, together } = arrived;
        self.watch.note(tag.phase, |seen| seen.record_parts(is_first, gap_ns, together));
    }

    fn note_stream(&self, tag: &Tag, whole: Whole) {
        let first_ns = whole.first_ns.saturating_sub(tag.scheduled_ns);
        self.watch.note(tag.phase, |seen| seen.record_whole(first_ns, whole.parts));
    }
}
