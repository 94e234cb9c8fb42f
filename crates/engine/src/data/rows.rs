//! The rows of data in memory, packed: only the columns that requests use.
//!
//! How it works: each value stands behind its length, and a row is its values. The place of every
//! sixteenth row is kept, and the rows between are walked over. All this takes less memory than the
//! same columns in a file.

/// Rows from one kept place to the next.
const STRIDE: u64 = 16;

/// Rows of data.
#[derive(Debug, Default)]
pub struct Rows {
    packed: Vec<u8>,
    starts: Vec<usize>,
    count: u64,
    columns: usize,
    longest: usize,
}

impl Rows {
    /// No rows yet, of so many columns.
    pub fn of_columns(columns: usize) -> Self {
        Rows { columns, ..Rows::default() }
    }

    /// Adds a row; there must be a value for each column.
    pub fn push<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        if self.count.is_multiple_of(STRIDE) {
            self.starts.push(self.packed.len());
        }
        self.count += 1;
        for value in values {
            self.longest = self.longest.max(value.len());
            let mut len = value.len();
            while len >= 0x80 {
                self.packed.push(len as u8 | 0x80);
                len >>= 7;
            }
            self.packed.push(len as u8);
            self.packed.extend_from_slice(value);
        }
    }

    /// Gives back the memory that further rows would have taken.
    pub fn complete(mut self) -> Self {
        self.packed.shrink_to_fit();
        self.starts.shrink_to_fit();
        self
    }

    /// The number of rows.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The length of the longest value.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The row with this number, from 0; an empty one if there is none.
    #[inline]
    pub fn row(&self, number: u64) -> Row<'_> {
        let start = self.starts.get((number / STRIDE) as usize).filter(|_| number < self.count);
        let mut rest = start.map_or(&[][..], |start| &self.packed[*start..]);
        for _ in 0..(number % STRIDE) * self.columns as u64 {
            rest = split_value(rest).1;
        }
        Row(rest)
    }
}

/// The values of one row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// The value of a column.
    #[inline]
    pub fn value(self, column: usize) -> &'a [u8] {
        let rest = (0..column).fold(self.0, |rest, _| split_value(rest).1);
        split_value(rest).0
    }
}

/// Splits off the first value.
#[inline]
fn split_value(packed: &[u8]) -> (&[u8], &[u8]) {
    let (mut len, mut shift, mut at) = (0, 0, 0);
    while let Some(byte) = packed.get(at) {
        len |= usize::from(byte & 0x7f) << shift;
        at += 1;
        if *byte < 0x80 {
            return packed[at..].split_at_checked(len).unwrap_or_default();
        }
        shift += 7;
    }
    Default::default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_take_no_more_memory_than_their_file() {
        let mut rows = Rows::of_columns(2);
        let mut file_bytes = 0;
        for number in 0..100_000 {
            let values = [number.to_string(), format!("user{number}")];
            file_bytes += values.iter().map(|value| value.len() + 1).sum::<usize>();
            rows.push(values.iter().map(String::as_bytes));
        }
        let rows = rows.complete();
        let starts_bytes = rows.starts.capacity() * size_of::<usize>();
        let bytes = rows.packed.capacity() + starts_bytes;
        assert!(bytes * 100 < file_bytes * 105, "{bytes} bytes for a file of {file_bytes}");
    }

    proptest! {
        #[test]
        fn every_value_is_found_again(
            rows in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 3), 0..70,
            ),
        ) {
            let mut packed = Rows::of_columns(3);
            for row in &rows {
                packed.push(row.iter().map(Vec::as_slice));
            }
            let packed = packed.complete();
            prop_assert_eq!(packed.count(), rows.len() as u64);
            prop_assert_eq!(packed.longest(), rows.iter().flatten().map(Vec::len).max().unwrap_or(0));
            for (number, row) in (0..).zip(&rows) {
                for (column, value) in row.iter().enumerate() {
                    prop_assert_eq!(packed.row(number).value(column), value.as_slice());
                }
            }
            prop_assert_eq!(packed.row(packed.count()).value(0), b"");
        }
    }
}
