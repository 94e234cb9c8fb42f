//! When a thread did not run although there was work for it: how often, for how long, and how many requests waited.
//!
//! Strategy: while requests are outstanding the thread is woken after a millisecond at the latest, so that between two
//! batches there is never more time than that and the work of the first. What is beyond was a stall: the process was
//! stopped, the machine stood still, a CPU limit was reached, or something else had the CPU. The kernel says how much of
//! it the thread waited for a CPU; what it does not account for so, the thread was stopped. A busy thread is woken by
//! answers anyway: it compares two times a batch, and reads its CPU clock once a millisecond, so that work is no stall.

use trueload_drive::Net;
use trueload_load::Load;

use super::Generator;
use super::phase::{Phase, Stage};
use super::protocol::Protocol;
use super::slot::NEVER;

/// With requests outstanding the thread sleeps no longer than this, …
const PULSE_NS: u64 = 1_000_000;
/// … or than this part of the time in which nothing has come: by then all that is outstanding is so old that a stall of it
/// changes little.
const PULSE_OF_QUIET: u64 = 16;
/// A timer that is late by less is none of ours: it is what `trueload doctor` finds on virtual machines.
const LATE_NS: u64 = PULSE_NS / 4;
/// How long a thread waited is asked again after this time, as that opens a file. What it waits in so much time by itself,
/// some microseconds each time that it is woken, is not to pass for a stall.
const ASK_AGAIN_NS: u64 = 10_000_000;

/// What a request takes to send, at most, with what the kernel does for it on the way to a peer on this machine: some kernels
/// count that as nobody's CPU time.
const SEND_NS: u64 = 10_000;

/// Lengths are told apart by powers of two, from half a millisecond on; the last one has all that are longer.
const FIRST_NS: u64 = 500_000;
const CLASSES: usize = 20;

/// Stalls of about the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// Their time in all.
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

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &ByLength) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.count += more.count;
            sum.ns += more.ns;
            sum.requests += more.requests;
        }
    }

    /// Each length that was seen: the least of it, in ns, and its stalls.
    pub fn seen(&self) -> impl Iterator<Item = (u64, Stalls)> + '_ {
        let lengths = (0..).map(|class| FIRST_NS << class);
        lengths.zip(self.0).filter(|(_, stalls)| stalls.count > 0)
    }
}

/// The stalls of one thread in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The thread was stopped: nobody had its CPU instead.
    pub stopped: ByLength,
    /// It waited for a CPU.
    pub queued: ByLength,
}

/// What is known of a thread at the end of its last batch.
#[derive(Debug)]
pub(super) struct Watch {
    last_ns: u64,
    /// When it is to run again, at the latest.
    pub(super) due_ns: u64,
    /// Issued in that batch.
    sent: u64,
    /// Issued, and outstanding, by then.
    issued: u64,
    open: u64,
    /// When one of these changed.
    moved_ns: u64,
    /// The CPU clock, and when it was read.
    cpu_ns: u64,
    cpu_at_ns: u64,
    /// How long the thread had waited for CPUs, and when that was asked.
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
    /// The phase begins now, when it was to or later.
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

    /// How much longer the thread was away up to now than it was to be, but for what it worked.
    fn late_ns(&self, now_ns: u64, cpu_ns: u64) -> u64 {
        let worked_ns = cpu_ns.saturating_sub(self.cpu_ns).max(self.sent * SEND_NS);
        now_ns.saturating_sub(self.due_ns).saturating_sub(worked_ns)
    }

    /// A thread that is stopped when it sleeps would have slept on for half of the time that it may, on average.
    fn length_ns(&self, late_ns: u64) -> u64 {
        late_ns + self.due_ns.saturating_sub(self.last_ns).min(PULSE_NS) / 2
    }
}

impl<P: Protocol> Generator<P> {
    /// A batch is over: looks whether the thread was away.
    #[inline]
    pub(super) fn watch(&mut self, net: &impl Net) {
        if let Some(phase) = self.book.current_mut() {
            phase.watch(net);
        }
    }
}

impl Phase {
    /// A batch is over. Looks once a millisecond whether the thread was away.
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
            // That no answer was read meanwhile is no silence of the server's.
            let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
            self.meter.flow.excuse(since_ns(self.watch.last_ns), since_ns(now_ns));
        } else if now_ns >= self.watch.waited_at_ns + ASK_AGAIN_NS {
            self.waited_ns(net, now_ns);
        }
    }

    /// How long the thread has waited for CPUs since that was asked last. A reading that fails knows of none: then it may
    /// have been all of the time.
    fn waited_ns(&mut self, net: &impl Net, now_ns: u64) -> u64 {
        let used = net.thread_use();
        let waited_ns = used.wanted_ns.saturating_sub(used.cpu_ns);
        self.watch.waited_at_ns = now_ns;
        let since_ns = waited_ns.checked_sub(self.watch.waited_ns).unwrap_or(NEVER);
        self.watch.waited_ns = waited_ns.max(self.watch.waited_ns);
        since_ns
    }

    /// Requests that came due since the last batch, under an open loop: as many as in as much time before.
    fn due_while(&self, now_ns: u64) -> u64 {
        let Load::Open { .. } = self.share.load else { return 0 };
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
