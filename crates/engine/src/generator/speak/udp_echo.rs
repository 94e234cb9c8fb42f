//! UDP echo as a generator's protocol: each datagram must come back, in any order.

use trueload_drive::{Net, Transport};
use trueload_wire::chance::Chance;
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Disposition, Outcome, Output};
use trueload_wire::udp_echo::{Client, Counts};

use crate::generator::carrier::Carrier;
use crate::generator::protocol::{ConnectionEnd, Input, Opened, Protocol, Received};
use crate::generator::slot::Tag;

/// The UDP echo protocol for the sockets of one thread.
#[derive(Clone, Debug)]
pub struct UdpEcho {
    messages: Messages,
    /// The source of the connections' random numbers.
    chance: Chance,
    /// The buffer for datagrams that leave together.
    out: Vec<u8>,
    /// Datagrams that settled nothing, or not in their turn.
    counts: Counts,
}

impl UdpEcho {
    /// Sends these messages in turn, behind the numbers of each datagram.
    pub fn new(messages: Messages, seed: u64) -> Self {
        let (out, counts) = (Vec::new(), Counts::default());
        UdpEcho { messages, chance: Chance::new(seed), out, counts }
    }
}

impl Protocol for UdpEcho {
    type Client = Client<Tag>;

    fn client(&self) -> Self::Client {
        Client::default()
    }

    fn transport(&self) -> Transport {
        Transport::Datagram
    }

    fn open(&mut self, client: &mut Client<Tag>, _opened: Opened<'_>, _: &mut Output) -> bool {
        client.open(self.chance.draw());
        false
    }

    fn handle_input(
        &mut self,
        client: &mut Client<Tag>,
        input: Input<'_>,
        _output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Received::Datagrams(datagrams) = input.received else {
            return Disposition::Unsolicited;
        };
        let (messages, counts) = (&self.messages, &mut self.counts);
        for datagram in datagrams.iter() {
            client.handle_datagram(input.now_ns, datagram, messages, counts, on_outcome);
        }
        Disposition::Open
    }

    fn take_datagrams(&mut self) -> trueload_meter::Datagrams {
        let Counts { late, duplicated, reordered, unsolicited } = std::mem::take(&mut self.counts);
        let others = trueload_meter::Datagrams::default();
        trueload_meter::Datagrams { late, duplicated, reordered, unsolicited, ..others }
    }

    fn handle_end(
        &mut self,
        client: &mut Client<Tag>,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        client.handle_end(end.now_ns, end.how, on_outcome);
    }

    fn send(
        &mut self,
        client: &mut Client<Tag>,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.out.clear();
        client.write(count, &self.messages, &mut self.out);
        carrier.send_datagrams(&self.out, self.messages.size());
        self.out.len()
    }
}
