//! The log of single requests: what is entered there of a request that has ended.

use trueload_meter::{Class, Logged, RequestLog};
use trueload_wire::exchange::{Ending, Outcome};

use super::Accounting;
use crate::generator::classes::class_of_ending;
use crate::generator::slot::Tag;

impl Accounting {
    /// Gives the phase that was added last a log of at most this many rows.
    pub(in crate::generator) fn begin_log(&mut self, rows_most: usize, thread: u32) {
        self.logs = true;
        if let Some(phase) = self.phases.last_mut() {
            // No two threads draw the same sample.
            phase.log = Some(Box::new(RequestLog::new(rows_most, u64::from(thread) << 32)));
        }
    }

    /// Logs requests that have ended. Not inlined: where nothing is logged, it is not in the way.
    #[inline(never)]
    pub(super) fn log_outcome(&mut self, key: u32, now_ns: u64, outcome: &Outcome<Tag>) {
        let Outcome { tag, count, ending, complete, status, first_byte_ns, .. } = *outcome;
        // Where no answer began, `first_byte_ns` is the time of the end.
        let began = complete || ending == Ending::Truncated || first_byte_ns < now_ns;
        let first_byte_ns = if began { first_byte_ns } else { 0 };
        let (class, status) = (class_of_ending(ending), status.unwrap_or(0));
        let row = Logged { end_ns: now_ns, first_byte_ns, status, class, ..Logged::default() };
        (0..count).for_each(|_| self.log(key, tag, row));
    }

    /// Adds to a row what the tag of its request knows, and logs it if its phase has a log.
    pub(super) fn log(&mut self, connection: u32, tag: Tag, row: Logged) {
        let Some(log) = &mut self.phases[usize::from(tag.phase)].log else { return };
        let requests = self.requests.as_ref();
        let target = requests.map_or(0, |each| each.index(self.drawn, tag.number)) as u32;
        let sent_ns = match row.end_ns {
            0 => tag.sent_ns,
            end_ns => tag.sent_ns.min(end_ns),
        };
        let sent_ns = if connection == u32::MAX { 0 } else { sent_ns };
        let first_byte_ns = if row.first_byte_ns > 0 { row.first_byte_ns.max(sent_ns) } else { 0 };
        let due_ns = tag.scheduled_ns;
        log.note(Logged { due_ns, sent_ns, first_byte_ns, connection, target, ..row });
    }

    /// Logs a request that failed at this time without an answer.
    pub(super) fn log_failed(&mut self, key: u32, end_ns: u64, tag: Tag, class: Class) {
        self.log(key, tag, Logged { end_ns, class: Some(class), ..Logged::default() });
    }
}
