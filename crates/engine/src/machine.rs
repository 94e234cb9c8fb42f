//! What the machine is that the engine runs on, for the record.

use std::collections::BTreeMap;
use std::{fs, thread};

use trueload_drive::{local_ports, raise_open_files};

use crate::protocol::Machine;

/// Files of one number each.
const LIMITS: [(&str, &str); 2] = [
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    ("tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_max_syn_backlog"),
];

/// This machine, as far as it says.
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
    }
}

/// The model's name in what the kernel says of its CPUs.
fn model(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
