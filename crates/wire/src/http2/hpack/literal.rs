//! Fields that touch no dynamic table: from the static one, or written out.
//!
//! A block of these is the same bytes on every connection, and may be sent again and again.

use super::{fields, huffman, integer};

/// What the peer is to do with a field that is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Insert it into the table.
    Insert,
    /// Nothing.
    Without,
    /// Nothing, and neither is any intermediary to: for secrets (RFC 7541 §7.1.3).
    Never,
}

impl Indexing {
    /// The first byte, and how many of its bits are left for the index of the name.
    #[inline]
    pub(super) fn prefix(self) -> (u8, u32) {
        match self {
            Indexing::Insert => (0x40, 6),
            Indexing::Without => (0x00, 4),
            Indexing::Never => (0x10, 4),
        }
    }
}

/// Appends a field without the dynamic table: an index if the static table has all of it, else written out. A secret is always
/// written out.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8], secret: bool) {
    match fields::find(name, value).filter(|_| !secret) {
        Some(index) => integer::write(out, 0x80, 7, index),
        None => {
            let indexing = if secret { Indexing::Never } else { Indexing::Without };
            begin(out, name, indexing);
            string(out, value);
        }
    }
}

/// Appends everything of a field but its value, which has to follow as a string.
pub fn begin(out: &mut Vec<u8>, name: &[u8], indexing: Indexing) {
    let (first, prefix) = indexing.prefix();
    let index = fields::find_name(name).unwrap_or(0);
    integer::write(out, first, prefix, index);
    if index == 0 {
        string(out, name);
    }
}

/// Appends a string, in whatever form is shorter.
pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = huffman::encoded_len(bytes);
    if len < bytes.len() {
        integer::write(out, 0x80, 7, len);
        huffman::encode(bytes, out);
    } else {
        plain_string(out, bytes);
    }
}

/// Appends a string as it is: its length depends on nothing but that of the bytes.
pub fn plain_string(out: &mut Vec<u8>, bytes: &[u8]) {
    integer::write(out, 0x00, 7, bytes.len());
    out.extend_from_slice(bytes);
}
