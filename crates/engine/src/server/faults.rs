//! The deliberate faults of the reference server: which fault a request gets. Pure, and the same
//! for the same seed.

use trueload_wire::chance::Chance;

use crate::protocol::FaultsPlan;

/// The random streams of threads are this far apart: an odd number, so that they do not soon
/// overlap.
const THREADS_APART: u64 = 0xd1b5_4a32_d192_ed03;
/// Number of pieces of a slow answer's body, if it has that many bytes.
pub(super) const PIECES: usize = 4;

/// The fault of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It has status 500.
    Error,
    /// A reset is sent instead: of its connection, or with HTTP/2 of its stream.
    Reset,
    /// It comes late, or never.
    Stall,
    /// Its body comes in pieces.
    Slow,
    /// It ends half way: with its connection, or with HTTP/2 by a reset of its stream.
    Cut,
    /// The connection is closed after it.
    Close,
    /// Its stream is refused (HTTP/2).
    Refuse,
    /// The connection takes no more streams after it (HTTP/2).
    GoAway,
}

impl Fault {
    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            Fault::None => "none",
            Fault::Error => "error",
            Fault::Reset => "reset",
            Fault::Stall => "stall",
            Fault::Slow => "slow",
            Fault::Cut => "cut",
            Fault::Close => "close",
            Fault::Refuse => "refuse",
            Fault::GoAway => "goaway",
        }
    }
}

/// The faults that are drawn, in the order of their shares ([`FaultsPlan::shares`]).
const DRAWN: [Fault; 6] =
    [Fault::Error, Fault::Reset, Fault::Stall, Fault::Slow, Fault::Cut, Fault::Refuse];

/// The faults of one thread.
#[derive(Clone, Debug)]
pub struct Faults {
    pub(super) plan: FaultsPlan,
    chance: Chance,
}

impl Faults {
    /// Creates the plan's faults for this thread.
    pub fn new(plan: FaultsPlan, thread: usize) -> Self {
        let seed = plan.seed.wrapping_add((thread as u64).wrapping_mul(THREADS_APART));
        Faults { plan, chance: Chance::new(seed) }
    }

    /// Draws the fault of the next request.
    pub(super) fn draw(&mut self) -> Fault {
        // A float holds 53 bits: this gives 0 to just below 1.
        let drawn = (u64::from_le_bytes(self.chance.draw()) >> 11) as f64 / (1_u64 << 53) as f64;
        let mut below = 0.0;
        let met = self.plan.shares().into_iter().zip(DRAWN).find(|((_, share), _)| {
            below += share;
            drawn < below
        });
        met.map_or(Fault::None, |(_, fault)| fault)
    }

    /// Whether a connection is to be closed after the answer to its request with this number, from
    /// one.
    pub(super) fn closes(&self, number: u32) -> bool {
        self.plan.close_after.is_some_and(|most| number >= most)
    }

    /// Whether a connection takes no more streams after its request with this number, from one.
    pub(super) fn goes_away(&self, number: u32) -> bool {
        self.plan.goaway_after == Some(number)
    }
}

/// The body of an answer that is sent in pieces.
#[derive(Debug)]
pub(super) struct Slow {
    body: &'static [u8],
    sent: usize,
    piece: usize,
    began_ns: u64,
    over_ns: u64,
}

impl Slow {
    /// Takes a body, of which nothing has been sent yet.
    pub(super) fn new(body: &'static [u8], now_ns: u64, over_ns: u64) -> Self {
        Slow { body, sent: 0, piece: 0, began_ns: now_ns, over_ns }
    }

    /// The next piece; the first is empty, and goes with the head. Returns the time of the piece
    /// after it, too; none after the last.
    pub(super) fn next(&mut self) -> (&'static [u8], Option<u64>) {
        let pieces = PIECES.min(self.body.len());
        let until = (self.body.len() * self.piece).checked_div(pieces).unwrap_or(0);
        let piece = &self.body[self.sent..until];
        (self.sent, self.piece) = (until, self.piece + 1);
        let after_ns = self.over_ns * self.piece as u64 / pieces.max(1) as u64;
        (piece, (self.piece <= pieces).then_some(self.began_ns + after_ns))
    }
}

/// Cuts off the last half of an answer's body, or the end of its head if it has no body.
pub(super) fn cut(bytes: &mut Vec<u8>) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let body = end.map_or(0, |at| bytes.len() - at - 4);
    bytes.truncate(bytes.len().saturating_sub(body.div_ceil(2).max(2)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(plan: FaultsPlan, thread: usize) -> Vec<Fault> {
        let mut faults = Faults::new(plan, thread);
        (0..10_000).map(|_| faults.draw()).collect()
    }

    #[test]
    fn each_fault_is_met_as_often_as_its_share_says_and_the_same_for_the_same_seed() {
        let plan = FaultsPlan {
            seed: 7,
            error_share: 0.1,
            reset_share: 0.02,
            stall_share: 0.05,
            slow_share: 0.2,
            ..FaultsPlan::default()
        };
        let faults = drawn(plan, 0);
        let of = |fault| faults.iter().filter(|met| **met == fault).count();
        for (fault, expected) in
            [(Fault::Error, 1000), (Fault::Reset, 200), (Fault::Stall, 500), (Fault::Slow, 2000)]
        {
            let off = of(fault).abs_diff(expected);
            assert!(off < expected / 5, "{fault:?}: {} of about {expected}", of(fault));
        }
        assert_eq!(faults, drawn(plan, 0));
        assert_ne!(faults, drawn(plan, 1), "threads differ");
        assert_ne!(faults, drawn(FaultsPlan { seed: 8, ..plan }, 0), "seeds differ");
    }

    #[test]
    fn shares_of_nothing_and_of_all_are_kept_to_exactly() {
        assert!(drawn(FaultsPlan::default(), 0).iter().all(|met| *met == Fault::None));
        let all = FaultsPlan { reset_share: 1.0, ..FaultsPlan::default() };
        assert!(drawn(all, 0).iter().all(|met| *met == Fault::Reset));
    }

    #[test]
    fn a_cut_answer_has_half_of_its_body_or_not_all_of_its_head() {
        for (whole, expected) in [
            ("H\r\n\r\nabcdef", "H\r\n\r\nabc"),
            ("H\r\n\r\nabcde", "H\r\n\r\nab"),
            ("H\r\n\r\n", "H\r\n"),
        ] {
            let mut bytes = whole.as_bytes().to_vec();
            cut(&mut bytes);
            assert_eq!(bytes, expected.as_bytes(), "{whole:?}");
        }
    }

    #[test]
    fn a_slow_answer_is_whole_in_the_end_and_its_last_byte_comes_at_the_end_of_its_time() {
        let cases = [
            ("abcdefghi", vec![(100, ""), (110, "ab"), (120, "cd"), (130, "ef"), (140, "ghi")]),
            ("ab", vec![(100, ""), (120, "a"), (140, "b")]),
            ("", vec![(100, "")]),
        ];
        for (body, expected) in cases {
            let mut slow = Slow::new(body.as_bytes(), 100, 40);
            let (mut sent, mut at_ns) = (Vec::new(), Some(100));
            while let Some(now_ns) = at_ns {
                let (piece, next_ns) = slow.next();
                sent.push((now_ns, str::from_utf8(piece).expect("ASCII")));
                at_ns = next_ns;
            }
            assert_eq!(sent, expected, "{body:?}");
        }
    }
}
