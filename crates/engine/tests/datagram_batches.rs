//! Datagrams over the seam: a handshake over them, and answers that leave once per batch.
//!
//! The protocol is a toy around UDP echo. Its connection is open once the peer has said `ok`. From
//! then on it acknowledges each datagram with a byte, a number.

use trueload_drive::{Datagrams, Net, Program, Transport};
use trueload_engine::generator::{
    Carrier, Command, Config, ConnectionEnd, Input, Opened, Protocol, Received, Tag, UdpEcho,
};
use trueload_wire::echo::Messages;
use trueload_wire::exchange::{Disposition, Outcome, Output};

use crate::common::{Wire, config, conn, generator};

const MS: u64 = 1_000_000;

#[derive(Debug)]
struct Acknowledging {
    echo: UdpEcho,
    open: bool,
    acknowledged: Vec<u8>,
}

impl Protocol for Acknowledging {
    type Client = <UdpEcho as Protocol>::Client;

    fn client(&self) -> Self::Client {
        self.echo.client()
    }

    fn transport(&self) -> Transport {
        Transport::Datagram
    }

    fn open(&mut self, client: &mut Self::Client, opened: Opened<'_>, output: &mut Output) -> bool {
        self.echo.open(client, opened, output);
        output.datagrams.extend(b"hello");
        output.segment_bytes = 5;
        true
    }

    fn handle_input(
        &mut self,
        _client: &mut Self::Client,
        input: Input<'_>,
        _output: &mut Output,
        _on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Received::Datagrams(datagrams) = input.received else {
            return Disposition::Unsolicited;
        };
        for datagram in datagrams.iter() {
            self.open |= datagram == b"ok";
            self.acknowledged.push(self.acknowledged.len() as u8);
        }
        if self.open { Disposition::Open } else { Disposition::Opening }
    }

    fn handle_end(
        &mut self,
        client: &mut Self::Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        self.echo.handle_end(client, end, on_outcome);
    }

    fn waits_to_write(&self, _client: &Self::Client) -> bool {
        !self.acknowledged.is_empty()
    }

    fn send(
        &mut self,
        _client: &mut Self::Client,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        assert_eq!(count, 0, "there is no load");
        carrier.send_datagrams(&std::mem::take(&mut self.acknowledged), 1);
        0
    }
}

#[test]
fn a_handshake_takes_datagrams_and_what_a_batch_gives_to_send_leaves_at_its_end() {
    let messages = Messages::new(vec![0; 24].into(), 24).expect("even");
    let echo = UdpEcho::new(messages, 7);
    let protocol = Acknowledging { echo, open: false, acknowledged: Vec::new() };
    let (mut generator, commands, _reports) = generator(Config { ..config(100 * MS) }, protocol);
    let mut wire = Wire { now_ns: MS, ..Wire::default() };
    commands.send(Command::Connections(1)).expect("it listens");
    generator.handle_wake(&mut wire);
    generator.handle_connected(&mut wire, conn(0, 0));
    assert_eq!(wire.take_sent()[0].text(), "hello");
    // Not open yet: its handshake is acknowledged all the same, a block for each batch.
    for (batch, datagrams) in [(&[0][..], 1), (&[0, 1, 2][..], 3)] {
        for _ in 0..datagrams {
            generator.handle_datagrams(&mut wire, conn(0, 0), Datagrams::one(b"wait"));
        }
        assert_eq!(wire.blocks, 1, "nothing leaves within a batch");
        generator.handle_batch_end(&mut wire);
        assert_eq!((wire.bytes(), wire.blocks), (batch.to_vec(), 2));
        (wire.sent, wire.blocks) = (Vec::new(), 1);
    }
    generator.handle_datagrams(&mut wire, conn(0, 0), Datagrams::one(b"ok"));
    generator.handle_batch_end(&mut wire);
    assert_eq!((wire.bytes(), wire.blocks), (vec![0], 2), "open, and the same");
    // What is left of a closed connection goes nowhere.
    generator.handle_datagrams(&mut wire, conn(0, 0), Datagrams::one(b"more"));
    commands.send(Command::Stop).expect("it listens");
    generator.handle_wake(&mut wire);
    generator.handle_batch_end(&mut wire);
    assert_eq!(wire.blocks, 2);
}
