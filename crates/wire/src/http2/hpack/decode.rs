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

/// Decodes the blocks of one connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table size that the peer may select.
    announced: usize,
    /// Whether the peer must begin its next block with a smaller table size, because it knows the
    /// new limit.
    must_shrink: bool,
    /// The decoded strings of one field, its name and value.
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

/// A string in a block.
#[derive(Clone, Copy)]
enum Text<'a> {
    /// A string without Huffman coding, in place.
    Plain(&'a [u8]),
    /// A decoded string: its start and end in the scratch buffer.
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
    /// Notes that this HEADER_TABLE_SIZE is announced to the peer, which may use it as soon as it
    /// knows.
    pub fn announce(&mut self, table_bytes: u32) {
        self.announced = self.announced.max(table_bytes as usize);
    }

    /// The size in bytes that the table may reach.
    pub fn table_bytes_most(&self) -> usize {
        self.announced.max(self.table.size_max())
    }

    /// Notes that the peer has acknowledged SETTINGS with this HEADER_TABLE_SIZE.
    pub fn acknowledged(&mut self, table_bytes: u32) {
        self.announced = table_bytes as usize;
        self.must_shrink = self.table.size_max() > self.announced;
    }

    /// A number that changes whenever the meaning of an index changes. Equal blocks have the same
    /// meaning if the generation is the same and decoding does not change it.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// The bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() + self.scratch.capacity()
    }

    /// Decodes a complete block and passes each field to `on_field`. `list_bytes_max` caps the sum
    /// of names, values and 32 bytes for each field (RFC 9113 §6.5.2). After an error the decoder
    /// must not be used.
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

    /// Reads the changes of the table size that a block may begin with.
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

    /// Reads a literal field that is inserted into the table (RFC 7541 §6.2.1).
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

    /// Reads a literal field that is not inserted into the table (RFC 7541 §6.2.2 and §6.2.3).
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

/// Reads the string at the start of `bytes` and returns it with the number of bytes read.
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
