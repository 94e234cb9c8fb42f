//! Broadcast as a generator's protocol: a message from one client goes to all, and every delivery
//! is settled.
//!
//! A connection is usable once it is upgraded, joined in the dialect's way, and an echo has come
//! back. A request is one message, answered by the sender's receipt; deliveries are tracked
//! separately, in [`UnderWay`]. If the peer errs on a client, we close the client and expect
//! nothing more for it. A client that the peer closes loses its outstanding deliveries.
//!
//! With several engines, each settles what arrives at its own clients. Clients are slots here; as
//! senders, they have numbers over all engines. Their messages carry stamps, so that every engine
//! can time them.

mod client;
mod concluding;
mod program;
mod sending;
mod turns;
mod under_way;

use trueload_drive::Net;
use trueload_meter::{Answered, Class};
use trueload_wire::chance::Chance;
use trueload_wire::exchange::{Disposition, Ending, Exchange, Outcome, Output, PeerClose};
use trueload_wire::message;
use trueload_wire::shootout::{self, Dialect, Joining, Key, STAMP_BYTES};
use trueload_wire::websocket::client::{Awaited, Opening};
use trueload_wire::websocket::{self, Event, Fault, Kind, Limits, Mismatch, Scratch, send};

use super::websocket::{class_of_fault, facts, refused};
use crate::generator::DoneReport;
use crate::generator::carrier::Carrier;
use crate::generator::protocol::{
    ConnectionEnd, Facts, Input, OpenError, Opened, Protocol, Received,
};
use crate::generator::slot::Tag;
use client::{Client, State};
pub use program::Broadcasting;
use under_way::UnderWay;

/// The number of the echo that ends a join; a client's broadcasts begin with 1.
const ECHO: u32 = 0;

/// The broadcast protocol for the connections of one thread.
#[derive(Debug)]
pub struct Broadcast {
    opening: Opening,
    dialect: Dialect,
    padding: Box<[u8]>,
    /// A stamp, and the padding behind it.
    stamped: Box<[u8]>,
    under_way: UnderWay,
    chance: Chance,
    limits: Limits,
    scratch: Scratch,
    /// A message, and the frames to be sent, before masking.
    message: Vec<u8>,
    frames: Vec<u8>,
    refused: Option<OpenError>,
    violation: Class,
    mismatch: Mismatch,
}

impl Broadcast {
    /// Creates clients of `dialect` that open with `opening` and wait for deliveries as long as
    /// `timeout_ns`. Messages carry `padding` bytes beside their keys.
    pub fn new(
        opening: Opening,
        dialect: Dialect,
        padding: u32,
        timeout_ns: u64,
        seed: u64,
    ) -> Self {
        Broadcast {
            opening,
            dialect,
            padding: vec![b'x'; padding as usize].into(),
            stamped: vec![b'x'; STAMP_BYTES + padding as usize].into(),
            under_way: UnderWay::new(timeout_ns),
            chance: Chance::new(seed),
            limits: Limits::default(),
            scratch: Scratch::default(),
            message: Vec::new(),
            frames: Vec::new(),
            refused: None,
            violation: Class::Unsolicited,
            mismatch: Mismatch::default(),
        }
    }

    /// Makes this engine `index` of the `of` engines that share the broadcast and the `seed` of its
    /// stamps.
    #[must_use]
    pub fn of_part(self, index: u32, of: u32, seed: u64) -> Self {
        Broadcast { under_way: self.under_way.of_part(index, of, seed), ..self }
    }

    /// The interval at which each client must send a heartbeat, in ns.
    fn heartbeat_ns(&self) -> Option<u64> {
        self.dialect.heartbeat_ns()
    }

    /// Writes a heartbeat.
    fn write_heartbeat(&mut self, output: &mut Vec<u8>) {
        self.message.clear();
        self.dialect.write_heartbeat(&mut self.message);
        write_frame(self.dialect, &self.message, &mut self.chance, output);
    }

    fn refuse(&mut self, why: websocket::HandshakeError) -> Disposition {
        self.refused = Some(refused(why));
        Disposition::Refused
    }

    /// Handles bytes of the answer to the upgrade; bytes behind the answer are handled at once.
    fn upgrade(
        &mut self,
        client: &mut Client,
        mut awaited: Box<Awaited>,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        match awaited.feed(&self.opening, input.received.bytes(), &message::Limits::default()) {
            Ok(None) => {
                client.state = State::Upgrading(awaited);
                Disposition::Opening
            }
            Ok(Some(taken)) => {
                self.message.clear();
                let echo = Key { sender: client.number, sequence: ECHO };
                let (dialect, padding) = (self.dialect, &self.padding);
                let joining = Joining::start(dialect, echo, padding, &mut self.message);
                client.state = State::Joining(joining);
                write_frame(dialect, &self.message, &mut self.chance, output);
                let received = Received::Bytes(&input.received.bytes()[taken..]);
                let rest = Input { received, ..input };
                self.listen(client, rest, output, on_outcome)
            }
            Err(error) => self.refuse(error.into()),
        }
    }

    /// Handles incoming frames.
    #[inline]
    fn listen(
        &mut self,
        client: &mut Client,
        input: Input<'_>,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let Input { now_ns, key: slot, received, .. } = input;
        let bytes = received.bytes();
        let mut receiver = std::mem::replace(
            &mut client.receiver,
            websocket::Receiver::new(websocket::Role::Client),
        );
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut fault, limits) = (None, self.limits);
        let fed = receiver.feed(bytes, &limits, &mut scratch, &mut |event| {
            if fault.is_some() {
                return;
            }
            fault = match event {
                Event::Message { kind, payload } => {
                    let wrong = Fault::of_kind(kind, self.dialect);
                    if wrong.is_none() && self.under_way.recognise(payload, slot, now_ns) {
                        return;
                    }
                    wrong.or_else(|| self.parse(client, now_ns, payload, output, on_outcome).err())
                }
                Event::Ping(payload) => {
                    send::pong(output, payload, Some(self.chance.mask()));
                    None
                }
                Event::Pong(_) => None,
                Event::Close { code, .. } => {
                    send::close(output, code, "", Some(self.chance.mask()));
                    Some(Fault::Closed)
                }
            };
        });
        self.scratch = scratch;
        client.receiver = receiver;
        if let (None, Err(error)) = (fault, fed) {
            send::close(output, Some(error.close_code()), "", Some(self.chance.mask()));
            fault = Some(error.into());
        }
        match fault {
            None if matches!(client.state, State::Joining(Joining::Done)) => Disposition::Open,
            None => Disposition::Opening,
            Some(fault) => self.give_way(client, now_ns, fault, on_outcome),
        }
    }

    /// Handles a message that is not recognised by its bytes.
    fn parse(
        &mut self,
        client: &mut Client,
        now_ns: u64,
        message: &[u8],
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Result<(), Fault> {
        let parsed = if self.under_way.is_shared() {
            self.dialect.parse_stamped(message, &self.padding)
        } else {
            self.dialect.parse(message, &self.padding)
        };
        match client.state {
            State::Joining(Joining::Done) => {
                self.take_in(client, now_ns, parsed, message, on_outcome)
            }
            State::Joining(joining) => {
                self.message.clear();
                let echo = Key { sender: client.number, sequence: ECHO };
                let next = joining.handle_message(
                    self.dialect,
                    parsed,
                    echo,
                    &self.padding,
                    &mut self.message,
                );
                let next = next?;
                write_frame(self.dialect, &self.message, &mut self.chance, output);
                client.state = State::Joining(next);
                if next == Joining::Done {
                    self.under_way.ledger.join(client.slot);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles a parsed message of a listener.
    fn take_in(
        &mut self,
        client: &mut Client,
        now_ns: u64,
        parsed: shootout::Parsed,
        message: &[u8],
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Result<(), Fault> {
        match parsed {
            shootout::Parsed::Broadcast(key) => {
                let known = self.under_way.deliver(key, None, message, client.slot, now_ns);
                if known { Ok(()) } else { Err(Fault::Unsolicited) }
            }
            shootout::Parsed::Stamped(key, stamp) => {
                let known = self.under_way.deliver(key, Some(stamp), message, client.slot, now_ns);
                if known { Ok(()) } else { Err(Fault::Unsolicited) }
            }
            shootout::Parsed::Result(key, _) => {
                let tag = (key.sender == client.number).then(|| client.settle(key.sequence));
                let tag = tag.flatten().ok_or(Fault::Unsolicited)?;
                let answered = Answered {
                    latency_ns: now_ns - tag.scheduled_ns,
                    service_ns: now_ns.saturating_sub(tag.sent_ns),
                    first_byte_ns: now_ns.saturating_sub(tag.sent_ns),
                    total_ns: None,
                };
                on_outcome(Outcome::answered(tag, Ending::Ok, now_ns));
                self.under_way.receive(key, tag.phase, answered);
                Ok(())
            }
            shootout::Parsed::Echo(_) => Err(Fault::Unsolicited),
            shootout::Parsed::Error(wrong) => {
                if matches!(wrong, shootout::Wrong::Foreign | shootout::Wrong::Altered) {
                    self.mismatch.note_unlike(message, "a broadcast as it was sent");
                }
                Err(wrong.into())
            }
            shootout::Parsed::Welcome
            | shootout::Parsed::Joined
            | shootout::Parsed::Ping
            | shootout::Parsed::Other => Ok(()),
        }
    }

    /// Ends the connection, and decides which request is charged and what becomes of the
    /// deliveries.
    fn give_way(
        &mut self,
        client: &mut Client,
        now_ns: u64,
        fault: Fault,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        let joined = matches!(client.state, State::Joining(Joining::Done));
        client.state = State::Closed;
        if !joined {
            return self.refuse(websocket::HandshakeError::Join(fault));
        }
        match fault.ending() {
            Some(ending) if fault.is_close() => {
                self.under_way.ledger.drop_out(client.slot);
                client.end(now_ns, ending, on_outcome);
                Disposition::Closing
            }
            Some(ending) if client.outstanding() > 0 => {
                self.under_way.ledger.leave(client.slot);
                client.end(now_ns, ending, on_outcome);
                Disposition::Broken
            }
            _ => {
                self.under_way.ledger.leave(client.slot);
                self.under_way.charged_otherwise(client.number);
                self.violation = class_of_fault(fault);
                Disposition::Unsolicited
            }
        }
    }
}

/// Frames a message, if there is one.
fn write_frame(dialect: Dialect, message: &[u8], chance: &mut Chance, out: &mut Vec<u8>) {
    if !message.is_empty() {
        send::message(out, kind(dialect), message, Some(chance.mask()));
    }
}

fn kind(dialect: Dialect) -> Kind {
    if dialect.is_text() { Kind::Text } else { Kind::Binary }
}

impl Protocol for Broadcast {
    type Client = Client;

    fn client(&self) -> Client {
        Client::default()
    }

    fn facts(&self, client: &Client) -> Facts {
        let upgraded = matches!(client.state, State::Joining(_));
        facts(self.violation, self.refused.clone(), upgraded)
    }

    fn open(&mut self, client: &mut Client, opened: Opened<'_>, output: &mut Output) -> bool {
        client.reset();
        client.slot = opened.key;
        client.number = self.under_way.number(opened.key);
        let awaited = self.opening.write(self.chance.handshake(), &mut output.bytes);
        client.state = State::Upgrading(Box::new(awaited));
        true
    }

    fn reconnects(&self) -> bool {
        // A client that reconnects would miss what is sent meanwhile.
        false
    }

    fn closed(&mut self, key: u32) {
        self.under_way.ledger.drop_out(key);
    }

    fn gave_up(&mut self, key: u32) {
        // Deliveries that it has not received are lost, and no more are expected.
        self.under_way.ledger.drop_out(key);
        self.under_way.ledger.leave(key);
    }

    fn awaits(&self, phase: u16) -> bool {
        self.under_way.ledger.is_open(phase)
    }

    fn complete(&mut self, report: &mut DoneReport) {
        report.deliveries = Some(self.under_way.ledger.take(report.phase as u16));
        let mismatch = self.mismatch.first();
        report.reasons.extend(mismatch.map(|why| (Class::Mismatch, why.to_owned())));
    }

    #[inline]
    fn handle_input(
        &mut self,
        client: &mut Client,
        input: Input<'_>,
        output: &mut Output,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) -> Disposition {
        match &mut client.state {
            State::Joining(_) => self.listen(client, input, &mut output.bytes, on_outcome),
            State::Upgrading(_) => match std::mem::replace(&mut client.state, State::Fresh) {
                State::Upgrading(awaited) => {
                    self.upgrade(client, awaited, input, &mut output.bytes, on_outcome)
                }
                _ => Disposition::Broken,
            },
            State::Fresh | State::Closed => Disposition::Broken,
        }
    }

    fn handle_end(
        &mut self,
        client: &mut Client,
        end: ConnectionEnd,
        on_outcome: &mut impl FnMut(Outcome<Tag>),
    ) {
        let ending = match end.how {
            PeerClose::Reset | PeerClose::Refused => Ending::Reset,
            PeerClose::Fin if client.receiver.started() => Ending::Truncated,
            PeerClose::Fin => Ending::Empty,
        };
        client.end(end.now_ns, ending, on_outcome);
    }

    fn send(
        &mut self,
        client: &mut Client,
        count: usize,
        _drawn: u64,
        carrier: &mut Carrier<'_, impl Net>,
    ) -> usize {
        self.frames.clear();
        for tag in client.newest(count) {
            self.message.clear();
            let key = Key { sender: client.number, sequence: tag.number };
            if self.under_way.is_shared() {
                let stamp = self.under_way.stamp(key, tag.phase, tag.scheduled_ns);
                self.stamped[..STAMP_BYTES].copy_from_slice(&stamp.digits());
                self.dialect.write_broadcast(key, &self.stamped, &mut self.message);
            } else {
                self.dialect.write_broadcast(key, &self.padding, &mut self.message);
            }
            write_frame(self.dialect, &self.message, &mut self.chance, &mut self.frames);
        }
        carrier.send(&self.frames);
        self.frames.len()
    }
}
