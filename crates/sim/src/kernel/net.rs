//! The calls that a generator makes to the kernel: the implementation of [`Net`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use trueload_drive::{
    Coalescing, ConnectError, Datagrams, HandOver, Net, Remote, ThreadUse, Token,
};

use super::secure::{Secured, UNIX_NS};
use super::socket::Socket;
use super::{CLOCK_COST_NS, Happening, Kernel};
use crate::history::readable;
use crate::scenario::Accept;

impl Kernel {
    /// Accounts for bytes added to a socket's send queue, and sends them if sends leave at once.
    fn sent(&mut self, index: u32, len: usize) {
        let socket = &mut self.sockets[index as usize];
        socket.sent += len as u64;
        self.seen.bytes_sent += len as u64;
        self.seen.sends.push((self.read_ns, socket.key, len));
        let waiting = socket.outbox.len();
        if !self.plan.together {
            return self.send_now(index);
        }
        if socket.in_flight == 0 {
            socket.in_flight = waiting;
            self.unhanded.push(index);
        }
    }

    fn send_now(&mut self, index: u32) {
        self.sending_since_ns.get_or_insert(self.clock_ns);
        self.clock_ns += self.plan.send_cost_ns;
        self.flush(index);
    }

    fn live(&mut self, token: Token) -> Option<&mut Socket> {
        self.sockets.get_mut(token.index as usize).filter(|socket| socket.open)
    }
}

impl Net for Kernel {
    fn now_ns(&self) -> u64 {
        self.read_ns
    }

    fn read_clock(&mut self) {
        self.clock_ns += CLOCK_COST_NS;
        self.read_ns = self.clock_ns;
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.busy_ns
    }

    fn thread_use(&self) -> ThreadUse {
        // A reading that fails reports only the time on a CPU. This happens in a process without a
        // free file descriptor.
        let hidden = self.plan.hides_waits && self.busy_ns & 1 == 0;
        let waited_ns = if hidden { 0 } else { self.waited_ns };
        ThreadUse { cpu_ns: self.busy_ns, wanted_ns: self.busy_ns + waited_ns }
    }

    fn wake_promptly(&mut self, promptly: bool) {
        self.seen.prompt.push((self.read_ns, promptly));
    }

    fn stay_awake_until(&mut self, at_ns: u64) {
        self.seen.awake.push((self.read_ns, at_ns));
    }

    fn unix_time(&self) -> Duration {
        Duration::from_nanos(UNIX_NS + self.read_ns)
    }

    fn can_coalesce(&self) -> bool {
        self.plan.coalesces
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        self.coalescing = coalescing;
    }

    fn watch_arrivals(&mut self, token: Token) {
        if let Some(socket) = self.live(token) {
            socket.watched = true;
        }
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.arrived_ns
    }

    fn unacknowledged_bytes(&mut self, token: Token) -> Option<u64> {
        self.live(token).map(|socket| socket.on_wire as u64)
    }

    /// The shortest round trip, which no packet of the scenario beats.
    fn least_rtt_ns(&mut self, _: Token) -> Option<u64> {
        Some(2 * self.plan.latency_ns)
    }

    fn connect(&mut self, key: u32, to: Remote<'_>) -> Result<Token, ConnectError> {
        self.clock_ns += self.plan.send_cost_ns;
        let index = self.sockets.len() as u32;
        let accept = if *to.address == self.addresses[0] {
            Accept::Refused
        } else {
            self.seen.attempts += 1;
            let origin = self.addresses.iter().position(|known| known == to.address);
            // Behind the dead address stand those of the origins.
            self.peers.attempt(index, origin.map_or(0, |at| at.saturating_sub(1) as u32))
        };
        self.note("connects", u64::from(index), b"", || {
            format!("#{index}, slot {key}, {accept:?}")
        });
        match accept {
            Accept::Unreachable => return Err(ConnectError::Unreachable),
            Accept::NoPort => return Err(ConnectError::Ports),
            Accept::Busy => return Err(ConnectError::Busy),
            _ => {}
        }
        let mut socket = Socket::new(key, self.clock_ns);
        socket.secured = self.tls.as_ref().map(|tls| Secured::new(tls, self.peers.alpn(index)));
        socket.pace = self.peers.pace(index);
        socket.proxy = self.scenario.tunnel().map(|_| Vec::new());
        self.sockets.push(socket);
        self.open += 1;
        self.seen.open_most = self.seen.open_most.max(self.open);
        let at_ns = self.clock_ns + self.way_ns() + self.way_ns();
        match accept {
            Accept::Refused => self.later(at_ns, index, Happening::Refused),
            Accept::Yes => self.later(at_ns, index, Happening::Connected),
            Accept::Reset => {
                self.later(at_ns, index, Happening::Connected);
                self.later(at_ns, index, Happening::Reset);
            }
            _ => {}
        }
        Ok(Token { index, generation: 0 })
    }

    fn send(&mut self, token: Token, bytes: &[u8]) {
        let Some(socket) = self.live(token) else { return };
        socket.outbox.push(bytes);
        socket.copied += bytes.len();
        let index = token.index;
        self.note("sends", index.into(), bytes, || format!("#{index} {}", readable(bytes)));
        self.sent(index, bytes.len());
        let socket = &self.sockets[index as usize];
        self.seen.copied_most = self.seen.copied_most.max(socket.copied.min(socket.outbox.len()));
    }

    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        let Some(socket) = self.live(token) else { return };
        socket.outbox.push_shared(bytes, range.clone());
        let (index, bytes) = (token.index, &bytes[range]);
        self.note("sends", index.into(), bytes, || format!("#{index} {}", readable(bytes)));
        self.sent(index, bytes.len());
    }

    fn send_datagrams(&mut self, token: Token, datagrams: Datagrams<'_>) {
        let index = token.index;
        let Some(socket) = self.live(token) else { return };
        socket.datagrams_out.extend(datagrams.iter().map(<[u8]>::to_vec));
        let bytes = datagrams.bytes;
        self.seen.bytes_sent += bytes.len() as u64;
        self.note("sends", index.into(), bytes, || format!("#{index} {}", readable(bytes)));
        if self.plan.together {
            return self.unhanded.push(index);
        }
        self.send_now(index);
    }

    fn hand_over(&mut self) -> HandOver {
        let began_ns = self.sending_since_ns.take().unwrap_or(self.clock_ns);
        self.hand_over_all();
        self.clock_ns += CLOCK_COST_NS;
        self.seen.hand_over_most_ns = self.seen.hand_over_most_ns.max(self.clock_ns - began_ns);
        HandOver { began_ns, ended_ns: self.clock_ns }
    }

    fn end_sending(&mut self, token: Token) {
        let Some(socket) = self.live(token) else { return };
        socket.ending = true;
        self.note("half ends", token.index.into(), b"", || format!("#{}", token.index));
        if self.sockets[token.index as usize].outbox.is_empty() {
            self.end_if_asked(token.index);
        }
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        self.sockets[token.index as usize].outbox.len()
    }

    fn queued_bytes(&self, token: Token) -> usize {
        let socket = &self.sockets[token.index as usize];
        // Over io_uring, a send in progress counts as sent.
        let in_flight = if self.plan.together { socket.in_flight } else { 0 };
        socket.outbox.len().saturating_sub(in_flight)
    }

    fn close(&mut self, token: Token) {
        if self.shut(token.index) {
            self.note("closes", token.index.into(), b"", || format!("#{}", token.index));
            let at_ns = self.sockets[token.index as usize].last_out_ns.max(self.clock_ns);
            self.later(at_ns + self.plan.latency_ns, token.index, Happening::GoneAtPeer);
        }
    }

    fn reset(&mut self, token: Token) {
        self.seen.resets += u64::from(self.live(token).is_some());
        self.close(token);
    }

    fn finish(&mut self, token: Token) {
        self.close(token);
    }
}
