//! Detects answers that were sent before their requests had arrived, from the kernel's data on the
//! connections whose arrival times are sampled.
//!
//! Every segment of an answer acknowledges what its sender's kernel had received. So an answer that
//! is made from its request leaves less than that request unacknowledged, whatever became of
//! earlier acknowledgements. If an answer is read while not one byte of its request is
//! acknowledged, it was sent without the request. Nor can an answer come sooner than the shortest
//! time in which the peer's kernel has acknowledged anything.
//!
//! Only answers that ended a request well count as too early: an error may be sent, and a
//! connection ended, at any time.

use trueload_drive::{Conn, Net};
use trueload_wire::exchange::{Ending, Exchange, Outcome};

use super::Generator;
use super::protocol::Protocol;
use super::slot::Tag;

/// The least time by which an answer must undercut the shortest round trip. The clocks of the
/// kernel and ours are compared only this well, and on a shorter path nobody gains by guessing.
const SLACK_NS: u64 = 1_000_000;

/// The shortest round trip, as far as it is worth asking for: below it no answer's time is too
/// short.
#[derive(Debug)]
pub(super) struct Rtt {
    known_ns: u64,
}

impl Default for Rtt {
    /// Not known yet: the first answer asks the kernel.
    fn default() -> Self {
        Rtt { known_ns: u64::MAX }
    }
}

impl Rtt {
    /// Whether the round trip is so long that guessing gains something, as far as is known.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.known_ns > SLACK_NS && self.known_ns != u64::MAX
    }

    /// Whether an answer took too short a time for the round trip; `ask` returns the kernel's
    /// present minimum.
    #[inline]
    fn is_undercut(&mut self, took_ns: u64, ask: impl FnOnce() -> Option<u64>) -> bool {
        if took_ns >= self.known_ns.saturating_sub(SLACK_NS) {
            return false;
        }
        // The kernel's minimum includes what this very answer has shown.
        let rtt_ns = ask().unwrap_or(0);
        self.known_ns = rtt_ns;
        took_ns < (rtt_ns - rtt_ns / 10).min(rtt_ns.saturating_sub(SLACK_NS))
    }
}

impl<P: Protocol> Generator<P> {
    /// Handles an answer whose arrival time the kernel reported: asks the kernel about the request,
    /// too. Nothing more may have been sent on this connection yet.
    #[inline]
    pub(super) fn note_early(&mut self, net: &mut impl Net, conn: Conn, last: &Outcome<Tag>) {
        let Some(arrived_ns) = net.arrived_ns().filter(|_| last.ending == Ending::Ok) else {
            return;
        };
        let slot = &mut self.slots[conn.key];
        if slot.tls.is_some() && slot.client.outstanding() > 0 {
            // Sealing adds bytes: the later requests alone, sealed, may be as long as all of them
            // unsealed.
            return;
        }
        let (drawn, tag) = (self.accounting.drawn, last.tag);
        // If the request is not acknowledged, those behind it are not, either.
        let bytes = self.codec.protocol.bytes_from(&mut slot.client, &tag, drawn);
        let Some((bytes, unacknowledged)) = bytes.zip(net.unacknowledged_bytes(conn.token)) else {
            return;
        };
        // Counted from when the load asked for the request: the thread may have been held up before
        // it noted the send. What arrived after the clock was read may have taken longer than is
        // known.
        let took_ns = arrived_ns.saturating_sub(tag.scheduled_ns);
        let too_soon = arrived_ns < net.now_ns()
            && self.rtt.is_undercut(took_ns, || net.least_rtt_ns(conn.token));
        let early = &mut self.accounting.phases[usize::from(tag.phase)].meter.early;
        early.asked += 1;
        early.unacknowledged += u64::from(unacknowledged >= bytes as u64);
        early.too_soon += u64::from(too_soon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_service_time_is_too_short_where_the_way_alone_takes_longer() {
        for (rtt_ns, service_ns, too_short) in [
            (Some(10 * MS), 7 * MS, true),
            (Some(10 * MS), 10 * MS, false),
            (Some(10 * MS), 9 * MS, false),
            (Some(100 * MS), 95 * MS, false),
            (Some(100 * MS), 89 * MS, true),
            (Some(2 * MS), MS - 1, true),
            (Some(MS), 1, false),
            (Some(30_000), 1, false),
            (None, 1, false),
        ] {
            let mut rtt = Rtt::default();
            assert_eq!(
                rtt.is_undercut(service_ns, || rtt_ns),
                too_short,
                "{service_ns} of {rtt_ns:?}"
            );
        }
    }

    #[test]
    fn the_kernel_is_asked_again_only_when_a_service_time_is_short() {
        let mut rtt = Rtt::default();
        assert!(!rtt.is_long(), "nobody has asked");
        let mut asked = 0;
        // The first connection was slow to be set up; the kernel's minimum falls with what it sees.
        for (service_ns, known_ns) in
            [(50 * MS, 60 * MS), (10 * MS, 10 * MS), (10 * MS, 0), (9 * MS, 0), (8 * MS, 8 * MS)]
        {
            let undercut = rtt.is_undercut(service_ns, || {
                asked += 1;
                Some(known_ns)
            });
            assert_eq!(undercut, service_ns == 50 * MS, "{service_ns}");
        }
        assert_eq!(asked, 3);
        assert!(rtt.is_long(), "{rtt:?}");
        rtt.is_undercut(1, || Some(MS));
        assert!(!rtt.is_long(), "{rtt:?}");
    }
}
