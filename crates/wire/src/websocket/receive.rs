//! The receiving half: frames in, complete messages and control frames out.
//!
//! How it works: frames that are complete in the input and are whole messages are reported in
//! place. The payloads of a client are unmasked in a [`Scratch`] that all connections of a thread
//! share, which also decompresses messages. Everything else goes through `partial`, which exists
//! only while something is incomplete.
//!
//! Must not know: what is answered, and when.

use super::event::{Event, NOTHING_TO_CONTINUE, control};
use super::frame::{End, Error, Header, Kind, Limits, Opcode, Role};
use super::partial::Partial;
use super::scratch::Scratch;
use super::utf8;

/// Reads the frames that one end of a connection receives.
#[derive(Debug)]
pub struct Receiver {
    end: End,
    closed: bool,
    partial: Option<Box<Partial>>,
}

impl Receiver {
    /// A receiver for the end with this role, to be used after the opening handshake.
    pub fn new(role: Role) -> Self {
        Receiver { end: role.into(), closed: false, partial: None }
    }

    /// Accepts compressed messages, if the handshake has `agreed` to them.
    pub fn deflating(mut self, agreed: bool) -> Self {
        self.end.deflates = agreed;
        self
    }

    /// Whether messages may be compressed.
    #[inline]
    pub fn deflates(&self) -> bool {
        self.end.deflates
    }

    /// Feeds bytes, all of which are taken. What they complete is passed to `on_outcome`, in order.
    /// The error comes at the first illegal frame, after what came before it was reported, however
    /// the bytes were split. After it, every call returns the same error.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        scratch: &mut Scratch,
        on_outcome: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let outcome = self.read(bytes, limits, scratch, on_outcome);
        if let Err(error) = outcome {
            self.partial = Some(Box::new(Partial::refused(error)));
        }
        outcome
    }

    #[inline]
    fn read(
        &mut self,
        mut bytes: &[u8],
        limits: &Limits,
        scratch: &mut Scratch,
        on_outcome: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        loop {
            if self.partial.is_none() && !self.closed {
                bytes = self.whole(bytes, limits, scratch, on_outcome)?;
            }
            if bytes.is_empty() || self.closed {
                return Ok(());
            }
            let partial = self.partial.get_or_insert_default();
            let (taken, closed) = partial.take(bytes, self.end, limits, scratch, on_outcome)?;
            self.closed = closed;
            bytes = &bytes[taken..];
            if partial.is_empty() {
                self.partial = None;
            }
        }
    }

    /// Reports the frames at the start of `bytes`, as long as each is complete and a whole message.
    /// Returns the rest.
    #[inline]
    fn whole<'a>(
        &mut self,
        mut bytes: &'a [u8],
        limits: &Limits,
        scratch: &mut Scratch,
        on_outcome: &mut impl FnMut(Event<'_>),
    ) -> Result<&'a [u8], Error> {
        while let Some((header, header_len)) = Header::read(bytes, self.end, limits.message_bytes)?
        {
            if header.opcode == Opcode::Continuation {
                return Err(NOTHING_TO_CONTINUE);
            }
            let rest = &bytes[header_len..];
            if !header.last || rest.len() < header.len {
                break;
            }
            let (payload, rest) = rest.split_at(header.len);
            let payload = scratch.payload(payload, &header, self.end, limits)?;
            let event = event(header.opcode, payload)?;
            on_outcome(event);
            if matches!(event, Event::Close { .. }) {
                self.closed = true;
                return Ok(&[]);
            }
            bytes = rest;
        }
        Ok(bytes)
    }

    /// Whether a message or a frame has begun and is not complete; also true after a refusal.
    pub fn started(&self) -> bool {
        self.partial.is_some()
    }

    /// Whether a message has begun and is not complete. Parts of control frames do not count.
    pub fn in_message(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.is_of_message())
    }

    /// Whether a close frame was received.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The bytes held on the heap.
    pub fn buffered_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.held_bytes())
    }
}

/// The event for a frame that is a whole message or a control frame.
#[inline]
fn event(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, Error> {
    match opcode {
        Opcode::Continuation | Opcode::Binary => Ok(Event::Message { kind: Kind::Binary, payload }),
        Opcode::Text => {
            utf8::whole(payload)?;
            Ok(Event::Message { kind: Kind::Text, payload })
        }
        Opcode::Close | Opcode::Ping | Opcode::Pong => control(opcode, payload),
    }
}
