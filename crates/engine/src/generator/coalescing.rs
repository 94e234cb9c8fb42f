//! Decides how long answers may wait for each other before a busy thread is woken for them. Pure.
//!
//! A thread that is woken for each answer costs itself and the server more than the answers do; a
//! busy thread is better served by a few at once. The time that this adds to a service time is
//! bounded by a share of it. If the server is the limit of a closed loop, the mean stays what
//! Little's law says; otherwise the thread is hardly busy.
//!
//! A server that sends many answers at once spares the thread by itself; to wait for more would
//! leave that server without work. Where connections carry several requests at once, answers come
//! in small pieces one behind another (nginx sends each HTTP/2 answer in two). Then even a thread
//! that is not busy sends for each piece, so it waits, too, but for a smaller share.

use trueload_drive::Coalescing;

/// A thread that is busy for more than `BUSY_PERCENT` of its time is spared, until it is busy for
/// less than `IDLE_PERCENT`. Our choice: far enough apart that the saving does not end itself.
const BUSY_PERCENT: u64 = 60;
const IDLE_PERCENT: u64 = 40;
/// A thread does not begin to wait if each waking already brings it this many answers, or input on
/// this many connections. A waking costs a third of a request at most, and all of them share it.
/// Measured: 1.3 to 2.1 connections with nginx, 5 to 43 with our reference server.
const INPUTS_AT_ONCE: u64 = 4;
/// Answers wait for this share of the mean service time at most: half of that on average, 3 %.
const SHARE_OF_SERVICE: u64 = 16;
/// The longest wait of a busy thread, however slow the service is.
const BUSY_MOST_NS: u64 = 50_000;
/// The same for streams. Measured by a loop that only receives, with 7,000 streams and 140,000
/// parts a second: 4.1 us of CPU time for each part if they wait for 50 us, and 3.0 us for 200.
const STREAMS_MOST_NS: u64 = 200_000;
/// The share for a thread that need not be busy: half of that on average, 0.8 %. Measured under
/// nginx with 6,400 requests outstanding, 40 ms each: a thread that waits for 400 us uses two
/// thirds of the CPU of one that waits for 50.
const SHARE_UNHURRIED: u64 = 64;
/// This share of the outstanding requests may be answered meanwhile: the server still has the other
/// half.
const SHARE_OF_OPEN: u64 = 2;
/// This many answers cost some us each, so the few us of one waking are a hundredth of that: more
/// at once would save nothing more.
const EVENTS_MOST: u64 = 256;
/// A shorter wait saves nothing: waking the thread takes that long.
const LEAST_NS: u64 = 4_000;

/// Counts how often a thread was woken for answers, and what it then received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wakings {
    /// Connections with input, summed over all batches that had any.
    inputs: u64,
    batches: u64,
    in_batch: u64,
}

impl Wakings {
    #[inline]
    pub(super) fn note_input(&mut self) {
        self.in_batch += 1;
    }

    /// Notes that the thread has handled all that it was woken for.
    #[inline]
    pub(super) fn end_batch(&mut self) {
        if self.in_batch > 0 {
            self.inputs += std::mem::take(&mut self.in_batch);
            self.batches += 1;
        }
    }

    /// Whether each waking since `before` brought little: few connections, and few of the answers
    /// that came meanwhile.
    fn were_for_few(&self, before: Wakings, answers: u64) -> bool {
        let many = (self.batches - before.batches) * INPUTS_AT_ONCE;
        self.inputs - before.inputs < many && answers < many
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

/// The load of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    /// Requests outstanding.
    pub(super) open: u64,
    /// Whether a connection carries more than one of them.
    pub(super) several: bool,
    /// Answers are streams, whose parts the kernel times: a part that waits is not timed later.
    pub(super) streams: bool,
    /// The longest that answers may wait.
    pub(super) most_ns: u64,
}

/// The coalescing of answers in one phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    done: Done,
    within_ns: u64,
    /// The longest wait that was allowed in this phase.
    pub(super) longest_ns: u64,
}

impl Pacing {
    /// Starts a phase without coalescing.
    pub(super) fn from(done: Done) -> Self {
        Pacing { done, within_ns: 0, longest_ns: 0 }
    }

    /// Returns the coalescing until the next heartbeat, under this load.
    pub(super) fn next(&mut self, done: Done, under: Under) -> Coalescing {
        let Under { open, several, streams, most_ns } = under;
        let before = std::mem::replace(&mut self.done, done);
        let wall_ns = done.at_ns.saturating_sub(before.at_ns);
        let cpu_ns = done.cpu_ns.saturating_sub(before.cpu_ns);
        let settled = done.settled.saturating_sub(before.settled);
        // By Little's law. If nothing was settled, there is nothing to wait for, except for parts of
        // streams that last longer.
        let divisor = if streams { settled.max(1) } else { settled };
        let service_ns = open.saturating_mul(wall_ns).checked_div(divisor).unwrap_or(0);
        // Once answers wait for each other, the size of a batch says nothing about batches without
        // waiting.
        let worthwhile = self.within_ns > 0 || done.wakings.were_for_few(before.wakings, settled);
        let longer_ns = (self.within_ns * 2).max(LEAST_NS);
        let unhurried_ns = if several { service_ns / SHARE_UNHURRIED } else { 0 };
        let busy_most_ns = if streams { STREAMS_MOST_NS } else { BUSY_MOST_NS };
        let busy_ns = (service_ns / SHARE_OF_SERVICE).min(busy_most_ns);
        let within_ns = if cpu_ns * 100 > wall_ns * BUSY_PERCENT && worthwhile {
            longer_ns
        } else if self.within_ns < unhurried_ns && worthwhile {
            longer_ns.min(unhurried_ns)
        } else if cpu_ns * 100 < wall_ns * IDLE_PERCENT {
            (self.within_ns / 2).max(unhurried_ns)
        } else {
            self.within_ns
        };
        let within_ns = within_ns.min(busy_ns.max(unhurried_ns)).min(most_ns);
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

    fn under(open: u64) -> Under {
        Under { open, several: false, streams: false, most_ns: MOST_NS }
    }

    /// The wait in ns after a beat, given: the CPU's share in percent, answers per beat, requests
    /// outstanding, and the wait before.
    fn after(busy: u64, settled: u64, open: u64, before_ns: u64) -> u64 {
        after_waking(busy, settled, open, before_ns, one_by_one(settled))
    }

    fn after_waking(busy: u64, settled: u64, open: u64, before_ns: u64, wakings: Wakings) -> u64 {
        let mut pacing = Pacing { within_ns: before_ns, ..Pacing::default() };
        let done = Done { at_ns: BEAT_NS, cpu_ns: BEAT_NS / 100 * busy, settled, wakings };
        let found = pacing.next(done, under(open));
        assert_eq!(u64::from(found.within_us), pacing.within_ns / 1_000);
        pacing.within_ns
    }

    fn one_by_one(answers: u64) -> Wakings {
        Wakings { inputs: answers, batches: answers, in_batch: 0 }
    }

    #[test]
    fn who_receives_much_at_once_anyway_does_not_begin_to_wait() {
        for (inputs, batches, answers, before_ns, after_ns) in [
            (399, 100, 399, 0, LEAST_NS),
            (400, 100, 399, 0, 0),
            (3_000, 10, 3_000, 0, 0),
            // Answers that wait for each other come together.
            (3_000, 10, 3_000, 4_000, 8_000),
            // Few connections, with many answers each.
            (100, 100, 400, 0, 0),
        ] {
            let wakings = Wakings { inputs, batches, in_batch: 0 };
            let found = after_waking(80, answers, 64, before_ns, wakings);
            assert_eq!(found, after_ns, "{inputs} in {batches} wakings, {before_ns} ns before");
        }
    }

    #[test]
    fn a_waking_for_no_answer_is_none() {
        let mut wakings = Wakings::default();
        for inputs in [2, 0, 0, 1] {
            (0..inputs).for_each(|_| wakings.note_input());
            wakings.end_batch();
        }
        assert_eq!((wakings.inputs, wakings.batches), (3, 2));
    }

    #[test]
    fn a_busy_thread_is_spared_within_bounds() {
        let cases = [
            // 3,000 answers in 10 ms with 64 outstanding: a mean of 213 us, of which a sixteenth is
            // 13 us.
            (80, 3_000, 64, 0, 4_000),
            (80, 3_000, 64, 4_000, 8_000),
            (80, 3_000, 64, 8_000, 13_333),
            // Between the bounds it stays; a thread that has time to spare is woken at once again.
            (50, 3_000, 64, 8_000, 8_000),
            (30, 3_000, 64, 8_000, 4_000),
            (30, 3_000, 64, 4_000, 0),
            (0, 3_000, 64, 0, 0),
            // Few connections: a sixteenth of 53 us is less than a waking takes; and one answer has
            // no other to wait for.
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
    fn a_busy_thread_waits_for_50_us_at_most_or_what_is_allowed() {
        for (most_ns, after_ns) in [(1_000_000, BUSY_MOST_NS), (30_000, 30_000)] {
            let mut pacing = Pacing { within_ns: 40_000, ..Pacing::default() };
            let wakings = one_by_one(3_000);
            let done = Done { at_ns: BEAT_NS, cpu_ns: BEAT_NS, settled: 3_000, wakings };
            pacing.next(done, Under { most_ns, ..under(10_000) });
            assert_eq!(pacing.within_ns, after_ns);
        }
    }

    #[test]
    fn where_a_connection_carries_several_a_thread_that_is_not_busy_waits_for_a_small_share() {
        let cases = [
            // 1,000 answers in 10 ms with 64 outstanding: a mean of 640 us, of which a 64th is 10
            // us.
            (30, 1_000, 64, 0, LEAST_NS),
            (30, 1_000, 64, 8_000, 10_000),
            (50, 1_000, 64, 10_000, 10_000),
            // A busy one may wait for a sixteenth, and goes back only when it is not busy at all.
            (70, 1_000, 64, 16_000, 32_000),
            (50, 1_000, 64, 32_000, 32_000),
            (30, 1_000, 64, 32_000, 16_000),
            (30, 1_000, 64, 16_000, 10_000),
            // Means of 12.8 and 64 ms: longer than others may, but not without bounds.
            (30, 1_000, 1_280, 180_000, 200_000),
            (90, 1_000, 1_280, 180_000, 200_000),
            (30, 1_000, 6_400, 300_000, 400_000),
            // The 64th part of 80 us is less than a waking takes.
            (30, 1_000, 8, 0, 0),
        ];
        for (busy, settled, open, before_ns, after_ns) in cases {
            let mut pacing = Pacing { within_ns: before_ns, ..Pacing::default() };
            let (cpu_ns, wakings) = (BEAT_NS / 100 * busy, one_by_one(settled));
            let done = Done { at_ns: BEAT_NS, cpu_ns, settled, wakings };
            pacing.next(done, Under { several: true, most_ns: 400_000, ..under(open) });
            let case = format!("{busy} % busy, {open} open, {before_ns} ns before");
            assert_eq!(pacing.within_ns, after_ns, "{case}");
        }
    }

    #[test]
    fn parts_of_streams_wait_even_while_no_stream_ends() {
        for (busy, settled, open, streams, after_ns) in [
            (80, 0, 10_000, true, STREAMS_MOST_NS),
            (80, 0, 10_000, false, 0),
            (80, 100, 10_000, false, BUSY_MOST_NS),
            (50, 0, 10_000, true, 150_000),
            (80, 3_000, 64, true, 13_333),
            (80, 0, 0, true, 0),
        ] {
            let mut pacing = Pacing { within_ns: 150_000, ..Pacing::default() };
            let (cpu_ns, wakings) = (BEAT_NS / 100 * busy, one_by_one(settled));
            let done = Done { at_ns: BEAT_NS, cpu_ns, settled, wakings };
            pacing.next(done, Under { streams, most_ns: 400_000, ..under(open) });
            assert_eq!(pacing.within_ns, after_ns, "{busy} % busy, {settled} of {open}, {streams}");
        }
    }

    #[test]
    fn half_of_what_is_outstanding_is_an_event_up_to_256() {
        for (open, events) in [(0, 0), (3, 1), (64, 32), (512, 256), (10_000, 256), (u64::MAX, 256)]
        {
            let found = Pacing::default().next(Done::default(), under(open));
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
            pacing.next(done, under(64));
        }
        assert_eq!((pacing.within_ns, pacing.longest_ns), (0, 40_000));
        assert_eq!(Pacing::default().next(Done::default(), under(64)).within_us, 0);
    }

    #[test]
    fn nothing_is_coalesced_where_that_is_forbidden() {
        let mut pacing = Pacing::default();
        for beat in 1..=5 {
            let (at_ns, settled) = (beat * BEAT_NS, beat * 100);
            let done = Done { at_ns, cpu_ns: at_ns, settled, wakings: one_by_one(settled) };
            assert_eq!(pacing.next(done, Under { most_ns: 0, ..under(1_000) }).within_us, 0);
        }
        assert_eq!(pacing.longest_ns, 0);
    }
}
