//! Decides when to read the clock in the middle of a batch.
//!
//! The clock is read once per batch, and what is due waits for the batch's end. A flooding peer
//! makes batches long: how long depends on what its bytes cost to read. A deadline must not wait
//! for all of them.

use crate::net::{Net, Program};

/// Bytes received between two readings of the clock, at most, plus one more read.
const BYTES: usize = 256 * 1024;
/// The weight of an input beside its bytes: a few bytes can cost more than many, as in a handshake.
const INPUT_BYTES: usize = 8 * 1024;

/// The weight of what has been received since the clock was last read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Glance {
    received: usize,
}

impl Glance {
    /// Notes an input of this many bytes; true if it is time to read the clock.
    #[inline]
    pub(crate) fn is_due(&mut self, bytes: usize) -> bool {
        self.received += bytes + INPUT_BYTES;
        let due = self.received >= BYTES;
        if due {
            self.received = 0;
        }
        due
    }
}

/// Does what is due by now, even in the middle of a batch.
#[cold]
pub(crate) fn keep_time(net: &mut impl Net, program: &mut impl Program) {
    net.read_clock();
    if program.wake_at_ns().is_some_and(|at_ns| at_ns <= net.now_ns()) {
        program.handle_time(net);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_looked_at_after_many_bytes_or_a_few_dozen_inputs() {
        for (bytes, inputs) in [(0, 32), (1, 32), (56 * 1024, 4), (64 * 1024, 4), (BYTES, 1)] {
            let mut glance = Glance::default();
            for round in 0..3 {
                let before = (1..inputs).any(|_| glance.is_due(bytes));
                assert!(!before && glance.is_due(bytes), "{inputs} of {bytes} bytes, {round}");
            }
        }
    }
}
