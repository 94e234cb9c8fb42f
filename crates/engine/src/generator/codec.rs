//! The protocol of one thread, with the buffers shared by all its connections.

use trueload_drive::{Net, Token};
use trueload_wire::exchange::{Exchange, Output};
use trueload_wire::tls::Buffers;

use super::carrier::Carrier;
use super::protocol::Protocol;
use super::slot::Slot;

/// Most bytes of answers to a peer, such as pongs, that may wait for it.
const ANSWERS_BYTES_MOST: usize = 256 * 1024;

/// The protocol and its buffers.
#[derive(Debug)]
pub(super) struct Codec<P> {
    pub(super) protocol: P,
    /// What the protocol sends out of turn.
    pub(super) output: Output,
    /// The buffers that TLS reads and writes in.
    pub(super) buffers: Buffers,
    sealed: Vec<u8>,
    /// Bytes of the longest request sent so far.
    longest: usize,
}

impl<P: Protocol> Codec<P> {
    pub(super) fn new(protocol: P) -> Self {
        let (output, buffers, sealed) = (Output::default(), Buffers::default(), Vec::new());
        Codec { protocol, output, buffers, sealed, longest: 0 }
    }

    /// Sends the `count` requests asked last; returns their number of bytes.
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

    /// Sends waiting bytes once those in the driver have left; returns their number of bytes.
    pub(super) fn send_waiting(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
        drawn: u64,
    ) -> usize {
        let tls = slot.tls.as_deref_mut();
        let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
        carrier.seal_waiting();
        if self.protocol.waits_to_write(&slot.client) {
            self.protocol.send(&mut slot.client, 0, drawn, &mut carrier)
        } else {
            0
        }
    }

    /// Sends what the protocol has to send out of turn.
    #[inline]
    pub(super) fn send_output(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
    ) {
        let Output { bytes, datagrams, segment_bytes } = &self.output;
        let tls = slot.tls.as_deref_mut();
        let mut carrier = Carrier { net, token, tls, sealed: &mut self.sealed };
        if !bytes.is_empty() {
            carrier.send(bytes);
        }
        if !datagrams.is_empty() {
            carrier.send_datagrams(datagrams, *segment_bytes);
        }
    }

    /// Ends our side of a connection.
    pub(super) fn take_leave(
        &mut self,
        net: &mut impl Net,
        slot: &mut Slot<P::Client>,
        token: Token,
    ) {
        let tls = slot.tls.as_deref_mut();
        Carrier { net, token, tls, sealed: &mut self.sealed }.take_leave();
    }

    /// Tells the slot's machine what cannot have been answered, because it has not left yet. False
    /// if the connection must be closed: the peer takes nothing, and more bytes wait for it than
    /// requests can explain, of which there are up to `depth` more.
    #[inline]
    pub(super) fn note_unsent(
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

    /// Tells the slot's machine how many of its bytes wait when `queued_bytes` are queued in the
    /// driver; returns that number.
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
    /// The number of the protocol's bytes that wait when `queued_bytes` are queued in the driver.
    fn queued_plain(&self, queued_bytes: usize) -> usize {
        // Sealed bytes are more than they were before; behind them are those that wait to be
        // sealed.
        self.tls.as_ref().map_or(queued_bytes, |secure| {
            secure.sealed.plain_in(queued_bytes) + secure.waiting.len()
        })
    }
}
