//! Decides who ends a connection on which nothing more is to be asked, from what the peers have
//! shown.
//!
//! RFC 9112 §9.6 has the server do it. The server then keeps the ports of closed connections
//! (TIME-WAIT, RFC 9293 §3.6), and whatever it still sends before its end is received. So after a
//! complete answer its end is waited for. A server that leaves the end to its client costs that
//! wait once: from then on our side ends first. A server that does not even react to our end costs
//! the wait once more. From then on connections are reset, so that neither side keeps state for
//! them, and only now and then one is probed again.

use super::CLOSING_NS;

/// A peer that seemed to leave the end to us, and then ended connections together with its answers,
/// is believed this often. More often means that there are several peers, which differ.
const RELAPSES_MOST: u32 = 3;
/// Where connections are reset, one in this time is probed: a twentieth of one slot's time.
const LOOK_EVERY_NS: u64 = 20 * CLOSING_NS;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Closer {
    #[default]
    Unknown,
    /// The peer did, as a server does that heeds `Connection: close`.
    Peer,
    /// Nobody did while we waited.
    Us,
    /// We did, and the peer did not follow.
    Nobody,
}

/// The way to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseBy {
    /// The peer's end is waited for.
    Peer,
    /// Our side ends, then the peer's end is waited for.
    Us,
    /// It is reset.
    Reset,
}

/// The knowledge of one thread about its peers.
#[derive(Debug)]
pub(super) struct ClosePolicy {
    closer: Closer,
    relapses: u32,
    look_ns: u64,
    /// A probe is under way. The ends of connections whose FIN was sent before the first reset
    /// prove nothing.
    looking: bool,
    /// The shortest time it took to connect: no less than a round trip.
    round_trip_ns: u64,
}

impl Default for ClosePolicy {
    fn default() -> Self {
        let closer = Closer::default();
        ClosePolicy { closer, relapses: 0, look_ns: 0, looking: false, round_trip_ns: u64::MAX }
    }
}

impl ClosePolicy {
    pub(super) fn note_connected(&mut self, took_ns: u64) {
        self.round_trip_ns = self.round_trip_ns.min(took_ns);
    }

    /// Decides who closes the next connection, or that it is reset.
    pub(super) fn close_by(&mut self, now_ns: u64) -> CloseBy {
        match self.closer {
            Closer::Unknown | Closer::Peer => CloseBy::Peer,
            Closer::Us => CloseBy::Us,
            Closer::Nobody if now_ns < self.look_ns => CloseBy::Reset,
            Closer::Nobody => {
                (self.look_ns, self.looking) = (now_ns + LOOK_EVERY_NS, true);
                CloseBy::Us
            }
        }
    }

    /// The time to wait for an end; an end that answers ours also needs a round trip.
    pub(super) fn wait_ns(&self, closed_by: CloseBy) -> u64 {
        match closed_by {
            CloseBy::Us if self.round_trip_ns != u64::MAX => CLOSING_NS + self.round_trip_ns,
            _ => CLOSING_NS,
        }
    }

    /// Notes that the peer's end came together with its answer.
    pub(super) fn ended_with_answer(&mut self) {
        if self.relapses < RELAPSES_MOST {
            self.closer = Closer::Peer;
        }
    }

    /// Notes that the peer's end came while it was waited for, after ours or by itself.
    pub(super) fn ended(&mut self, fin_sent: bool) {
        match self.closer {
            Closer::Unknown if !fin_sent => self.closer = Closer::Peer,
            Closer::Nobody if fin_sent && self.looking => self.closer = Closer::Us,
            _ => {}
        }
    }

    /// Notes that the peer's end was waited for in vain.
    pub(super) fn waited_in_vain(&mut self, fin_sent: bool, now_ns: u64) {
        match self.closer {
            Closer::Unknown | Closer::Peer => {
                self.relapses += 1;
                self.closer = Closer::Us;
            }
            Closer::Us if fin_sent => {
                self.closer = Closer::Nobody;
                (self.look_ns, self.looking) = (now_ns + LOOK_EVERY_NS, false);
            }
            Closer::Us => {}
            Closer::Nobody => self.looking = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_peer_that_ends_nothing_is_waited_for_twice_and_then_looked_at_now_and_then() {
        let mut policy = ClosePolicy::default();
        assert_eq!(policy.close_by(0), CloseBy::Peer);
        policy.waited_in_vain(false, 50);
        assert_eq!(policy.close_by(50), CloseBy::Us);
        policy.waited_in_vain(true, 100);
        assert_eq!(policy.close_by(100), CloseBy::Reset);
        let look_ns = 100 + LOOK_EVERY_NS;
        assert_eq!(policy.close_by(look_ns - 1), CloseBy::Reset);
        assert_eq!(policy.close_by(look_ns), CloseBy::Us);
        assert_eq!(policy.close_by(look_ns), CloseBy::Reset, "one at a time");
        policy.ended(true);
        assert_eq!(policy.close_by(look_ns), CloseBy::Us, "it had only been slow");
    }

    #[test]
    fn the_way_to_a_far_peer_and_back_is_not_taken_for_silence() {
        let mut policy = ClosePolicy::default();
        policy.note_connected(300_000_000);
        policy.note_connected(200_000_000);
        assert_eq!(policy.wait_ns(CloseBy::Peer), CLOSING_NS);
        assert_eq!(policy.wait_ns(CloseBy::Us), CLOSING_NS + 200_000_000);
    }

    proptest! {
        #[test]
        fn however_peers_differ_few_of_a_second_are_waited_for_in_vain(
            peers in prop::collection::vec(0u8..4, 1..8),
            order in prop::collection::vec(any::<prop::sample::Index>(), 400),
        ) {
            // A peer ends with its answer, by itself a little later, behind our end, or never.
            let (mut policy, mut now_ns, mut in_vain) = (ClosePolicy::default(), 0, 0);
            for index in order {
                let peer = *index.get(&peers);
                now_ns += 1_000_000;
                if peer == 0 {
                    policy.ended_with_answer();
                    continue;
                }
                let closed_by = policy.close_by(now_ns);
                match (closed_by, peer) {
                    (CloseBy::Reset, _) => {}
                    (CloseBy::Peer, 1) | (CloseBy::Us, 1 | 2) => policy.ended(closed_by == CloseBy::Us),
                    _ => {
                        in_vain += 1;
                        policy.waited_in_vain(closed_by == CloseBy::Us, now_ns);
                    }
                }
            }
            prop_assert!(in_vain <= 2 * RELAPSES_MOST, "{}", in_vain);
        }
    }
}
