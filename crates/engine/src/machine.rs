//! The machine that the engine runs on, and its use meanwhile, for the record.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::{fs, thread};

use trueload_drive::{local_ports, raise_open_files};

use crate::protocol::{Machine, MachineShares};
use crate::throttling::Throttling;

/// Files that hold one number each.
const LIMITS: [(&str, &str); 2] = [
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    ("tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog"),
];

/// This machine, as far as the kernel tells.
pub(crate) fn look() -> Machine {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let numbers = LIMITS.iter().filter_map(|(name, path)| {
        let value = read(path)?.parse().ok()?;
        Some(((*name).to_owned(), value))
    });
    let mut limits: BTreeMap<String, u64> = numbers.collect();
    let open_files = raise_open_files();
    limits.insert("open_files_soft".to_owned(), open_files);
    limits.insert("open_files_hard".to_owned(), open_files);
    limits.extend(local_ports().map(|ports| ("local_ports".to_owned(), u64::from(ports))));
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        kernel: format!("Linux {release}").trim_end().to_owned(),
        cpu_model: read("/proc/cpuinfo").as_deref().and_then(model),
        cpu_count: thread::available_parallelism().map_or(1, |count| count.get() as u32),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        limits,
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        network: fs::metadata("/proc/self/ns/net").ok().map(|about| about.ino()),
    }
}

/// The model name in the kernel's description of its CPUs.
fn model(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The unit of the kernel's accounts (proc(5)), which is the same on all of its machines.
const TICK_NS: u64 = 10_000_000;

/// The use of the machine so far, and what has limited the engine.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    ticks: Ticks,
    throttling: Throttling,
}

impl Use {
    /// The present counters; none if the kernel does not tell.
    pub(crate) fn now() -> Option<Self> {
        Some(Self { ticks: Ticks::now()?, throttling: Throttling::now() })
    }

    /// The shares of the time since `before`; none if no time has passed.
    pub(crate) fn since(&self, before: &Use) -> Option<MachineShares> {
        let own_ns = self.ticks.own.saturating_sub(before.ticks.own) * TICK_NS;
        let throttled = self.throttling.since(&before.throttling, own_ns);
        Some(MachineShares { throttled, ..self.ticks.since(&before.ticks)? })
    }
}

/// CPU time since the machine began, in the kernel's ticks, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// The total over all states.
    total: u64,
    idle: u64,
    stolen: u64,
    /// The time of all processes.
    used: u64,
    /// The time of this process.
    own: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn since(&self, before: &Ticks) -> Option<MachineShares> {
        let total = self.total.checked_sub(before.total).filter(|total| *total > 0)?;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        // The engine's ticks are counted separately from the sum, a tick sooner or later.
        let own = self.own.saturating_sub(before.own);
        let used = self.used.saturating_sub(before.used);
        Some(MachineShares {
            idle: share(self.idle, before.idle),
            others: used.saturating_sub(own) as f64 / total as f64,
            stolen: share(self.stolen, before.stolen),
            throttled: None,
        })
    }
}

/// Parses the kernel's `/proc/stat` and a process's own `stat` (proc(5)).
fn parse(machine: &str, process: &str) -> Option<Ticks> {
    let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let spent: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft, stolen, ..] = spent[..] else {
        return None;
    };
    // The name may contain anything; the fields follow its closing bracket.
    let (_, fields) = process.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let own = times.next()?.ok()? + times.next()?.ok()?;
    Some(Ticks {
        total: user + nice + system + idle + waiting + interrupts + soft + stolen,
        idle: idle + waiting,
        stolen,
        used: user + nice + system,
        own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: &str = "7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 30 12 0 0 20 0 1 0 5 9 9";

    #[test]
    fn shares_are_of_all_the_time_that_went_by() {
        let before =
            parse("cpu  10 0 10 80 0 0 0 0 0 0\n", PROCESS).expect("as the kernel writes it");
        assert_eq!(before.own, 42);
        let process = PROCESS.replace(" 30 12 ", " 40 22 ");
        let after = parse("cpu  40 0 30 120 10 3 2 5 0 0\ncpu0 1\n", &process)
            .expect("as the kernel writes it");
        let shares = after.since(&before).expect("time has gone by");
        let of = |share: f64| (share * 110.0).round() as u64;
        assert_eq!((of(shares.idle), of(shares.others), of(shares.stolen)), (50, 30, 5));
        assert_eq!(before.since(&before), None);
    }

    #[test]
    fn what_is_no_account_of_time_says_nothing() {
        for (machine, process) in
            [("", PROCESS), ("cpu  1 2\n", PROCESS), ("cpu  1 2 3 4 5 6 7 8\n", "x")]
        {
            assert_eq!(parse(machine, process), None, "{machine:?} {process:?}");
        }
    }

    #[test]
    fn this_machine_says_it() {
        assert!(Use::now().is_some());
    }

    #[test]
    fn the_model_is_the_first_that_is_named_if_any_is() {
        let cases = [
            ("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n", Some("AMD EPYC")),
            ("processor\t: 0\nBogoMIPS\t: 50.00\n", None),
            ("", None),
        ];
        for (info, name) in cases {
            assert_eq!(model(info).as_deref(), name, "{info:?}");
        }
    }
}
