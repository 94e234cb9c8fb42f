//! Detects when a thread did not run although there was work for it: how often, for how long, and
//! how many requests waited.
//!
//! While requests are outstanding the thread wakes after a millisecond at the latest. So between
//! two batches there is never more time than that plus the work of the first. Any more was a stall:
//! the process was stopped, the machine stood still, a CPU limit was reached, or something else had
//! the CPU. The kernel reports how much of it the thread waited for a CPU; for the rest, the thread
//! was stopped.
//!
//! A busy thread is woken by answers anyway. It compares two times per batch and reads its CPU
//! clock once a millisecond, so that work does not count as a stall.

use trueload_drive::Net;

use super::Generator;
use super::phase::{Phase, Stage};
use super::protocol::Protocol;
use super::slot::NEVER;

/// With requests outstanding the thread sleeps no longer than this …
const PULSE_NS: u64 = 1_000_000;
/// … or than this part of the time in which nothing has come. By then all outstanding requests are
/// so old that such a stall changes little.
const PULSE_OF_QUIET: u64 = 16;
/// A timer that is late by less does not count: `trueload doctor` finds such delays on virtual
/// machines.
const LATE_NS: u64 = PULSE_NS / 4;
/// The time that a thread waited for a CPU is read again after this time, because that opens a
/// file. What it waits normally in this time, some microseconds per wake-up, must not pass for a
/// stall.
const ASK_AGAIN_NS: u64 = 10_000_000;

/// The most time that sending a request takes, with the kernel's work on the way to a peer on this
/// machine. Some kernels count that work as nobody's CPU time.
const SEND_NS: u64 = 10_000;

/// Lengths are classed by powers of two, from half a millisecond on; the last class has all longer
/// ones.
const FIRST_NS: u64 = 500_000;
const CLASSES: usize = 20;

/// Stalls of about the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of stalls.
    pub count: u64,
    /// Their total time, in ns.
    pub ns: u64,
    /// Requests that were outstanding, or came due, meanwhile.
    pub requests: u64,
}

/// Stalls by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByLength([Stalls; CLASSES]);

impl ByLength {
    fn note(&mut self, ns: u64, requests: u64) {
        let class = (ns / FIRST_NS).max(1).ilog2() as usize;
        let stalls = &mut self.0[class.min(CLASSES - 1)];
        stalls.count += 1;
        stalls.ns += ns;
        stalls.requests += requests;
    }

    /// Adds the stalls of another thread.
    pub fn merge(&mut self, other: &ByLength) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.count += more.count;
            sum.ns += more.ns;
            sum.requests += more.requests;
        }
    }

    /// Yields each length that was seen: its lower bound in ns, and its stalls.
    pub fn seen(&self) -> impl Iterator<Item = (u64, Stalls)> + '_ {
        let lengths = (0..).map(|class| FIRST_NS << class);
        lengths.zip(self.0).filter(|(_, stalls)| stalls.count > 0)
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
#[derive(Debug)]
pub(super) struct Watch {
    last_ns: u64,
    /// The latest time at which it is to run again.
    pub(super) due_ns: u64,
    /// Requests issued in that batch.
    sent: u64,
    /// Requests issued, and outstanding, by then.
    issued: u64,
    open: u64,
    /// The time at which one of these last changed.
    moved_ns: u64,
    /// The CPU clock, and the time at which it was read.
    cpu_ns: u64,
    cpu_at_ns: u64,
    /// The time that the thread had waited for CPUs, and when that was read.
    waited_ns: u64,
    waited_at_ns: u64,
    pub(super) lateness: Lateness,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            last_ns: 0,
            due_ns: NEVER,
            sent: 0,
            issued: 0,
            open: 0,
            moved_ns: 0,
            cpu_ns: 0,
            cpu_at_ns: 0,
            waited_ns: 0,
            waited_at_ns: 0,
            lateness: Lateness::default(),
        }
    }
}

impl Watch {
    /// Starts the watch of a phase that begins now, on time or late.
    pub(super) fn from(started_ns: u64, now_ns: u64, waited_ns: u64, cpu_ns: u64) -> Self {
        Watch {
            last_ns: started_ns,
            due_ns: started_ns + PULSE_NS,
            moved_ns: started_ns,
            cpu_ns,
            cpu_at_ns: started_ns,
            waited_ns,
            waited_at_ns: now_ns,
            ..Watch::default()
        }
    }

    /// The time by which the thread was away longer than planned, without the time it worked.
    fn late_ns(&self, now_ns: u64, cpu_ns: u64) -> u64 {
        let worked_ns = cpu_ns.saturating_sub(self.cpu_ns).max(self.sent * SEND_NS);
        now_ns.saturating_sub(self.due_ns).saturating_sub(worked_ns)
    }

    /// The length of a stall. A thread that is stopped in its sleep would have slept on for half of
    /// its planned sleep, on average.
    fn length_ns(&self, late_ns: u64) -> u64 {
        late_ns + self.due_ns.saturating_sub(self.last_ns).min(PULSE_NS) / 2
    }
}

impl<P: Protocol> Generator<P> {
    /// Ends a batch, and checks whether the thread was away.
    #[inline]
    pub(super) fn watch(&mut self, net: &impl Net) {
        if let Some(phase) = self.accounting.current_mut() {
            phase.watch(net);
        }
    }
}

impl Phase {
    /// Ends a batch. Checks once a millisecond whether the thread was away.
    #[inline]
    fn watch(&mut self, net: &impl Net) {
        if self.stage != Stage::Sending {
            return;
        }
        let now_ns = net.now_ns();
        if now_ns >= self.watch.cpu_at_ns + PULSE_NS {
            self.look(net, now_ns);
        }
        let (issued, open) = (self.meter.issued, self.open);
        let watch = &mut self.watch;
        watch.sent = issued - watch.issued;
        if (issued, open) != (watch.issued, watch.open) {
            (watch.issued, watch.open, watch.moved_ns) = (issued, open, now_ns);
        }
        watch.last_ns = now_ns;
        let quiet_ns = now_ns.saturating_sub(watch.moved_ns);
        let pulse_ns = PULSE_NS.max(quiet_ns / PULSE_OF_QUIET);
        let due_ns = if open > 0 { now_ns + pulse_ns } else { NEVER };
        watch.due_ns = due_ns.min(self.next_beat_ns);
    }

    /// Notes a stall, if there was one since the last batch.
    pub(super) fn look(&mut self, net: &impl Net, now_ns: u64) {
        let cpu_ns = net.thread_cpu_ns();
        let late_ns = self.watch.late_ns(now_ns, cpu_ns);
        (self.watch.cpu_ns, self.watch.cpu_at_ns) = (cpu_ns, now_ns);
        if late_ns >= LATE_NS {
            let queued_ns = self.waited_ns(net, now_ns);
            let requests = self.watch.open + self.due_while(now_ns);
            let length_ns = self.watch.length_ns(late_ns);
            let Lateness { stopped, queued } = &mut self.watch.lateness;
            let kind = if queued_ns >= late_ns / 2 { queued } else { stopped };
            if requests > 0 {
                kind.note(length_ns, requests);
            }
            // That no answer was read meanwhile must not count as silence of the server.
            let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
            self.meter.flow.excuse(since_ns(self.watch.last_ns), since_ns(now_ns));
        } else if now_ns >= self.watch.waited_at_ns + ASK_AGAIN_NS {
            self.waited_ns(net, now_ns);
        }
    }

    /// The time that the thread has waited for CPUs since the last call. A failed reading shows
    /// none: then all of the time may have been a wait.
    fn waited_ns(&mut self, net: &impl Net, now_ns: u64) -> u64 {
        let used = net.thread_use();
        let waited_ns = used.wanted_ns.saturating_sub(used.cpu_ns);
        self.watch.waited_at_ns = now_ns;
        let since_ns = waited_ns.checked_sub(self.watch.waited_ns).unwrap_or(NEVER);
        self.watch.waited_ns = waited_ns.max(self.watch.waited_ns);
        since_ns
    }

    /// Requests of an open loop that came due since the last batch, estimated from the rate before.
    fn due_while(&self, now_ns: u64) -> u64 {
        if !self.share.load.is_scheduled() {
            return 0;
        }
        let before_ns = self.watch.last_ns.saturating_sub(self.started_ns);
        let gap_ns = now_ns.saturating_sub(self.watch.last_ns);
        let due = u128::from(self.watch.issued) * u128::from(gap_ns) / u128::from(before_ns.max(1));
        u64::try_from(due).unwrap_or(0)
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
        let seen: Vec<_> =
            sum.seen().map(|(least_ns, it)| (least_ns, it.count, it.requests)).collect();
        let last_ns = FIRST_NS << (CLASSES - 1);
        let expected = [(MS / 2, 2, 2), (MS, 4, 10), (32 * MS, 2, 128), (last_ns, 2, 10)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_a_thread_worked_is_no_stall() {
        let watch = Watch::from(0, 0, 0, 100);
        for (now_ns, cpu_ns, late_ns) in [
            (MS, 100, 0),
            (9 * MS, 100, 8 * MS),
            (9 * MS, 100 + 8 * MS, 0),
            (9 * MS, 100 + 6 * MS, 2 * MS),
        ] {
            assert_eq!(watch.late_ns(now_ns, cpu_ns), late_ns, "{now_ns}, worked {cpu_ns}");
        }
        assert_eq!(watch.length_ns(4 * MS), 4 * MS + MS / 2);
    }
}
