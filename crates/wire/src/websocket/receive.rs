//! The receiving half: frames in, complete messages and control frames out.
//!
//! How it works: frames that are complete in the input and are whole messages are reported in
//! place. The payloads of a client are unmasked in a [`Scratch`] that all connections of a thread
//! share. Everything else goes through `partial`, which exists only while something is incomplete.
//!
//! Must not know: what is answered, and when.

use super::frame::{Error, Header, Kind, Limits, Opcode, Role};
use super::mask;
use super::partial::Partial;
use super::utf8;

/// A received message or control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A complete message; a text is valid UTF-8.
    Message {
        /// Text or binary.
        kind: Kind,
        /// The whole payload, unmasked.
        payload: &'a [u8],
    },
    /// A ping, to be answered by a pong with the same payload, at most 125 bytes.
    Ping(&'a [u8]),
    /// An answer to a ping, or an unsolicited pong.
    Pong(&'a [u8]),
    /// The peer sends nothing more, and expects a close unless it has had one. Later input is
    /// ignored.
    Close {
        /// The close code, if any; it is one that may be sent.
        code: Option<u16>,
        /// The reason as text, at most 123 bytes.
        reason: &'a str,
    },
}

/// A buffer for unmasking payloads, shared by all connections of a thread.
#[derive(Debug, Default)]
pub struct Scratch(Vec<u8>);

/// A larger buffer is released after use.
const SCRATCH_BYTES: usize = 256 * 1024;

impl Scratch {
    #[inline]
    fn unmasked(&mut self, payload: &[u8], key: [u8; 4]) -> &[u8] {
        if self.0.capacity() > SCRATCH_BYTES && payload.len() <= SCRATCH_BYTES {
            self.0 = Vec::new();
        }
        self.0.clear();
        self.0.extend_from_slice(payload);
        mask::apply(&mut self.0, key, 0);
        &self.0
    }
}

/// Reads the frames that one end of a connection receives.
#[derive(Debug)]
pub struct Receiver {
    role: Role,
    closed: bool,
    partial: Option<Box<Partial>>,
}

impl Receiver {
    /// A receiver for the end with this role, to be used after the opening handshake.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Receiver { role, closed: false, partial: None }
    }

    /// Feeds bytes, all of which are taken. What they complete is passed to `on_outcome`, in order.
    ///
    /// # Errors
    /// At the first illegal frame, after what came before it was reported, however the bytes were
    /// split. After it, every call returns the same error.
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
            let (taken, closed) = partial.take(bytes, self.role, limits, on_outcome)?;
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
        while let Some((header, header_len)) = Header::read(bytes, self.role, limits.message_bytes)?
        {
            if header.opcode == Opcode::Continuation {
                return Err(NOTHING_TO_CONTINUE);
            }
            let rest = &bytes[header_len..];
            if !header.last || rest.len() < header.len {
                break;
            }
            let (payload, rest) = rest.split_at(header.len);
            let payload = header.key.map_or(payload, |key| scratch.unmasked(payload, key));
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
    #[must_use]
    pub fn started(&self) -> bool {
        self.partial.is_some()
    }

    /// Whether a message has begun and is not complete. Parts of control frames do not count.
    #[must_use]
    pub fn in_message(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.is_of_message())
    }

    /// Whether a close frame was received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The bytes held on the heap.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.held_bytes())
    }
}

pub(super) const NOTHING_TO_CONTINUE: Error =
    Error::Protocol("a continuation where no message has begun");

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

/// The event for a control frame.
pub(super) fn control(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, Error> {
    Ok(match opcode {
        Opcode::Ping => Event::Ping(payload),
        Opcode::Pong => Event::Pong(payload),
        _ => {
            let (code, reason) = close(payload)?;
            Event::Close { code, reason }
        }
    })
}

fn close(payload: &[u8]) -> Result<(Option<u16>, &str), Error> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload {
            [] => Ok((None, "")),
            _ => Err(Error::Protocol("a close has half a code")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !may_be_sent(code) {
        return Err(Error::Protocol("a close has a code that must not be sent"));
    }
    let reason =
        str::from_utf8(reason).map_err(|_| Error::Payload("the reason of a close is not UTF-8"))?;
    Ok((Some(code), reason))
}

/// Whether the code may be sent: RFC 6455 §7.4 and IANA's "WebSocket Close Code Number Registry",
/// which adds 1012 to 1014.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
