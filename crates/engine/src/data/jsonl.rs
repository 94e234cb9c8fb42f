//! JSON lines: an object a line, whose fields are the columns. Bytes in, rows out.
//!
//! A text is taken without its quotes, everything else as it is written. Empty lines are left out,
//! and so is a byte order mark at the start.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::{Broken, MARK};

/// Takes each row that is complete.
pub(super) type OnRow<'a> = &'a mut dyn FnMut(Values<'_>) -> Result<(), Broken>;

/// A reader of JSON lines.
#[derive(Debug)]
pub(super) struct Jsonl {
    columns: Vec<String>,
    line: u64,
    /// The part of the present line that has come.
    text: Vec<u8>,
}

/// A row: its line, and the value of each column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) line: u64,
    pub(super) values: &'a [Cow<'a, [u8]>],
}

impl Jsonl {
    pub(super) fn new(columns: &[String]) -> Self {
        Jsonl { columns: columns.to_vec(), line: 1, text: Vec::new() }
    }

    /// Takes more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], on_row: OnRow<'_>) -> Result<(), Broken> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.text.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end(on_row)?;
                self.line += 1;
            }
        }
        Ok(())
    }

    /// Ends a line, or the whole text.
    pub(super) fn end(&mut self, on_row: OnRow<'_>) -> Result<(), Broken> {
        let text = std::mem::take(&mut self.text);
        let mark = if self.line == 1 { MARK } else { b"" };
        let row = text.strip_prefix(mark).unwrap_or(&text);
        if !row.trim_ascii().is_empty() {
            let values = self.values(row)?;
            on_row(Values { line: self.line, values: &values })?;
        }
        // The next line takes the place of this one.
        self.text = text;
        self.text.clear();
        Ok(())
    }

    fn values<'a>(&self, text: &'a [u8]) -> Result<Vec<Cow<'a, [u8]>>, Broken> {
        let broken = |what: String| Broken { line: Some(self.line), what };
        let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(text)
            .map_err(|error| broken(format!("is not a JSON object: {}", reason(&error))))?;
        let value = |column: &String| {
            let raw = fields.get(column.as_str()).map(|raw| raw.get());
            match raw {
                None => Err(broken(format!("has no '{column}'"))),
                Some("null") => Err(broken(format!("has no value for '{column}', but null"))),
                Some(text) if text.starts_with('"') => serde_json::from_str(text)
                    .map(|text: String| Cow::Owned(text.into_bytes()))
                    .map_err(|error| broken(format!("is not JSON: {}", reason(&error)))),
                Some(text) => Ok(Cow::Borrowed(text.as_bytes())),
            }
        };
        self.columns.iter().map(value).collect()
    }
}

/// What is wrong, without the line that serde counts within the text.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<(u64, Vec<String>)>, Broken> {
        let columns = ["name", "id"].map(str::to_owned);
        let (mut lines, mut rows) = (Jsonl::new(&columns), Vec::new());
        let mut on_row = |row: Values<'_>| {
            let text = |value: &Cow<'_, [u8]>| String::from_utf8_lossy(value).into_owned();
            rows.push((row.line, row.values.iter().map(text).collect()));
            Ok(())
        };
        pieces.iter().try_for_each(|piece| lines.feed(piece, &mut on_row))?;
        lines.end(&mut on_row)?;
        Ok(rows)
    }

    #[test]
    fn texts_lose_their_quotes_and_everything_else_stays_as_it_is_written() {
        let text = r#"{"id": 1.50, "name": "a\"\u00e9", "more": null}

{"name": {"a": [1, 2]}, "id": true}"#;
        let rows = [(1, ["a\"é", "1.50"]), (3, [r#"{"a": [1, 2]}"#, "true"])];
        let rows = rows.map(|(line, row)| (line, row.map(str::to_owned).to_vec()));
        assert_eq!(read(&[text.as_bytes()]), Ok(rows.to_vec()));
    }

    #[test]
    fn a_byte_order_mark_is_left_out_at_the_start_alone() {
        let row = r#"{"name":"a","id":1}"#;
        let rows = |line| Ok(vec![(line, vec!["a".to_owned(), "1".to_owned()])]);
        assert_eq!(read(&[format!("\u{feff}{row}").as_bytes()]), rows(1));
        assert_eq!(read(&[format!("\u{feff}\n{row}").as_bytes()]), rows(2));
        assert!(read(&[format!("\n\u{feff}{row}").as_bytes()]).is_err());
    }

    #[test]
    fn what_is_broken_is_refused_with_its_line() {
        for (text, line, what) in [
            ("{\"name\":1}", 1, "has no 'id'"),
            ("\n{\"name\":1,\"id\":null}", 2, "has no value for 'id', but null"),
            ("[1]\n", 1, "is not a JSON object: invalid type: sequence, expected a map"),
            ("{\"name\":1", 1, "is not a JSON object: EOF while parsing an object"),
        ] {
            let broken = Broken { line: Some(line), what: what.to_owned() };
            assert_eq!(read(&[text.as_bytes()]), Err(broken), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_split_never_changes_what_is_read(
            names in proptest::collection::vec("[a-z\"\\\\\\né]{0,6}", 0..6), cut in 0usize..200,
        ) {
            let line = |name: &String| serde_json::json!({"name": name, "id": 1}).to_string() + "\n";
            let text: String = names.iter().map(line).collect();
            let bytes = text.as_bytes();
            let whole = read(&[bytes]);
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(&read(&[one, two]), &whole);
            let found: Vec<_> = whole.expect("rows").into_iter().map(|(_, row)| row[0].clone()).collect();
            prop_assert_eq!(found, names);
        }
    }
}
