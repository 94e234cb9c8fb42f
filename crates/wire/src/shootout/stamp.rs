//! The stamp of a broadcast that several engines share: its phase and its send time, for receivers
//! that do not know the sender's ledger.
//!
//! It is 28 hexadecimal digits in front of the padding: a text survives every server that parses
//! and rewrites JSON, where a large number would lose digits. Its last eight digits are a checksum
//! over the rest, the message's key and the run's seed, so a time that a server changed is not
//! believed.

use super::{Key, Wrong};
use crate::chance::Chance;

/// The digits of a stamp.
pub const STAMP_BYTES: usize = 28;
const PHASE_DIGITS: usize = 4;
const TIME_DIGITS: usize = 20;

/// When a message was sent, as its sender says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The index of the phase that it was sent in.
    pub phase: u16,
    /// The send time in ns, on the clock that all engines share.
    pub sent_ns: u64,
    check: u32,
}

impl Stamp {
    /// Makes the stamp of a message; all engines of a run have the same `seed`.
    pub fn new(seed: u64, key: Key, phase: u16, sent_ns: u64) -> Self {
        Stamp { phase, sent_ns, check: check(seed, key, phase, sent_ns) }
    }

    /// Whether it was made for this message.
    pub fn is_of(self, seed: u64, key: Key) -> bool {
        self.check == check(seed, key, self.phase, self.sent_ns)
    }

    /// Writes its digits.
    pub fn digits(self) -> [u8; STAMP_BYTES] {
        let mut digits = [0; STAMP_BYTES];
        let text = format!("{:04x}{:016x}{:08x}", self.phase, self.sent_ns, self.check);
        digits.copy_from_slice(text.as_bytes());
        digits
    }

    fn read(digits: &[u8; STAMP_BYTES]) -> Option<Self> {
        let lower = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let text = str::from_utf8(digits).ok().filter(|_| digits.iter().all(lower))?;
        Some(Stamp {
            phase: u16::from_str_radix(&text[..PHASE_DIGITS], 16).ok()?,
            sent_ns: u64::from_str_radix(&text[PHASE_DIGITS..TIME_DIGITS], 16).ok()?,
            check: u32::from_str_radix(&text[TIME_DIGITS..], 16).ok()?,
        })
    }
}

fn check(seed: u64, key: Key, phase: u16, sent_ns: u64) -> u32 {
    let named = u64::from(key.sender) << 32 | u64::from(key.sequence);
    let mixed = [named, u64::from(phase), sent_ns]
        .iter()
        .fold(seed, |mixed, part| u64::from_le_bytes(Chance::new(mixed ^ part).draw()));
    (mixed >> 32) as u32
}

/// What the messages of a run carry beside their keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Padding<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether a broadcast has a stamp in front of it.
    pub(super) stamped: bool,
}

impl Padding<'_> {
    /// The stamp of a broadcast, if it must have one, and what follows it.
    pub(super) fn split(self, found: &[u8]) -> Result<(Option<Stamp>, &[u8]), Wrong> {
        if !self.stamped {
            return Ok((None, found));
        }
        let (digits, rest) = found.split_first_chunk().ok_or(Wrong::Altered)?;
        Ok((Some(Stamp::read(digits).ok_or(Wrong::Altered)?), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { sender: 7, sequence: 3 };
    const STAMP: (u16, u64) = (2, 1_234_567_890_123_456_789);

    #[test]
    fn a_stamp_comes_back_from_its_digits_and_fits_its_message_alone() {
        let stamp = Stamp::new(5, KEY, STAMP.0, STAMP.1);
        assert_eq!(Stamp::read(&stamp.digits()), Some(stamp));
        assert!(stamp.is_of(5, KEY), "its own");
        assert!(!stamp.is_of(6, KEY), "another run");
        for other in [Key { sender: 8, ..KEY }, Key { sequence: 4, ..KEY }] {
            assert!(!stamp.is_of(5, other), "another message");
        }
        assert!(!Stamp { phase: 1, ..stamp }.is_of(5, KEY), "another phase");
        assert!(!Stamp { sent_ns: STAMP.1 - 1, ..stamp }.is_of(5, KEY), "another time");
    }

    #[test]
    fn a_broadcast_begins_with_a_stamp_if_it_must() {
        let stamp = Stamp::new(5, KEY, STAMP.0, STAMP.1);
        let with = [&stamp.digits()[..], b"xx"].concat();
        let upper = with.to_ascii_uppercase();
        type Split = Result<(Option<Stamp>, &'static [u8]), Wrong>;
        let cases: [(bool, &[u8], Split); 6] = [
            (true, &with, Ok((Some(stamp), b"xx"))),
            (true, &with[..STAMP_BYTES], Ok((Some(stamp), b""))),
            (true, b"xx", Err(Wrong::Altered)),
            (true, &with[1..], Err(Wrong::Altered)),
            (true, &upper, Err(Wrong::Altered)),
            (false, b"xx", Ok((None, b"xx"))),
        ];
        for (stamped, found, expected) in cases {
            let padding = Padding { bytes: b"xx", stamped };
            assert_eq!(padding.split(found), expected, "{stamped}, {}", found.escape_ascii());
        }
    }
}
