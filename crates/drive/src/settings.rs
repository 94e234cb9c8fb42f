//! What a driver is asked to be, and how it reads, writes and waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Rates;

/// The way in which sockets are driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DriverPlan")]
pub enum Choice {
    /// The fastest way that the kernel permits.
    #[default]
    Auto,
    /// `io_uring`, or epoll if it is not available.
    IoUring,
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
