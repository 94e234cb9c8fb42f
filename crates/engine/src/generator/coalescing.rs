//! How long answers may wait for each other before a busy thread is woken for them. Pure.
//!
//! A thread that is woken for each answer costs itself and the server more than the answers do; one that has to be spared
//! is better served by a few at once. What that adds to a service time is bounded by a share of it: under a closed loop
//! against a server that is the limit the mean stays what Little's law says, and else the thread is hardly busy.
//! A server that answers many at once spares the thread by itself: to wait for more would leave that server without work.

use trueload_drive::Coalescing;

/// A thread that is busy for more than this share of its time is to be spared, one below the other no longer. Ours: far
/// enough apart that what is saved does not end the saving.
const BUSY_PERCENT: u64 = 60;
const IDLE_PERCENT: u64 = 40;
/// Who hears on so many connections each time it is woken, on average, has little to gain by waiting: one waking costs up to
/// a third of a request. Measured: nginx lets hear on 1.3 to 2.1, our reference server on 5 to 43.
const HEARD_AT_ONCE: u64 = 4;
/// Answers wait for this share of the mean service time at most: half of it on average, 3 %.
const SHARE_OF_SERVICE: u64 = 16;
/// So much of what is outstanding may have been answered meanwhile: the server still has the other half.
const SHARE_OF_OPEN: u64 = 2;
/// Of what so many answers cost, some us each, the few us of one waking are a hundredth: more at once would save no more.
const EVENTS_MOST: u64 = 256;
/// A shorter wait spares nothing: to be woken takes that long.
const LEAST_NS: u64 = 4_000;

/// How often a thread was woken for answers, and what it then heard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wakings {
    /// Connections on which something was heard, each time that something was.
    heard: u64,
    batches: u64,
    in_batch: u64,
}

impl Wakings {
    /// Something has come on a connection.
    #[inline]
    pub(super) fn note_input(&mut self) {
        self.in_batch += 1;
    }

    /// The thread has seen to all that it was woken for.
    #[inline]
    pub(super) fn end_batch(&mut self) {
        if self.in_batch > 0 {
            self.heard += std::mem::take(&mut self.in_batch);
            self.batches += 1;
        }
    }

    /// Whether little was heard at a time since `before`.
    fn were_for_few(&self, before: Wakings) -> bool {
        self.heard - before.heard < (self.batches - before.batches) * HEARD_AT_ONCE
    }
}

/// What a thread has done up to a heartbeat.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) at_ns: u64,
    pub(super) cpu_ns: u64,
    /// Requests that are settled.
    pub(super) settled: u64,
    pub(super) wakings: Wakings,
}

/// How the answers of one phase are coalesced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    done: Done,
    within_ns: u64,
    /// The longest that was allowed in this phase.
    pub(super) longest_ns: u64,
}

impl Pacing {
    /// At the start of a phase nothing is coalesced.
    pub(super) fn from(done: Done) -> Self {
        Pacing { done, within_ns: 0, longest_ns: 0 }
    }

    /// What is right until the next heartbeat, with `open` requests outstanding; never longer than `most_ns`.
    pub(super) fn next(&mut self, done: Done, open: u64, most_ns: u64) -> Coalescing {
        let before = std::mem::replace(&mut self.done, done);
        let wall_ns = done.at_ns.saturating_sub(before.at_ns);
        let cpu_ns = done.cpu_ns.saturating_sub(before.cpu_ns);
        let settled = done.settled.saturating_sub(before.settled);
        // By Little's law; where nothing was settled there is nothing to wait for.
        let service_ns = open.saturating_mul(wall_ns).checked_div(settled).unwrap_or(0);
        // Once answers wait for each other, what is heard at a time says nothing of what would be.
        let worthwhile = self.within_ns > 0 || done.wakings.were_for_few(before.wakings);
        let within_ns = if cpu_ns * 100 > wall_ns * BUSY_PERCENT && worthwhile {
            (self.within_ns * 2).max(LEAST_NS)
        } else if cpu_ns * 100 < wall_ns * IDLE_PERCENT {
            self.within_ns / 2
        } else {
            self.within_ns
        };
        let within_ns = within_ns.min(service_ns / SHARE_OF_SERVICE).min(most_ns);
        let events = (open / SHARE_OF_OPEN).min(EVENTS_MOST) as u32;
        self.within_ns = if within_ns < LEAST_NS || events < 2 { 0 } else { within_ns };
        self.longest_ns = self.longest_ns.max(self.within_ns);
        Coalescing { events, within_us: (self.within_ns / 1_000) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT_NS: u64 = 10_000_000;
    const MOST_NS: u64 = 50_000;

    /// What a beat leads to: the CPU's share in percent, answers per beat, requests outstanding, the wait before and after.
    fn after(busy: u64, settled: u64, open: u64, before_ns: u64) -> u64 {
        after_waking(busy, settled, open, before_ns, one_by_one(settled))
    }

    fn after_waking(busy: u64, settled: u64, open: u64, before_ns: u64, wakings: Wakings) -> u64 {
        let mut pacing = Pacing { within_ns: before_ns, ..Pacing::default() };
        let done = Done { at_ns: BEAT_NS, cpu_ns: BEAT_NS / 100 * busy, settled, wakings };
        let found = pacing.next(done, open, MOST_NS);
        assert_eq!(u64::from(found.within_us), pacing.within_ns / 1_000);
        pacing.within_ns
    }

    fn one_by_one(answers: u64) -> Wakings {
        Wakings { heard: answers, batches: answers, in_batch: 0 }
    }

    #[test]
    fn who_hears_much_at_once_anyway_does_not_begin_to_wait() {
        for (heard, batches, before_ns, after_ns) in [
            (399, 100, 0, LEAST_NS),
            (400, 100, 0, 0),
            (3_000, 10, 0, 0),
            // Where answers wait for each other they come together.
            (3_000, 10, 4_000, 8_000),
        ] {
            let wakings = Wakings { heard, batches, in_batch: 0 };
            let found = after_waking(80, 3_000, 64, before_ns, wakings);
            assert_eq!(found, after_ns, "{heard} in {batches} wakings, {before_ns} ns before");
        }
    }

    #[test]
    fn a_waking_for_no_answer_is_none() {
        let mut wakings = Wakings::default();
        for heard in [2, 0, 0, 1] {
            (0..heard).for_each(|_| wakings.note_input());
            wakings.end_batch();
        }
        assert_eq!((wakings.heard, wakings.batches), (3, 2));
    }

    #[test]
    fn a_busy_thread_is_spared_within_bounds() {
        let cases = [
            // 3,000 answers in 10 ms with 64 outstanding: a mean of 213 us, of which a sixteenth is 13 us.
            (80, 3_000, 64, 0, 4_000),
            (80, 3_000, 64, 4_000, 8_000),
            (80, 3_000, 64, 8_000, 13_333),
            // Between the bounds it stays; a thread that has time to spare is woken at once again.
            (50, 3_000, 64, 8_000, 8_000),
            (30, 3_000, 64, 8_000, 4_000),
            (30, 3_000, 64, 4_000, 0),
            (0, 3_000, 64, 0, 0),
            // Few connections: a sixteenth of 53 us is less than a waking takes; and one answer has no other to wait for.
            (90, 3_000, 16, 0, 0),
            (90, 100, 3, 8_000, 0),
            // Many: never longer than what was allowed.
            (90, 3_000, 10_000, 40_000, MOST_NS),
            (90, 0, 64, 8_000, 0),
            (90, 3_000, 0, 8_000, 0),
        ];
        for (busy, settled, open, before_ns, after_ns) in cases {
            let found = after(busy, settled, open, before_ns);
            assert_eq!(found, after_ns, "{busy} % busy, {settled} answers, {open} open");
        }
    }

    #[test]
    fn half_of_what_is_outstanding_is_an_event_up_to_256() {
        for (open, events) in [(0, 0), (3, 1), (64, 32), (512, 256), (10_000, 256), (u64::MAX, 256)]
        {
            let found = Pacing::default().next(Done::default(), open, MOST_NS);
            assert_eq!(found.events, events, "{open} open");
        }
    }

    #[test]
    fn the_longest_wait_of_a_phase_is_kept() {
        let mut pacing = Pacing::from(Done::default());
        for beat in 1..=20 {
            let busy = if beat <= 10 { 90 } else { 10 };
            let cpu_ns = pacing.done.cpu_ns + BEAT_NS / 100 * busy;
            let settled = beat * 1_000;
            let wakings = one_by_one(settled);
            let done = Done { at_ns: beat * BEAT_NS, cpu_ns, settled, wakings };
            pacing.next(done, 64, MOST_NS);
        }
        assert_eq!((pacing.within_ns, pacing.longest_ns), (0, 40_000));
        assert_eq!(Pacing::default().next(Done::default(), 64, MOST_NS).within_us, 0);
    }

    #[test]
    fn nothing_is_coalesced_where_that_is_forbidden() {
        let mut pacing = Pacing::default();
        for beat in 1..=5 {
            let (at_ns, settled) = (beat * BEAT_NS, beat * 100);
            let done = Done { at_ns, cpu_ns: at_ns, settled, wakings: one_by_one(settled) };
            assert_eq!(pacing.next(done, 1_000, 0).within_us, 0);
        }
        assert_eq!(pacing.longest_ns, 0);
    }
}
