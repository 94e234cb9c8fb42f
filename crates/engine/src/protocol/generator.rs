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
    /// The reason why this is not the driver that was asked for; null if it is.
    #[serde(default)]
    pub driver_note: Option<String>,
    /// A connection's pipeline is filled again as soon as this many places are free.
    #[serde(default)]
    pub refill: u32,
    /// The time for which a thread polls before it sleeps, in ns.
    #[serde(default)]
    pub spin_ns: u64,
    /// CPU time of all threads spent in polls without an event, in ns. It is part of `cpu_ns`, but
    /// not of `saturation`.
    #[serde(default)]
    pub spun_ns: u64,
    /// The longest time for which any thread let answers wait, to read several at once, in ns; 0 if
    /// it never did.
    #[serde(default)]
    pub coalesced_ns: u64,
    /// The number of threads.
    pub threads: u32,
    /// The CPUs that threads are pinned to; empty if they are not pinned.
    pub cpus: Vec<u32>,
    /// The time between the first and the last thread to begin the phase, in ns; null if there is
    /// one thread.
    #[serde(default)]
    pub start_skew_ns: Option<u64>,
    /// CPU time of all threads, in ns.
    pub cpu_ns: u64,
    /// How busy the busiest thread was, from 0 to 1: its time on a CPU and waiting for one, without
    /// polls in vain, divided by wall time.
    pub saturation: f64,
    /// Peak resident memory of the process (VmHWM), in bytes.
    pub peak_rss_bytes: u64,
    /// The stalls of threads that had something to do.
    #[serde(default)]
    pub lateness: Lateness,
    /// How the whole machine was used meanwhile; null if the kernel does not tell.
    #[serde(default)]
    pub machine: Option<MachineShares>,
}

/// The times in the window when threads did not run although requests were outstanding or due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// The total time for which a thread waited for a CPU, in ns, of the thread that waited
    /// longest.
    pub waited_ns: u64,
    /// Stalls in which a thread was stopped, by length.
    pub stopped: Vec<Stalls>,
    /// Stalls in which a thread waited for a CPU, by length.
    pub queued: Vec<Stalls>,
}

/// The stalls of all threads with lengths from `at_least_ns` to less than twice that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// The shortest length, in ns.
    pub at_least_ns: u64,
    /// The number of stalls.
    pub count: u64,
    /// Their total time, in ns.
    pub ns: u64,
    /// Requests that were outstanding or came due during these stalls.
    pub requests: u64,
}

trueload_meter::merged! { Stalls: count, ns, requests; keeps: at_least_ns }

impl GeneratePlan {
    /// Most requests in flight on a connection, whatever it speaks.
    pub fn depth(&self) -> usize {
        let http1 = self.http2.and_then(|http2| http2.http1_pipeline).unwrap_or(1);
        self.pipeline.max(http1) as usize
    }

    /// The number of free places from which on a connection is filled again: the plan's value, or
    /// half the depth. Streams of HTTP/2 end one by one, and each is replaced at once.
    pub fn refill_places(&self) -> usize {
        let half = || if self.http2.is_some() { 1 } else { refill(self.pipeline as usize) };
        self.refill.map_or_else(half, |places| places as usize)
    }
}
