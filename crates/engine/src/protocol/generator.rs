//! A generator's report about itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_load::refill;

use super::{GeneratePlan, MachineShares};

/// The engine's own load over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// What carried the sockets: `epoll` or `io_uring`.
    pub driver: String,
    /// Why that is not what was asked for, or null.
    #[serde(default)]
    pub driver_note: Option<String>,
    /// Free places from which on a connection was filled again.
    #[serde(default)]
    pub refill: u32,
    /// For so long a thread polled before it slept.
    #[serde(default)]
    pub spin_ns: u64,
    /// Time of all threads that went into polls without an event; `cpu_ns` holds it, `saturation` does not.
    #[serde(default)]
    pub spun_ns: u64,
    /// The longest that answers were allowed to wait for each other, of any thread; 0 where none had to.
    #[serde(default)]
    pub coalesced_ns: u64,
    /// Threads.
    pub threads: u32,
    /// CPUs the threads are pinned to; empty for none.
    pub cpus: Vec<u32>,
    /// Between the first and the last thread to begin with the phase; null for one thread.
    #[serde(default)]
    pub start_skew_ns: Option<u64>,
    /// CPU time of all threads.
    pub cpu_ns: u64,
    /// (on CPU + waiting in the run queue - polling without an event) / wall of the busiest thread, 0 to 1.
    pub saturation: f64,
    /// Peak resident memory of the process (VmHWM).
    pub peak_rss_bytes: u64,
    /// When threads did not run although they had something to do.
    #[serde(default)]
    pub lateness: Lateness,
    /// How the machine was used meanwhile; null where it does not say.
    #[serde(default)]
    pub machine: Option<MachineShares>,
}

/// When the threads of a generator did not run in the window although there were requests outstanding or due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// For how long in all the thread waited for a CPU that did so longest.
    pub waited_ns: u64,
    /// Stalls in which a thread was stopped, by length.
    pub stopped: Vec<Stalls>,
    /// Stalls in which it waited for a CPU, by length.
    pub queued: Vec<Stalls>,
}

/// Stalls of all threads that were at least so long, and less than twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// The least.
    pub at_least_ns: u64,
    /// How many.
    pub count: u64,
    /// Their time in all.
    pub ns: u64,
    /// Requests that were outstanding, or came due, meanwhile.
    pub requests: u64,
}

impl GeneratePlan {
    /// Most requests in flight on a connection, whatever it speaks.
    #[must_use]
    pub fn depth(&self) -> usize {
        let http1 = self.http2.and_then(|http2| http2.http1_pipeline).unwrap_or(1);
        self.pipeline.max(http1) as usize
    }

    /// The number of free places from which on a connection is filled again: the plan's value, or
    /// half the depth. Streams of HTTP/2 end one by one, and each is replaced at once.
    #[must_use]
    pub fn refill_places(&self) -> usize {
        let half = || if self.http2.is_some() { 1 } else { refill(self.pipeline as usize) };
        self.refill.map_or_else(half, |places| places as usize)
    }
}
