//! Header compression (RFC 7541): blocks of fields in, fields out, and the other way round.
//!
//! How it works: a [`Decoder`] reads a whole block from one slice and hands out each field as slices of the block, of its table
//! or of a scratch buffer; nothing is allocated per field. An [`Encoder`] has a dynamic table of its own; whoever wants a
//! block that is the same every time builds it from the parts in [`literal`], which touch no table.
//!
//! What it must not know: frames, and what a field means.

mod decode;
mod encode;
mod fields;
mod huffman;
mod integer;
pub mod literal;
mod shape;
mod table;

pub use decode::{Decoder, Field};
pub use encode::Encoder;
pub use literal::Indexing;
pub use shape::{Shape, shape};

/// The table size that both sides begin with (RFC 9113 §6.5.2).
pub const TABLE_BYTES: u32 = 4096;
/// The largest table that a decoder of ours may be asked to have.
pub const TABLE_BYTES_MOST: u32 = 1 << 20;
/// What an entry counts for beside its bytes (RFC 7541 §4.1).
pub const ENTRY_BYTES: usize = 32;

/// Why a block was refused. The text names the mistake and never quotes the peer. The tables of the two sides differ from then
/// on: the connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The block cannot be decoded (COMPRESSION_ERROR).
    #[error("header compression: {0}")]
    Compression(&'static str),
    /// The fields, with 32 bytes for each, are larger than the caller allows.
    #[error("limit: the header list is too long")]
    Limit,
}

#[cfg(test)]
mod tests;
