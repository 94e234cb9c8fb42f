//! The incomplete part of a message: a part of a frame's head, of its payload, or of the frames of
//! one message.
//!
//! How it works: one buffer holds the message, another the control frame that may come in its
//! middle. Both grow with the bytes received, not with the announced length. Every byte of a text
//! is checked once, when it arrives. A compressed message is decompressed when it is complete.
//!
//! Must not know: anything before this message.

use super::event::{Event, NOTHING_TO_CONTINUE, control};
use super::frame::{End, Error, HEADER_BYTES, Header, Kind, Limits, Opcode};
use super::scratch::Scratch;
use super::{mask, utf8};

/// The bit of an opcode that marks a control frame (RFC 6455 §5.5).
const CONTROL: u8 = 0x08;
/// The maximum memory that is reserved at once for an announced payload.
const RESERVED_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Partial {
    head: [u8; HEADER_BYTES],
    head_len: usize,
    /// The frame whose payload is arriving, and the number of its bytes received.
    frame: Option<Header>,
    taken: usize,
    /// The message that has begun, and its payload so far.
    message: Option<Kind>,
    payload: Vec<u8>,
    compressed: bool,
    /// The length of the part of a text's payload that is complete, valid characters.
    checked: usize,
    control: Vec<u8>,
    refused: Option<Error>,
}

impl Partial {
    pub(super) fn refused(error: Error) -> Self {
        Self { refused: Some(error), ..Self::default() }
    }

    /// Whether nothing is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.head_len == 0
            && self.frame.is_none()
            && self.message.is_none()
            && self.refused.is_none()
    }

    /// Whether part of a message has come. A part of a control frame does not count, as one may
    /// come at any time.
    pub(super) fn is_of_message(&self) -> bool {
        let head = self.head_len > 0 && self.head[0] & CONTROL == 0;
        self.message.is_some() || head
    }

    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.payload.capacity() + self.control.capacity()
    }

    /// Takes bytes up to the end of a frame at most. Returns their number, at least one, and
    /// whether a close frame was received.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        end: End,
        limits: &Limits,
        scratch: &mut Scratch,
        on_outcome: &mut impl FnMut(Event<'_>),
    ) -> Result<(usize, bool), Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let mut at = 0;
        if self.frame.is_none() {
            at = self.take_head(bytes, end, limits)?;
        }
        let Some(frame) = self.frame else { return Ok((at, false)) };
        at += self.take_payload(&bytes[at..], frame)?;
        let whole = self.taken == frame.len;
        if !whole {
            return Ok((at, false));
        }
        self.frame = None;
        if frame.opcode.is_control() {
            let payload = std::mem::take(&mut self.control);
            on_outcome(control(frame.opcode, &payload)?);
        } else if frame.last {
            self.end_message(end, limits, scratch, on_outcome)?;
        }
        let closed = frame.opcode == Opcode::Close;
        Ok((at, closed))
    }

    fn take_head(&mut self, bytes: &[u8], end: End, limits: &Limits) -> Result<usize, Error> {
        let before = self.head_len;
        let more = bytes.len().min(HEADER_BYTES - before);
        self.head[before..before + more].copy_from_slice(&bytes[..more]);
        let room = limits.message_bytes.saturating_sub(self.payload.len());
        let Some((frame, len)) = Header::read(&self.head[..before + more], end, room)? else {
            self.head_len += more;
            return Ok(more);
        };
        self.head_len = 0;
        self.begin_frame(frame)?;
        Ok(len - before)
    }

    fn begin_frame(&mut self, frame: Header) -> Result<(), Error> {
        match (frame.opcode, self.message) {
            (Opcode::Continuation, None) => return Err(NOTHING_TO_CONTINUE),
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(Error::Protocol("a message begins within another"));
            }
            (Opcode::Text, None) => self.message = Some(Kind::Text),
            (Opcode::Binary, None) => self.message = Some(Kind::Binary),
            _ => {}
        }
        if !frame.opcode.is_control() {
            self.compressed |= frame.compressed;
            self.payload.reserve(frame.len.min(RESERVED_BYTES));
        }
        self.frame = Some(frame);
        self.taken = 0;
        Ok(())
    }

    fn take_payload(&mut self, bytes: &[u8], frame: Header) -> Result<usize, Error> {
        let piece = &bytes[..bytes.len().min(frame.len - self.taken)];
        let is_control = frame.opcode.is_control();
        let buffer = if is_control { &mut self.control } else { &mut self.payload };
        let at = buffer.len();
        buffer.extend_from_slice(piece);
        if let Some(key) = frame.key {
            mask::apply(&mut buffer[at..], key, self.taken);
        }
        self.taken += piece.len();
        if !is_control && self.message == Some(Kind::Text) && !self.compressed {
            self.checked = utf8::beginning(&self.payload, self.checked)?;
        }
        Ok(piece.len())
    }

    /// Passes the complete message on.
    fn end_message(
        &mut self,
        end: End,
        limits: &Limits,
        scratch: &mut Scratch,
        on_outcome: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let Some(kind) = self.message.take() else { return Ok(()) };
        let mut payload = &self.payload[..];
        if end.deflates {
            payload = scratch.content(payload, self.compressed, limits)?;
        }
        if kind == Kind::Text && self.compressed {
            utf8::whole(payload)?;
        } else if kind == Kind::Text && self.checked < payload.len() {
            return Err(utf8::BAD_TEXT);
        }
        on_outcome(Event::Message { kind, payload });
        self.payload.clear();
        (self.checked, self.compressed) = (0, false);
        Ok(())
    }
}
