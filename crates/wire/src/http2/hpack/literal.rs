//! Fields that use no dynamic table: references to the static table, or literals.
//!
//! A block of such fields has the same bytes on every connection and can be sent repeatedly.

use super::{fields, huffman, integer};

/// The treatment of a literal field by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The peer inserts it into the table.
    Insert,
    /// The peer does not insert it.
    Without,
    /// Neither the peer nor any intermediary may insert it: for secrets (RFC 7541 §7.1.3).
    Never,
}

impl Indexing {
    /// The first byte, and the number of its bits that hold the index of the name.
    #[inline]
    pub(super) fn prefix(self) -> (u8, u32) {
        match self {
            Indexing::Insert => (0x40, 6),
            Indexing::Without => (0x00, 4),
            Indexing::Never => (0x10, 4),
        }
    }
}

/// Appends a field without the dynamic table: an index if the static table has the whole field,
/// else a literal. A secret is always a literal.
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

/// Appends a literal field except for its value, which must follow as a string.
pub fn begin(out: &mut Vec<u8>, name: &[u8], indexing: Indexing) {
    let (first, prefix) = indexing.prefix();
    let index = fields::find_name(name).unwrap_or(0);
    integer::write(out, first, prefix, index);
    if index == 0 {
        string(out, name);
    }
}

/// Appends a string in the shorter of the two forms.
pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = huffman::encoded_len(bytes);
    if len < bytes.len() {
        integer::write(out, 0x80, 7, len);
        huffman::encode(bytes, out);
    } else {
        plain_string(out, bytes);
    }
}

/// Appends a string without Huffman coding; its encoded length depends only on its own length.
pub fn plain_string(out: &mut Vec<u8>, bytes: &[u8]) {
    integer::write(out, 0x00, 7, bytes.len());
    out.extend_from_slice(bytes);
}
