//! One of several engines that share a load: its part, and the machine it runs on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trueload_load::Places;

/// One engine's part of a load. All numbers in its plan and phases are those of all engines
/// together. Connections, requests and arrivals are dealt in turn to all parts and threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartPlan {
    /// The index of the part, from 0.
    pub index: u32,
    /// The number of parts. All engines have the same number of threads, and one part each unless
    /// they have `more`.
    pub of: u32,
    /// Further parts of an engine with a larger weight, in rising order from its index on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<u32>,
}

impl Default for PartPlan {
    fn default() -> Self {
        PartPlan { index: 0, of: 1, more: Vec::new() }
    }
}

impl PartPlan {
    /// Whether it is the only one.
    pub fn is_whole(&self) -> bool {
        *self == PartPlan::default()
    }

    /// The number of one of its threads among those of all engines.
    pub fn thread(&self, thread: u32) -> u32 {
        self.index + self.of * thread
    }

    /// The turns of its parts among those of all; none if they are not in rising order.
    pub fn places(&self) -> Option<Places> {
        let parts: Vec<u32> =
            std::iter::once(self.index).chain(self.more.iter().copied()).collect();
        Places::new(&parts, self.of.into())
    }

    /// The number of slots, out of `total`, that fall to its `threads`.
    pub fn slots(&self, total: u32, threads: u32) -> u32 {
        let Some(places) = self.places() else { return 0 };
        let of_thread = |thread| places.of_thread(thread, threads).among(total.into()) as u32;
        (0..threads).map(of_thread).sum()
    }
}

/// Another part of the load, from some time of a phase on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharePlan {
    /// The phase.
    pub id: String,
    /// The part from then on.
    pub part: PartPlan,
    /// The time from which it counts, since the start of the phase, in ns. It is the same for all
    /// engines.
    pub from_ns: u64,
}

/// The machine that an engine runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name and release of the operating system.
    pub kernel: String,
    /// The name of the CPU as the kernel gives it, or null.
    pub cpu_model: Option<String>,
    /// The number of CPUs that the engine may run on.
    pub cpu_count: u32,
    /// The frequency governor of the first CPU, or null.
    pub governor: Option<String>,
    /// Limits of open files, local ports and queues, by name.
    pub limits: BTreeMap<String, u64>,
    /// Identifies the current boot of the kernel, or null. Engines with the same one run on the
    /// same machine.
    pub boot_id: Option<String>,
    /// The inode of the network namespace, or null.
    pub network: Option<u64>,
}

/// How the CPU time of the whole machine was spent over a phase, as shares of that of all CPUs.
/// Time for interrupts is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineShares {
    /// The share in which CPUs were idle.
    pub idle: f64,
    /// The share of processes other than the engine.
    pub others: f64,
    /// The share that the host of a virtual machine took for others.
    pub stolen: f64,
    /// The share of the phase for which a CPU limit stopped the engine; null if no cgroup counts
    /// it.
    #[serde(default)]
    pub throttled: Option<f64>,
}

/// The speed of one CPU over time, measured by repeating the same short work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuLooks {
    /// The number of the CPU.
    pub cpu: u32,
    /// The time from one measurement to the next, in ns.
    pub every_ns: u64,
    /// The time that the work took at each measurement, in ns; 0 if none was made.
    pub work_ns: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_slot_falls_to_one_engine(total in 0u32..5000, of in 1u32..40, threads in 1u32..9) {
            let parts = (0..of).map(|index| PartPlan { index, of, more: Vec::new() });
            prop_assert_eq!(parts.map(|part| part.slots(total, threads)).sum::<u32>(), total);
        }
    }

    #[test]
    fn an_engine_with_more_parts_has_more_slots() {
        let heavy = PartPlan { index: 0, of: 3, more: vec![2] };
        let light = PartPlan { index: 1, of: 3, more: Vec::new() };
        for (total, threads, slots) in
            [(2, 1, (1, 1)), (3, 1, (2, 1)), (64, 1, (43, 21)), (8, 2, (5, 3))]
        {
            let found = (heavy.slots(total, threads), light.slots(total, threads));
            assert_eq!(found, slots, "{total} over {threads} threads");
        }
        for more in [vec![0], vec![3], vec![2, 1]] {
            assert!(
                PartPlan { index: 0, of: 3, more: more.clone() }.places().is_none(),
                "{more:?}"
            );
        }
    }
}
