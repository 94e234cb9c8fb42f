//! Data whose rows fill the placeholders of requests: reads a file once, and keeps what is used.

mod csv;
mod jsonl;
mod rows;

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;

pub use crate::protocol::DataUse;
pub use rows::{Row, Rows};

use trueload_wire::message::{Template, is_json_value};

use crate::failure::Failure;
use crate::protocol::{DataFormat, DataPlan};
use csv::{Csv, Fields};
use jsonl::{Jsonl, Values};

/// The byte order mark that may stand before a text in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes read from a file at once.
const READ_BYTES: usize = 1 << 20;
/// The longest row: what one request can have filled in.
const ROW_BYTES_MOST: usize = 1 << 24;

/// The reason why data cannot be used, and the line, if it is about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) line: Option<u64>,
    pub(crate) what: String,
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Failure::Data(match broken.line {
            Some(line) => format!("line {line} {}", broken.what),
            None => broken.what,
        })
    }
}

/// Where data comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file of this machine.
    File(String),
    /// Its content, in pieces.
    Pieces(Vec<Vec<u8>>),
}

/// For each column, what its values must be.
#[derive(Debug)]
pub(crate) struct Uses {
    /// It stands in a header, where a value is one line.
    pub(crate) in_header: Vec<bool>,
    /// It stands in JSON, outside of quotes.
    pub(crate) as_json: Vec<bool>,
    /// The requests that have it in JSON as it is.
    pub(crate) raw: Vec<Template>,
}

impl Uses {
    pub(crate) fn none(columns: usize) -> Self {
        Uses { in_header: vec![false; columns], as_json: vec![false; columns], raw: Vec::new() }
    }
}

/// Reads data, and refuses values that cannot be used.
pub(crate) fn read(plan: &DataPlan, source: Source, uses: Uses) -> Result<Rows, Failure> {
    let mut reading = Reading::of(plan, uses);
    match source {
        Source::Pieces(pieces) => {
            for piece in pieces {
                reading.feed(&piece)?;
            }
        }
        Source::File(path) => {
            let failed = |error: std::io::Error| Failure::Data(format!("cannot be read: {error}"));
            let mut file = File::open(path).map_err(failed)?;
            let mut buffer = vec![0; READ_BYTES];
            loop {
                match file.read(&mut buffer).map_err(failed)? {
                    0 => break,
                    read => reading.feed(&buffer[..read])?,
                }
            }
        }
    }
    Ok(reading.end()?)
}

/// Data being read.
#[derive(Debug)]
struct Reading {
    text: Text,
    taking: Taking,
}

#[derive(Debug)]
enum Text {
    /// CSV, and where its header has the columns.
    Csv(Csv, Option<Header>),
    Jsonl(Jsonl),
}

/// The header of CSV: the number of its fields, and the index of each column.
#[derive(Debug)]
struct Header {
    fields: usize,
    places: Vec<usize>,
}

/// Takes the values of rows.
#[derive(Debug)]
struct Taking {
    columns: Vec<String>,
    uses: Uses,
    rows: Rows,
}

impl Reading {
    fn of(plan: &DataPlan, uses: Uses) -> Self {
        let text = match plan.format {
            DataFormat::Csv => Text::Csv(Csv::new(b','), None),
            DataFormat::Ssv => Text::Csv(Csv::new(b';'), None),
            DataFormat::Tsv => Text::Csv(Csv::new(b'\t'), None),
            DataFormat::Jsonl => Text::Jsonl(Jsonl::new(&plan.columns)),
        };
        let rows = Rows::of_columns(plan.columns.len());
        Reading { text, taking: Taking { columns: plan.columns.clone(), uses, rows } }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let taking = &mut self.taking;
        match &mut self.text {
            Text::Csv(csv, header) => csv.feed(bytes, &mut |row| taking.take_fields(row, header)),
            Text::Jsonl(lines) => lines.feed(bytes, &mut |row| taking.take_values(row)),
        }
    }

    fn end(mut self) -> Result<Rows, Broken> {
        let taking = &mut self.taking;
        match &mut self.text {
            Text::Csv(csv, header) => csv.end(&mut |row| taking.take_fields(row, header))?,
            Text::Jsonl(lines) => lines.end(&mut |row| taking.take_values(row))?,
        }
        if self.taking.rows.count() == 0 {
            return Err(Broken { line: None, what: "has no rows".into() });
        }
        Ok(self.taking.rows.complete())
    }
}

impl Taking {
    /// Takes a row of CSV; the first one is the header.
    fn take_fields(&mut self, row: Fields<'_>, header: &mut Option<Header>) -> Result<(), Broken> {
        let Some(Header { fields, places }) = header else {
            *header = Some(self.header(row)?);
            return Ok(());
        };
        if row.count() != *fields {
            let (has, many) = (row.count(), if row.count() == 1 { "" } else { "s" });
            let what = format!("has {has} field{many}, and the header has {fields}");
            return Err(Broken { line: Some(row.line), what });
        }
        let values: Vec<_> = places.iter().map(|place| row.get(*place)).collect();
        self.check(row.line, &values)?;
        self.rows.push(values.into_iter());
        Ok(())
    }

    fn header(&self, row: Fields<'_>) -> Result<Header, Broken> {
        let place = |column: &String| {
            let mut found = (0..row.count()).filter(|at| row.get(*at) == column.as_bytes());
            let problem = match (found.next(), found.next()) {
                (Some(place), None) => return Ok(place),
                (Some(_), Some(_)) => "twice",
                (None, _) => "not",
            };
            let what = format!("is the header, and has the column '{column}' {problem}");
            Err(Broken { line: Some(row.line), what })
        };
        let places = self.columns.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Header { fields: row.count(), places })
    }

    fn take_values(&mut self, row: Values<'_>) -> Result<(), Broken> {
        let values: Vec<_> = row.values.iter().map(Cow::as_ref).collect();
        self.check(row.line, &values)?;
        self.rows.push(values.into_iter());
        Ok(())
    }

    /// Refuses values that would break the line of a header or JSON, or are too long.
    fn check(&self, line: u64, values: &[&[u8]]) -> Result<(), Broken> {
        let mut len = 0;
        for (index, (value, column)) in values.iter().zip(&self.columns).enumerate() {
            let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
            len += value.len();
            if self.uses.as_json[index] && !is_json_value(value) {
                let what = format!(
                    "has in '{column}' what is not JSON, and {{{column}}} has no quotes around it: \
                     write {{{column}|json}} for a text"
                );
                return Err(Broken { line: Some(line), what });
            }
            if self.uses.in_header[index] && value.iter().any(breaks) {
                let what =
                    format!("has more than one line in '{column}', which stands in a header");
                return Err(Broken { line: Some(line), what });
            }
        }
        if len > ROW_BYTES_MOST {
            let what = format!("has more than {} MiB for a request", ROW_BYTES_MOST >> 20);
            return Err(Broken { line: Some(line), what });
        }
        if let Some(request) = self.uses.raw.iter().find(|request| !request.is_json(values)) {
            let mut columns: Vec<&str> =
                request.raw_columns().map(|at| &*self.columns[at]).collect();
            columns.dedup();
            let what = format!(
                "has in '{}' what makes a body that is not JSON: write {{{}}} without |raw",
                columns.join("' or '"),
                columns[0]
            );
            return Err(Broken { line: Some(line), what });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trueload_wire::message::{Names, Texts};

    use super::*;
    use crate::protocol::DataOrder;

    fn read_text(format: DataFormat, columns: &[&str], text: &str) -> Result<Rows, String> {
        read_for(Vec::new(), format, columns, text)
    }

    fn read_for(
        raw: Vec<Template>,
        format: DataFormat,
        columns: &[&str],
        text: &str,
    ) -> Result<Rows, String> {
        let plan = DataPlan {
            path: None,
            blobs: Vec::new(),
            format,
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            order: DataOrder::Sequential,
        };
        let begin = |with| columns.iter().map(|column| column.starts_with(with)).collect();
        let uses = Uses { in_header: begin("x-"), as_json: begin("json"), raw };
        let pieces = text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
        read(&plan, Source::Pieces(pieces), uses).map_err(|failure| failure.to_string())
    }

    #[test]
    fn only_the_columns_that_are_used_are_kept_in_the_order_asked_for() {
        let csv = "id,name,x-key\n1,anna,k1\n2,\"b,b\",k2\n";
        let ssv = "id;name;x-key\n1;anna;k1\n2;b,b;k2\n";
        let tsv = "id\tname\tx-key\n1\tanna\tk1\n2\tb,b\tk2\n";
        let jsonl = "{\"id\":1,\"name\":\"anna\",\"x-key\":\"k1\"}\n\
                     {\"id\":2,\"name\":\"b,b\",\"x-key\":\"k2\",\"more\":[]}\n";
        for (format, text) in [
            (DataFormat::Csv, csv),
            (DataFormat::Ssv, ssv),
            (DataFormat::Tsv, tsv),
            (DataFormat::Jsonl, jsonl),
        ] {
            let rows = read_text(format, &["x-key", "name"], text).expect("rows");
            assert_eq!(rows.count(), 2, "{format:?}");
            assert_eq!(rows.row(1).value(0), b"k2", "{format:?}");
            assert_eq!(rows.row(1).value(1), b"b,b", "{format:?}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_used_is_refused_with_its_line() {
        for (text, refused) in [
            ("", "has no rows"),
            ("id,name\n", "has no rows"),
            ("id,nam\n1,2\n", "line 1 is the header, and has the column 'name' not"),
            ("name,name\n1,2\n", "line 1 is the header, and has the column 'name' twice"),
            ("id,name\n1,2\n3\n", "line 3 has 1 field, and the header has 2"),
            ("id,name\n1,2,3\n", "line 2 has 3 fields, and the header has 2"),
            ("id,name\n\"1\n\",\"2\n3\"\n4\n", "line 5 has 1 field, and the header has 2"),
        ] {
            let found = read_text(DataFormat::Csv, &["name"], text).err();
            assert_eq!(found.as_deref(), Some(refused), "{text:?}");
        }
    }

    #[test]
    fn what_stands_in_json_without_quotes_must_be_json() {
        for (value, is_json) in [
            ("7", true),
            ("true", true),
            ("\"\"\"a\"\"\"", true),
            ("[1]", true),
            ("anna", false),
            ("", false),
            ("1 2", false),
        ] {
            let text = format!("json,name\n{value},anna\n");
            let found = read_text(DataFormat::Csv, &["json", "name"], &text);
            assert_eq!(found.is_ok(), is_json, "{value} {found:?}");
            if let Err(error) = found {
                assert!(error.starts_with("line 2 has in 'json' what is not JSON"), "{error}");
            }
        }
    }

    #[test]
    fn a_value_that_stands_in_json_as_it_is_must_leave_it_json() {
        let names = Names { columns: vec!["a".into(), "b".into()], ..Names::default() };
        let typed = |kind: &str| [("Content-Type".to_owned(), kind.to_owned())];
        let template = |body: &str, headers: &[(String, String)]| {
            let body = Some(body.as_bytes());
            let texts = Texts { method: "POST", path: "/", headers, body };
            Template::of_step(&texts, &names, &["t".to_owned()])
        };
        for (body, a, b, is_json) in [
            (r#"{"q":"{a|raw}"}"#, "plain", "", true),
            (r#"{"q":"{a|raw}"}"#, r#"a \"quote\""#, "", true),
            (r#"{"q":"{a|raw}"}"#, r#"a "quote""#, "", false),
            (r#"{"q":"{a|raw}"}"#, r#"x","r":"y"#, "", true),
            (r#"{"q":"{a|raw}"}"#, "two\nlines", "", false),
            (r#"{"q":"{a|raw}"}"#, "\\", "", false),
            (r#"{"q":{a|raw}}"#, r#"["list"]"#, "", true),
            (r#"{"q":{a|raw}}"#, "text", "", false),
            (r#"{"q":{a|raw}}"#, "", "", false),
            (r#"{"q":{a|raw},"r":"{b}"}"#, "1", r#"a "quote""#, true),
            (r#"{"q":"{a|raw}{b|raw}"}"#, r#"","r":["#, r#"],"s":""#, true),
            (r#"{"q":"{a|raw}{b|raw}"}"#, r#"","r":["#, r#"","s":""#, false),
            (r#"{"q":"{a|raw}","r":{counter},"s":{t},"u":"{t}"}"#, "x", "", true),
            (r#"{"q":"{a|raw}","r":{random}}"#, "\"", "", false),
            ("{\"q\":\"{a|raw}\"}\n{\"q\":1}\n", "x", "", true),
            ("{\"q\":\"{a|raw}\"}\n{\"q\":1}\n", "\"", "", false),
            (r#"{"q":"{a}"}"#, r#"a "quote""#, "", true),
            ("no JSON: {a|raw}", r#"a "quote""#, "", true),
        ] {
            for headers in [&typed("application/json")[..], &typed("application/x-ndjson"), &[]] {
                let template = template(body, headers);
                let is_raw = template.raw_columns().next().is_some();
                let raw = if is_raw { vec![template] } else { Vec::new() };
                let quoted = |value: &str| format!("\"{}\"", value.replace('"', "\"\""));
                let text = format!("a,b\n{},{}\n", quoted(a), quoted(b));
                let found = read_for(raw, DataFormat::Csv, &["a", "b"], &text);
                assert_eq!(found.is_ok(), is_json, "{body} with {a} and {b}: {found:?}");
                let which = if body.contains("{b|raw}") { "'a' or 'b'" } else { "'a'" };
                let says = format!("line 2 has in {which} what makes a body that is not JSON");
                assert!(found.is_ok() || found.is_err_and(|why| why.starts_with(&says)), "{body}");
            }
        }
    }

    #[test]
    fn a_value_of_several_lines_cannot_stand_in_a_header() {
        let text = "x-key,name\n1,\"two\nlines\"\n\"two\nlines\",1\n";
        let refused = "line 4 has more than one line in 'x-key', which stands in a header";
        assert_eq!(read_text(DataFormat::Csv, &["x-key"], text).err().as_deref(), Some(refused));
        assert!(read_text(DataFormat::Csv, &["name"], text).is_ok());
    }
}
