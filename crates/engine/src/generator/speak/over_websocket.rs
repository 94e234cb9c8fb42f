//! A conversation over WebSocket: the steps of a session, of which some are requests over HTTP/1, one
//! upgrades the connection, and the others are messages.

use std::fmt::Debug;

use trueload_drive::Net;
use trueload_meter::Messages;
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome, Output, PeerClose};
use trueload_wire::message::Book;
use trueload_wire::websocket::conversation::{Client, Heard, Shared};

use super::websocket::deflate;
use crate::generator::carrier::Carrier;
use crate::generator::classes::class_of_ending;
use crate::generator::machine::Machine;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{Facts, Received};

/// What all connections of a thread share.
#[derive(Debug)]
pub struct WebSocket {
    shared: Shared,
    /// A buffer to write in.
    frames: Vec<u8>,
    /// What came since the last report.
    messages: Messages,
}

impl WebSocket {
    /// Creates connections that share this.
    pub fn new(shared: Shared) -> Self {
        WebSocket { shared, frames: Vec::new(), messages: Messages::default() }
    }

    /// Moves what a connection has heard into the account.
    fn note_heard(&mut self) {
        let Heard { received, unexpected, gaps_ns, delivered_ns } = self.shared.heard();
        let counts = (std::mem::take(received), std::mem::take(unexpected));
        self.messages.record(counts, gaps_ns.drain(..), delivered_ns.drain(..));
    }
}

impl<T: Copy + PartialEq + Debug + 'static> Machine<T> for Client<T> {
    type Shared = WebSocket;

    const TALKS: bool = true;

    fn new(_shared: &WebSocket) -> Self {
        Client::default()
    }

    fn open(&mut self, _alpn: Option<&[u8]>, _shared: &WebSocket, _output: &mut Output) -> bool {
        self.reset();
        false
    }

    fn facts(&self, _shared: &WebSocket) -> Facts {
        Facts { peer_closes: true, ..Facts::default() }
    }

    #[inline]
    fn handle_input(
        &mut self,
        now_ns: u64,
        received: Received<'_>,
        book: &impl Book<T>,
        shared: &mut WebSocket,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let (bytes, out, own) = (received.bytes(), &mut output.bytes, &mut shared.shared);
        let disposition = Client::handle_input(self, now_ns, bytes, book, own, out, on_outcome);
        shared.note_heard();
        disposition
    }

    fn handle_end(
        &mut self,
        now_ns: u64,
        how: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        Client::handle_end(self, now_ns, how, book, on_outcome);
    }

    #[inline]
    fn note_queued(&mut self, bytes: usize, _book: &impl Book<T>) {
        self.note_unsent(usize::from(bytes > 0 && self.outstanding() > 0));
    }

    #[inline]
    fn waits_to_write(&self) -> bool {
        Client::waits_to_write(self)
    }

    #[inline]
    fn send(
        &mut self,
        count: usize,
        book: &impl Book<T>,
        shared: &mut WebSocket,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        if count > 0 {
            self.wait_to_write();
        }
        if !self.waits_to_write() || !carrier.has_room() {
            return 0;
        }
        let frames = &mut shared.frames;
        frames.clear();
        self.write(carrier.net.now_ns(), book, &mut shared.shared, frames);
        if !frames.is_empty() {
            carrier.send(frames);
        }
        frames.len()
    }

    fn complete(shared: &mut WebSocket, _follows: bool, report: &mut DoneReport) {
        report.meter.deflate = shared.shared.take_deflated().map(deflate);
        report.meter.messages = Some(Box::new(std::mem::take(&mut shared.messages)));
        for (ending, why) in shared.shared.reasons() {
            report.reasons.extend(class_of_ending(*ending).map(|class| (class, why.clone())));
        }
    }
}
