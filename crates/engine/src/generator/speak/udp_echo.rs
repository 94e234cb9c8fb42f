//! UDP echo as a generator's protocol: each datagram must come back, in any order.

use trueload_drive::{Datagrams, Net, Transport};
use trueload_wire::chance::Chance;
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Disposition, Outcome};
use trueload_wire::udp_echo::{Client, Counts};

use crate::generator::carrier::Carrier;
use crate::generator::protocol::{ConnectionEnd, Input, Protocol};
use crate::generator::slot::Tag;

/// The UDP echo protocol for the sockets of one thread.
#[derive(Clone, Debug)]
pub struct UdpEcho {
    messages: Messages,
    /// The source of the connections' random numbers.
    chance: Chance,
    /// The buffer for datagrams that leave together.
    out: Vec<u8>,
}

impl UdpEcho {
    /// Sends these messages in turn, behind the numbers of each datagram.
    #[must_use]
    pub fn new(messages: Messages, seed: u64) -> Self {
        UdpEcho { messages, chance: Chance::new(seed), out: Vec::new() }
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

    fn peer_closes(&self, _client: &Self::Client) -> bool {
        false
    }

    fn open(&mut self, client: &mut Client<Tag>, _key: u32, _output: &mut Vec<u8>) -> bool {
        client.open(self.chance.draw());
        false
    }

    fn handle_input(
        &mut self,
        _client: &mut Client<Tag>,
        _input: Input<'_>,
        _output: &mut Vec<u8>,
        _on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        Disposition::Unsolicited
    }

    fn handle_datagrams(
        &mut self,
        client: &mut Client<Tag>,
        now_ns: u64,
        datagrams: Datagrams<'_>,
        found: &mut trueload_meter::Datagrams,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let mut counts = Counts::default();
        for datagram in datagrams.iter() {
            client.handle_datagram(now_ns, datagram, &self.messages, &mut counts, on_outcome);
        }
        let Counts { late, duplicated, reordered, unsolicited } = counts;
        found.merge(&trueload_meter::Datagrams {
            late,
            duplicated,
            reordered,
            unsolicited,
            ..Default::default()
        });
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
