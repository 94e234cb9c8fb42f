//! The events that a ring waits for, and for how long.

use std::io;

use io_uring::cqueue;

use super::Uring;
use super::queue::{Kernel, Queue as _};
use super::ring::{Op, Ring, WaitPolicy};
use crate::net::Coalescing;

/// The longest time for which a send may hold up other events, in us.
///
/// If a program does not hand over its sends ([`crate::Net::hand_over`]), the call that waits hands
/// them over. A send that its peer keeps from completing then holds up the events of other peers,
/// but no longer than this, and once. The next call does not wait for it any more. What is to be
/// done sooner ends the wait sooner ([`WaitPolicy::until`]).
const HELD_UP_US_MOST: u32 = 1_000;

impl<K: Kernel> Uring<K> {
    /// Takes what the first ring has completed since the last batch; true if `batch` holds events.
    /// The completion of a send is no event unless the program waits for it: it is handled here,
    /// and not waited for.
    pub(super) fn take_over_early(&mut self, batch: &mut Vec<cqueue::Entry>) -> bool {
        self.rings[0].drain(batch);
        let sockets = &mut self.sockets;
        let is_event = |entry: &cqueue::Entry| match Op::of(entry.user_data()) {
            (Op::Send, index) => sockets.at(index).outbox.is_some(),
            _ => true,
        };
        if batch.iter().any(is_event) {
            return true;
        }
        self.fresh_sends = self.fresh_sends.saturating_sub(batch.len());
        for entry in batch.drain(..) {
            let (_, index) = Op::of(entry.user_data());
            let drained = self.sent(index, entry.result());
            debug_assert!(drained.is_none(), "the program waits to hear of this send");
        }
        false
    }

    pub(super) fn wait(&mut self, wake_at_ns: Option<u64>) -> io::Result<()> {
        // The rest of the last batch is handled next, once the sends of that batch are handed over.
        if self.rings.iter_mut().any(|ring| ring.queue.completed() > 0) {
            return self.rings.iter_mut().try_for_each(Ring::poll);
        }
        self.rings[1..].iter_mut().try_for_each(Ring::poll)?;
        let wait_policy = self.wait_policy();
        let first = &mut self.rings[0];
        let spared = self.spin.spares_sleep(self.clock, wake_at_ns, || {
            first.poll()?;
            Ok(first.queue.completed() >= wait_policy.least)
        })?;
        if spared {
            return Ok(());
        }
        let timeout_ns = wake_at_ns.map(|at_ns| at_ns.saturating_sub(self.clock.now_ns()));
        self.rings[0].wait(timeout_ns, wait_policy.until(timeout_ns))
    }

    fn wait_policy(&self) -> WaitPolicy {
        // A send that the peer kept from completing in an earlier call is not waited for.
        let in_flight = self.sockets.sends_in_flight() + self.datagrams.sends_in_flight();
        let all_fresh = in_flight == self.fresh_sends;
        let only_events = all_fresh && !self.awaits_send && self.rings.len() == 1;
        if only_events && self.rings[0].has_min_wait {
            wait_policy(self.fresh_sends, self.coalescing)
        } else {
            WaitPolicy { least: 1, within_us: 0 }
        }
    }
}

impl WaitPolicy {
    /// The policy for a wait that ends after this timeout. The kernel looks at the timeout only
    /// when `within_us` have passed (`io_cqring_min_timer_wakeup`), so a sooner timeout takes their
    /// place.
    fn until(self, timeout_ns: Option<u64>) -> Self {
        let sooner = timeout_ns.is_some_and(|ns| ns <= u64::from(self.within_us) * 1_000);
        WaitPolicy { within_us: if sooner { 0 } else { self.within_us }, ..self }
    }
}

/// The number of completions that make an event, if this many sends are handed over by the same
/// call. The completion of a send is no event. Alone, it would end the wait at once, and where
/// answers come one by one each would be waited for twice.
fn wait_policy(fresh_sends: usize, coalescing: Coalescing) -> WaitPolicy {
    let Coalescing { events, within_us } = coalescing;
    match fresh_sends {
        _ if events > 1 && within_us > 0 => {
            WaitPolicy { least: fresh_sends + events as usize, within_us }
        }
        0 => WaitPolicy { least: 1, within_us: 0 },
        _ => WaitPolicy { least: 1 + fresh_sends, within_us: HELD_UP_US_MOST },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_of_the_same_call_are_no_events() {
        let few = Coalescing { events: 4, within_us: 12 };
        let cases = [
            (0, Coalescing::default(), 1, 0),
            (3, Coalescing::default(), 4, HELD_UP_US_MOST),
            (0, few, 4, 12),
            (3, few, 7, 12),
            (3, Coalescing { events: 1, within_us: 12 }, 4, HELD_UP_US_MOST),
            (3, Coalescing { events: 4, within_us: 0 }, 4, HELD_UP_US_MOST),
        ];
        for (fresh_sends, coalescing, least, within_us) in cases {
            let found = wait_policy(fresh_sends, coalescing);
            assert_eq!(
                found,
                WaitPolicy { least, within_us },
                "{fresh_sends} sends, {coalescing:?}"
            );
        }
    }

    #[test]
    fn a_timeout_ends_a_wait_before_what_was_allowed_to_wait_for_others() {
        let cases = [
            (10_000, None, 10_000),
            (10_000, Some(10_000_001), 10_000),
            (10_000, Some(10_000_000), 0),
            (10_000, Some(25_000), 0),
            (12, Some(0), 0),
            (0, Some(25_000), 0),
        ];
        for (within_us, timeout_ns, then_us) in cases {
            let found = WaitPolicy { least: 4, within_us }.until(timeout_ns);
            let expected = WaitPolicy { least: 4, within_us: then_us };
            assert_eq!(found, expected, "{within_us} us, at most {timeout_ns:?} ns");
        }
    }
}
