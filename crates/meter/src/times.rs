//! Latencies in HdrHistograms of any range, merged without loss. They have three significant
//! digits; the generator's own delays have two.
//!
//! Nearly every answer arrives whole in one read, so its service time equals its time to first
//! byte. It is then recorded only once, in `served`. The histograms are combined one after the
//! other at the end, because with 10,000 connections they are a fifth of all memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lazy::{Coarse, Lazy};

/// Histograms of times in ns: HdrHistogram V2, compressed, base64; null when empty. They hold
/// successful requests only; `connect` and `handshake` hold every established connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Histograms")]
pub struct EncodedTimes {
    /// Response time: from the scheduled send to the last byte.
    pub latency: Option<String>,
    /// Service time: from the actual send to the last byte.
    pub service: Option<String>,
    /// From the actual send to the first byte of the answer.
    pub first_byte: Option<String>,
    /// From the connection attempt to the last byte, if each request has its own connection.
    pub total: Option<String>,
    /// Set-up of a connection, including TLS. The first phase also has the connections opened
    /// before it.
    pub connect: Option<String>,
    /// TLS handshake: from the established connection to the end of the handshake. A part of
    /// `connect`.
    #[serde(default)]
    pub handshake: Option<String>,
    /// The delay of sends: from the time a request could have been sent to the time it was handed
    /// to the kernel.
    pub send_lag: Option<String>,
    /// The delay of receives: from the kernel's receive time of an answer's last byte to the time
    /// it was read, on a sample of connections.
    #[serde(default)]
    pub receive_lag: Option<String>,
    /// From the time a request was handed to the kernel to the kernel's receive time of its
    /// answer's last byte, on the same sample. It is the service time without the engine's own
    /// delays.
    #[serde(default)]
    pub round_trip: Option<String>,
}

/// The times of successful requests and of connections.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Service times that equal the time to first byte.
    served: Lazy,
    latency: Lazy,
    service: Lazy,
    first_byte: Lazy,
    total: Lazy,
    connect: Lazy,
    handshake: Lazy,
    resumed: u64,
    send_lag: Coarse,
    receive_lag: Coarse,
    round_trip: Lazy,
}

impl Times {
    /// Records `count` requests: response time, service time and time to first byte, all in ns.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, service_ns: u64, first_byte_ns: u64, count: u64) {
        self.latency.record_times(latency_ns, count);
        if service_ns == first_byte_ns {
            self.served.record_times(service_ns, count);
        } else {
            self.service.record_times(service_ns, count);
            self.first_byte.record_times(first_byte_ns, count);
        }
    }

    /// Takes back one request that [`Times::record`] recorded with the same values.
    pub fn retract(&mut self, latency_ns: u64, service_ns: u64, first_byte_ns: u64) {
        self.latency.retract(latency_ns);
        if service_ns == first_byte_ns {
            self.served.retract(service_ns);
        } else {
            self.service.retract(service_ns);
            self.first_byte.retract(first_byte_ns);
        }
    }

    /// Records the set-up of one connection.
    pub fn record_connect(&mut self, value_ns: u64) {
        self.connect.record(value_ns);
    }

    /// Records one TLS handshake, timed from the established connection on. `resumed` says whether
    /// it resumed an earlier session.
    pub fn record_handshake(&mut self, value_ns: u64, resumed: bool) {
        self.handshake.record(value_ns);
        self.resumed += u64::from(resumed);
    }

    /// Records `count` requests with the delay between when they could be sent and when they were
    /// handed to the kernel.
    #[inline]
    pub fn record_send_lag(&mut self, value_ns: u64, count: u64) {
        self.send_lag.record_times(value_ns, count);
    }

    /// Records the arrival of an answer: the time since its request was handed to the kernel, and
    /// the delay until it was read.
    #[inline]
    pub fn record_arrival(&mut self, round_trip_ns: u64, receive_lag_ns: u64) {
        self.round_trip.record(round_trip_ns);
        self.receive_lag.record(receive_lag_ns);
    }

    /// Records `count` requests with their own connection, timed from the attempt to the last byte.
    pub fn record_total(&mut self, value_ns: u64, count: u64) {
        self.total.record_times(value_ns, count);
    }

    /// Takes back one [`Times::record_total`].
    pub fn retract_total(&mut self, value_ns: u64) {
        self.total.retract(value_ns);
    }

    /// The number of full handshakes and of resumed ones.
    pub fn handshakes(&self) -> (u64, u64) {
        let all = self.handshake.len();
        (all - self.resumed, self.resumed)
    }

    /// Encodes all histograms; each is freed before the next is combined.
    pub fn encoded(self) -> EncodedTimes {
        let others = [self.latency, self.total, self.connect, self.handshake, self.round_trip];
        let [latency, total, connect, handshake, round_trip] = others.map(|times| times.encoded());
        let [send_lag, receive_lag] =
            [self.send_lag, self.receive_lag].map(|times| times.encoded());
        EncodedTimes {
            latency,
            first_byte: self.first_byte.encoded_with(&self.served),
            service: self.service.encoded_with(&self.served),
            total,
            connect,
            handshake,
            send_lag,
            receive_lag,
            round_trip,
        }
    }
}

crate::merged! {
    Times: served, latency, service, first_byte, total, connect, handshake, resumed, send_lag,
    receive_lag, round_trip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazy::{Hdr, decoded};

    #[test]
    fn requests_with_equal_times_enter_all_three_histograms_once() {
        let mut times = Times::default();
        times.record(500, 500, 500, 1);
        times.record(900, 700, 600, 1);
        times.record(950, 950, 600, 1);
        let encoded = times.encoded();
        assert_eq!(encoded.connect, None, "nothing connected, so no histogram");
        let counts = [encoded.latency, encoded.service, encoded.first_byte]
            .map(|encoded| decoded(&encoded.expect("not empty")));
        assert_eq!(counts.each_ref().map(Hdr::len), [3, 3, 3]);
        assert_eq!(counts.each_ref().map(Hdr::max), [950, 950, 600]);
        assert_eq!(counts.each_ref().map(|counts| counts.count_at(700)), [0, 1, 0]);
        assert_eq!(counts.each_ref().map(Hdr::min), [500, 500, 500]);
    }

    #[test]
    fn a_retracted_request_leaves_no_trace() {
        let mut times = Times::default();
        times.record(500, 500, 500, 1);
        times.record(900, 700, 600, 1);
        times.record(950, 950, 600, 1);
        times.retract(500, 500, 500);
        times.retract(900, 700, 600);
        times.retract(950, 950, 600);
        assert_eq!(times.encoded(), EncodedTimes::default());
    }

    #[test]
    fn merging_loses_nothing() {
        let (mut one, mut two) = (Times::default(), Times::default());
        one.record(1_000, 1_000, 1_000, 1);
        two.record(3_000_000_000_000, 2_000, 1_500, 1);
        two.record(4_000, 4_000, 1_500, 1);
        two.record_connect(10);
        one.record_arrival(700, 50);
        two.record_arrival(800, 60);
        one.record_handshake(20, false);
        two.record_handshake(30, true);
        two.record_handshake(25, false);
        one.record_send_lag(5, 2);
        two.record_send_lag(6, 1);
        two.record_total(90, 3);
        two.retract_total(90);
        one.merge(&two);
        assert_eq!(one.handshakes(), (2, 1));
        let merged = one.encoded();
        assert_eq!(decoded(&merged.send_lag.expect("not empty")).len(), 3);
        assert_eq!(decoded(&merged.total.expect("not empty")).len(), 2);
        assert_eq!(decoded(&merged.handshake.expect("not empty")).max(), 30);
        assert_eq!(decoded(&merged.round_trip.expect("not empty")).len(), 2);
        assert_eq!(decoded(&merged.receive_lag.expect("not empty")).max(), 60);
        assert_eq!(decoded(&merged.latency.expect("not empty")).len(), 3);
        assert_eq!(decoded(&merged.connect.expect("not empty")).max(), 10);
    }
}
