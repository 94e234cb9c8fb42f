//! TCP echo as a generator's protocol: messages that must come back byte by byte.

use trueload_drive::Net;
use trueload_wire::echo::{Client, Messages};
use trueload_wire::exchange::{Disposition, Exchange, InOrder, Outcome, Output};

use crate::generator::carrier::Carrier;
use crate::generator::protocol::{ConnectionEnd, Facts, Input, Opened, Protocol};
use crate::generator::slot::Tag;

/// The TCP echo protocol for the connections of one thread.
#[derive(Clone, Debug)]
pub struct TcpEcho {
    messages: Messages,
    half_close: bool,
}

impl TcpEcho {
    /// Sends these messages in turn; with `half_close` our side ends behind each.
    pub fn new(messages: Messages, half_close: bool) -> Self {
        TcpEcho { messages, half_close }
    }
}

impl Protocol for TcpEcho {
    type Client = Client<Tag>;

    fn client(&self) -> Self::Client {
        Client::default()
    }

    fn facts(&self, _client: &Self::Client) -> Facts {
        Facts { peer_closes: self.half_close, ..Facts::default() }
    }

    fn open(&mut self, client: &mut Client<Tag>, _opened: Opened<'_>, _: &mut Output) -> bool {
        client.reset();
        false
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        client.handle_input(input.now_ns, input.received.bytes(), &self.messages, on_outcome)
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
    fn note_queued(&mut self, client: &mut Client<Tag>, _drawn: u64, bytes: usize) {
        client.note_unsent(bytes / self.messages.size());
    }

    fn bytes_from(&mut self, client: &mut Client<Tag>, _tag: &Tag, _drawn: u64) -> Option<usize> {
        Some(self.messages.size() * (client.outstanding() + 1))
    }

    #[inline]
    fn send(
        &mut self,
        client: &mut Client<Tag>,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        let messages = &self.messages;
        client.take(messages, count, |piece| carrier.send_shared(messages.bytes(), piece));
        if self.half_close {
            carrier.end_sending();
        }
        count * messages.size()
    }
}
