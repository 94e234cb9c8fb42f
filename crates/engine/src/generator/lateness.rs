//! Detects when a thread did not run although there was work for it: how often, for how long, and
//! how many requests waited.
//!
//! While requests are outstanding the thread wakes after a millisecond at the latest. So between
//! two batches there is never more time than that plus the work of the first. Any more was a stall:
//! the process was stopped, the machine was paused, a CPU limit was reached, or something else had
//! the CPU. The kernel reports how much of it the thread waited for a CPU; for the rest, the thread
//! was stopped.
//!
//! A busy thread is woken by answers anyway. It compares two times per batch and reads its CPU
//! clock once a millisecond, so that work does not count as a stall.

use crate::protocol::Stalls;

/// With requests outstanding the thread sleeps no longer than this …
pub(super) const PULSE_NS: u64 = 1_000_000;
/// … or than this part of the time in which nothing has come. By then all outstanding requests are
/// so old that such a stall changes little.
pub(super) const PULSE_OF_QUIET: u64 = 16;
/// A timer that is late by less does not count: `trueload doctor` finds such delays on virtual
/// machines.
pub(super) const LATE_NS: u64 = PULSE_NS / 4;
/// The time that a thread waited for a CPU is read again after this time, because that opens a
/// file. What it waits normally in this time, some microseconds per wake-up, must not pass for a
/// stall.
pub(super) const ASK_AGAIN_NS: u64 = 10_000_000;

/// The most time that sending a request takes, with the kernel's work on the way to a peer on this
/// machine. Some kernels count that work as nobody's CPU time.
const SEND_NS: u64 = 10_000;

/// Lengths are classed by powers of two, from half a millisecond on; the last class has all longer
/// ones.
const FIRST_NS: u64 = 500_000;
const CLASSES: usize = 20;

/// Stalls by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByLength([Stalls; CLASSES]);

impl ByLength {
    pub(super) fn note(&mut self, ns: u64, requests: u64) {
        let class = (ns / FIRST_NS).max(1).ilog2() as usize;
        let stalls = &mut self.0[class.min(CLASSES - 1)];
        stalls.count += 1;
        stalls.ns += ns;
        stalls.requests += requests;
    }

    /// Adds the stalls of another thread.
    pub fn merge(&mut self, other: &ByLength) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| sum.merge(more));
    }

    /// The stalls of each length that was seen.
    pub fn seen(&self) -> impl Iterator<Item = Stalls> + '_ {
        let lengths = (0..).map(|class| FIRST_NS << class);
        let stalls = lengths.zip(self.0);
        let stalls = stalls.map(|(at_least_ns, stalls)| Stalls { at_least_ns, ..stalls });
        stalls.filter(|stalls| stalls.count > 0)
    }
}

/// The stalls of one thread in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The thread was stopped: no other thread had its CPU instead.
    pub stopped: ByLength,
    /// It waited for a CPU.
    pub queued: ByLength,
}

/// The state of a thread at the end of its last batch.
#[derive(Debug, Default)]
pub(super) struct LastBatch {
    pub(super) last_ns: u64,
    /// The latest time at which it is to run again.
    pub(super) due_ns: u64,
    /// Requests issued in that batch.
    pub(super) sent: u64,
    /// Requests issued, and outstanding, by then.
    pub(super) issued: u64,
    pub(super) open: u64,
    /// The time at which one of these last changed.
    pub(super) moved_ns: u64,
    /// The CPU clock, and the time at which it was read.
    pub(super) cpu_ns: u64,
    pub(super) cpu_at_ns: u64,
    /// The time that the thread had waited for CPUs, and when that was read.
    pub(super) waited_ns: u64,
    pub(super) waited_at_ns: u64,
    pub(super) lateness: Lateness,
}

impl LastBatch {
    /// The state in which a phase begins, on time or late.
    pub(super) fn from(started_ns: u64, now_ns: u64, waited_ns: u64, cpu_ns: u64) -> Self {
        LastBatch {
            last_ns: started_ns,
            due_ns: started_ns + PULSE_NS,
            moved_ns: started_ns,
            cpu_ns,
            cpu_at_ns: started_ns,
            waited_ns,
            waited_at_ns: now_ns,
            ..LastBatch::default()
        }
    }

    /// The time by which the thread was away longer than planned, without the time it worked.
    pub(super) fn late_ns(&self, now_ns: u64, cpu_ns: u64) -> u64 {
        let worked_ns = cpu_ns.saturating_sub(self.cpu_ns).max(self.sent * SEND_NS);
        now_ns.saturating_sub(self.due_ns).saturating_sub(worked_ns)
    }

    /// The length of a stall. A thread that is stopped in its sleep would have slept on for half of
    /// its planned sleep, on average.
    pub(super) fn length_ns(&self, late_ns: u64) -> u64 {
        late_ns + self.due_ns.saturating_sub(self.last_ns).min(PULSE_NS) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn stalls_are_told_apart_by_their_length() {
        let mut some = ByLength::default();
        for (ns, requests) in
            [(MS * 3 / 4, 1), (MS, 2), (MS * 3 / 2, 3), (50 * MS, 64), (u64::MAX / 4, 5)]
        {
            some.note(ns, requests);
        }
        let mut sum = some;
        sum.merge(&some);
        let seen: Vec<_> = sum.seen().map(|it| (it.at_least_ns, it.count, it.requests)).collect();
        let last_ns = FIRST_NS << (CLASSES - 1);
        let expected = [(MS / 2, 2, 2), (MS, 4, 10), (32 * MS, 2, 128), (last_ns, 2, 10)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_a_thread_worked_is_no_stall() {
        let last = LastBatch::from(0, 0, 0, 100);
        for (now_ns, cpu_ns, late_ns) in [
            (MS, 100, 0),
            (9 * MS, 100, 8 * MS),
            (9 * MS, 100 + 8 * MS, 0),
            (9 * MS, 100 + 6 * MS, 2 * MS),
        ] {
            assert_eq!(last.late_ns(now_ns, cpu_ns), late_ns, "{now_ns}, worked {cpu_ns}");
        }
        assert_eq!(last.length_ns(4 * MS), 4 * MS + MS / 2);
    }
}
