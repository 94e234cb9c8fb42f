//! One of several engines that share a load: its part, and the machine it runs on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_load::dealt;

/// Which of several engines this one is. Every number in its plan and phases is of all of them
/// together: connections, requests and arrivals are dealt out in turn over all their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartPlan {
    /// From 0.
    pub index: u32,
    /// Engines in all, each with as many threads.
    pub of: u32,
}

impl Default for PartPlan {
    fn default() -> Self {
        PartPlan { index: 0, of: 1 }
    }
}

impl PartPlan {
    /// Whether it is the only one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == PartPlan::default()
    }

    /// The number of one of its threads among those of all engines.
    #[must_use]
    pub fn thread(&self, thread: u32) -> u32 {
        self.index + self.of * thread
    }

    /// The number of slots, out of `total`, that fall to its `threads`.
    #[must_use]
    pub fn slots(&self, total: u32, threads: u32) -> u32 {
        (0..threads).map(|thread| dealt(total, threads * self.of, self.thread(thread))).sum()
    }
}

/// The machine that an engine runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// System and release.
    pub kernel: String,
    /// As the kernel names it, or null.
    pub cpu_model: Option<String>,
    /// CPUs that it may run on.
    pub cpu_count: u32,
    /// Of the first CPU, or null.
    pub governor: Option<String>,
    /// Open files, ports, queues.
    pub limits: BTreeMap<String, u64>,
}

/// How the machine's CPU time was spent over a phase, as shares of that of all CPUs. What the kernel
/// did for nobody in particular (interrupts) is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineShares {
    /// Nothing to do.
    pub idle: f64,
    /// Other processes than the engine.
    pub others: f64,
    /// Taken by the machine's own host.
    pub stolen: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_slot_falls_to_one_engine(total in 0u32..5000, of in 1u32..40, threads in 1u32..9) {
            let parts = (0..of).map(|index| PartPlan { index, of });
            prop_assert_eq!(parts.map(|part| part.slots(total, threads)).sum::<u32>(), total);
        }
    }
}
