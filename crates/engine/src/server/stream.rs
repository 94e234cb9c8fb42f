//! Streamed answers of the reference server: `/stream/N/MS` sends N parts, one every MS ms.
//!
//! Part k is due k times MS after the request, whatever became of those before, so a late part does
//! not delay the others. The end of the stream follows the last part at once. A fault strikes half
//! way: the stream is cut, or stalls.

use std::fmt::Write as _;

use super::faults::Fault;

/// The most parts of a stream: with so many it has a megabyte.
const PARTS_MOST: u64 = 10_000;

/// A number of decimal digits alone, which is `most` at most.
pub(super) fn number(digits: &str, most: u64) -> Option<u64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number <= most)
}

/// What a stream consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    parts: u32,
    gap_ns: u64,
    /// Its parts are lines of JSON; else server-sent events.
    pub(super) lines: bool,
}

impl Shape {
    /// Reads `N/MS` or `N/MS/jsonl`; `ms_most` limits MS.
    pub(super) fn read(path: &str, ms_most: u64) -> Option<Self> {
        let (numbers, lines) = match path.strip_suffix("/jsonl") {
            Some(numbers) => (numbers, true),
            None => (path, false),
        };
        let (parts, ms) = numbers.split_once('/')?;
        let parts = number(parts, PARTS_MOST).filter(|parts| *parts > 0)?;
        let gap_ns = number(ms, ms_most)? * 1_000_000;
        Some(Shape { parts: parts as u32, gap_ns, lines })
    }
}

/// What comes next of an answer that is sent bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A part is due at this time.
    Part(u64),
    /// Nothing: the last part was followed by the end of the stream.
    End,
    /// Nothing: the stream is cut here.
    Cut,
    /// Nothing: the client has cancelled it.
    Gone,
}

/// A stream that is being sent.
#[derive(Debug)]
pub(super) struct Streamed {
    shape: Shape,
    fault: Fault,
    stall_ns: u64,
    began_ns: u64,
    sent: u32,
    /// The next part is late because its client did not read those before.
    pub(super) is_late: bool,
}

impl Streamed {
    /// A stream whose request came now; `stall_ns` is the length of a stall.
    pub(super) fn new(shape: Shape, fault: Fault, stall_ns: u64, now_ns: u64) -> Self {
        Streamed { shape, fault, stall_ns, began_ns: now_ns, sent: 0, is_late: false }
    }

    pub(super) fn next(&self) -> Next {
        let Shape { parts, gap_ns, .. } = self.shape;
        let half_way = self.sent >= parts / 2;
        if self.sent == parts {
            return Next::End;
        }
        if half_way && self.fault == Fault::Cut {
            return Next::Cut;
        }
        let stalled = half_way && self.fault == Fault::Stall;
        let late_ns = if stalled { self.stall_ns } else { 0 };
        let due_ns = self.began_ns.saturating_add(gap_ns * u64::from(self.sent + 1));
        Next::Part(due_ns.saturating_add(late_ns))
    }

    /// Writes the next part in place of the one before.
    pub(super) fn write_part(&mut self, part: &mut String) {
        let (before, behind) = match self.shape.lines {
            true => ("{\"token\":\"token ", " \",\"done\":false}\n"),
            false => ("data: {\"choices\":[{\"delta\":{\"content\":\"token ", " \"}}]}\n\n"),
        };
        self.sent += 1;
        part.clear();
        part.push_str(before);
        // Writing to a string cannot fail.
        let _ = write!(part, "{}", self.sent);
        part.push_str(behind);
    }

    /// The end of the stream, which is sent behind the last part.
    pub(super) fn end(&self) -> &'static str {
        if self.shape.lines { "{\"done\":true}\n" } else { "data: [DONE]\n\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_stream_is_named_by_its_parts_and_their_distance() {
        let shape = |parts, ms, lines| Some(Shape { parts, gap_ns: ms * MS, lines });
        for (path, expected) in [
            ("3/20", shape(3, 20, false)),
            ("3/0", shape(3, 0, false)),
            ("3/20/jsonl", shape(3, 20, true)),
            ("10000/1", shape(10_000, 1, false)),
            ("10001/1", None),
            ("0/20", None),
            ("3", None),
            ("3/", None),
            ("/20", None),
            ("3/101", None),
            ("+3/20", None),
            ("3/-1", None),
            ("3/20/sse", None),
        ] {
            assert_eq!(Shape::read(path, 100), expected, "{path}");
        }
    }

    /// The times of a stream's parts, and how it went on behind them.
    fn played(parts: u32, fault: Fault) -> (Vec<u64>, Next) {
        let shape = Shape { parts, gap_ns: 10, lines: false };
        let mut stream = Streamed::new(shape, fault, 1000, 500);
        let mut dues = Vec::new();
        while let Next::Part(due_ns) = stream.next() {
            dues.push(due_ns);
            stream.write_part(&mut String::new());
        }
        (dues, stream.next())
    }

    #[test]
    fn each_part_has_its_time_and_a_fault_strikes_half_way() {
        assert_eq!(played(4, Fault::None), (vec![510, 520, 530, 540], Next::End));
        assert_eq!(played(4, Fault::Cut), (vec![510, 520], Next::Cut));
        assert_eq!(played(1, Fault::Cut), (vec![], Next::Cut));
        assert_eq!(played(4, Fault::Stall), (vec![510, 520, 1530, 1540], Next::End));
    }
}
