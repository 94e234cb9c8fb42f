//! A server's side, written by hand: frames as a test wants them.

use trueload_wire::http2::frame::{
    ErrorCode, Header, Kind, flags, write_block, write_data, write_goaway, write_ping, write_reset,
    write_settings_ack, write_window_update,
};
use trueload_wire::http2::hpack::literal;
use trueload_wire::http2::settings;

/// What a server sends.
#[derive(Clone, Default)]
pub(crate) struct Peer(pub(crate) Vec<u8>);

pub(crate) const OK: &[(&str, &str)] = &[(":status", "200")];

impl Peer {
    pub(crate) fn settings(mut self, parameters: &[(u16, u32)]) -> Self {
        settings::write(&mut self.0, parameters);
        self
    }

    pub(crate) fn ack(mut self) -> Self {
        write_settings_ack(&mut self.0);
        self
    }

    /// An answer without a body.
    pub(crate) fn answer(self, stream: u32) -> Self {
        self.headers(stream, OK, true)
    }

    pub(crate) fn headers(mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> Self {
        write_block(&mut self.0, stream, &block(fields), end, 16_384);
        self
    }

    /// The block in frames of so many bytes.
    pub(crate) fn in_pieces(
        mut self,
        stream: u32,
        fields: &[(&str, &str)],
        end: bool,
        bytes: u32,
    ) -> Self {
        write_block(&mut self.0, stream, &block(fields), end, bytes);
        self
    }

    pub(crate) fn data(mut self, stream: u32, bytes: &[u8], end: bool) -> Self {
        write_data(&mut self.0, stream, bytes, end);
        self
    }

    pub(crate) fn reset(mut self, stream: u32, code: ErrorCode) -> Self {
        write_reset(&mut self.0, stream, code);
        self
    }

    pub(crate) fn goaway(mut self, last: u32, code: ErrorCode) -> Self {
        write_goaway(&mut self.0, last, code, "bye");
        self
    }

    pub(crate) fn ping(mut self, ack: bool) -> Self {
        write_ping(&mut self.0, *b"whatever", ack);
        self
    }

    pub(crate) fn pong(mut self) -> Self {
        write_ping(&mut self.0, *b"trueload", true);
        self
    }

    pub(crate) fn window(mut self, stream: u32, by: u32) -> Self {
        write_window_update(&mut self.0, stream, by);
        self
    }

    /// Any frame.
    pub(crate) fn frame(mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Header { len: payload.len() as u32, kind, flags, stream }.write(&mut self.0);
        self.0.extend_from_slice(payload);
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The same again and again.
    pub(crate) fn times(self, count: usize, step: impl Fn(Self) -> Self) -> Self {
        (0..count).fold(self, |peer, _| step(peer))
    }

    /// Padded HEADERS or DATA.
    pub(crate) fn padded(self, kind: Kind, stream: u32, payload: &[u8], padding: u8) -> Self {
        let mut padded = vec![padding];
        padded.extend_from_slice(payload);
        padded.resize(padded.len() + usize::from(padding), 0);
        let flags = flags::PADDED | flags::END_HEADERS | flags::END_STREAM;
        self.frame(kind, flags, stream, &padded)
    }
}

/// A header block without the dynamic table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    block
}
