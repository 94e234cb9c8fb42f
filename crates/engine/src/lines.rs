//! Lines in, lines out: parses the front's lines and writes the engine's.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::Sender;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use trueload_meter::Failed;

use crate::protocol::{FromEngine, Sent, ToEngine};
use crate::unread::Watched;

/// The longest line taken: a body of 48 MiB in base64.
const LINE_BYTES_MOST: u64 = 64 * 1024 * 1024;

/// Bytes handed to the kernel at once.
const WRITTEN_AT_ONCE_BYTES: usize = 64 * 1024;

/// The reason why a line was refused: one sentence that names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LineError(pub String);

/// Reads a kind of line from the fields beside its type.
macro_rules! fields {
    ($rest:expr, $kind:ident { $($field:ident: $of:ty),* }) => {{
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $kind {
            $($field: $of,)*
        }
        read($rest).map(|$kind { $($field),* }| ToEngine::$kind { $($field),* })
    }};
}

/// Parses one line of the front. An error is a sentence that names the field.
pub fn parse(line: &str) -> Result<ToEngine, LineError> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| LineError(format!("not JSON: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(LineError("a line must be a JSON object".into()));
    };
    let kind = fields.remove("type");
    let Some(Value::String(kind)) = kind else {
        return Err(LineError("type: missing, or not a string".into()));
    };
    let rest = Value::Object(fields);
    match kind.as_str() {
        "generate" => read(rest).map(Box::new).map(ToEngine::Generate),
        "serve" => read(rest).map(ToEngine::Serve),
        "blob" => read(rest).map(ToEngine::Blob),
        "phase" => read(rest).map(ToEngine::Phase),
        "share" => read(rest).map(ToEngine::Share),
        "mark" => fields!(rest, Mark { id: String }),
        "clock" => fields!(rest, Clock { id: u64 }),
        "distance" => fields!(rest, Distance { cpus: [u32; 2] }),
        "speeds" => fields!(rest, Speeds { cpus: Vec<u32> }),
        "settle" => fields!(rest, Settle { id: String, sent: Sent, until_ns: Option<u64> }),
        "charge" => fields!(rest, Charge { id: String, failed: Vec<Failed> }),
        "lock" => fields!(rest, Lock { token: String, what: String, hold: bool }),
        "lease" => empty(&rest).map(|()| ToEngine::Lease),
        "stop" => empty(&rest).map(|()| ToEngine::Stop),
        _ => Err(LineError(format!(
            "type: '{}' is not one of generate, serve, blob, phase, share, mark, clock, distance, speeds, \
             settle, charge, lock, lease, stop",
            kind.escape_debug()
        ))),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, LineError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner().to_string();
        LineError(if path == "." { inner } else { format!("{path}: {inner}") })
    })
}

fn empty(rest: &Value) -> Result<(), LineError> {
    match rest.as_object().and_then(|fields| fields.keys().next()) {
        Some(field) => Err(LineError(format!("{}: unknown field", field.escape_debug()))),
        None => Ok(()),
    }
}

/// Input from stdin.
#[derive(Debug)]
pub enum Input {
    /// A line, understood or not.
    Line(Box<Result<ToEngine, LineError>>),
    /// The front is gone.
    End,
}

/// Reads lines and hands them over, until the end of input or a line that is too long.
pub fn read_all<E>(mut input: impl BufRead, sink: &Sender<E>, wrap: impl Fn(Input) -> E) {
    loop {
        let mut line = Vec::new();
        let mut limited = io::Read::take(&mut input, LINE_BYTES_MOST);
        let received = match limited.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => Input::End,
            Ok(_) if line.len() as u64 == LINE_BYTES_MOST && !line.ends_with(b"\n") => {
                let why = LineError("a line is longer than 64 MiB".into());
                let _ = sink.send(wrap(Input::Line(Box::new(Err(why)))));
                // What follows is the rest of that line, and has no meaning.
                return;
            }
            Ok(_) => match std::str::from_utf8(&line) {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => Input::Line(Box::new(parse(text))),
                Err(_) => Input::Line(Box::new(Err(LineError("a line is not UTF-8".into())))),
            },
        };
        let ended = matches!(received, Input::End);
        if sink.send(wrap(received)).is_err() || ended {
            return;
        }
    }
}

/// Writes one line of the engine. It fails when stdout is gone; the engine then ends.
pub fn emit(message: &FromEngine) -> io::Result<()> {
    // Written in pieces, not built as a whole before: the result of a phase may be tens of MB.
    let mut out = io::BufWriter::with_capacity(WRITTEN_AT_ONCE_BYTES, Watched(io::stdout().lock()));
    serde_json::to_writer(&mut out, message)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        parse(line).expect_err("refused").0
    }

    #[test]
    fn a_refusal_names_the_field() {
        let cases = [
            ("{", "not JSON"),
            ("[]", "a line must be a JSON object"),
            ("{}", "type: missing"),
            (r#"{"type":"dance"}"#, "type: 'dance' is not one of"),
            (r#"{"type":"lease","x":1}"#, "x: unknown field"),
            (r#"{"type":"mark"}"#, "missing field `id`"),
            (r#"{"type":"mark","id":"a","x":1}"#, "x: unknown field"),
            (r#"{"type":"clock","id":-1}"#, "id: invalid value: integer `-1`, expected u64"),
            (r#"{"type":"serve","protocol":1}"#, "missing field `listen`"),
            (
                r#"{"type":"serve","protocol":1,"listen":"127.0.0.1:0","threads":"two","cpus":[]}"#,
                "threads: invalid type",
            ),
            (
                r#"{"type":"serve","protocol":1,"listen":"127.0.0.1:0","threads":1,"cpus":[],"colour":1}"#,
                "colour",
            ),
            (
                r#"{"type":"phase","id":"w","load":{"kind":"closed","active":[]},"connections":null,"stop":{"kind":"duration","ns":-1},"at_ns":null}"#,
                "stop",
            ),
        ];
        for (line, expected) in cases {
            let error = refusal(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    /// A front that writes `a` for ever.
    struct Endless(u64);

    impl io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill(b'a');
            self.0 += into.len() as u64;
            Ok(into.len())
        }
    }

    #[test]
    fn a_line_without_end_is_refused_once_and_nothing_behind_it_is_read() {
        let (sink, received) = std::sync::mpsc::channel();
        let mut front = Endless(0);
        read_all(io::BufReader::new(&mut front), &sink, |input| input);
        drop(sink);
        let received: Vec<String> = received.iter().map(|input| format!("{input:?}")).collect();
        assert_eq!(received, [r#"Line(Err(LineError("a line is longer than 64 MiB")))"#]);
        assert!(front.0 < LINE_BYTES_MOST + 100_000, "{} bytes were read", front.0);
    }

    #[test]
    fn lines_are_read_until_the_end_of_input() {
        let (sink, received) = std::sync::mpsc::channel();
        let text = b"{\"type\":\"lease\"}\n\n{\"type\":\"stop\"}\n\xff\n";
        read_all(&text[..], &sink, |input| input);
        drop(sink);
        let kinds: Vec<String> = received.iter().map(|input| format!("{input:?}")).collect();
        assert_eq!(kinds.len(), 4, "{kinds:?}");
        assert!(kinds[0].contains("Lease") && kinds[1].contains("Stop"));
        assert!(kinds[2].contains("UTF-8") && kinds[3].contains("End"));
    }
}
