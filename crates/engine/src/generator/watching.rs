//! Looks at the end of each batch whether the thread was away while there was work for it.
//!
//! What counts as being away is in `lateness`.

use trueload_drive::Net;

use super::Generator;
use super::lateness::{ASK_AGAIN_NS, LATE_NS, Lateness, PULSE_NS, PULSE_OF_QUIET};
use super::phase::{Phase, PhaseState};
use super::protocol::Protocol;
use super::slot::NEVER;

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
        if self.state != PhaseState::Sending {
            return;
        }
        let now_ns = net.now_ns();
        if now_ns >= self.last_batch.cpu_at_ns + PULSE_NS {
            self.look(net, now_ns);
        }
        let (issued, open) = (self.meter.issued, self.open);
        let last = &mut self.last_batch;
        last.sent = issued - last.issued;
        if (issued, open) != (last.issued, last.open) {
            (last.issued, last.open, last.moved_ns) = (issued, open, now_ns);
        }
        last.last_ns = now_ns;
        let quiet_ns = now_ns.saturating_sub(last.moved_ns);
        let pulse_ns = PULSE_NS.max(quiet_ns / PULSE_OF_QUIET);
        let due_ns = if open > 0 { now_ns + pulse_ns } else { NEVER };
        last.due_ns = due_ns.min(self.next_beat_ns);
    }

    /// Notes a stall, if there was one since the last batch.
    pub(super) fn look(&mut self, net: &impl Net, now_ns: u64) {
        let cpu_ns = net.thread_cpu_ns();
        let late_ns = self.last_batch.late_ns(now_ns, cpu_ns);
        (self.last_batch.cpu_ns, self.last_batch.cpu_at_ns) = (cpu_ns, now_ns);
        if late_ns >= LATE_NS {
            let queued_ns = self.waited_ns(net, now_ns);
            let requests = self.last_batch.open + self.due_while(now_ns);
            let length_ns = self.last_batch.length_ns(late_ns);
            let Lateness { stopped, queued } = &mut self.last_batch.lateness;
            let kind = if queued_ns >= late_ns / 2 { queued } else { stopped };
            if requests > 0 {
                kind.note(length_ns, requests);
            }
            // That no answer was read meanwhile must not count as silence of the server.
            let since_ns = |at_ns: u64| at_ns.saturating_sub(self.started_ns);
            self.meter.flow.excuse(since_ns(self.last_batch.last_ns), since_ns(now_ns));
        } else if now_ns >= self.last_batch.waited_at_ns + ASK_AGAIN_NS {
            self.waited_ns(net, now_ns);
        }
    }

    /// The time that the thread has waited for CPUs since the last call. A failed reading shows
    /// none: then all of the time may have been a wait.
    fn waited_ns(&mut self, net: &impl Net, now_ns: u64) -> u64 {
        let used = net.thread_use();
        let waited_ns = used.wanted_ns.saturating_sub(used.cpu_ns);
        self.last_batch.waited_at_ns = now_ns;
        let since_ns = waited_ns.checked_sub(self.last_batch.waited_ns).unwrap_or(NEVER);
        self.last_batch.waited_ns = waited_ns.max(self.last_batch.waited_ns);
        since_ns
    }

    /// Requests of an open loop that came due since the last batch, estimated from the rate before.
    fn due_while(&self, now_ns: u64) -> u64 {
        if !self.share.load.is_scheduled() {
            return 0;
        }
        let before_ns = self.last_batch.last_ns.saturating_sub(self.started_ns);
        let gap_ns = now_ns.saturating_sub(self.last_batch.last_ns);
        let due =
            u128::from(self.last_batch.issued) * u128::from(gap_ns) / u128::from(before_ns.max(1));
        u64::try_from(due).unwrap_or(0)
    }
}
