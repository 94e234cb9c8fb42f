//! Connects the kernel to the peers: delivers input to them and sends their output. Their bytes
//! cross the network as the generator's do.

use super::{Happening, Kernel};
use crate::peers::{Act, What};

/// Bytes that a slow peer reads at once.
const SLOW_BYTES: usize = 256;

impl Kernel {
    /// Takes what the peers of this thread do on connections of other threads.
    pub fn mail(&mut self) -> Vec<(u32, Act)> {
        self.peers.mail()
    }

    /// Schedules what a peer of another thread does on a connection of this one.
    pub fn deliver_mail(&mut self, act: Act) {
        self.plan_acts(vec![act]);
    }

    /// Tells the peer that a connection has reached it.
    pub(super) fn meet_peer(&mut self, at_ns: u64, index: u32) {
        let mut acts = Vec::new();
        self.peers.connected(index, at_ns, &mut acts);
        self.plan_acts(acts);
    }

    /// Lets the peer read bytes that leave now, as fast as it reads.
    pub(super) fn read_slowly(&mut self, index: u32, bytes: &[u8]) {
        let socket = &mut self.sockets[index as usize];
        let read_ns = socket.pace.read_ns;
        let most = if read_ns > 0 { SLOW_BYTES } else { bytes.len() };
        for piece in bytes.chunks(most) {
            let socket = &mut self.sockets[index as usize];
            socket.last_out_ns += read_ns * piece.len() as u64;
            let arrives_ns = socket.last_out_ns;
            self.later(arrives_ns, index, Happening::AtPeer(piece.to_vec()));
        }
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
        let Some(bytes) = self.through_proxy(at_ns, index, bytes, &mut acts) else { return acts };
        let bytes = &bytes[..];
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
                return self.write_slowly(index, sealed, answered);
            }
            What::SendRaw(bytes) => Happening::Bytes(bytes, None),
            What::GoOn => return,
            What::Fin => {
                if let Some(secured) = secured.filter(|_| socket.proxy.is_none()) {
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

    /// Sends bytes that a peer writes now, piece by piece if it is slow. The last piece settles a
    /// request.
    fn write_slowly(&mut self, index: u32, bytes: Vec<u8>, answered: Option<u64>) {
        let socket = &self.sockets[index as usize];
        let (most, every_ns) = socket.pace.writes.unwrap_or((bytes.len(), 0));
        let mut pieces = bytes.chunks(most.max(1)).peekable();
        while let Some(piece) = pieces.next() {
            let arrives_ns = self.sockets[index as usize].last_in_ns;
            let settles = answered.filter(|_| pieces.peek().is_none());
            self.later(arrives_ns, index, Happening::Bytes(piece.to_vec(), settles));
            self.sockets[index as usize].last_in_ns += every_ns;
        }
    }
}
