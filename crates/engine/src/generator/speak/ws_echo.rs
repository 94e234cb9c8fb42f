//! Echo over WebSocket as a generator's protocol.
//!
//! Every frame is masked with a key of its own, so it is a copy for one connection and one request.
//! Messages are written only as far as the socket has room; the others follow when the waiting bytes
//! have left.

use trueload_drive::Net;
use trueload_meter::Class;
use trueload_wire::chance::Chance;
use trueload_wire::exchange::{Disposition, Outcome, Output};
use trueload_wire::websocket::Limits;
use trueload_wire::websocket::client::Opening;
use trueload_wire::websocket::echo::{Client, Outgoing, Shared};

use super::websocket::{deflate, facts, refused};
use crate::generator::carrier::Carrier;
use crate::generator::messages::DoneReport;
use crate::generator::protocol::{ConnectionEnd, Facts, Input, Opened, Protocol};
use crate::generator::slot::Tag;

/// Frames are collected into one write until they have this many bytes.
const WRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// The WebSocket echo protocol for the connections of one thread.
#[derive(Debug)]
pub struct WsEcho {
    shared: Shared,
    /// A buffer to write messages in.
    frames: Vec<u8>,
}

impl WsEcho {
    /// Creates connections that open with `opening` and send these words; `seed` determines keys
    /// and masks.
    pub fn new(opening: Opening, words: Outgoing, seed: u64) -> Self {
        let shared = Shared::new(opening, words, Limits::default(), Chance::new(seed));
        WsEcho { shared, frames: Vec::new() }
    }
}

impl Protocol for WsEcho {
    type Client = Client<Tag>;

    fn client(&self) -> Self::Client {
        Client::default()
    }

    fn facts(&self, client: &Self::Client) -> Facts {
        facts(Class::Unsolicited, self.shared.refusal().map(refused), client.is_upgraded())
    }

    fn complete(&mut self, report: &mut DoneReport) {
        report.meter.deflate = self.shared.take_deflated().map(deflate);
        let mismatch = self.shared.mismatch.first();
        report.reasons.extend(mismatch.map(|why| (Class::Mismatch, why.to_owned())));
    }

    fn open(&mut self, client: &mut Client<Tag>, opened: Opened<'_>, output: &mut Output) -> bool {
        client.open(&mut self.shared, opened.key, &mut output.bytes);
        true
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let (bytes, output) = (input.received.bytes(), &mut output.bytes);
        client.handle_input(input.now_ns, bytes, &mut self.shared, output, on_outcome)
    }

    fn handle_end(
        &mut self,
        client: &mut Client<Tag>,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        client.handle_end(end.now_ns, end.how, on_outcome);
    }

    #[inline]
    fn waits_to_write(&self, client: &Client<Tag>) -> bool {
        client.waits_to_write()
    }

    fn send(
        &mut self,
        client: &mut Client<Tag>,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        client.wait_to_write(count);
        let mut sent = 0;
        while client.waits_to_write() && carrier.has_room() {
            self.frames.clear();
            client.write(&mut self.shared, WRITTEN_AT_ONCE_BYTES, &mut self.frames);
            carrier.send(&self.frames);
            sent += self.frames.len();
        }
        sent
    }
}
