//! Who ends a connection on which nothing more is to be asked, as far as the peers have shown.
//!
//! RFC 9112 §9.6 has the server do it: it then keeps the ports of closed connections (TIME-WAIT, RFC 9293 §3.6), and
//! whatever it may still say before its end is heard. So its end is waited for, behind an answer that is whole. A
//! server that leaves the end to its client costs that wait once: from then on our side ends first. One that does
//! not even heed our end costs it once more: from then on connections are reset, so that neither side keeps
//! anything of them, and only now and then one is looked at again.

use super::CLOSING_NS;

/// A peer that was taken for one that leaves the end to us, and then ended some together with its answers, is believed
/// so often. More often there are several peers, which differ.
const RELAPSES_MOST: u32 = 3;
/// Where connections are reset, one in this time is looked at: a twentieth of one slot's time.
const LOOK_EVERY_NS: u64 = 20 * CLOSING_NS;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ender {
    #[default]
    Unknown,
    /// It did, as a server does that heeds `Connection: close`.
    Peer,
    /// Nobody did as long as bytes were looked for.
    Us,
    /// We did, and the peer did not follow.
    Nobody,
}

/// What becomes of a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// The peer's end is waited for.
    Wait,
    /// Our side ends, then the peer's end is waited for.
    First,
    /// It is over.
    Reset,
}

/// What is known on one thread.
#[derive(Debug)]
pub(super) struct Endings {
    ender: Ender,
    relapses: u32,
    look_ns: u64,
    /// One is being looked at: ends of others that were told before the first was reset prove nothing.
    looking: bool,
    /// How long it took to connect at the quickest: no less than a way there and back.
    way_ns: u64,
}

impl Default for Endings {
    fn default() -> Self {
        let ender = Ender::default();
        Endings { ender, relapses: 0, look_ns: 0, looking: false, way_ns: u64::MAX }
    }
}

impl Endings {
    pub(super) fn note_connected(&mut self, took_ns: u64) {
        self.way_ns = self.way_ns.min(took_ns);
    }

    /// How the next connection is left.
    pub(super) fn leave(&mut self, now_ns: u64) -> Leave {
        match self.ender {
            Ender::Unknown | Ender::Peer => Leave::Wait,
            Ender::Us => Leave::First,
            Ender::Nobody if now_ns < self.look_ns => Leave::Reset,
            Ender::Nobody => {
                (self.look_ns, self.looking) = (now_ns + LOOK_EVERY_NS, true);
                Leave::First
            }
        }
    }

    /// How long an end is waited for; one that answers ours needs its way there and back, too.
    pub(super) fn patience_ns(&self, leave: Leave) -> u64 {
        match leave {
            Leave::First if self.way_ns != u64::MAX => CLOSING_NS + self.way_ns,
            _ => CLOSING_NS,
        }
    }

    /// The peer's end came together with its answer.
    pub(super) fn ended_with_answer(&mut self) {
        if self.relapses < RELAPSES_MOST {
            self.ender = Ender::Peer;
        }
    }

    /// The peer's end came while it was waited for, behind ours or by itself.
    pub(super) fn ended(&mut self, told: bool) {
        match self.ender {
            Ender::Unknown if !told => self.ender = Ender::Peer,
            Ender::Nobody if told && self.looking => self.ender = Ender::Us,
            _ => {}
        }
    }

    /// The peer's end was waited for in vain.
    pub(super) fn waited_in_vain(&mut self, told: bool, now_ns: u64) {
        match self.ender {
            Ender::Unknown | Ender::Peer => {
                self.relapses += 1;
                self.ender = Ender::Us;
            }
            Ender::Us if told => {
                self.ender = Ender::Nobody;
                (self.look_ns, self.looking) = (now_ns + LOOK_EVERY_NS, false);
            }
            Ender::Us => {}
            Ender::Nobody => self.looking = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_peer_that_ends_nothing_is_waited_for_twice_and_then_looked_at_now_and_then() {
        let mut endings = Endings::default();
        assert_eq!(endings.leave(0), Leave::Wait);
        endings.waited_in_vain(false, 50);
        assert_eq!(endings.leave(50), Leave::First);
        endings.waited_in_vain(true, 100);
        assert_eq!(endings.leave(100), Leave::Reset);
        let look_ns = 100 + LOOK_EVERY_NS;
        assert_eq!(endings.leave(look_ns - 1), Leave::Reset);
        assert_eq!(endings.leave(look_ns), Leave::First);
        assert_eq!(endings.leave(look_ns), Leave::Reset, "one at a time");
        endings.ended(true);
        assert_eq!(endings.leave(look_ns), Leave::First, "it had only been slow");
    }

    #[test]
    fn the_way_to_a_far_peer_and_back_is_not_taken_for_silence() {
        let mut endings = Endings::default();
        endings.note_connected(300_000_000);
        endings.note_connected(200_000_000);
        assert_eq!(endings.patience_ns(Leave::Wait), CLOSING_NS);
        assert_eq!(endings.patience_ns(Leave::First), CLOSING_NS + 200_000_000);
    }

    proptest! {
        #[test]
        fn however_peers_differ_few_of_a_second_are_waited_for_in_vain(
            peers in prop::collection::vec(0u8..4, 1..8),
            order in prop::collection::vec(any::<prop::sample::Index>(), 400),
        ) {
            // A peer ends with its answer, by itself a little later, behind our end, or never.
            let (mut endings, mut now_ns, mut in_vain) = (Endings::default(), 0, 0);
            for index in order {
                let peer = *index.get(&peers);
                now_ns += 1_000_000;
                if peer == 0 {
                    endings.ended_with_answer();
                    continue;
                }
                let leave = endings.leave(now_ns);
                match (leave, peer) {
                    (Leave::Reset, _) => {}
                    (Leave::Wait, 1) | (Leave::First, 1 | 2) => endings.ended(leave == Leave::First),
                    _ => {
                        in_vain += 1;
                        endings.waited_in_vain(leave == Leave::First, now_ns);
                    }
                }
            }
            prop_assert!(in_vain <= 2 * RELAPSES_MOST, "{}", in_vain);
        }
    }
}
