//! Holds back some requests of a closed loop for a moment: an answer that comes meanwhile was not
//! made from its request.
//!
//! A server that predicts requests may send each answer just after its request arrives, but too
//! soon to have been made from it. No clock of ours tells it from a quick server. But it cannot
//! know which request does not come when it should, and an answer to that one is unsolicited.
//!
//! The hold reduces the load a little: one request in 1,250 waits 1.25 times as long as the one
//! before took, which is a thousandth. It is used only where the round trip is so long that
//! guessing gains something, so never on one machine. It also needs kept connections with one
//! request at a time: otherwise an answer may belong to another request.

use trueload_load::random;

use super::Generator;
use super::protocol::Protocol;
use super::slot::NEVER;

/// One request in this many is held back.
const ONE_IN: u32 = 1_250;
/// Longest hold. Longer service times wait for the server rather than for the network.
const HELD_MOST_NS: u64 = 20_000_000;

/// Counts the requests until the next one that is held back.
#[derive(Debug)]
pub(super) struct HoldBack {
    seed: u64,
    thread: u32,
    held: u64,
    before: u32,
}

impl HoldBack {
    pub(super) fn new(seed: u64, thread: u32) -> Self {
        let mut new = HoldBack { seed, thread, held: 0, before: 0 };
        new.draw();
        new
    }

    /// Draws the next request to hold back, so that nobody can predict it.
    fn draw(&mut self) {
        let drawn = random(self.seed, self.held, self.thread) % u64::from(2 * ONE_IN - 1);
        self.before = drawn as u32;
        self.held += 1;
    }

    /// Whether the next request is held back.
    #[inline]
    fn is_next(&mut self) -> bool {
        if self.before > 0 {
            self.before -= 1;
            return false;
        }
        self.draw();
        true
    }
}

/// The time to hold a request if the last answer took `service_ns`.
fn held_ns(service_ns: u64) -> u64 {
    (service_ns + service_ns / 4).min(HELD_MOST_NS)
}

impl<P: Protocol> Generator<P> {
    /// Whether the next request of a slot with nothing outstanding is held back; if so, the hold
    /// begins.
    #[inline]
    pub(super) fn holds_back(&mut self, key: u32, now_ns: u64) -> bool {
        self.rtt.is_long()
            && !self.config.close
            && self.config.depth == 1
            && self.hold_back.is_next()
            && self.begin_hold(key, now_ns)
    }

    #[cold]
    fn begin_hold(&mut self, key: u32, now_ns: u64) -> bool {
        let state = &mut self.slots[key].state;
        let Some(last) = state.last.filter(|last| last.failed.is_none()) else { return false };
        state.until_ns = now_ns + held_ns(last.answered().service_ns);
        self.slots.arm(key);
        true
    }

    /// Ends the hold of a slot, and sends what it held back.
    pub(super) fn end_hold(&mut self, net: &mut impl trueload_drive::Net, key: u32) {
        self.slots[key].state.until_ns = NEVER;
        self.fill(net, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_request_in_1250_is_held_back_and_the_seed_draws_which() {
        let of = |seed, thread| {
            let mut hold = HoldBack::new(seed, thread);
            (0..1_000_000).filter(|_| hold.is_next()).collect::<Vec<_>>()
        };
        let one: Vec<u32> = of(1, 0);
        assert!((760..=840).contains(&one.len()), "{} of 1,000,000", one.len());
        assert_eq!(one, of(1, 0));
        assert_ne!(one, of(2, 0));
        assert_ne!(one, of(1, 1));
    }

    #[test]
    fn a_request_is_held_back_longer_than_an_answer_takes_but_not_for_long() {
        for (service_ns, held) in
            [(2 * MS, 2 * MS + MS / 2), (16 * MS, 20 * MS), (999 * MS, 20 * MS)]
        {
            assert_eq!(held_ns(service_ns), held);
        }
    }
}
