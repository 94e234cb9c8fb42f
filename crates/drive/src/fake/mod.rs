//! A kernel and its network, played from a seed, beneath the real driver code.
//!
//! A [`World`] has connections to peers that follow a script. What a kernel may choose is drawn from the seed: how much
//! a send takes, in which pieces bytes arrive, in which order operations complete, who wins when one is cancelled, when
//! buffers or queues have no room. The same seed gives the same history. Descriptors are real, as the drivers own them,
//! but nothing is ever connected to them.
//!
//! What ends a run early is an error: a driver that waits for something that cannot come any more hangs, and says so.

mod poll;
mod ring;
#[cfg(test)]
mod tests;
mod world;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

pub use world::{Answer, Peer, Step, World, pattern};

use crate::{Clock, Epoll, Program, Settings, Uring};

/// Draws numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    /// A number from 1 to `most`, which is at least 1.
    pub fn up_to(&mut self, most: usize) -> usize {
        1 + self.below(most)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Runs a program over the io_uring driver in a world, woken once at the start.
///
/// # Errors
/// When the driver waits for what cannot come any more, or fails by itself.
pub fn run_uring(world: &Rc<RefCell<World>>, program: &mut impl Program) -> io::Result<()> {
    let kernel = ring::Played::new(world);
    let driver = Uring::over(kernel, Clock::start(), None, &Settings::default());
    driver.map_err(|(error, _)| error)?.run(program)
}

/// The same over the epoll driver.
///
/// # Errors
/// As [`run_uring`].
pub fn run_epoll(world: &Rc<RefCell<World>>, program: &mut impl Program) -> io::Result<()> {
    let calls = poll::Played::new(world);
    Epoll::over(calls, Clock::start(), None, &Settings::default())?.run(program)
}
