//! A simulated kernel and network, driven by a seed, beneath the real driver code.
//!
//! A [`World`] has connections to peers that follow a script. The seed decides what a kernel is
//! free to choose: how much a send takes, in which pieces bytes arrive, in which order operations
//! complete, who wins when one is cancelled, and when buffers or queues have no room. The same seed
//! gives the same history. The drivers own real descriptors, but nothing is ever connected to them.
//!
//! A run that cannot go on ends with an error: a driver that waits for an event that can no longer
//! come hangs, and the error says so.

mod poll;
mod ring;
#[cfg(test)]
mod tests;
mod world;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

pub use world::{Answer, Peer, Step, World, pattern};

use crate::{Clock, Epoll, Program, Rates, Settings, Uring};

/// A generator of numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; the same seed gives the same numbers.
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

    /// True once in `times` draws, on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Runs a program over the io_uring driver in a world. Its waker rings once, at the start.
///
/// # Errors
/// When the driver waits for an event that can no longer come, or fails by itself.
pub fn run_uring(world: &Rc<RefCell<World>>, program: &mut impl Program) -> io::Result<()> {
    run_slow_uring(world, program, Rates::default())
}

/// Does the same with connections that are slow on purpose.
///
/// # Errors
/// The same.
pub fn run_slow_uring(
    world: &Rc<RefCell<World>>,
    program: &mut impl Program,
    rates: Rates,
) -> io::Result<()> {
    let kernel = ring::Played::new(world);
    let settings = Settings { rates, ..Settings::default() };
    let driver = Uring::over(kernel, Clock::start(), None, &settings);
    driver.map_err(|(error, _)| error)?.run(program)
}

/// Runs a program in the same way over the epoll driver.
///
/// # Errors
/// The same as for [`run_uring`].
pub fn run_epoll(world: &Rc<RefCell<World>>, program: &mut impl Program) -> io::Result<()> {
    run_slow_epoll(world, program, Rates::default())
}

/// Does the same with connections that are slow on purpose.
///
/// # Errors
/// The same.
pub fn run_slow_epoll(
    world: &Rc<RefCell<World>>,
    program: &mut impl Program,
    rates: Rates,
) -> io::Result<()> {
    let calls = poll::Played::new(world);
    let settings = Settings { rates, ..Settings::default() };
    Epoll::over(calls, Clock::start(), None, &settings)?.run(program)
}
