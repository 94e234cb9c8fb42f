//! The client of an echo over WebSocket: every message that is sent must come back as one message.
//!
//! How it works: a connection is opened and, if the dialect requires it, joined. From then on each
//! message received is compared with the oldest outstanding one. Without a dialect, messages are
//! compared byte by byte in place; with one, they are identified by their keys. A wrong message
//! ends only its own request, because frames show where the next one begins. Pings are answered.
//! Masking each frame with its own key requires a copy, so a frame is written only when the caller
//! has room. Until then no answer can settle its request.
//!
//! Must not know: sockets, clocks, where randomness comes from, and when a message is sent.

use super::client::{Awaited, Opening};
use super::{
    Deflated, Deflater, Error, Event, Fault, HandshakeError, Kind, Limits, Mismatch, Receiver,
    Role, Scratch, send,
};
use crate::chance::Chance;
use crate::echo::Messages;
use crate::exchange::{Asked, Disposition, Ending, InOrder, Outcome, PeerClose};
use crate::message;
use crate::shootout::{self, Dialect, Joining, Key};

/// The sequence of the echo that ends a join; requests begin with 1.
const JOIN: u32 = 0;
/// The maximum number of consecutive PINGs and PONGs without a message while one is awaited. HTTP/2
/// has the same limit for its frames.
const CONTROLS_MOST: u32 = 1000;

/// The messages to send.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// These messages in turn, unchanged.
    Plain(Messages, Kind),
    /// The echo of a dialect, with this padding.
    Dialect(Dialect, Box<[u8]>),
}

/// The state shared by all connections of a thread.
#[derive(Debug)]
pub struct Shared {
    /// The opening handshake.
    pub opening: Opening,
    /// The messages to send.
    pub outgoing: Outgoing,
    /// Caps on the sizes that the peer decides.
    pub limits: Limits,
    /// The random source for handshakes and masks.
    pub chance: Chance,
    scratch: Scratch,
    /// Compresses plain messages, if the opening offers that.
    deflater: Option<Deflater>,
    /// A buffer for a message before it is framed.
    message: Vec<u8>,
    /// The reason why a connection was not opened.
    refused: Option<HandshakeError>,
    /// The first message that was not the one expected.
    pub mismatch: Mismatch,
}

impl Shared {
    /// The state before anything was sent.
    pub fn new(opening: Opening, outgoing: Outgoing, limits: Limits, chance: Chance) -> Self {
        let (scratch, message, mismatch) = Default::default();
        let deflater = opening.offers_deflate().then(Deflater::default);
        let refused = None;
        Shared { opening, outgoing, limits, chance, scratch, deflater, message, refused, mismatch }
    }

    /// What compression came to since the last call; none if it is not offered.
    pub fn take_deflated(&mut self) -> Option<Deflated> {
        let received = self.scratch.take_received();
        self.deflater.as_mut().map(|deflater| deflater.take_account(received))
    }

    /// The reason why the last [`Disposition::Refused`] connection was refused.
    pub fn refusal(&self) -> Option<HandshakeError> {
        self.refused
    }

    /// Frames `self.message`, if it is not empty.
    fn frame(&mut self, kind: Kind, out: &mut Vec<u8>) {
        if !self.message.is_empty() {
            let mask = self.chance.mask();
            send::message(out, kind, &self.message, Some(mask));
        }
    }

    fn padding(&self) -> &[u8] {
        match &self.outgoing {
            Outgoing::Plain(..) => &[],
            Outgoing::Dialect(_, padding) => padding,
        }
    }
}

#[derive(Debug)]
enum State {
    Fresh,
    Upgrading(Box<Awaited>),
    Joining(Dialect, Joining),
    Open,
    Closed,
    /// Its frames were refused: the ending of the request, and the reason.
    Broken(Box<(Ending, &'static str)>),
}

/// The machine of one connection. `T` is what the caller knows about a request.
#[derive(Debug)]
pub struct Client<T> {
    state: State,
    receiver: Receiver,
    asked: Asked<T>,
    /// The number of the connection, which is the sender in a dialect's keys.
    number: u32,
    /// The message to be sent next and the one expected back next: an offset, or a key's sequence.
    to_send: usize,
    to_come: usize,
    /// The number of the newest requests that are not written yet.
    unwritten: u32,
    /// The number of PINGs and PONGs since something else was sent or received.
    controls: u32,
    first_byte_ns: Option<u64>,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client {
            state: State::Fresh,
            receiver: Receiver::new(Role::Client),
            asked: Asked::default(),
            number: 0,
            to_send: 0,
            to_come: 0,
            unwritten: 0,
            controls: 0,
            first_byte_ns: None,
        }
    }
}

impl<T: Copy + PartialEq + 'static> Client<T> {
    /// Begins a fresh connection: writes the request for its upgrade. All outstanding requests must
    /// have been ended before.
    pub fn open(&mut self, shared: &mut Shared, number: u32, output: &mut Vec<u8>) {
        self.reset();
        let random = shared.chance.handshake();
        self.number = number;
        self.state = State::Upgrading(Box::new(shared.opening.write(random, output)));
    }

    /// Whether the connection was upgraded, and has not ended since.
    pub fn is_upgraded(&self) -> bool {
        matches!(self.state, State::Joining(..) | State::Open)
    }

    /// Marks the newest `count` requests as still to be written.
    #[inline]
    pub fn wait_to_write(&mut self, count: usize) {
        self.unwritten += count as u32;
    }

    /// Whether a request waits to be written. A request that was given up is not written.
    #[inline]
    pub fn waits_to_write(&self) -> bool {
        self.unwritten > 0 && !self.asked.is_empty()
    }

    /// Writes pending messages, each whole, until there are `enough` bytes.
    pub fn write(&mut self, shared: &mut Shared, enough: usize, out: &mut Vec<u8>) {
        while self.waits_to_write() && out.len() < enough {
            self.unwritten -= 1;
            self.controls = 0;
            let mask = shared.chance.mask();
            match &shared.outgoing {
                Outgoing::Plain(messages, kind) => {
                    let deflater = shared.deflater.as_mut().filter(|_| self.receiver.deflates());
                    send::message_by(deflater, out, *kind, messages.at(self.to_send), Some(mask));
                    self.to_send = messages.after(self.to_send);
                }
                Outgoing::Dialect(dialect, padding) => {
                    shared.message.clear();
                    self.to_send += 1;
                    dialect.write_echo(self.key(self.to_send), padding, &mut shared.message);
                    send::message(out, kind_of(*dialect), &shared.message, Some(mask));
                }
            }
        }
    }

    fn key(&self, sequence: usize) -> Key {
        Key { sender: self.number, sequence: sequence as u32 }
    }

    /// Handles input. Each request that it ends is passed to `on_outcome`, in order. What must be
    /// answered at once is appended to `output`.
    pub fn handle_input(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        shared: &mut Shared,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let State::Upgrading(awaited) = &mut self.state else {
            return self.listen(now_ns, bytes, shared, output, on_outcome);
        };
        match awaited.feed(&shared.opening, bytes, &message::Limits::default()) {
            Ok(None) => Disposition::Opening,
            Ok(Some(taken)) => {
                let agreed = awaited.deflates();
                self.receiver = Receiver::new(Role::Client).deflating(agreed);
                shared.deflater.iter_mut().for_each(|deflater| deflater.note_opened(agreed));
                self.upgraded(shared, output);
                self.listen(now_ns, &bytes[taken..], shared, output, on_outcome)
            }
            Err(error) => {
                self.state = State::Closed;
                shared.refused = Some(HandshakeError::Opening(error));
                Disposition::Refused
            }
        }
    }

    /// Handles the completed upgrade: joins, if the dialect requires it.
    fn upgraded(&mut self, shared: &mut Shared, output: &mut Vec<u8>) {
        let Outgoing::Dialect(dialect, padding) = &shared.outgoing else {
            self.state = State::Open;
            return;
        };
        let dialect = *dialect;
        shared.message.clear();
        let joining =
            Joining::start(dialect, self.key(JOIN as usize), padding, &mut shared.message);
        self.state = State::Joining(dialect, joining);
        shared.frame(kind_of(dialect), output);
    }

    fn listen(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        shared: &mut Shared,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let mut receiver = std::mem::replace(&mut self.receiver, Receiver::new(Role::Client));
        let (mut scratch, limits) = (std::mem::take(&mut shared.scratch), shared.limits);
        let mut fault = None;
        let fed = receiver.feed(bytes, &limits, &mut scratch, &mut |event| {
            if fault.is_none() {
                fault = self.take(now_ns, event, shared, output, on_outcome).err();
            }
        });
        if let (None, Err(error)) = (fault, fed) {
            send::close(output, Some(error.close_code()), "", Some(shared.chance.mask()));
            fault = Some(Fault::Frames(error));
        }
        shared.scratch = scratch;
        self.receiver = receiver;
        if fault.is_none() && self.receiver.in_message() {
            fault = self.begun(now_ns, shared).err();
        }
        match (fault, &self.state) {
            (None, State::Open) => Disposition::Open,
            (None, _) => Disposition::Opening,
            (Some(fault), _) => self.give_way(now_ns, fault, shared, on_outcome),
        }
    }

    /// Whether a message may be an answer: an outstanding request has been written.
    fn is_awaited(&self) -> bool {
        self.asked.len() > self.unwritten as usize
    }

    /// Handles a message that has begun and is not complete. Without a dialect it must be awaited.
    /// Otherwise its end would settle a request that is sent in the meantime.
    fn begun(&mut self, now_ns: u64, shared: &Shared) -> Result<(), Fault> {
        if self.is_awaited() {
            self.first_byte_ns.get_or_insert(now_ns);
        } else if matches!((&self.state, &shared.outgoing), (State::Open, Outgoing::Plain(..))) {
            return Err(Fault::Unsolicited);
        }
        Ok(())
    }

    fn take(
        &mut self,
        now_ns: u64,
        event: Event<'_>,
        shared: &mut Shared,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Result<(), Fault> {
        match event {
            Event::Message { kind, payload } => {
                self.controls = 0;
                if let Outgoing::Dialect(dialect, _) = shared.outgoing
                    && let Some(fault) = Fault::of_kind(kind, dialect)
                {
                    return Err(fault);
                }
                match self.state {
                    State::Joining(dialect, joining) => {
                        self.join(dialect, joining, payload, shared, output)
                    }
                    _ => self.compare(now_ns, (kind, payload), shared, on_outcome),
                }
            }
            Event::Ping(payload) => {
                send::pong(output, payload, Some(shared.chance.mask()));
                self.note_control()
            }
            Event::Pong(_) => self.note_control(),
            Event::Close { code, .. } => {
                send::close(output, code, "", Some(shared.chance.mask()));
                Err(Fault::Closed)
            }
        }
    }

    /// Counts a PING or a PONG. A peer that sends no message may send them for as long as it likes.
    fn note_control(&mut self) -> Result<(), Fault> {
        self.controls += 1;
        let flooded = self.controls > CONTROLS_MOST && self.is_awaited();
        let why = "too many PINGs and PONGs without a message";
        if flooded { Err(Error::Limit(why).into()) } else { Ok(()) }
    }

    fn join(
        &mut self,
        dialect: Dialect,
        joining: Joining,
        payload: &[u8],
        shared: &mut Shared,
        output: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let parsed = dialect.parse(payload, shared.padding());
        let echo = self.key(JOIN as usize);
        let mut message = std::mem::take(&mut shared.message);
        message.clear();
        let next = joining.handle_message(dialect, parsed, echo, shared.padding(), &mut message);
        shared.message = message;
        let next = next.map_err(Fault::Dialect)?;
        shared.frame(kind_of(dialect), output);
        self.state = match next {
            Joining::Done => State::Open,
            next => State::Joining(dialect, next),
        };
        Ok(())
    }

    /// Compares a message with the one that is expected back next.
    fn compare(
        &mut self,
        now_ns: u64,
        (kind, payload): (Kind, &[u8]),
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Result<(), Fault> {
        let awaited = self.is_awaited();
        let same = match &shared.outgoing {
            Outgoing::Plain(messages, asked) => {
                let expected = messages.at(self.to_come);
                if awaited {
                    self.to_come = messages.after(self.to_come);
                }
                let same = kind == *asked && payload == expected;
                if awaited && !same {
                    shared.mismatch.note((kind, payload), (*asked, expected));
                }
                same
            }
            Outgoing::Dialect(dialect, padding) => match dialect.parse(payload, padding) {
                shootout::Parsed::Echo(key) => {
                    self.to_come += usize::from(awaited);
                    let same = key == self.key(self.to_come);
                    if awaited && !same {
                        self.note_mismatch(payload, shared);
                    }
                    same
                }
                shootout::Parsed::Error(wrong) => {
                    let fault = Fault::Dialect(wrong);
                    if awaited && fault.ending() == Some(Ending::Mismatch) {
                        self.to_come += 1;
                        self.note_mismatch(payload, shared);
                    }
                    return Err(fault);
                }
                shootout::Parsed::Broadcast(_)
                | shootout::Parsed::Stamped(..)
                | shootout::Parsed::Result(..) => {
                    return Err(Fault::Unsolicited);
                }
                _ => return Ok(()),
            },
        };
        if !awaited {
            return Err(Fault::Unsolicited);
        }
        let Some(tag) = self.asked.answer() else { return Err(Fault::Unsolicited) };
        let ending = if same { Ending::Ok } else { Ending::Mismatch };
        let first_byte_ns = self.first_byte_ns.take().unwrap_or(now_ns);
        on_outcome(Outcome::answered(tag, ending, first_byte_ns));
        Ok(())
    }

    /// Keeps a message of a dialect that is not the echo expected.
    #[cold]
    fn note_mismatch(&self, payload: &[u8], shared: &mut Shared) {
        let Outgoing::Dialect(dialect, padding) = &shared.outgoing else { return };
        let (kind, mut expected) = (kind_of(*dialect), Vec::new());
        dialect.write_echo(self.key(self.to_come), padding, &mut expected);
        shared.mismatch.note((kind, payload), (kind, &expected));
    }

    /// Ends the connection and decides which requests the fault ends.
    fn give_way(
        &mut self,
        now_ns: u64,
        fault: Fault,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let opened = matches!(self.state, State::Open);
        let awaited = self.is_awaited();
        self.state = State::Closed;
        if !opened {
            shared.refused = Some(HandshakeError::Join(fault));
            return Disposition::Refused;
        }
        match fault.ending() {
            Some(ending) if fault.is_close() || awaited => {
                self.asked.end_all(now_ns, ending, Ending::ClosedPipelined, on_outcome);
                if let Fault::Frames(error) = fault {
                    self.state = State::Broken(Box::new((ending, error.why())));
                }
                if fault.is_close() { Disposition::Closing } else { Disposition::Broken }
            }
            // What settles nothing came in place of an answer, if one is awaited.
            _ => self.asked.end_unsent(now_ns, on_outcome),
        }
    }

    /// Handles the end of the peer's side: every outstanding request ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        self.asked.end(now_ns, end, self.receiver.started(), on_outcome);
    }
}

fn kind_of(dialect: Dialect) -> Kind {
    if dialect.is_text() { Kind::Text } else { Kind::Binary }
}

impl<T: Copy + PartialEq + 'static> InOrder for Client<T> {
    type Tag = T;

    #[inline]
    fn asked(&self) -> &Asked<T> {
        &self.asked
    }

    #[inline]
    fn asked_mut(&mut self) -> &mut Asked<T> {
        &mut self.asked
    }

    fn has_begun(&self) -> bool {
        self.receiver.in_message()
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        match &self.state {
            State::Broken(reason) => Some(**reason),
            _ => None,
        }
    }
}
