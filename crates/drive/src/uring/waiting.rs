//! For what a ring is waited for, and how long.

use std::io;

use super::Uring;
use super::ring::{Patience, Ring};
use crate::net::Coalescing;

/// A send that its peer keeps from being done holds up what the others say no longer than this, in us, and once: in the
/// next call it is no longer waited for. As long as a heartbeat, which ends a generator's wait in any case; what is to be
/// done sooner ends it sooner ([`Patience::until`]).
const HELD_UP_US_MOST: u32 = 10_000;

impl Uring {
    pub(super) fn wait(&mut self, wake_at_ns: Option<u64>) -> io::Result<()> {
        // What the last batch left is taken over next, once the sends of that batch are handed over.
        if self.rings.iter_mut().any(|ring| ring.completed() > 0) {
            return self.rings.iter().try_for_each(Ring::poll);
        }
        self.rings[1..].iter().try_for_each(Ring::poll)?;
        let patience = self.patience();
        let first = &mut self.rings[0];
        let spared = self.spin.spares_sleep(self.clock, wake_at_ns, || {
            first.poll()?;
            Ok(first.completed() >= patience.least)
        })?;
        if spared {
            return Ok(());
        }
        let timeout_ns = wake_at_ns.map(|at_ns| at_ns.saturating_sub(self.clock.now_ns()));
        self.rings[0].wait(timeout_ns, patience.until(timeout_ns))
    }

    fn patience(&self) -> Patience {
        // A send that the peer has kept from being done in a call before is not waited for.
        let all_fresh = self.sockets.sends_in_flight() == self.fresh_sends;
        let only_events = all_fresh && !self.awaits_send && self.rings.len() == 1;
        if only_events && self.rings[0].has_patience {
            patience(self.fresh_sends, self.coalescing)
        } else {
            Patience { least: 1, within_us: 0 }
        }
    }
}

impl Patience {
    /// The same of a wait that ends after this timeout. The kernel looks at it only when `within_us` have passed
    /// (`io_cqring_min_timer_wakeup`), so that a sooner one takes their place.
    fn until(self, timeout_ns: Option<u64>) -> Self {
        let sooner = timeout_ns.is_some_and(|ns| ns <= u64::from(self.within_us) * 1_000);
        Patience { within_us: if sooner { 0 } else { self.within_us }, ..self }
    }
}

/// How many completions make an event, where so many sends are handed over by the same call. That a send is done is none:
/// alone, it would end the wait at once, and where answers come one by one each would be waited for twice.
fn patience(fresh_sends: usize, coalescing: Coalescing) -> Patience {
    let Coalescing { events, within_us } = coalescing;
    match fresh_sends {
        _ if events > 1 && within_us > 0 => {
            Patience { least: fresh_sends + events as usize, within_us }
        }
        0 => Patience { least: 1, within_us: 0 },
        _ => Patience { least: 1 + fresh_sends, within_us: HELD_UP_US_MOST },
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
            let found = patience(fresh_sends, coalescing);
            assert_eq!(found, Patience { least, within_us }, "{fresh_sends} sends, {coalescing:?}");
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
            let found = Patience { least: 4, within_us }.until(timeout_ns);
            let expected = Patience { least: 4, within_us: then_us };
            assert_eq!(found, expected, "{within_us} us, at most {timeout_ns:?} ns");
        }
    }
}
