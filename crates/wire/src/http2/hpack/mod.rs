//! Header compression (RFC 7541): decodes blocks of fields and encodes them.
//!
//! How it works: a [`Decoder`] reads a whole block from one slice and returns each field as slices
//! of the block, of its table or of a scratch buffer. There is no allocation per field. A block
//! that must have the same bytes every time is built from the functions in [`literal`], which do
//! not touch a table.
//!
//! Must not know: frames, and what a field means.

mod decode;
#[cfg(any(test, feature = "fake"))]
mod fake;
mod fields;
mod huffman;
mod integer;
pub mod literal;
mod shape;
mod table;

pub use decode::{Decoder, Field};
#[cfg(any(test, feature = "fake"))]
pub use fake::Encoder;
pub use literal::Indexing;
pub use shape::{Shape, shape};

/// The initial table size on both sides (RFC 9113 §6.5.2).
pub const TABLE_BYTES: u32 = 4096;
/// The largest table that our decoder may be asked to have.
pub const TABLE_BYTES_MOST: u32 = 1 << 20;
/// The size of an entry in addition to its bytes (RFC 7541 §4.1).
pub const ENTRY_BYTES: usize = 32;

/// The reason why a block was refused. The text names the mistake and never quotes the peer. After
/// an error the tables of the two sides differ, so the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The block cannot be decoded (COMPRESSION_ERROR).
    #[error("header compression: {0}")]
    Compression(&'static str),
    /// The fields, with 32 bytes added for each, are larger than the caller allows.
    #[error("limit: the header list is too long")]
    Limit,
}

#[cfg(test)]
mod tests;
