//! CSV, read strictly (RFC 4180): bytes in, rows out.
//!
//! How it works: an automaton that can stop at any byte, so that a split never changes the result.
//! A field in double quotes may have separators, line breaks and doubled quotes in it. A byte order
//! mark at the start and empty lines are left out. Everything else that a spreadsheet would have to
//! guess about is refused, with the line.

use super::{Broken, MARK};

/// Takes each row that is complete.
pub(super) type OnRow<'a> = &'a mut dyn FnMut(Fields<'_>) -> Result<(), Broken>;

/// A reader of CSV.
#[derive(Debug, Default)]
pub(super) struct Csv {
    separator: u8,
    state: State,
    /// The number of the present line, and of those on which the row and the quoted field began.
    line: u64,
    row_line: u64,
    quote_line: u64,
    /// The fields of the present row, one after the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Whether a field of the present row began with a quote.
    quoted: bool,
    /// Bytes of the byte order mark seen; none once something else has come.
    mark: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// At the start of a field.
    #[default]
    Start,
    Plain,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first of two.
    Quote,
    /// Behind a carriage return at the end of a row.
    Return,
}

/// A row: the line on which it begins, and its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Fields<'a> {
    pub(super) fn count(self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(self, index: usize) -> &'a [u8] {
        let from = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[from..self.ends[index]]
    }
}

impl Csv {
    pub(super) fn new(separator: u8) -> Self {
        Csv { separator, line: 1, row_line: 1, mark: Some(0), ..Csv::default() }
    }

    /// Takes more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], on_row: OnRow<'_>) -> Result<(), Broken> {
        let mut rest = bytes;
        while let Some(first) = rest.first().copied() {
            if let Some(seen) = self.mark {
                if MARK.get(seen) == Some(&first) {
                    self.mark = Some(seen + 1);
                    rest = &rest[1..];
                    continue;
                }
                // Half of a mark is text.
                let half = if seen < MARK.len() { &MARK[..seen] } else { &[] };
                self.text.extend_from_slice(half);
                self.state = if half.is_empty() { State::Start } else { State::Plain };
                self.mark = None;
            }
            let taken = self.run(rest);
            self.text.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if let Some(byte) = rest.first() {
                self.take(*byte, on_row)?;
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    /// The number of bytes to come that are text without a meaning.
    fn run(&self, rest: &[u8]) -> usize {
        let ends = |byte: &u8| match self.state {
            State::Plain => *byte == self.separator || matches!(byte, b'\n' | b'\r' | b'"'),
            State::Quoted => matches!(byte, b'"' | b'\n'),
            State::Start | State::Quote | State::Return => true,
        };
        rest.iter().position(ends).unwrap_or(rest.len())
    }

    /// Ends the text: a last row needs no line break.
    pub(super) fn end(&mut self, on_row: OnRow<'_>) -> Result<(), Broken> {
        match self.state {
            State::Quoted => Err(self.broken(self.quote_line, "has a quote that is never closed")),
            State::Start if self.ends.is_empty() => Ok(()),
            State::Start | State::Plain | State::Quote | State::Return => self.end_row(on_row),
        }
    }

    fn take(&mut self, byte: u8, on_row: OnRow<'_>) -> Result<(), Broken> {
        let line = self.line;
        match (self.state, byte) {
            (State::Quoted, b'"') => self.state = State::Quote,
            (State::Quoted, _) => {
                self.line += 1;
                self.text.push(byte);
            }
            (State::Quote, b'"') => {
                self.text.push(byte);
                self.state = State::Quoted;
            }
            (State::Return, b'\n') => return self.end_line(on_row),
            (State::Return, _) => {
                return Err(self.broken(line, "has a carriage return within a field"));
            }
            (_, byte) if byte == self.separator => {
                self.ends.push(self.text.len());
                self.state = State::Start;
            }
            (_, b'\n') => return self.end_line(on_row),
            (_, b'\r') => self.state = State::Return,
            (State::Start, b'"') => {
                (self.state, self.quote_line, self.quoted) = (State::Quoted, line, true);
            }
            (State::Quote, _) => return Err(self.broken(line, "has text behind a closing quote")),
            (_, b'"') => return Err(self.broken(line, "has a quote within a field")),
            (_, _) => {
                self.text.push(byte);
                self.state = State::Plain;
            }
        }
        Ok(())
    }

    fn end_line(&mut self, on_row: OnRow<'_>) -> Result<(), Broken> {
        self.line += 1;
        self.end_row(on_row)
    }

    fn end_row(&mut self, on_row: OnRow<'_>) -> Result<(), Broken> {
        self.ends.push(self.text.len());
        // An empty line has one field without text; a quoted empty field is a row.
        let empty = self.ends.len() == 1 && self.text.is_empty() && !self.quoted;
        let row = Fields { line: self.row_line, text: &self.text, ends: &self.ends };
        let outcome = if empty { Ok(()) } else { on_row(row) };
        self.text.clear();
        self.ends.clear();
        (self.state, self.row_line, self.quoted) = (State::Start, self.line, false);
        outcome
    }

    fn broken(&self, line: u64, what: &str) -> Broken {
        Broken { line: Some(line), what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = Result<Vec<(u64, Vec<String>)>, Broken>;

    fn read(pieces: &[&[u8]]) -> Read {
        let (mut csv, mut rows) = (Csv::new(b','), Vec::new());
        let mut on_row = |row: Fields<'_>| {
            let field = |index| String::from_utf8_lossy(row.get(index)).into_owned();
            rows.push((row.line, (0..row.count()).map(field).collect()));
            Ok(())
        };
        pieces.iter().try_for_each(|piece| csv.feed(piece, &mut on_row))?;
        csv.end(&mut on_row)?;
        Ok(rows)
    }

    #[test]
    fn rows_are_read_as_rfc_4180_has_them() {
        for (text, rows) in [
            ("", &[][..]),
            ("a,b", &[(1, &["a", "b"][..])]),
            ("a,b\n", &[(1, &["a", "b"])]),
            ("a,b\r\nc,d\r\n", &[(1, &["a", "b"]), (2, &["c", "d"])]),
            ("a,\n,b\n", &[(1, &["a", ""]), (2, &["", "b"])]),
            ("\"a,\"\"b\"\"\",\"c\nd\"\ne,f", &[(1, &["a,\"b\"", "c\nd"]), (3, &["e", "f"])]),
            ("a\n\n\nb\n", &[(1, &["a"]), (4, &["b"])]),
            ("a\n\"\"\n", &[(1, &["a"]), (2, &[""])]),
            ("a\r\n\"\"\r\n\r\n", &[(1, &["a"]), (2, &[""])]),
            ("\u{feff}a,b\n", &[(1, &["a", "b"])]),
            ("\u{feff}\"a\",b\n", &[(1, &["a", "b"])]),
            ("a\r", &[(1, &["a"])]),
            ("a\0 b,é\n", &[(1, &["a\0 b", "é"])]),
        ] {
            let rows: Vec<_> = rows
                .iter()
                .map(|(line, row)| (*line, row.iter().map(|field| (*field).to_owned()).collect()))
                .collect();
            assert_eq!(read(&[text.as_bytes()]), Ok(rows), "{text:?}");
        }
    }

    #[test]
    fn what_is_broken_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a\n\"b", 2, "has a quote that is never closed"),
            ("a\n\"b\nc\nd\n", 2, "has a quote that is never closed"),
            ("a\nb\nc\"d\n", 3, "has a quote within a field"),
            ("\"a\nb\"c\n", 2, "has text behind a closing quote"),
            ("a\rb\n", 1, "has a carriage return within a field"),
        ] {
            let broken = Broken { line: Some(line), what: what.to_owned() };
            assert_eq!(read(&[text.as_bytes()]), Err(broken), "{text:?}");
        }
    }

    #[test]
    fn half_a_byte_order_mark_is_text() {
        let rows = read(&[b"\xef\xbb,b\n"]).expect("a row");
        assert_eq!(rows, [(1, vec!["\u{fffd}".to_owned(), "b".to_owned()])]);
    }

    fn quoted(fields: &[String]) -> String {
        let fields: Vec<_> =
            fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
        fields.join(",")
    }

    proptest! {
        #[test]
        fn a_split_never_changes_what_is_read(text in "[ab,\"\\r\\n\u{feff}]{0,40}", cut in 0usize..60) {
            let bytes = text.as_bytes();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let whole = read(&[bytes]);
            prop_assert_eq!(&read(&[one, two]), &whole);
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&read(&each), &whole);
        }

        #[test]
        fn what_is_quoted_is_read_as_it_was(
            rows in proptest::collection::vec(
                proptest::collection::vec("[ab,\"\\r\\n é]{0,8}", 1..5), 0..12,
            ),
        ) {
            let text: String = rows.iter().map(|row| quoted(row) + "\r\n").collect();
            let found = read(&[text.as_bytes()]).expect("quoted rows");
            let found: Vec<_> = found.into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(found, rows);
        }
    }
}
