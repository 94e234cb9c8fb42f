//! The header block of a step over HTTP/2, cut at its places.
//!
//! How it works: what is always the same is encoded once, without a dynamic table, so that its
//! bytes are valid on every connection. Only values with places are encoded each time. Fields about
//! the connection are left out, and `Host` becomes `:authority` (RFC 9113 §8.2.2, §8.3.1).

use super::text::Text;
use crate::http2::hpack::Indexing;
use crate::http2::hpack::literal::{begin, field, plain_string};
use crate::http2::request::is_left_out;
use crate::message::Texts;

/// A header block, up to the fields that only some requests have.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) parts: Vec<Part>,
    /// The bytes of names and of values without places.
    pub(super) plain_bytes: u64,
}

/// A part of a header block.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Fixed(Box<[u8]>),
    /// The path, which the session has written.
    Path,
    /// A value with places.
    Text(Text),
}

impl Block {
    /// The block of a step, whose headers have these values.
    pub(super) fn of(scheme: &str, texts: &Texts<'_>, values: &[&Text]) -> Self {
        let mut block = Block::default();
        let mut pending = Vec::new();
        for (name, value) in [(":method", texts.method), (":scheme", scheme)] {
            block.fixed(&mut pending, name, value.as_bytes());
        }
        let named = || texts.headers.iter().zip(values);
        let host = named().find(|((name, _), _)| name.eq_ignore_ascii_case("host"));
        host.iter().for_each(|(_, host)| block.field(&mut pending, ":authority", host));
        block.plain_bytes += ":path".len() as u64;
        begin(&mut pending, b":path", Indexing::Without);
        block.cut(&mut pending);
        block.parts.push(Part::Path);
        for ((name, text), value) in named() {
            let name = name.to_ascii_lowercase();
            if !is_left_out(&name, text) {
                block.field(&mut pending, &name, value);
            }
        }
        block.cut(&mut pending);
        block
    }

    fn field(&mut self, pending: &mut Vec<u8>, name: &str, value: &Text) {
        match value.fixed() {
            Some(bytes) => self.fixed(pending, name, bytes),
            None => {
                self.plain_bytes += name.len() as u64;
                let indexing = if is_secret(name) { Indexing::Never } else { Indexing::Without };
                begin(pending, name.as_bytes(), indexing);
                self.cut(pending);
                self.parts.push(Part::Text(value.clone()));
            }
        }
    }

    fn fixed(&mut self, pending: &mut Vec<u8>, name: &str, value: &[u8]) {
        self.plain_bytes += (name.len() + value.len()) as u64;
        field(pending, name.as_bytes(), value, is_secret(name));
    }

    fn cut(&mut self, pending: &mut Vec<u8>) {
        if !pending.is_empty() {
            self.parts.push(Part::Fixed(std::mem::take(pending).into()));
        }
    }
}

/// Whether no intermediary may keep the value of this field.
fn is_secret(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie")
}

/// Appends a field that only some requests have; returns the bytes of its name and value.
pub(super) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> u64 {
    let indexing = if is_secret(name) { Indexing::Never } else { Indexing::Without };
    begin(out, name.as_bytes(), indexing);
    plain_string(out, value);
    (name.len() + value.len()) as u64
}
