//! Latencies in HdrHistograms: three digits, any range, merged without loss.
//!
//! Under a closed loop nearly every request has response time = service time = time
//! to first byte (the whole answer came in one read). Such a request is recorded
//! once, in `same`; the others in one histogram each. Put together at the end.

use crate::lazy::Lazy;

/// The times of the requests that ended well, and of connections.
#[derive(Debug, Default)]
pub struct Times {
    same: Lazy,
    latency: Lazy,
    service: Lazy,
    first_byte: Lazy,
    total: Lazy,
    connect: Lazy,
    handshake: Lazy,
    resumed: u64,
    send_lag: Lazy,
}

impl Times {
    /// Records so many requests: response time, service time, time to first byte, all in ns.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, service_ns: u64, first_byte_ns: u64, count: u64) {
        if latency_ns == service_ns && service_ns == first_byte_ns {
            self.same.record_times(latency_ns, count);
        } else {
            self.latency.record_times(latency_ns, count);
            self.service.record_times(service_ns, count);
            self.first_byte.record_times(first_byte_ns, count);
        }
    }

    /// Takes back one request that [`Times::record`] recorded with the same values.
    pub fn retract(&mut self, latency_ns: u64, service_ns: u64, first_byte_ns: u64) {
        if latency_ns == service_ns && service_ns == first_byte_ns {
            self.same.retract(latency_ns);
        } else {
            self.latency.retract(latency_ns);
            self.service.retract(service_ns);
            self.first_byte.retract(first_byte_ns);
        }
    }

    /// Records the set-up of one connection.
    pub fn record_connect(&mut self, value_ns: u64) {
        self.connect.record(value_ns);
    }

    /// Records one TLS handshake: from the established connection on; `resumed` when it took up an earlier session.
    pub fn record_handshake(&mut self, value_ns: u64, resumed: bool) {
        self.handshake.record(value_ns);
        self.resumed += u64::from(resumed);
    }

    /// Records how long after it could have been sent a request of an open loop was sent.
    #[inline]
    pub fn record_send_lag(&mut self, value_ns: u64) {
        self.send_lag.record(value_ns);
    }

    /// Records so many requests with their own connection: from the attempt to the last byte.
    pub fn record_total(&mut self, value_ns: u64, count: u64) {
        self.total.record_times(value_ns, count);
    }

    /// Takes back one [`Times::record_total`].
    pub fn retract_total(&mut self, value_ns: u64) {
        self.total.retract(value_ns);
    }

    /// Adds another thread's or host's times.
    pub fn merge(&mut self, other: &Times) {
        self.same.add(&other.same);
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.total.add(&other.total);
        self.connect.add(&other.connect);
        self.handshake.add(&other.handshake);
        self.resumed += other.resumed;
        self.send_lag.add(&other.send_lag);
    }

    fn with_same(&self, own: &Lazy) -> Option<String> {
        if own.is_unused() {
            return self.same.encoded();
        }
        let mut sum = own.clone();
        sum.add(&self.same);
        sum.encoded()
    }

    /// Response times: HdrHistogram V2 compressed, base64; none when empty.
    #[must_use]
    pub fn latency(&self) -> Option<String> {
        self.with_same(&self.latency)
    }

    /// Service times, in the same form.
    #[must_use]
    pub fn service(&self) -> Option<String> {
        self.with_same(&self.service)
    }

    /// Times to first byte, in the same form.
    #[must_use]
    pub fn first_byte(&self) -> Option<String> {
        self.with_same(&self.first_byte)
    }

    /// Connection attempt to last byte, in the same form.
    #[must_use]
    pub fn total(&self) -> Option<String> {
        self.total.encoded()
    }

    /// Lags of an open loop's sends, in the same form.
    #[must_use]
    pub fn send_lag(&self) -> Option<String> {
        self.send_lag.encoded()
    }

    /// TLS handshakes, in the same form.
    #[must_use]
    pub fn handshake(&self) -> Option<String> {
        self.handshake.encoded()
    }

    /// Handshakes in full, and those that took up an earlier session.
    #[must_use]
    pub fn handshakes(&self) -> (u64, u64) {
        let all = self.handshake.len();
        (all - self.resumed, self.resumed)
    }

    /// Connection set-up, in the same form.
    #[must_use]
    pub fn connect(&self) -> Option<String> {
        self.connect.encoded()
    }
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
        let counts = [times.latency(), times.service(), times.first_byte()]
            .map(|encoded| decoded(&encoded.expect("not empty")));
        assert_eq!(counts.each_ref().map(Hdr::len), [2, 2, 2]);
        assert_eq!(counts.each_ref().map(Hdr::max), [900, 700, 600]);
        assert_eq!(counts.each_ref().map(Hdr::min), [500, 500, 500]);
        assert_eq!(times.connect(), None, "nothing connected, so no histogram");
    }

    #[test]
    fn a_retracted_request_leaves_no_trace() {
        let mut times = Times::default();
        times.record(500, 500, 500, 1);
        times.record(900, 700, 600, 1);
        times.retract(500, 500, 500);
        times.retract(900, 700, 600);
        assert_eq!([times.latency(), times.service(), times.first_byte()], [None, None, None]);
    }

    #[test]
    fn merging_loses_nothing() {
        let (mut one, mut two) = (Times::default(), Times::default());
        one.record(1_000, 1_000, 1_000, 1);
        two.record(3_000_000_000_000, 2_000, 1_500, 1);
        two.record_connect(10);
        one.record_handshake(20, false);
        two.record_handshake(30, true);
        one.merge(&two);
        assert_eq!(one.handshakes(), (1, 1));
        assert_eq!(decoded(&one.handshake().expect("not empty")).max(), 30);
        assert_eq!(decoded(&one.latency().expect("not empty")).len(), 2);
        assert_eq!(decoded(&one.connect().expect("not empty")).max(), 10);
    }
}
