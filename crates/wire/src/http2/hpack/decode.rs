//! The decoder of field blocks.

use super::table::{Name, Table};
use super::{ENTRY_BYTES, Error, TABLE_BYTES, fields, huffman, integer};

const BAD_INDEX: Error = Error::Compression("an index is in no table");

/// A field of a header list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name, as sent.
    pub name: &'a [u8],
    /// Its value, as sent.
    pub value: &'a [u8],
}

/// Decodes the blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that the peer may ask for.
    announced: usize,
    /// The peer knows that the table has to be smaller than it is, and must begin its next block with that.
    must_shrink: bool,
    /// Strings that were encoded: name and value of one field.
    scratch: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            table: Table::new(TABLE_BYTES),
            announced: TABLE_BYTES as usize,
            must_shrink: false,
            scratch: Vec::new(),
        }
    }
}

/// A string of a block.
#[derive(Clone, Copy)]
enum Text<'a> {
    /// As it stands there.
    Plain(&'a [u8]),
    /// In the scratch buffer, from here to there.
    Decoded(usize, usize),
}

impl<'a> Text<'a> {
    #[inline]
    fn of(self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Decoded(from, to) => &scratch[from..to],
        }
    }
}

impl Decoder {
    /// The peer is told of this HEADER_TABLE_SIZE: it may use so much as soon as it knows.
    pub fn announce(&mut self, table_bytes: u32) {
        self.announced = self.announced.max(table_bytes as usize);
    }

    /// Bytes that the table may come to have.
    #[must_use]
    pub fn table_bytes_most(&self) -> usize {
        self.announced.max(self.table.size_max())
    }

    /// The peer has acknowledged SETTINGS with this HEADER_TABLE_SIZE.
    pub fn acknowledged(&mut self, table_bytes: u32) {
        self.announced = table_bytes as usize;
        self.must_shrink = self.table.size_max() > self.announced;
    }

    /// Changes with everything that changes what an index means: a block of the same bytes under the same generation,
    /// which it leaves as it was, says the same.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// Bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() + self.scratch.capacity()
    }

    /// Decodes a whole block, and gives each of its fields to `on_field`. `list_bytes_max` caps the names, the values, and
    /// 32 bytes for each field (RFC 9113 §6.5.2).
    ///
    /// # Errors
    /// Where the block is wrong or too long; the decoder is of no use then.
    pub fn decode(
        &mut self,
        block: &[u8],
        list_bytes_max: usize,
        on_field: &mut impl FnMut(Field<'_>),
    ) -> Result<(), Error> {
        let mut rest = self.take_sizes(block)?;
        let mut room = list_bytes_max;
        while let Some(&first) = rest.first() {
            let mut emit = |name: &[u8], value: &[u8]| {
                let size = name.len() + value.len() + ENTRY_BYTES;
                room = room.checked_sub(size).ok_or(Error::Limit)?;
                on_field(Field { name, value });
                Ok(())
            };
            if first & 0x80 != 0 {
                let (index, taken) = integer::read(rest, 7)?;
                rest = &rest[taken..];
                let (name, value) = self.at(index)?;
                emit(name, value)?;
            } else if first & 0x40 != 0 {
                rest = self.inserted(rest, &mut emit)?;
            } else if first & 0x20 != 0 {
                return Err(Error::Compression("the table is resized in the middle of a block"));
            } else {
                rest = self.written_out(rest, &mut emit)?;
            }
        }
        Ok(())
    }

    /// The changes of the table's size that a block may begin with.
    fn take_sizes<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Error> {
        let mut rest = block;
        while let Some(0x20..=0x3f) = rest.first() {
            let (size, taken) = integer::read(rest, 5)?;
            if size > self.announced {
                return Err(Error::Compression("the table is made larger than was announced"));
            }
            self.table.resize(size);
            self.must_shrink = false;
            rest = &rest[taken..];
        }
        if self.must_shrink {
            return Err(Error::Compression("the table is not made smaller, as was announced"));
        }
        Ok(rest)
    }

    #[inline]
    fn at(&self, index: usize) -> Result<(&[u8], &[u8]), Error> {
        let place = index.checked_sub(1).ok_or(BAD_INDEX)?;
        match fields::FIELDS.get(place) {
            Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
            None => self.table.get(place - fields::FIELDS.len()).ok_or(BAD_INDEX),
        }
    }

    /// A literal field that goes into the table (RFC 7541 §6.2.1).
    fn inserted<'a>(
        &mut self,
        rest: &'a [u8],
        emit: &mut impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<&'a [u8], Error> {
        self.scratch.clear();
        let (index, taken) = integer::read(rest, 6)?;
        let mut rest = &rest[taken..];
        let mut text = None;
        if index == 0 {
            let (name, taken) = read_string(rest, &mut self.scratch)?;
            (text, rest) = (Some(name), &rest[taken..]);
        } else {
            self.at(index)?;
        }
        let (value, taken) = read_string(rest, &mut self.scratch)?;
        let name = match text {
            Some(text) => Name::Bytes(text.of(&self.scratch)),
            None => match fields::FIELDS.get(index - 1) {
                Some((name, _)) => Name::Bytes(name.as_bytes()),
                None => Name::Entry(index - 1 - fields::FIELDS.len()),
            },
        };
        let (name, value) = self.table.insert(name, value.of(&self.scratch));
        emit(name, value)?;
        Ok(&rest[taken..])
    }

    /// A literal field that goes into no table (RFC 7541 §6.2.2 and §6.2.3).
    fn written_out<'a>(
        &mut self,
        rest: &'a [u8],
        emit: &mut impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<&'a [u8], Error> {
        self.scratch.clear();
        let (index, taken) = integer::read(rest, 4)?;
        let mut rest = &rest[taken..];
        let mut text = None;
        if index == 0 {
            let (name, taken) = read_string(rest, &mut self.scratch)?;
            (text, rest) = (Some(name), &rest[taken..]);
        }
        let (value, taken) = read_string(rest, &mut self.scratch)?;
        let name = match text {
            Some(text) => text.of(&self.scratch),
            None => self.at(index)?.0,
        };
        emit(name, value.of(&self.scratch))?;
        Ok(&rest[taken..])
    }
}

/// Reads the string that `bytes` begin with; also how many bytes it took.
#[inline]
fn read_string<'a>(bytes: &'a [u8], scratch: &mut Vec<u8>) -> Result<(Text<'a>, usize), Error> {
    let (len, taken) = integer::read(bytes, 7)?;
    let end = taken + len;
    let text = bytes.get(taken..end);
    let text = text.ok_or(Error::Compression("a string goes beyond its block"))?;
    if bytes[0] & 0x80 == 0 {
        return Ok((Text::Plain(text), end));
    }
    let from = scratch.len();
    huffman::decode(text, scratch)?;
    Ok((Text::Decoded(from, scratch.len()), end))
}
