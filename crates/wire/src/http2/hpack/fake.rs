//! The encoder of a peer in tests, with a dynamic table. The product sends nothing that needs one.

use super::literal::{self, Indexing};
use super::table::{Name, Table};
use super::{fields, integer};

/// Encodes the blocks of one connection.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The smallest table size since the last block, if the size has changed.
    smallest: Option<usize>,
}

impl Encoder {
    /// An encoder with a table of at most `table_bytes`, which must not exceed what the peer
    /// announced.
    pub fn new(table_bytes: u32) -> Self {
        Encoder { table: Table::new(table_bytes), smallest: None }
    }

    /// Changes the size of the table. The next block informs the peer.
    pub fn resize(&mut self, table_bytes: u32) {
        let size = table_bytes as usize;
        if size != self.table.size_max() {
            self.smallest = Some(self.smallest.unwrap_or(size).min(size));
            self.table.resize(size);
        }
    }

    /// Begins a block with the pending changes of the table size (RFC 7541 §4.2).
    pub fn begin_block(&mut self, out: &mut Vec<u8>) {
        if let Some(smallest) = self.smallest.take() {
            if smallest < self.table.size_max() {
                integer::write(out, 0x20, 5, smallest);
            }
            integer::write(out, 0x20, 5, self.table.size_max());
        }
    }

    /// Appends a field to the current block.
    pub fn field(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8], indexing: Indexing) {
        let dynamic = |place: usize| fields::FIELDS.len() + 1 + place;
        if indexing != Indexing::Never {
            let index = fields::find(name, value).or_else(|| self.find(name, value).map(dynamic));
            if let Some(index) = index {
                integer::write(out, 0x80, 7, index);
                return;
            }
        }
        let (first, prefix) = indexing.prefix();
        let index = fields::find_name(name).or_else(|| self.find_name(name).map(dynamic));
        integer::write(out, first, prefix, index.unwrap_or(0));
        if index.is_none() {
            literal::string(out, name);
        }
        literal::string(out, value);
        if indexing == Indexing::Insert {
            self.table.insert(Name::Bytes(name), value);
        }
    }

    /// The place in the table of the entry with this name and value.
    fn find(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        (0..self.table.len()).find(|place| self.table.get(*place) == Some((name, value)))
    }

    /// The place in the table of the newest entry with this name.
    fn find_name(&self, name: &[u8]) -> Option<usize> {
        let named = |place: &usize| self.table.get(*place).is_some_and(|entry| entry.0 == name);
        (0..self.table.len()).find(named)
    }
}
