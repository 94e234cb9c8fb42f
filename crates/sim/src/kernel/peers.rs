//! Connects the kernel to the peers: delivers input to them and sends their output. Their bytes
//! cross the network as the generator's do.

use super::{Happening, Kernel};
use crate::peers::{Act, What};

impl Kernel {
    /// Takes what the peers of this thread do on connections of other threads.
    pub fn mail(&mut self) -> Vec<(u32, Act)> {
        self.peers.mail()
    }

    /// Schedules what a peer of another thread does on a connection of this one.
    pub fn deliver_mail(&mut self, act: Act) {
        self.plan_acts(vec![act]);
    }

    pub(super) fn at_peer(&mut self, at_ns: u64, index: u32, bytes: &[u8]) {
        if !self.peers.reads(index) {
            return;
        }
        let socket = &mut self.sockets[index as usize];
        socket.on_wire -= bytes.len();
        if !socket.outbox.is_empty() {
            self.later(at_ns + self.plan.latency_ns, index, Happening::Writable);
        }
        let acts = self.deliver_to_peer(at_ns, index, bytes);
        let open =
            self.peers.requests_on(index).saturating_sub(self.sockets[index as usize].answered);
        self.seen.requests_open_most = self.seen.requests_open_most.max(open);
        self.plan_acts(acts);
    }

    /// Delivers bytes to a peer and returns what it does in reply.
    pub(super) fn deliver_to_peer(&mut self, at_ns: u64, index: u32, bytes: &[u8]) -> Vec<Act> {
        let mut acts = Vec::new();
        let Some(secured) = &mut self.sockets[index as usize].secured else {
            self.peers.receive(index, at_ns, bytes, &mut acts);
            return acts;
        };
        let (plain, reply) = secured.take_in(bytes);
        if !reply.is_empty() {
            acts.push(Act { on: index, at_ns, what: What::SendRaw(reply) });
        }
        if !plain.is_empty() {
            self.peers.receive(index, at_ns, &plain, &mut acts);
        }
        acts
    }

    pub(super) fn plan_acts(&mut self, acts: Vec<Act>) {
        for Act { on, at_ns, what } in acts {
            self.later(at_ns, on, Happening::PeerActs(what));
        }
    }

    /// Carries out what the peer had planned, unless the peer knows that the connection is gone.
    pub(super) fn act(&mut self, at_ns: u64, index: u32, what: What) {
        if !self.sockets[index as usize].peer_alive {
            return;
        }
        if what == What::GoOn {
            let mut acts = Vec::new();
            self.peers.go_on(index, at_ns, &mut acts);
            return self.plan_acts(acts);
        }
        let way_ns = self.way_ns();
        let socket = &mut self.sockets[index as usize];
        socket.last_in_ns = socket.last_in_ns.max(at_ns + way_ns);
        let arrives_ns = socket.last_in_ns;
        let secured = socket.secured.as_mut();
        let happening = match what {
            What::Send(bytes, answered) => {
                let sealed = match secured {
                    Some(secured) => secured.seal(bytes),
                    None => bytes,
                };
                socket.answered += u64::from(answered.is_some());
                Happening::Bytes(sealed, answered)
            }
            What::SendRaw(bytes) => Happening::Bytes(bytes, None),
            What::GoOn => return,
            What::Fin => {
                if let Some(secured) = secured {
                    let close_notify = secured.close();
                    self.later(arrives_ns, index, Happening::Bytes(close_notify, None));
                }
                Happening::Fin
            }
            What::Reset => {
                socket.peer_alive = false;
                Happening::Reset
            }
        };
        self.later(arrives_ns, index, happening);
    }
}
