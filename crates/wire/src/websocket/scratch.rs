//! What the receivers of a thread share: buffers for unmasking and decompressing.
//!
//! Must not know: which frames came before.

use super::deflate::{Inflater, Sizes};
use super::frame::{End, Error, Header, Limits};
use super::mask;

/// A larger buffer is released after use.
const SCRATCH_BYTES: usize = 256 * 1024;

/// What all connections of a thread share to unmask payloads and to decompress messages.
#[derive(Debug, Default)]
pub struct Scratch {
    unmasked: Vec<u8>,
    /// None before a connection has agreed to compression.
    inflater: Option<Box<Inflater>>,
}

impl Scratch {
    /// Returns the payload of a frame that is a whole message or a control frame, unmasked and
    /// decompressed.
    #[inline]
    pub(super) fn payload<'a>(
        &'a mut self,
        payload: &'a [u8],
        header: &Header,
        end: End,
        limits: &Limits,
    ) -> Result<&'a [u8], Error> {
        let Scratch { unmasked, inflater } = self;
        let payload = header.key.map_or(payload, |key| unmask(unmasked, payload, key));
        if !end.deflates || header.opcode.is_control() {
            return Ok(payload);
        }
        inflater.get_or_insert_default().read(payload, header.compressed, limits.message_bytes)
    }

    /// Returns what the payload of a message says, on a connection that has agreed to compression.
    pub(super) fn content<'a>(
        &'a mut self,
        payload: &'a [u8],
        compressed: bool,
        limits: &Limits,
    ) -> Result<&'a [u8], Error> {
        self.inflater.get_or_insert_default().read(payload, compressed, limits.message_bytes)
    }

    /// Returns the sizes of the messages received by connections that have agreed to compression,
    /// since the last call.
    pub(super) fn take_received(&mut self) -> Sizes {
        self.inflater.as_mut().map(|own| std::mem::take(&mut own.received)).unwrap_or_default()
    }
}

#[inline]
fn unmask<'a>(buffer: &'a mut Vec<u8>, payload: &[u8], key: [u8; 4]) -> &'a [u8] {
    if buffer.capacity() > SCRATCH_BYTES && payload.len() <= SCRATCH_BYTES {
        *buffer = Vec::new();
    }
    buffer.clear();
    buffer.extend_from_slice(payload);
    mask::apply(buffer, key, 0);
    buffer
}
