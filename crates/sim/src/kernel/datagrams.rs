//! Simulated datagrams. Each one travels to the peer and back by itself, or gets lost.
//!
//! The peer echoes every datagram. Losses, duplicates and reordering are made by the network.

use trueload_drive::{Datagrams, Program};

use super::{Happening, Kernel};
use crate::history::readable;

/// A datagram, and the time at which the generator handed it over, in ns.
pub(super) type Datagram = (Vec<u8>, u64);

impl Kernel {
    /// Sends the datagrams that wait on a socket.
    pub(super) fn flush_datagrams(&mut self, index: u32) {
        let handed_ns = self.clock_ns;
        for bytes in std::mem::take(&mut self.sockets[index as usize].datagrams_out) {
            let at_ns = handed_ns + self.way_ns();
            if !self.is_lost() {
                self.later(at_ns, index, Happening::DatagramAtPeer(bytes, handed_ns));
            }
        }
    }

    /// Delivers a datagram to the peer, which echoes it.
    pub(super) fn datagram_at_peer(&mut self, at_ns: u64, index: u32, datagram: Datagram) {
        self.seen.datagrams_at_peers += 1;
        let peers = &self.scenario.peers;
        let delay = peers[index as usize % peers.len()].delay;
        let delay_ns = self.chance.between(delay.least_ns, delay.most_ns);
        let twice = self.plan.twice_one_in > 0 && self.chance.one_in(self.plan.twice_one_in);
        for _ in 0..1 + u64::from(twice) {
            let arrives_ns = at_ns + delay_ns + self.way_ns();
            if !self.is_lost() {
                self.later(arrives_ns, index, Happening::Datagram(datagram.0.clone(), datagram.1));
            }
        }
        self.seen.datagrams_twice += u64::from(twice);
    }

    fn is_lost(&mut self) -> bool {
        self.plan.lost_one_in > 0 && self.chance.one_in(self.plan.lost_one_in)
    }

    /// Delivers waiting datagrams to the program in one call, as many as the kernel returns at
    /// once. Returns false if none waits.
    pub(super) fn read_datagrams(&mut self, program: &mut impl Program, index: u32) -> bool {
        let most = if self.plan.read_random { self.chance.between(1, 8) } else { 64 };
        let read_ns = self.read_ns;
        let socket = &mut self.sockets[index as usize];
        let Some((first, _)) = socket.datagrams_in.front().filter(|_| socket.open) else {
            return false;
        };
        let (conn, segment_bytes, mut bytes) = (socket.conn(index), first.len(), Vec::new());
        let arrived_ns = socket.watched.then_some(socket.arrived_ns);
        for _ in 0..most {
            let Some((datagram, handed_ns)) = socket.datagrams_in.pop_front() else { break };
            bytes.extend_from_slice(&datagram);
            self.seen.service_ns.push(read_ns.saturating_sub(handed_ns));
        }
        self.clock_ns += self.plan.input_cost_ns;
        self.note("datagrams", index.into(), &bytes, || format!("#{index} {}", readable(&bytes)));
        let datagrams = Datagrams { bytes: &bytes, segment_bytes, ecn: 0, path: None };
        self.seen.bytes_read += datagrams.bytes.len() as u64;
        self.arrived_ns = arrived_ns;
        program.handle_datagrams(self, conn, datagrams);
        self.arrived_ns = None;
        true
    }
}
