//! Stamps: who sent a message, and when, written into its text.
//!
//! How it works: `{stamp}` in a message becomes such a text, and a server hands it on to others with
//! the message. Whoever receives it looks for one in the whole message, as nobody knows what the
//! server wraps it in.

/// What every stamp begins with.
const MARK: &[u8] = b"stamp-";
const RUN_DIGITS: usize = 8;
const TIME_DIGITS: usize = 16;
/// The bytes of a stamp.
pub(crate) const STAMP_BYTES: usize = MARK.len() + RUN_DIGITS + TIME_DIGITS;

/// When a message was sent, and by which engine: clocks of others are not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the engine's run.
    pub run: u32,
    /// The time of the send, in ns of the engine's clock.
    pub sent_ns: u64,
}

impl Stamp {
    /// The text of the stamp.
    pub(crate) fn text(self) -> String {
        format!("stamp-{:08x}{:016x}", self.run, self.sent_ns)
    }

    /// The first stamp of this run in a message.
    pub fn find(run: u32, message: &[u8]) -> Option<Self> {
        memchr::memmem::find_iter(message, MARK).find_map(|at| {
            let digits = message[at..].get(MARK.len()..STAMP_BYTES)?;
            let (of_run, time) = digits.split_at(RUN_DIGITS);
            let stamp = Stamp { run: number(of_run)? as u32, sent_ns: number(time)? };
            (stamp.run == run).then_some(stamp)
        })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        Some(number << 4 | u64::from(char::from(*digit).to_digit(16)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found_in_what_a_server_makes_of_a_message() {
        let sent = Stamp { run: 7, sent_ns: u64::MAX - 1 };
        let text = sent.text();
        for message in
            [text.clone(), format!("stamp-stamp-zz{text}0"), format!("{{\"m\":\"{text}\"}}")]
        {
            assert_eq!(Stamp::find(7, message.as_bytes()), Some(sent), "{message}");
            assert_eq!(Stamp::find(8, message.as_bytes()), None);
        }
        for cut in 0..text.len() {
            assert_eq!(Stamp::find(7, &text.as_bytes()[..cut]), None);
        }
        assert_eq!(Stamp::find(7, "stamp-00000007é00000000000000000".as_bytes()), None);
        assert_eq!(text.len(), STAMP_BYTES);
    }
}
