//! How long a CPU limit kept the engine from running, as its cgroups count it.
//!
//! A limit of any cgroup above stops the engine, so all that are visible are read. In a container
//! the topmost one is the container's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where the cgroups of version 2, and those of version 1 with the limits, are mounted.
const MOUNTED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"];

/// Counters of a cgroup since it was created, in ns, summed over the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    /// Its limit kept its processes from running.
    stopped_ns: u64,
    /// They ran; version 1 does not count that here.
    used_ns: Option<u64>,
}

/// The counters of the engine's cgroups at one time.
#[derive(Clone, Debug)]
pub(crate) struct Throttling {
    at: Instant,
    found: BTreeMap<PathBuf, Counters>,
}

impl Throttling {
    pub(crate) fn now() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let read = |folder: PathBuf| {
            let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
            parse(&stat).map(|counters| (folder, counters))
        };
        Self { at: Instant::now(), found: folders(&own).filter_map(read).collect() }
    }

    /// The share of the time since `before` for which the most costly limit stopped the engine,
    /// which ran for `own_ns`; none if no cgroup counts that.
    pub(crate) fn since(&self, before: &Self, own_ns: u64) -> Option<f64> {
        let wall_ns = self.at.saturating_duration_since(before.at).as_nanos() as u64;
        let shares = self.found.iter().filter_map(|(folder, now)| {
            before.found.get(folder).map(|then| share(*then, *now, wall_ns, own_ns))
        });
        shares.reduce(f64::max)
    }
}

/// If n busy CPUs are all stopped for a share t of the time, they stand still for n·t of it and run
/// for n·(1 - t). So t is the first divided by the sum of both.
fn share(before: Counters, now: Counters, wall_ns: u64, own_ns: u64) -> f64 {
    let stopped_ns = now.stopped_ns.saturating_sub(before.stopped_ns);
    let used = now.used_ns.zip(before.used_ns);
    let used_ns = used.map_or(own_ns, |(now, then)| now.saturating_sub(then));
    stopped_ns as f64 / wall_ns.max(stopped_ns + used_ns).max(1) as f64
}

/// The folders of a process's cgroups, from its `/proc/PID/cgroup` (cgroups(7)). A container of
/// version 1 sees only the last of them, as its paths are those of the host.
fn folders(own: &str) -> impl Iterator<Item = PathBuf> {
    own.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let mounted = match controllers {
            "" => Some(MOUNTED[0]),
            _ => controllers.split(',').any(|each| each == "cpu").then_some(MOUNTED[1]),
        };
        let inside = |top: &'static str| {
            let folder = Path::new(top).join(path.trim_start_matches('/'));
            let above = folder.ancestors().take_while(|each| each.starts_with(top));
            above.map(Path::to_owned).collect::<Vec<_>>()
        };
        mounted.map(inside).unwrap_or_default()
    })
}

/// Parses a `cpu.stat`; none for a cgroup without a limit, like the topmost one of a machine.
fn parse(stat: &str) -> Option<Counters> {
    let value = |name: &str| {
        let found = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found?.trim().parse::<u64>().ok()
    };
    let stopped_ns = value("throttled_usec").map(|us| us * 1000).or(value("throttled_time"))?;
    Some(Counters { stopped_ns, used_ns: value("usage_usec").map(|us| us * 1000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_of_either_version_counts_in_its_own_units() {
        let cases = [
            ("usage_usec 7\nthrottled_usec 40\n", Some((40_000, Some(7_000)))),
            ("nr_throttled 3\nthrottled_time 40\n", Some((40, None))),
            ("usage_usec 7000\nuser_usec 1\n", None),
            ("", None),
        ];
        for (stat, expected) in cases {
            let found = parse(stat).map(|each| (each.stopped_ns, each.used_ns));
            assert_eq!(found, expected, "{stat:?}");
        }
    }

    #[test]
    fn every_visible_cgroup_above_a_process_is_looked_at() {
        let cases = [
            ("0::/\n", vec!["/sys/fs/cgroup"]),
            ("0::/a/b\n", vec!["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]),
            (
                "3:memory:/pod\n2:cpu,cpuacct:/pod\n1:cpuset:/pod\n",
                vec!["/sys/fs/cgroup/cpu/pod", "/sys/fs/cgroup/cpu"],
            ),
            ("", vec![]),
        ];
        for (own, expected) in cases {
            let found: Vec<PathBuf> = folders(own).collect();
            let expected: Vec<PathBuf> = expected.into_iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{own:?}");
        }
    }

    #[test]
    fn the_share_is_that_of_all_cpus_that_would_have_run() {
        let counters = |stopped_ns, used_ns| Counters { stopped_ns, used_ns };
        let before = counters(7, Some(5));
        // Two busy CPUs that are stopped for a quarter of the time, and one that is.
        for (stopped_ns, used_ns) in [(50, 150), (25, 75), (25, 50)] {
            let counted = counters(7 + stopped_ns, Some(5 + used_ns));
            let found = share(before, counted, 100, 0);
            assert_eq!((found * 100.0).round() as u64, 25, "{stopped_ns} of {used_ns}");
            let own = share(counters(7, None), counters(7 + stopped_ns, None), 100, used_ns);
            assert!((own - found).abs() < f64::EPSILON, "the engine's own time stands for it");
        }
        assert!(share(before, before, 0, 0) < f64::EPSILON);
    }
}
