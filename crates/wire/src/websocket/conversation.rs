//! The client of a conversation: requests over HTTP/1, if there are any, then the upgrade, then
//! messages.
//!
//! How it works: each step of a conversation is a request of its session, and one is outstanding at
//! a time. Its book says what it is ([`Speech`]). A step that sends a message and awaits none ends
//! when it is written. A message that comes while no step awaits one is kept for the next, because a
//! server may send several at once, or speak first. One that its step does not await is unexpected:
//! it is counted where that is allowed, and ends the connection elsewhere.
//!
//! Must not know: sockets, clocks, what messages mean, and when a step is asked.

use std::sync::Arc;

use super::client::{Awaited, Opening, OpeningError};
use super::early::Early;
use super::mismatch::shown;
use super::{Deflated, Deflater, Error, Event, Fault, Kind, Limits, Receiver, Role, Scratch, send};
use crate::chance::Chance;
use crate::exchange::{Asked, Disposition, Ending, InOrder, Outcome, PeerClose};
use crate::http1;
use crate::http1::response::HeadMemory;
use crate::message::{self, Book, Form, Speech, Stamp};

/// The maximum number of consecutive PINGs and PONGs without a message while one is awaited.
const CONTROLS_MOST: u32 = 1000;
/// No time: it takes half the memory of an `Option`.
const NEVER: u64 = u64::MAX;
/// The close code of an end that nobody minds (RFC 6455 §7.4.1).
const NORMAL: u16 = 1000;

/// What all connections of a thread share.
#[derive(Debug)]
pub struct Shared {
    limits: Limits,
    chance: Chance,
    scratch: Scratch,
    /// Compresses messages, if that is offered.
    deflater: Option<Deflater>,
    heads: Vec<HeadMemory>,
    /// A buffer for a text before it is framed.
    text: Vec<u8>,
    manner: Manner,
    /// The run whose stamps are looked for in messages, if any are.
    run: Option<u32>,
    heard: Heard,
    /// Why steps failed, each ending once.
    reasons: Vec<(Ending, String)>,
}

/// How conversations go on, whatever their steps are.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// The upgrade offers permessage-deflate.
    pub deflates: bool,
    /// Messages that no step awaits are allowed.
    pub ignores: bool,
    /// Texts that are answered at once, as heartbeats are, and their answers.
    pub replies: Arc<[(String, String)]>,
}

/// What came of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Messages received.
    pub received: u64,
    /// Messages that no step expected.
    pub unexpected: u64,
    /// The times since the messages before them on their connections, in ns.
    pub gaps_ns: Vec<u64>,
    /// The times since those with a stamp were sent, in ns.
    pub delivered_ns: Vec<u64>,
}

impl Shared {
    /// The state before anything was sent. Stamps of `run` are looked for.
    pub fn new(manner: Manner, run: Option<u32>, chance: Chance) -> Self {
        let (limits, scratch, heads, text) = Default::default();
        let (heard, reasons) = Default::default();
        let deflater = manner.deflates.then(Deflater::default);
        Shared { limits, chance, scratch, deflater, heads, text, manner, run, heard, reasons }
    }

    /// What compression came to since the last call; none if it is not offered.
    pub fn take_deflated(&mut self) -> Option<Deflated> {
        let received = self.scratch.take_received();
        self.deflater.as_mut().map(|deflater| deflater.take_account(received))
    }

    /// What came since it was emptied last.
    pub fn heard(&mut self) -> &mut Heard {
        &mut self.heard
    }

    /// Why steps failed, each ending once.
    pub fn reasons(&self) -> &[(Ending, String)] {
        &self.reasons
    }

    /// Answers a heartbeat; whether the message was one.
    fn replies(&mut self, payload: &[u8], deflates: bool, output: &mut Vec<u8>) -> bool {
        let reply = self.manner.replies.iter().find(|(text, _)| text.as_bytes() == payload);
        let Some((_, reply)) = reply else { return false };
        let (reply, mask) = (reply.as_bytes(), Some(self.chance.mask()));
        let deflater = self.deflater.as_mut().filter(|_| deflates);
        send::message_by(deflater, output, Kind::Text, reply, mask);
        true
    }

    #[cold]
    fn note_reason(&mut self, ending: Ending, why: impl FnOnce() -> String) {
        if self.reasons.iter().all(|(noted, _)| *noted != ending) {
            self.reasons.push((ending, why()));
        }
    }
}

#[derive(Debug, Default)]
enum State {
    /// Requests over HTTP/1, before the upgrade.
    #[default]
    Http,
    Upgrading(Box<(Opening, Awaited)>),
    Open(Open),
    /// The connection ends; what still comes is ignored.
    Closing,
    /// What came was refused: the ending of the step, and the reason.
    Broken(Box<(Ending, &'static str)>),
}

/// A connection that was upgraded.
#[derive(Debug)]
struct Open {
    receiver: Receiver,
    /// Messages may be compressed.
    deflates: bool,
    /// Messages that came while no step awaited one.
    kept: Early,
    /// PINGs and PONGs since something else was sent or received.
    controls: u32,
    /// When the first byte of a message came that is incomplete; [`NEVER`] if there is none.
    first_byte_ns: u64,
    /// When the message before came; [`NEVER`] for the first.
    heard_ns: u64,
}

/// The machine of one connection. `T` is what the caller knows about a step.
#[derive(Debug)]
pub struct Client<T> {
    http: http1::client::Client<T>,
    state: State,
    /// The step asked last is still to be written.
    unwritten: bool,
    /// The step asked last may end without further input.
    due: bool,
    /// The message that the step asked last awaits must have come by then.
    until_ns: Option<u64>,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        let http = http1::client::Client::default();
        Client { http, state: State::Http, unwritten: false, due: false, until_ns: None }
    }
}

impl<T: Copy + PartialEq + 'static> Client<T> {
    /// Whether a step waits to be written.
    #[inline]
    pub fn waits_to_write(&self) -> bool {
        self.unwritten && !self.asked().is_empty()
    }

    /// Notes that the step asked last is to be written.
    #[inline]
    pub fn wait_to_write(&mut self) {
        self.unwritten = true;
    }

    /// Appends what the step asked last sends.
    pub fn write(
        &mut self,
        now_ns: u64,
        book: &impl Book<T>,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) {
        self.unwritten = false;
        let Some(tag) = self.asked().oldest().copied() else { return };
        let Speech { form, .. } = book.speech(&tag);
        let text = &mut shared.text;
        text.clear();
        match (&mut self.state, form) {
            (State::Http, Form::Request) => {
                book.write(&tag, &mut |part| out.extend_from_slice(part.bytes()));
            }
            (State::Http, Form::Upgrade) => {
                book.write(&tag, &mut |part| text.extend_from_slice(part.bytes()));
                let opening = Opening::of_request(text);
                let mut opening = opening.deflating(shared.deflater.is_some());
                let awaited = opening.write(shared.chance.handshake(), out);
                opening.forget_request();
                self.state = State::Upgrading(Box::new((opening, awaited)));
            }
            (State::Open(open), Form::Message { is_text, sends, awaits, within_ns }) => {
                if sends {
                    book.write(&tag, &mut |part| text.extend_from_slice(part.bytes()));
                    let kind = if is_text { Kind::Text } else { Kind::Binary };
                    let mask = Some(shared.chance.mask());
                    let deflater = shared.deflater.as_mut().filter(|_| open.deflates);
                    send::message_by(deflater, out, kind, text, mask);
                    open.controls = 0;
                }
                self.due = !awaits || !open.kept.is_empty();
                self.until_ns = within_ns.map(|ns| now_ns.saturating_add(ns));
            }
            // The connection that the conversation was on is gone.
            _ => self.due = true,
        }
    }

    /// Handles input. A step that it ends is passed to `on_outcome`. What must be answered at once is
    /// appended to `output`. Without bytes, ends a step that is due.
    pub fn handle_input(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        book: &impl Book<T>,
        shared: &mut Shared,
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let due = std::mem::take(&mut self.due);
        match &mut self.state {
            State::Http if due => self.fail(now_ns, Ending::WsClosed, shared, on_outcome),
            State::Http => {
                self.http.handle_input(now_ns, bytes, book, &mut shared.heads, on_outcome)
            }
            State::Upgrading(upgrading) => {
                let (opening, awaited) = &mut **upgrading;
                match awaited.feed(opening, bytes, &message::Limits::default()) {
                    Ok(None) => Disposition::Open,
                    Ok(Some(taken)) => {
                        let agreed = awaited.deflates();
                        shared
                            .deflater
                            .iter_mut()
                            .for_each(|deflater| deflater.note_opened(agreed));
                        self.state = State::Open(Open::new(agreed));
                        let last = self.settle(now_ns, Some(101), book, on_outcome);
                        let rest = &bytes[taken..];
                        self.listen(now_ns, rest, last, (book, shared), output, on_outcome)
                    }
                    Err(why) => self.refuse(now_ns, why, shared, on_outcome),
                }
            }
            State::Open(_) => {
                let mut last = false;
                if due {
                    match self.end_due(now_ns, book, shared, on_outcome) {
                        Ok(is_last) => last = is_last,
                        Err(fault) => return self.give_way(now_ns, fault, shared, on_outcome),
                    }
                }
                self.listen(now_ns, bytes, last, (book, shared), output, on_outcome)
            }
            State::Closing => Disposition::Closing,
            State::Broken(_) => Disposition::Broken,
        }
    }

    /// Ends the step that was written: it awaits nothing, or a message that was kept.
    fn end_due(
        &mut self,
        now_ns: u64,
        book: &impl Book<T>,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Result<bool, Fault> {
        let Some(tag) = self.asked().oldest().copied() else { return Ok(false) };
        if !book.speech(&tag).awaits() {
            return Ok(self.settle(now_ns, None, book, on_outcome));
        }
        while let State::Open(open) = &mut self.state
            && let Some((kind, message)) = open.kept.next()
        {
            if book.awaits(&tag, kind == Kind::Text, &message) {
                return Ok(self.answer(now_ns, &tag, &message, book, on_outcome));
            }
            self.note_unexpected(&message, shared)?;
        }
        Ok(false)
    }

    /// Reads frames. `last`: the conversation has ended with a step before.
    fn listen<B: Book<T>>(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        mut last: bool,
        (book, shared): (&B, &mut Shared),
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let State::Open(open) = &mut self.state else { return Disposition::Broken };
        let mut receiver = std::mem::replace(&mut open.receiver, Receiver::new(Role::Client));
        let (mut scratch, limits) = (std::mem::take(&mut shared.scratch), shared.limits);
        let mut fault = None;
        let fed = receiver.feed(bytes, &limits, &mut scratch, &mut |event| {
            if fault.is_none() && !last {
                match self.take(now_ns, event, (book, &mut *shared), output, on_outcome) {
                    Ok(is_last) => last = is_last,
                    Err(why) => fault = Some(why),
                }
            }
        });
        shared.scratch = scratch;
        if let (None, Err(error)) = (fault, fed) {
            send::close(output, Some(error.close_code()), "", Some(shared.chance.mask()));
            fault = Some(Fault::Frames(error));
        }
        if let State::Open(open) = &mut self.state {
            open.receiver = receiver;
            if open.receiver.in_message() {
                open.first_byte_ns = open.first_byte_ns.min(now_ns);
            }
        }
        match fault {
            Some(fault) => self.give_way(now_ns, fault, shared, on_outcome),
            None if last => {
                send::close(output, Some(NORMAL), "", Some(shared.chance.mask()));
                self.state = State::Closing;
                Disposition::Closing
            }
            None => Disposition::Open,
        }
    }

    /// Handles what was received. Returns whether the conversation has ended.
    fn take<B: Book<T>>(
        &mut self,
        now_ns: u64,
        event: Event<'_>,
        (book, shared): (&B, &mut Shared),
        output: &mut Vec<u8>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Result<bool, Fault> {
        match event {
            Event::Message { kind, payload } => {
                let deflates = matches!(&self.state, State::Open(open) if open.deflates);
                if kind == Kind::Text && shared.replies(payload, deflates, output) {
                    return self.note_control();
                }
                self.note_message(now_ns, payload, shared);
                self.take_message(now_ns, (kind, payload), book, shared, on_outcome)
            }
            Event::Ping(payload) => {
                send::pong(output, payload, Some(shared.chance.mask()));
                self.note_control()
            }
            Event::Pong(_) => self.note_control(),
            Event::Close { code, reason } => {
                send::close(output, code, "", Some(shared.chance.mask()));
                let code = code.map_or_else(String::new, |code| format!(" with {code}"));
                let said = if reason.is_empty() { String::new() } else { format!(": {reason:?}") };
                let why = || format!("the server closed the WebSocket{code}{said}");
                shared.note_reason(Ending::WsClosed, why);
                Err(Fault::Closed)
            }
        }
    }

    fn note_message(&mut self, now_ns: u64, payload: &[u8], shared: &mut Shared) {
        let State::Open(open) = &mut self.state else { return };
        let heard = &mut shared.heard;
        heard.received += 1;
        let before_ns = std::mem::replace(&mut open.heard_ns, now_ns);
        if before_ns != NEVER {
            heard.gaps_ns.push(now_ns.saturating_sub(before_ns));
        }
        let stamp = shared.run.and_then(|run| Stamp::find(run, payload));
        heard.delivered_ns.extend(stamp.map(|stamp| now_ns.saturating_sub(stamp.sent_ns)));
    }

    fn take_message(
        &mut self,
        now_ns: u64,
        (kind, payload): (Kind, &[u8]),
        book: &impl Book<T>,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Result<bool, Fault> {
        let State::Open(open) = &mut self.state else { return Ok(false) };
        open.controls = 0;
        let asked = self.http.asked().oldest().copied().filter(|_| !self.unwritten);
        match asked.filter(|tag| book.speech(tag).awaits()) {
            Some(tag) if book.awaits(&tag, kind == Kind::Text, payload) => {
                Ok(self.answer(now_ns, &tag, payload, book, on_outcome))
            }
            None if open.kept.keep(kind, payload) => Ok(false),
            _ => self.note_unexpected(payload, shared).map(|()| false),
        }
    }

    /// Ends a step with the message that it awaits. Returns whether the conversation has ended.
    fn answer(
        &mut self,
        now_ns: u64,
        tag: &T,
        payload: &[u8],
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> bool {
        book.note(tag, message::Event::Head);
        book.note(tag, message::Event::Body(payload));
        self.settle(now_ns, None, book, on_outcome)
    }

    fn settle(
        &mut self,
        now_ns: u64,
        status: Option<u16>,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> bool {
        let Some(tag) = self.asked_mut().answer() else { return false };
        self.until_ns = None;
        let first_byte_ns = match &mut self.state {
            State::Open(open) => std::mem::replace(&mut open.first_byte_ns, NEVER).min(now_ns),
            _ => now_ns,
        };
        let outcome = Outcome::answered(tag, Ending::Ok, first_byte_ns);
        on_outcome(Outcome { status, ..outcome });
        book.speech(&tag).is_last
    }

    /// Counts a message that no step awaits.
    fn note_unexpected(&mut self, payload: &[u8], shared: &mut Shared) -> Result<(), Fault> {
        shared.heard.unexpected += 1;
        if shared.manner.ignores {
            let why = || format!("{} came instead of what the step expects", shown(payload, 0));
            shared.note_reason(Ending::TimeoutFirstByte, why);
            return Ok(());
        }
        let why = || format!("{} came, and no step expects it", shown(payload, 0));
        shared.note_reason(Ending::Mismatch, why);
        Err(Fault::Unsolicited)
    }

    /// Counts a PING or a PONG. A peer that sends no message may send them for as long as it likes.
    fn note_control(&mut self) -> Result<bool, Fault> {
        let State::Open(open) = &mut self.state else { return Ok(false) };
        open.controls += 1;
        let flooded = open.controls > CONTROLS_MOST && !self.http.asked().is_empty();
        let why = "too many PINGs and PONGs without a message";
        if flooded { Err(Error::Limit(why).into()) } else { Ok(false) }
    }

    /// Ends the step that was to upgrade the connection.
    #[cold]
    fn refuse(
        &mut self,
        now_ns: u64,
        why: OpeningError,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let (ending, status) = match why {
            OpeningError::Status(status) => (Ending::Status, Some(status)),
            OpeningError::Http(http1::ParseError::Limit(_)) => (Ending::Limit, None),
            OpeningError::Http(_) => (Ending::Framing, None),
            OpeningError::HandshakeError(_) => (Ending::WsHandshake, None),
        };
        shared.note_reason(ending, || why.to_string());
        if status.is_some()
            && let Some(tag) = self.asked_mut().answer()
        {
            on_outcome(Outcome { status, ..Outcome::answered(tag, ending, now_ns) });
        }
        self.fail(now_ns, ending, shared, on_outcome)
    }

    fn fail(
        &mut self,
        now_ns: u64,
        ending: Ending,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        shared.note_reason(ending, || "the connection was gone before the conversation".to_owned());
        self.asked_mut().end_all(now_ns, ending, ending, on_outcome);
        self.state = State::Closing;
        Disposition::Broken
    }

    /// Ends the connection, and the step that is outstanding.
    #[cold]
    fn give_way(
        &mut self,
        now_ns: u64,
        fault: Fault,
        shared: &mut Shared,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        self.state = State::Closing;
        let ending = match fault.ending() {
            Some(ending) => ending,
            None if self.asked().is_empty() => return Disposition::Unsolicited,
            None => Ending::Mismatch,
        };
        if let Fault::Frames(error) = fault {
            shared.note_reason(ending, || error.to_string());
            self.state = State::Broken(Box::new((ending, error.why())));
        }
        self.asked_mut().end_all(now_ns, ending, ending, on_outcome);
        if fault.is_close() { Disposition::Closing } else { Disposition::Broken }
    }

    /// Handles the end of the peer's side: every outstanding step ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let begun = self.has_begun();
        let is_http = match self.state {
            State::Http => true,
            // As with any request, a server may have given up the connection before.
            State::Upgrading(_) => !begun,
            _ => false,
        };
        if is_http {
            return self.http.handle_end(now_ns, end, book, on_outcome);
        }
        self.asked_mut().end(now_ns, end, begun, on_outcome);
    }
}

impl Open {
    fn new(deflates: bool) -> Self {
        let (kept, receiver) = (Early::default(), Receiver::new(Role::Client).deflating(deflates));
        let (first_byte_ns, heard_ns) = (NEVER, NEVER);
        Open { receiver, deflates, kept, controls: 0, first_byte_ns, heard_ns }
    }
}

impl<T: Copy + PartialEq + 'static> InOrder for Client<T> {
    type Tag = T;

    #[inline]
    fn asked(&self) -> &Asked<T> {
        self.http.asked()
    }

    #[inline]
    fn asked_mut(&mut self) -> &mut Asked<T> {
        self.http.asked_mut()
    }

    fn has_begun(&self) -> bool {
        match &self.state {
            State::Http => self.http.has_begun(),
            State::Upgrading(upgrading) => upgrading.1.started(),
            State::Open(open) => open.receiver.in_message(),
            State::Closing | State::Broken(_) => false,
        }
    }

    fn lasts_until_end(&self) -> bool {
        matches!(self.state, State::Http) && self.http.lasts_until_end()
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        match &self.state {
            State::Broken(reason) => Some(**reason),
            _ => self.http.why_broken(),
        }
    }

    #[inline]
    fn stalls_at_ns(&self) -> Option<u64> {
        self.until_ns.filter(|_| !self.asked().is_empty())
    }

    fn stalled(&self) -> Ending {
        Ending::TimeoutFirstByte
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.due
    }
}
