//! Reads the table of faults: `tests/faults/cases/*.toml`, described in the README beside them.
//!
//! The Python tests read the same files. Unknown keys, steps and texts are refused, so that a
//! slip of the pen does not pass as a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

/// One thing that a peer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Read(usize),
    /// Waits until the generator has ended its side.
    ReadEnd,
    /// Waits for the head of a request: over WebSocket, of the one to upgrade.
    Head,
    /// Over WebSocket: answers it as it should be, with more header lines.
    Upgrade(Arc<[u8]>),
    Send(Arc<[u8]>, usize),
    /// Sends back what came: so many requests, as they are.
    Echo(usize),
    Flood(Arc<[u8]>),
    Drip(u64, Arc<[u8]>),
    Wait(u64),
    Fin,
    /// Over TLS: bytes past it; a FIN without `close_notify`; `close_notify` alone; a fatal alert.
    Raw(Arc<[u8]>),
    Cut,
    Notify,
    Alert,
    Rst,
    Hold,
    Again,
    Refuse,
    Drop,
    Unroutable,
}

/// What is spoken between generator and peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    #[default]
    Http,
    Tcp,
    /// Echo of text messages over WebSocket.
    Ws,
}

/// What is sent over TCP and WebSocket, in turn: messages of so many bytes.
pub const PAYLOAD: &[u8] = b"abcdefghijklmnopqrstuvwx";
pub const MESSAGE_BYTES: usize = 4;

/// A number, or two bounds, both included.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Count {
    Exactly(u64),
    Between(u64, u64),
}

impl Count {
    pub fn holds(self, value: u64) -> bool {
        match self {
            Count::Exactly(count) => value == count,
            Count::Between(least, most) => (least..=most).contains(&value),
        }
    }
}

impl Default for Count {
    fn default() -> Self {
        Count::Exactly(0)
    }
}

/// One or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Several<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Several::Many(Vec::new())
    }
}

impl<T> Several<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Several::One(one) => std::slice::from_ref(one),
            Several::Many(many) => many,
        }
    }
}

/// What must come out of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Out {
    pub each: Several<String>,
    pub ok: Count,
    pub failed: BTreeMap<String, Count>,
    pub stale: Count,
    pub stale_resets: Count,
    pub unsent: Count,
    pub reconnects: Option<Count>,
    pub statuses: Option<BTreeMap<String, u64>>,
    pub exit: Several<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    protocol: Protocol,
    #[serde(default)]
    half_close: bool,
    answer: Option<String>,
    then: Option<String>,
    peer: Option<Vec<Vec<String>>>,
    method: Option<String>,
    body: Option<String>,
    #[serde(default)]
    expect_status: Vec<u16>,
    expect_body: Option<String>,
    connections: Option<u32>,
    requests: Option<u64>,
    depth: Option<usize>,
    #[serde(default)]
    close: bool,
    timeout_ms: Option<u64>,
    only: Option<String>,
    tls: Option<String>,
    #[serde(rename = "why")]
    _why: Option<String>,
    apart: Option<Out>,
    out: Out,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub protocol: Protocol,
    pub half_close: bool,
    pub scripts: Vec<Arc<[Step]>>,
    pub method: String,
    pub body: Option<String>,
    pub expect_status: Vec<u16>,
    pub expect_body: Option<String>,
    pub connections: u32,
    pub requests: u64,
    pub depth: usize,
    pub close: bool,
    pub timeout_ms: u64,
    /// How the peer speaks TLS: the name of a server's set-up, or `none` for not at all.
    pub tls: Option<String>,
    pub apart: Option<Out>,
    pub out: Out,
}

/// Every row that can be played in virtual time.
pub fn load() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/faults");
    let texts = fs::read_to_string(folder.join("texts.toml")).expect("texts.toml");
    let texts: BTreeMap<String, String> = toml::from_str(&texts).expect("texts.toml");
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("cases"))
        .expect("cases")
        .map(|entry| entry.expect("cases").path())
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a file of cases");
        let file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let rows = file.case.into_iter();
        let rows = rows.filter(|row| row.only.as_deref() != Some("live"));
        cases.extend(rows.map(|row| case(row, &texts)));
    }
    cases
}

fn case(row: Row, texts: &BTreeMap<String, String>) -> Case {
    let lines = row.peer.clone().unwrap_or_else(|| {
        let answer = row.answer.as_deref().expect("a row has `peer` or `answer`");
        let then = row.then.as_deref().unwrap_or("again");
        vec![vec!["read".to_owned(), format!("send {answer}"), then.to_owned()]]
    });
    let scripts = lines.iter().map(|script| {
        let steps: Vec<Step> = script.iter().map(|line| step(line, texts)).collect();
        Arc::from(steps)
    });
    Case {
        scripts: scripts.collect(),
        name: row.name,
        protocol: row.protocol,
        half_close: row.half_close,
        method: row.method.unwrap_or_else(|| "GET".to_owned()),
        body: row.body,
        expect_status: row.expect_status,
        expect_body: row.expect_body,
        connections: row.connections.unwrap_or(2),
        requests: row.requests.unwrap_or(6),
        depth: row.depth.unwrap_or(1),
        close: row.close,
        timeout_ms: row.timeout_ms.unwrap_or(200),
        tls: row.tls,
        apart: row.apart,
        out: row.out,
    }
}

fn step(line: &str, texts: &BTreeMap<String, String>) -> Step {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (word, times) = word.split_once('*').unwrap_or((word, "1"));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number in `{line}`"));
    match word {
        "read" if rest == "end" => Step::ReadEnd,
        "read" if rest.is_empty() => Step::Read(1),
        "read" => Step::Read(number(rest) as usize),
        "send" => Step::Send(expand(rest, texts).into(), number(times) as usize),
        "head" => Step::Head,
        "upgrade" => Step::Upgrade(expand(rest, texts).into()),
        "echo" if rest.is_empty() => Step::Echo(1),
        "echo" => Step::Echo(number(rest) as usize),
        "flood" => Step::Flood(expand(rest, texts).into()),
        "drip" => {
            let (every, text) = rest.split_once(' ').expect("drip MS TEXT");
            Step::Drip(number(every), expand(text, texts).into())
        }
        "wait" => Step::Wait(number(rest)),
        "fin" => Step::Fin,
        "raw" => Step::Raw(expand(rest, texts).into()),
        "cut" => Step::Cut,
        "notify" => Step::Notify,
        "alert" => Step::Alert,
        "rst" => Step::Rst,
        "hold" => Step::Hold,
        "again" => Step::Again,
        "refuse" => Step::Refuse,
        "drop" => Step::Drop,
        "unroutable" => Step::Unroutable,
        _ => panic!("no step: `{line}`"),
    }
}

/// The bytes of a text, with the names in it replaced.
fn expand(text: &str, texts: &BTreeMap<String, String>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').expect("a closing brace");
        out.extend_from_slice(before.as_bytes());
        match name.split_once(':') {
            Some(("pad", count)) => {
                out.resize(out.len() + count.parse::<usize>().expect("pad"), b'x')
            }
            Some(("hex", digits)) => out.extend(bytes_of_hex(digits)),
            _ => {
                let named = texts.get(name).unwrap_or_else(|| panic!("no text `{name}`"));
                out.extend(expand(named, texts));
            }
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

fn bytes_of_hex(digits: &str) -> impl Iterator<Item = u8> + '_ {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex"))
}
