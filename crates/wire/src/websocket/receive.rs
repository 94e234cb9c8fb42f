//! The receiving half: frames in, whole messages and control frames out.
//!
//! How it works: frames that lie whole in what is fed, and are whole messages, are heard where they lie; a client's
//! payloads are unmasked in a [`Scratch`] that all connections of a thread share. Everything else goes through
//! `partial`, which exists only as long as something is partial.
//!
//! What it must not know: what is answered, and when.

use super::frame::{Error, Header, Kind, Limits, Opcode, Role};
use super::mask;
use super::partial::Partial;
use super::utf8;

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message; a text is UTF-8.
    Message {
        /// Text or binary.
        kind: Kind,
        /// All of it, unmasked.
        payload: &'a [u8],
    },
    /// To be answered by a pong with the same payload, at most 125 bytes.
    Ping(&'a [u8]),
    /// The answer to a ping, or none was asked.
    Pong(&'a [u8]),
    /// The peer sends nothing more, and awaits a close unless it has had one. What comes behind is not heard.
    Close {
        /// Why; a code that may be sent, if any was.
        code: Option<u16>,
        /// In words, at most 123 bytes.
        reason: &'a str,
    },
}

/// Where masked payloads are unmasked: one serves all connections of a thread.
#[derive(Debug, Default)]
pub struct Scratch(Vec<u8>);

/// A larger one is given back after use.
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

/// Reads what one end of a connection is sent.
#[derive(Debug)]
pub struct Receiver {
    role: Role,
    closed: bool,
    partial: Option<Box<Partial>>,
}

impl Receiver {
    /// For the end that has this role, behind the opening handshake.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Receiver { role, closed: false, partial: None }
    }

    /// Feeds bytes; `on_outcome` is told what they complete, in order. All are taken.
    ///
    /// # Errors
    /// At the first frame that must not be, after what came before it was heard, however the bytes were split; from
    /// then on always the same.
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

    /// Hears the frames that `bytes` begin with, as long as each is whole and a whole message; returns what is left.
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

    /// Whether a message, or a frame, has begun and is not whole; a refusal counts.
    #[must_use]
    pub fn started(&self) -> bool {
        self.partial.is_some()
    }

    /// Whether a message has begun and is not whole; of a control frame any part may have come.
    #[must_use]
    pub fn in_message(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| partial.is_of_message())
    }

    /// Whether a close was heard.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.held_bytes())
    }
}

pub(super) const NOTHING_TO_CONTINUE: Error =
    Error::Protocol("a continuation where no message has begun");

/// What a frame that is a whole message, or a control frame, says.
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

/// What a control frame says.
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

/// RFC 6455 §7.4 and IANA's "WebSocket Close Code Number Registry", which adds 1012 to 1014.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
