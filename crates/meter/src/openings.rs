//! Connections that are opened when their requests are due: each step of one, timed from then.
//!
//! The time from the attempt would leave out how long a connection had to wait before it was tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Lazy;

/// Steps of connections that are opened when their requests are due, each timed in ns from the
/// scheduled send: HdrHistogram V2, compressed, base64; null when empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Openings {
    /// Connections that were opened for sessions; 0 if each was for one request.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub sessions: u64,
    /// To the established connection, before any TLS.
    #[schemars(with = "Option<String>")]
    pub connect: Lazy,
    /// To the end of a full TLS handshake.
    #[schemars(with = "Option<String>")]
    pub full_handshake: Lazy,
    /// To the end of a TLS handshake that resumed an earlier session.
    #[schemars(with = "Option<String>")]
    pub resumed_handshake: Lazy,
    /// To the first byte of a good answer.
    #[schemars(with = "Option<String>")]
    pub first_byte: Lazy,
}

impl Openings {
    /// Records an established connection.
    pub fn record_connect(&mut self, since_due_ns: u64) {
        self.connect.record(since_due_ns);
    }

    /// Records the end of a handshake. `resumed` says whether it resumed an earlier session.
    pub fn record_handshake(&mut self, since_due_ns: u64, resumed: bool) {
        let of_kind = if resumed { &mut self.resumed_handshake } else { &mut self.full_handshake };
        of_kind.record(since_due_ns);
    }

    /// Records the first byte of `count` good answers.
    pub(crate) fn record_first_byte(&mut self, since_due_ns: u64, count: u64) {
        self.first_byte.record_times(since_due_ns, count);
    }

    /// Takes back one answer that turned out to be none.
    pub(crate) fn retract_first_byte(&mut self, since_due_ns: u64) {
        self.first_byte.retract(since_due_ns);
    }
}

crate::merged! { Openings: sessions, connect, full_handshake, resumed_handshake, first_byte }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazy::{Hdr, decoded};
    use crate::{Answered, Class, Meter};

    #[test]
    fn handshakes_are_told_apart_and_threads_add_up() {
        let (mut one, mut two) = (Openings::default(), Openings::default());
        one.record_connect(100);
        two.record_connect(300);
        one.record_handshake(500, false);
        two.record_handshake(200, true);
        two.record_handshake(250, true);
        one.merge(&two);
        let found = [&one.connect, &one.full_handshake, &one.resumed_handshake]
            .map(|times| decoded(&times.encoded().expect("not empty")));
        assert_eq!(found.each_ref().map(Hdr::len), [2, 1, 2]);
        assert_eq!(found.each_ref().map(Hdr::max), [300, 500, 250]);
        assert_eq!(one.first_byte.encoded(), None, "nothing was answered");
    }

    #[test]
    fn the_first_byte_counts_from_the_schedule_and_only_for_good_answers() {
        let mut meter = Meter::of_open_loop();
        meter.openings = Some(Box::default());
        // Due 400 before it was sent; the first byte came 50 after that, the last one 30 later.
        let answered =
            Answered { latency_ns: 480, service_ns: 80, first_byte_ns: 50, total_ns: None };
        meter.record_ok(&answered, 2);
        meter.retract_ok(&answered, Class::Unsolicited);
        let openings = meter.openings.expect("they are timed");
        let first_byte = decoded(&openings.first_byte.encoded().expect("not empty"));
        assert_eq!((first_byte.len(), first_byte.max()), (1, 450));
    }
}
