//! The protocol of one thread, with the buffers that all its connections write in.

use trueload_drive::{Net, Token};
use trueload_wire::exchange::Exchange;
use trueload_wire::tls::Buffers;

use super::carrier::Carrier;
use super::protocol::Protocol;
use super::slot::Slot;

/// What is said in answer to a peer, as a pong is, waits for it up to here.
const ANSWERS_BYTES_MOST: usize = 256 * 1024;

/// The protocol, and room to write in.
#[derive(Debug)]
pub(super) struct Codec<P> {
    pub(super) protocol: P,
    /// What the protocol says out of turn.
    pub(super) output: Vec<u8>,
    /// What TLS reads and writes in.
    pub(super) buffers: Buffers,
    sealed: Vec<u8>,
    /// Bytes of the longest request sent so far.
    longest: usize,
}

impl<P: Protocol> Codec<P> {
    pub(super) fn new(protocol: P) -> Self {
        let (output, buffers, sealed) = (Vec::new(), Buffers::default(), Vec::new());
        Codec { protocol, output, buffers, sealed, longest: 0 }
    }

    /// Send the `count` requests asked last; returns how many bytes they are.
    #[inline]
    pub(super) fn send(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
        count: usize,
        drawn: u64,
    ) -> usize {
        let tls = slot.tls.as_deref_mut();
        let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
        let bytes = self.protocol.send(&mut slot.client, count, drawn, &mut carrier);
        if bytes > count * self.longest {
            self.longest = bytes.div_ceil(count);
        }
        bytes
    }

    /// What waited in the driver has left: send what waited behind it; returns how many bytes that are.
    pub(super) fn send_waiting(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
    ) -> usize {
        let tls = slot.tls.as_deref_mut();
        let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
        carrier.seal_waiting();
        self.protocol.send_waiting(&mut slot.client, &mut carrier)
    }

    /// Send what the protocol has to say out of turn.
    #[inline]
    pub(super) fn send_output(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
    ) {
        if !self.output.is_empty() {
            let tls = slot.tls.as_deref_mut();
            Carrier { net, token, tls, sealed: &mut self.sealed }.send(&self.output);
        }
    }

    /// End our side of a connection.
    pub(super) fn take_leave(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
    ) {
        let tls = slot.tls.as_deref_mut();
        Carrier { net, token, tls, sealed: &mut self.sealed }.take_leave();
    }

    /// Tell the slot's machine what cannot have been answered: it has not left yet. False: the peer takes nothing, and so
    /// much waits for it that it cannot all be requests, of which there are up to `depth` more; it has to be closed.
    #[inline]
    pub(super) fn hold_back(
        &mut self,
        slot: &mut Slot<P::Client>,
        queued_bytes: usize,
        drawn: u64,
        depth: usize,
    ) -> bool {
        if queued_bytes == 0 {
            self.protocol.note_queued(&mut slot.client, drawn, 0);
            return true;
        }
        let queued = self.note_queued(slot, queued_bytes, drawn);
        let asked = slot.client.outstanding() + depth;
        queued <= asked * self.longest + ANSWERS_BYTES_MOST
    }

    /// Tell the slot's machine what waits of its bytes when so many are queued in the driver; returns it.
    #[cold]
    pub(super) fn note_queued(
        &mut self,
        slot: &mut Slot<P::Client>,
        queued_bytes: usize,
        drawn: u64,
    ) -> usize {
        let queued = slot.queued_plain(queued_bytes);
        self.protocol.note_queued(&mut slot.client, drawn, queued);
        queued
    }
}

impl<C> Slot<C> {
    /// What waits of the protocol's bytes when so many are queued in the driver.
    fn queued_plain(&self, queued_bytes: usize) -> usize {
        // Sealed, they are more than they were; behind them are those that wait to be.
        self.tls.as_ref().map_or(queued_bytes, |secure| {
            secure.sealed.plain_in(queued_bytes) + secure.waiting.len()
        })
    }
}
