//! Peers that read and write slowly, and proxies before them.

use trueload_load::Load;

use super::{Bytes, End, Protocol, Scenario};

/// Most bytes of an exchange besides the bodies: fields, frames that mean nothing, and TLS.
const BESIDE_BYTES: u64 = 8_000;

/// How slowly a peer reads and writes. The default is as fast as the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Time to read a byte, in ns.
    pub read_ns: u64,
    /// The peer writes so many bytes at once, and then pauses for this time, in ns; none for all at
    /// once.
    pub writes: Option<(usize, u64)>,
}

/// What a proxy does when it is asked for a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Opens it, with this answer.
    Opens(Bytes),
    /// Sends this answer and opens none; then ends the connection.
    Refuses(Bytes, End),
}

impl Scenario {
    /// The request for a tunnel, if a proxy leads to the peers.
    #[must_use]
    pub fn tunnel(&self) -> Option<&'static [u8]> {
        let request = b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n";
        self.talk.as_ref().is_some_and(|talk| talk.tunnel).then_some(&request[..])
    }

    /// Maximum number of messages of a broadcast in flight. One peer may have to answer all of
    /// them.
    pub(super) fn in_flight_most(&self) -> u64 {
        let loads = self.phases.iter().map(|phase| match phase.load {
            Load::Turns { concurrent } => u64::from(concurrent),
            _ => 1,
        });
        loads.max().unwrap_or(1)
    }

    /// A generous upper bound on the time by which slow peers lengthen an exchange, in ns.
    pub(super) fn slowness_ns(&self) -> u64 {
        let depth = self.depth as u64 + 1;
        let body = match &self.protocol {
            Protocol::Http2(plan) => plan.body_bytes as u64,
            Protocol::Tcp { size, .. } | Protocol::Ws { size } | Protocol::Udp { size } => {
                *size as u64
            }
            _ => 0,
        };
        let more = self.talk.as_ref().map_or(0, super::Talk::more_bytes);
        let slowness = self.peers.iter().map(|manner| {
            let Pace { read_ns, writes } = manner.pace;
            let answer = manner.style.body_bytes() as u64 + more + body;
            let written_ns = writes.map_or(0, |(piece, every_ns)| {
                (depth * (answer + 400) + BESIDE_BYTES) / piece.max(1) as u64 * every_ns
            });
            (depth * (body + 400) + BESIDE_BYTES) * read_ns + written_ns
        });
        // A tunnel is one more exchange.
        slowness.max().unwrap_or(0) * if self.tunnel().is_some() { 2 } else { 1 }
    }
}
