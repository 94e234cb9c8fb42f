//! What the clients send and read.

use trueload_wire::http2::frame::{
    ErrorCode, PREFACE, write_block, write_reset, write_window_update,
};
use trueload_wire::http2::hpack::literal;
use trueload_wire::http2::settings::{self, parameter::INITIAL_WINDOW_SIZE};

use crate::chance::Chance;

const PATHS: [&str; 8] = [
    "/",
    "/perf",
    "/bytes/65536",
    "/bytes/1024",
    "/stream/300/0",
    "/wait/3",
    "/wait/60000",
    "/redirect/2",
];
/// Bytes of one read of a driver.
const READ: usize = 16 * 1024;
/// The largest window: the whole of the connection has it, and with it the streams.
const WINDOW: u32 = (1 << 31) - 1;

#[derive(Clone, Copy, Debug)]
enum Way {
    /// One request after the other, each answer read.
    Honest { path: &'static str, since: Option<u64>, got: usize },
    /// Requests without end.
    Pipelined { path: &'static str },
    /// Streams without end, perhaps each reset at once, within windows of this size, which perhaps
    /// all open at once later.
    Streams { path: &'static str, resets: bool, window: u32, opens: bool },
    /// Frames of this type without end.
    Frames { kind: u8, payload: usize },
    /// Any bytes.
    Noise,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    way: Way,
    /// What it reads at a time, at most, and how rarely.
    reads: usize,
    one_in: u64,
    leaves_one_in: u64,
    stream: u32,
    head: Vec<u8>,
}

impl Client {
    pub(super) fn honest(chance: &mut Chance) -> Self {
        let path = chance.pick(&["/", "/perf", "/bytes/65536", "/wait/3"]);
        let way = Way::Honest { path, since: None, got: 0 };
        let (head, stream) = (Vec::new(), 0);
        Client { way, reads: usize::MAX, one_in: 1, leaves_one_in: u64::MAX, stream, head }
    }

    pub(super) fn hostile(chance: &mut Chance) -> Self {
        let path = chance.pick(&PATHS);
        let window = chance.pick(&[0, 1, 65_535, WINDOW]);
        let way = match chance.below(5) {
            0 => Way::Pipelined { path },
            1 => Way::Streams { path, resets: false, window, opens: chance.one_in(2) },
            2 => Way::Streams { path, resets: true, window, opens: false },
            3 => Way::Frames { kind: chance.below(12) as u8, payload: chance.below(40) as usize },
            _ => Way::Noise,
        };
        let reads = chance.pick(&[0, 1, 1000, 100_000, usize::MAX]);
        let (one_in, leaves_one_in) = (chance.between(1, 20), chance.between(10, 1000));
        Client { way, reads, one_in, leaves_one_in, stream: 0, head: Vec::new() }
    }

    pub(super) fn is_honest(&self) -> bool {
        matches!(self.way, Way::Honest { .. })
    }

    /// How much it reads now, at most.
    pub(super) fn reads(&self, chance: &mut Chance) -> usize {
        if chance.one_in(self.one_in) { self.reads } else { 0 }
    }

    pub(super) fn leaves(&self, chance: &mut Chance) -> bool {
        self.leaves_one_in < u64::MAX && chance.one_in(self.leaves_one_in)
    }

    /// How long an honest client has waited for its answer.
    pub(super) fn waits_since(&self, round: u64) -> Option<u64> {
        let Way::Honest { since, .. } = self.way else { return None };
        since.map(|since| round - since)
    }

    /// Takes what it reads: an honest client knows the end of its answer.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        let Way::Honest { since, got, .. } = &mut self.way else { return };
        *got += bytes.len();
        let room = 500_usize.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let text = String::from_utf8_lossy(&self.head);
        let length = text.split("Content-Length: ").nth(1).and_then(|rest| {
            rest.split_once("\r\n").and_then(|(digits, _)| digits.parse::<usize>().ok())
        });
        if let (Some(end), Some(length)) = (text.find("\r\n\r\n"), length)
            && *got >= end + 4 + length
        {
            (*since, *got) = (None, 0);
            self.head.clear();
        }
    }

    /// What it sends next.
    pub(super) fn send(&mut self, round: u64, chance: &mut Chance) -> Vec<u8> {
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        match &mut self.way {
            Way::Honest { since: Some(_), .. } => Vec::new(),
            Way::Honest { path, since, .. } => {
                *since = Some(round);
                get(path)
            }
            Way::Pipelined { path } => {
                let request = get(path);
                request.repeat(1 + chance.below((READ / request.len()) as u64) as usize)
            }
            Way::Streams { path, resets, window, opens } => {
                let (path, resets, window, opens) = (*path, *resets, *window, *opens);
                let mut out = self.begin(window);
                if opens && self.stream > 0 {
                    settings::write(&mut out, &[(INITIAL_WINDOW_SIZE, WINDOW)]);
                }
                let block = block_of(path);
                while out.len() < READ - 200 {
                    self.stream += 2;
                    write_block(&mut out, self.stream - 1, &block, true, 16_384);
                    if resets {
                        write_reset(&mut out, self.stream - 1, ErrorCode::Cancel);
                    }
                }
                out
            }
            Way::Frames { kind, payload } => {
                let (kind, payload) = (*kind, *payload);
                let mut out = self.begin(WINDOW);
                let mut frame = vec![0, 0, payload as u8, kind, 0, 0, 0, 0, 0];
                frame.resize(9 + payload, 0);
                while out.len() < READ - 200 {
                    self.stream += 2;
                    frame[5..9].copy_from_slice(&(self.stream - 1).to_be_bytes());
                    if matches!(kind, 4 | 6) {
                        frame[5..9].fill(0);
                    }
                    out.extend_from_slice(&frame);
                }
                out
            }
            Way::Noise => (0..chance.below(3000)).map(|_| chance.below(256) as u8).collect(),
        }
    }

    /// The preface and SETTINGS, before anything else.
    fn begin(&self, window: u32) -> Vec<u8> {
        let mut out = Vec::new();
        if self.stream == 0 {
            out.extend_from_slice(&PREFACE[..]);
            settings::write(&mut out, &[(INITIAL_WINDOW_SIZE, window)]);
            write_window_update(&mut out, 0, WINDOW - 65_535);
        }
        out
    }
}

/// The header block of a GET.
fn block_of(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", path)] {
        literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    block
}
