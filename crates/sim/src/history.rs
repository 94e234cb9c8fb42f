//! The history of a run: a hash of all events and, on request, one readable line for each event.
//!
//! Two runs with the same hash took the same course. Nothing enters the hash that differs between
//! machines: no address, no clock, no iteration order of a hash map.

use std::fmt::Display;

/// The events of a run, in order.
#[derive(Debug)]
pub struct History {
    hash: u64,
    events: u64,
    lines: Option<Vec<(u64, String)>>,
}

impl History {
    /// Creates an empty history. With `trace` it keeps the lines.
    #[must_use]
    pub fn new(trace: bool) -> Self {
        History { hash: 0xcbf2_9ce4_8422_2325, events: 0, lines: trace.then(Vec::new) }
    }

    /// Adds an event that happened at `at_ns`. `line` is called only if lines are kept.
    pub fn note<L: Display>(&mut self, at_ns: u64, event: Event<'_>, line: impl FnOnce() -> L) {
        self.events += 1;
        self.mix(at_ns);
        self.mix(event.kind.len() as u64 ^ u64::from(event.kind.as_bytes()[0]) << 8);
        self.mix(event.about);
        self.mix_bytes(event.bytes);
        if let Some(lines) = &mut self.lines {
            lines.push((at_ns, format!("{:<9} {}", event.kind, line())));
        }
    }

    /// Adds a number to the hash.
    pub fn mix(&mut self, number: u64) {
        // FNV-1a over words, with a rotation so that high bits reach low ones.
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    /// A hash of all events.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The lines with their times in ns, in the order in which they were noted.
    #[must_use]
    pub fn into_lines(self) -> Vec<(u64, String)> {
        self.lines.unwrap_or_default()
    }
}

/// The parts of an event that enter the hash.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The kind of event, as a word.
    pub kind: &'static str,
    /// The connection, phase or thread that it is about.
    pub about: u64,
    /// The bytes that came or went, if any.
    pub bytes: &'a [u8],
}

impl<'a> Event<'a> {
    /// Creates an event.
    #[must_use]
    pub fn of(kind: &'static str, about: u64, bytes: &'a [u8]) -> Self {
        Event { kind, about, bytes }
    }
}

/// Formats bytes for people: text as it is, other bytes escaped, and the middle of long input left
/// out.
#[must_use]
pub fn readable(bytes: &[u8]) -> String {
    const ENDS: usize = 48;
    if bytes.len() <= 2 * ENDS {
        return bytes.escape_ascii().to_string();
    }
    let (head, tail) = (&bytes[..ENDS], &bytes[bytes.len() - ENDS..]);
    format!("{} … {}", head.escape_ascii(), tail.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(events: &[(u64, &'static str, &[u8])]) -> u64 {
        let mut history = History::new(false);
        for (at_ns, kind, bytes) in events {
            history.note(*at_ns, Event::of(kind, 0, bytes), || "");
        }
        history.hash()
    }

    #[test]
    fn whatever_differs_changes_the_hash() {
        let first = hash_of(&[(1, "sends", b"ab"), (2, "reads", b"c")]);
        for other in [
            hash_of(&[(1, "sends", b"ab"), (3, "reads", b"c")]),
            hash_of(&[(1, "sends", b"ab"), (2, "closes", b"c")]),
            hash_of(&[(1, "sends", b"ab"), (2, "reads", b"d")]),
            hash_of(&[(2, "reads", b"c"), (1, "sends", b"ab")]),
            hash_of(&[(1, "sends", b"ab")]),
        ] {
            assert_ne!(first, other);
        }
        assert_eq!(first, hash_of(&[(1, "sends", b"ab"), (2, "reads", b"c")]));
    }

    #[test]
    fn long_bytes_are_shortened_in_the_middle() {
        assert_eq!(readable(b"a\r\n\x00"), "a\\r\\n\\x00");
        assert!(readable(&[b'x'; 1000]).len() < 120);
    }
}
