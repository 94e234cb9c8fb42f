//! What a driver is asked to be, and how it reads, writes and waits.

use crate::Rates;

/// The requested driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that the kernel grants.
    #[default]
    Auto,
    /// `io_uring`, and epoll only where `io_uring` is not available.
    Uring,
    /// epoll.
    Epoll,
}

/// The settings of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The requested driver.
    pub choice: Choice,
    /// The time for which the thread polls before it sleeps, in ns; 0 to not poll at all.
    pub spin_ns: u64,
    /// How fast each connection that the program opens reads and writes.
    pub rates: Rates,
}
