//! When to look at the clock in the middle of a batch.
//!
//! The clock is read once per batch, and what is due waits for its end. A peer that floods makes batches long: how long
//! depends on what its bytes cost to read, and a time that ends it must not wait for all of them.

use crate::net::{Net, Program};

/// So much is heard between two looks, at most, and one more read.
const BYTES: usize = 256 * 1024;
/// What an input counts for beside its bytes: a few of them can cost more than many bytes, as a handshake does.
const INPUT_BYTES: usize = 8 * 1024;

/// What has been heard since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Glance {
    heard: usize,
}

impl Glance {
    /// Notes an input of so many bytes; whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&mut self, bytes: usize) -> bool {
        self.heard += bytes + INPUT_BYTES;
        let due = self.heard >= BYTES;
        if due {
            self.heard = 0;
        }
        due
    }
}

/// What is due by now is done, in the middle of a batch, too.
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
