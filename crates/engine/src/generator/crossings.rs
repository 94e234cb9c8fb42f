//! Decides whether a reset under a request was the peer's own close of a kept connection, which the
//! request has crossed.
//!
//! A peer may end a kept connection at any time (RFC 9112 §9.5), and a client may repeat an
//! idempotent request that it has lost by that (RFC 9110 §9.2.2, RFC 9112 §9.3.1). Mostly such a
//! close comes as a FIN. It comes as a reset if the request arrived before the peer's `close` (RFC
//! 1122 §4.2.2.13), or if the peer no longer knows the connection. A peer that resets under its
//! requests for another reason must not pass as one that closes idle connections. So a reset has to
//! be explained, in one of two ways:
//!
//! - by the peer's idle time-out: the connection had been quiet for a second, and longer than any
//!   on which this peer has answered;
//! - by its other closes: it has ended more connections without a request's doing than it has reset
//!   under one. These are kept connections ended by a FIN, and others ended while nothing was
//!   asked.
//!
//! The same holds for a 408 that a request meets, and for the end of a connection that was idle
//! before its first request. They must come soon enough to have been sent before the request
//! arrived. If they come sooner than any answer can, they need no other explanation.
//!
//! Must not know: slots, requests and sockets.

/// No known server gives up a connection sooner by an idle time-out (Node and Apache httpd wait for
/// 5 s, gunicorn for 2 s).
const TIME_OUT_LEAST_NS: u64 = 1_000_000_000;

/// A response sent before a request arrived comes at most a round trip after the request, and may
/// then wait this long to be read.
const READ_LATE_NS: u64 = 1_000_000;

/// What one peer has done with kept connections.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    /// The longest quiet time after which it has answered.
    answered_after_ns: u64,
    /// Kept connections that it ended without a request's doing.
    closes: u64,
    /// Resets that these have explained.
    explained: u64,
    /// The shortest time it took to connect: no less than a round trip.
    round_trip_ns: Option<u64>,
}

impl Crossings {
    /// Notes an answer to a request that was sent after this quiet time.
    #[inline]
    pub(super) fn note_answer(&mut self, quiet_ns: u64) {
        self.answered_after_ns = self.answered_after_ns.max(quiet_ns);
    }

    /// Notes the time it took to establish a connection.
    pub(super) fn note_connected(&mut self, took_ns: u64) {
        let quickest_ns = self.round_trip_ns.get_or_insert(took_ns);
        *quickest_ns = took_ns.min(*quickest_ns);
    }

    /// Whether the peer gave up an idle connection before it had the request. `took_ns`: time from
    /// the send to the end that it met. `quiet_ns`: how long the connection had been kept quiet
    /// before the send.
    pub(super) fn crossed(&mut self, took_ns: u64, quiet_ns: u64) -> bool {
        let Some(round_trip_ns) = self.round_trip_ns else { return false };
        let in_time = took_ns <= 2 * round_trip_ns + READ_LATE_NS;
        in_time && (took_ns < round_trip_ns / 2 || self.explain(quiet_ns))
    }

    /// Notes that the peer has ended a kept connection by a FIN, or while nothing was asked on it.
    pub(super) fn note_close(&mut self) {
        self.closes += 1;
    }

    /// Whether a reset that came instead of an answer is explained, for a request sent after this
    /// quiet time.
    pub(super) fn explain(&mut self, quiet_ns: u64) -> bool {
        if quiet_ns >= TIME_OUT_LEAST_NS && quiet_ns > self.answered_after_ns {
            return true;
        }
        let explained = self.explained < self.closes;
        self.explained += u64::from(explained);
        explained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// This many answers, each after this quiet time in ms.
        Answers(u32, u64),
        Closes(u32),
        /// This many resets after this quiet time in ms, and how many of them are stale.
        Resets(u32, u64, u32),
    }

    #[test]
    fn a_reset_is_stale_where_the_peers_own_closes_or_its_idle_time_out_explain_it() {
        use Event::{Answers, Closes, Resets};
        #[rustfmt::skip]
        let table: [(&str, &[Event]); 12] = [
            ("each tenth request is reset in a closed loop", &[Answers(9, 0), Resets(1, 0, 0), Answers(9, 0), Resets(1, 0, 0)]),
            ("the first reset of all, not idle", &[Resets(1, 0, 0)]),
            ("an idle time-out that fires", &[Answers(100, 4_000), Resets(3, 5_000, 3)]),
            ("one that fires before any second answer", &[Resets(2, 5_000, 2)]),
            ("a connection that was idle for less than a time-out", &[Answers(10, 0), Resets(2, 900, 0)]),
            ("a connection that others have outlasted", &[Answers(1, 6_000), Resets(3, 5_000, 0)]),
            ("each tenth request is reset at a low rate", &[Answers(9, 2_000), Resets(1, 2_000, 0), Answers(9, 2_000), Resets(1, 2_000, 0)]),
            ("closes that mostly come as a FIN", &[Answers(99, 0), Closes(30), Resets(1, 0, 1), Closes(30), Resets(1, 0, 1)]),
            ("as many resets as closes", &[Closes(3), Resets(3, 0, 3)]),
            ("more resets than closes", &[Closes(3), Resets(10, 0, 3), Closes(1), Resets(2, 0, 1)]),
            ("resets before the closes that would explain them", &[Resets(1, 0, 0), Closes(1), Resets(2, 0, 1)]),
            ("an idle time-out uses up no close", &[Closes(1), Resets(2, 5_000, 2), Resets(2, 0, 1)]),
        ];
        for (sentence, events) in table {
            let mut crossings = Crossings::default();
            let quiet = |ms: u64| ms * 1_000_000;
            for event in events {
                match *event {
                    Answers(count, ms) => (0..count).for_each(|_| crossings.note_answer(quiet(ms))),
                    Closes(count) => (0..count).for_each(|_| crossings.note_close()),
                    Resets(count, ms, stale) => {
                        let found = (0..count).filter(|_| crossings.explain(quiet(ms))).count();
                        assert_eq!(found, stale as usize, "{sentence}: {event:?}");
                    }
                }
            }
        }
    }
}
