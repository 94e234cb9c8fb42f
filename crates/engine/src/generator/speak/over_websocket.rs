//! A conversation over WebSocket: the steps of a session, of which some are requests over HTTP/1, one
//! upgrades the connection, and the others are messages.

use trueload_drive::Net;
use trueload_meter::Messages;
use trueload_wire::exchange::{Disposition, Outcome};
use trueload_wire::message::Book;
use trueload_wire::websocket::conversation::{Client, Heard, Shared};

use crate::generator::carrier::Carrier;
use crate::generator::classes::class_of_ending;
use crate::generator::messages::DoneReport;

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

    /// See `Machine::handle_input`.
    // Within that of `Either`, it would keep HTTP from being compiled in one piece.
    #[inline(never)]
    pub(super) fn handle_input<T: Copy + PartialEq + 'static, B: Book<T>>(
        &mut self,
        client: &mut Client<T>,
        now_ns: u64,
        bytes: &[u8],
        book: &B,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        if !B::TALKS {
            return Disposition::Broken;
        }
        let shared = &mut self.shared;
        let disposition = client.handle_input(now_ns, bytes, book, shared, output, on_outcome);
        self.note_heard();
        disposition
    }

    /// See `Machine::send`.
    #[inline(never)]
    pub(super) fn send<T: Copy + PartialEq + 'static, B: Book<T>>(
        &mut self,
        client: &mut Client<T>,
        count: usize,
        book: &B,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        if !B::TALKS {
            return 0;
        }
        if count > 0 {
            client.wait_to_write();
        }
        if !client.waits_to_write() || !carrier.has_room() {
            return 0;
        }
        self.frames.clear();
        client.write(carrier.net.now_ns(), book, &mut self.shared, &mut self.frames);
        if !self.frames.is_empty() {
            carrier.send(&self.frames);
        }
        self.frames.len()
    }

    /// See `Machine::complete`.
    pub(super) fn complete(&mut self, report: &mut DoneReport) {
        report.meter.messages = Some(Box::new(std::mem::take(&mut self.messages)));
        for (ending, why) in self.shared.reasons() {
            report.reasons.extend(class_of_ending(*ending).map(|class| (class, why.clone())));
        }
    }
}
