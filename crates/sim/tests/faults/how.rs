//! How a row is played: the way, and the pieces in which bytes come and go.

use trueload_sim::scenario::KernelPlan;

/// What one read takes at most, as the real driver's.
const READ_BYTES: usize = 64 * 1024;
/// The most that a random piece has.
const PIECE_BYTES: usize = 40;

/// How what a peer has sent is cut when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All that is there at once; a close that is there, too, is known.
    Whole,
    /// Byte by byte; the generator acts between.
    Bytes,
    /// In random pieces, by this seed.
    Random(u64),
    /// The same, but as completions of one batch: of each piece but the last it is known that more follows.
    Batch(u64),
}

impl Cut {
    pub fn comes_apart(self) -> bool {
        !matches!(self, Cut::Whole | Cut::Batch(_))
    }
}

/// How a row is played.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub cut: Cut,
    /// One way.
    pub latency_ns: u64,
    /// Whether a timer that is due goes before what is due on a socket.
    pub timers_first: bool,
    /// Whether the request is one of several that take turns.
    pub several: bool,
    /// Bytes that the kernel takes before the peer has them; the rest waits.
    pub room: usize,
}

impl How {
    pub fn seed(self) -> u64 {
        match self.cut {
            Cut::Random(seed) | Cut::Batch(seed) => seed,
            _ => 0,
        }
    }

    pub fn kernel(self) -> KernelPlan {
        let read_most = match self.cut {
            Cut::Whole => READ_BYTES,
            Cut::Bytes => 1,
            Cut::Random(_) | Cut::Batch(_) => PIECE_BYTES,
        };
        KernelPlan {
            latency_ns: self.latency_ns,
            batch_cost_ns: 1,
            room: self.room,
            read_most,
            read_random: matches!(self.cut, Cut::Random(_) | Cut::Batch(_)),
            read_all: !self.cut.comes_apart(),
            timers_first: self.timers_first,
            ..KernelPlan::default()
        }
    }
}
