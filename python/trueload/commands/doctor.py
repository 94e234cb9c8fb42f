"""Checks whether a machine is fit to measure: what would spoil a result, and its remedy.

How: facts in, findings out. ``examine`` is a pure function. Each judge looks at the facts and makes
one finding, and ``JUDGES`` is the table of them. A judge without facts says n/a.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trueload.machine.facts import Machine
from trueload.machine.wakeups import LAG_FAIL_NS, LAG_WARN_NS
from trueload.record.core_latency import have_moved, span_text
from trueload.units import counted, format_duration, format_rate, format_size

if TYPE_CHECKING:
    from trueload.trial.ceiling import Ceiling

Status = Literal["pass", "warn", "fail", "n/a"]

# The engine and the subject need a CPU each to be told apart (docs/verdicts.md, same-host).
CPUS_MIN = 2
# 10,000 connections, the largest load of the published methods, with some room.
OPEN_FILES_MIN = 11_000
# Subjects inherit the soft limit; the largest load of `http-servers` has 256 connections.
OPEN_FILES_SOFT_MIN = 512
# Linux's default range has 28,232 ports (ip-sysctl.rst); a server's TIME_WAIT lasts 60 s.
PORTS_MIN = 20_000
TIME_WAIT_S = 60
TIME_WAIT_SHARE_MAX = 0.5
# net.core.somaxconn was 128 before Linux 5.4 and is 4096 since (ip-sysctl.rst).
BACKLOG_MIN = 1024
# A clock in the vDSO is read in some 20 ns, one behind a system call in 200 ns to 2 µs (hpet,
# acpi_pm).
CLOCK_READ_NS_MAX = 1_000
CLOCK_RESOLUTION_NS_MAX = 1_000
# The limit of the check `noise`: CPU stolen, or used by others.
NOISE_WARN = 0.05
NOISE_FAIL = 0.25
# Enough for twice the largest program of the catalogue (a Java server) with its client.
MEMORY_MIN_BYTES = 1 << 30
# Nobody reads more reasons on one line.
REASONS_MOST = 3
NAMES_MOST = 6
# Each reading of these is a system call.
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies"})
# These change the frequency with the recent load.
UNSTEADY_GOVERNORS = frozenset({"powersave", "ondemand", "conservative", "schedutil"})


@dataclass(frozen=True)
class EngineFound:
    """The result of the search for the engine: its version, or why there is none."""

    path: str | None
    version: str | None
    trouble: str | None


@dataclass(frozen=True)
class Facts:
    """Everything that is judged.

    ``skipped`` has the reason for each subject that cannot be built or run here; None if they were
    not looked at. ``untried`` counts those never built from their registries. ``core_latencies_ns``
    has the times of handing a cache line from one of the first two CPUs to the other and back,
    measured several times. ``is_here`` is False for another host.
    """

    machine: Machine
    engine: EngineFound
    front_version: str
    skipped: Mapping[str, str] | None
    subjects: int
    untried: int = 0
    ceiling: Ceiling | None = None
    core_latencies_ns: tuple[float, ...] = ()
    is_here: bool = True


@dataclass(frozen=True)
class Finding:
    """One finding about the machine. ``consequence`` and ``cure`` are None if all is well."""

    name: str
    status: Status
    value: str
    consequence: str | None
    cure: str | None


def examine(facts: Facts) -> list[Finding]:
    """Return every finding, in the order of the table."""
    return [judge(facts) for judge in JUDGES]


def worst(findings: Iterable[Finding]) -> Status:
    """Return the worst status: ``fail`` before ``warn`` before ``pass``; n/a is no trouble."""
    found = {finding.status for finding in findings}
    return next((s for s in ("fail", "warn") if s in found), "pass")


def _pass(name: str, value: str) -> Finding:
    return Finding(name, "pass", value, None, None)


def _warn(name: str, value: str, consequence: str, cure: str) -> Finding:
    return Finding(name, "warn", value, consequence, cure)


def _unless(good: bool, name: str, value: str, consequence: str, cure: str) -> Finding:
    """A warning, unless all is good."""
    return _pass(name, value) if good else _warn(name, value, consequence, cure)


def _unknown(name: str, why: str = "not visible here") -> Finding:
    return Finding(name, "n/a", why, None, None)


def _judge_engine(facts: Facts) -> Finding:
    name, engine = "engine", facts.engine
    cure = "build it: `make setup` in a checkout, or `pip install .` again"
    if not facts.is_here:
        cure = "see that the host stays reachable, and whether it limits memory or system calls"
    if engine.version is None:
        value = engine.trouble or "not found"
        return Finding(name, "fail", value, "nothing can be measured", cure)
    value = f"{engine.version}, {engine.path}"
    if engine.version != facts.front_version:
        what = f"trueload is {facts.front_version}: plans may be refused, or read otherwise"
        return Finding(name, "fail", value, what, cure)
    return _pass(name, value)


def _judge_cpus(facts: Facts) -> Finding:
    machine = facts.machine
    cores = "? cores" if machine.cores is None else counted(machine.cores, "core")
    value = f"{machine.cpus} usable, {cores}"
    if machine.cpus < CPUS_MIN:
        return _warn(
            "cpus",
            value,
            "engine and server take the one CPU from each other: rates are lower bounds",
            "measure on a machine with more CPUs, or load it from another host",
        )
    return _unless(
        machine.cores is None or machine.cores >= CPUS_MIN,
        "cpus",
        value,
        "engine and server share one physical core: each slows the other by up to half",
        "use a machine with two cores, or switch off hyper-threading to see it plainly",
    )


def _judge_pinning(facts: Facts) -> Finding:
    if facts.machine.can_pin is None:
        return _unknown("pinning", "not seen: the distance of two CPUs was not measured")
    can_pin = facts.machine.can_pin
    return _unless(
        can_pin,
        "pinning",
        f"threads {'can' if can_pin else 'cannot'} be bound to CPUs",
        "engine and server move between the same CPUs: runs differ more, check `same-host` warns",
        "allow sched_setaffinity (containers forbid it by their seccomp profile)",
    )


def _judge_quota(facts: Facts) -> Finding:
    machine = facts.machine
    if machine.cpu_quota is None:
        return _pass("cpu-quota", "none")
    return _unless(
        machine.cpu_quota >= machine.cpus,
        "cpu-quota",
        f"{counted(machine.cpu_quota, 'CPU')} worth of time",
        "everything is stopped for up to 100 ms once the quota is used up: p99 shows the quota",
        "lift the container's CPU limit, or give it whole CPUs (docker run --cpuset-cpus)",
    )


def _judge_frequency(facts: Facts) -> Finding:
    governors = facts.machine.governors
    if not governors:
        return _unknown("frequency", "not visible here (usual in a virtual machine)")
    return _unless(
        not UNSTEADY_GOVERNORS & set(governors),
        "frequency",
        ", ".join(governors),
        "the clock follows the load: a short or light run looks slower than the machine is",
        "cpupower frequency-set -g performance",
    )


def _judge_noise(facts: Facts) -> Finding:
    return _judge_taken(
        "background",
        facts.machine.busy_share,
        f"used by others over {facts.machine.watched_s:.1f} s",
        "other programs take CPU time from what is measured: rates fall, percentiles rise",
        "stop them (top shows them), and measure again",
    )


def _judge_stolen(facts: Facts) -> Finding:
    return _judge_taken(
        "stolen-cpu",
        facts.machine.stolen_share,
        f"over {facts.machine.watched_s:.1f} s",
        "the hypervisor gives this machine's CPUs to others: results cannot be repeated",
        "use a machine with dedicated CPUs, or measure at another time",
    )


def _judge_taken(
    name: str, share: float | None, of_what: str, consequence: str, cure: str
) -> Finding:
    """Judge a share of the CPUs' time that others take."""
    if share is None:
        return _unknown(name)
    value = f"{share:.1%} {of_what}"
    if share >= NOISE_FAIL:
        return Finding(name, "fail", value, consequence, cure)
    return _unless(share < NOISE_WARN, name, value, consequence, cure)


def _judge_core_latency(facts: Facts) -> Finding:
    name, latencies_ns = "cpu-distance", list(facts.core_latencies_ns)
    if not latencies_ns:
        return _unknown(name, "not measured (one CPU, no engine, or busy CPUs)")
    value = (
        f"{span_text(latencies_ns)} to hand a cache line over and back ({len(latencies_ns)} looks)"
    )
    return _unless(
        not have_moved(latencies_ns),
        name,
        value,
        "the host moves the CPUs between cores that share a cache and cores that share none: what"
        " generator and server hand over costs more there, a request by a third",
        "measure what you compare in turns (`trueload compare`, suites) and look for `moved` in"
        " results, or use a machine whose CPUs stay where they are",
    )


def _judge_wakeups(facts: Facts) -> Finding:
    wakeups = facts.machine.wakeups
    if wakeups is None:
        return _unknown("wake-ups", "not measured (no engine, or it could not send)")
    p99, p999 = format_duration(wakeups.p99_ns), format_duration(wakeups.p999_ns)
    which = "come" if facts.is_here else "of an open loop's requests are sent"
    value = f"1 % {which} {p99} late or more, 0.1 % {p999} ({wakeups.count:,} watched)"
    # The limits of the check `send-lag`, at its percentile and at one further out.
    if wakeups.p99_ns < LAG_WARN_NS and wakeups.p999_ns < LAG_FAIL_NS:
        return _pass("wake-ups", value)
    return Finding(
        "wake-ups",
        "fail" if wakeups.p99_ns >= LAG_FAIL_NS else "warn",
        value,
        "an open loop sends late by as much, and high percentiles hold it (check `send-lag`)",
        "stop what runs in the background; use a machine whose CPUs no other virtual machine has",
    )


def _judge_memory(facts: Facts) -> Finding:
    available = facts.machine.memory_available_bytes
    if available is None:
        return _unknown("memory")
    return _unless(
        available >= MEMORY_MIN_BYTES,
        "memory",
        f"{format_size(available)} available",
        "a large subject may be killed or swapped out in mid-run",
        "stop other programs, or use a machine with more memory",
    )


def _judge_open_files(facts: Facts) -> Finding:
    soft, hard = facts.machine.open_files_soft, facts.machine.open_files_hard
    value = f"{_limit(soft)} soft, {_limit(hard)} hard"
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES_MIN:
        return _warn(
            "open-files",
            value,
            f"no more than some {max(hard - 50, 0):,} connections: the rest end as `local.fds`",
            "raise `nofile` in /etc/security/limits.conf, or LimitNOFILE= of the service",
        )
    return _unless(
        soft == resource.RLIM_INFINITY or soft >= OPEN_FILES_SOFT_MIN,
        "open-files",
        value,
        "subjects start with the soft limit and may refuse connections beyond it",
        "ulimit -Sn hard",
    )


def _limit(count: int) -> str:
    return "unlimited" if count == resource.RLIM_INFINITY else f"{count:,}"


def _judge_ports(facts: Facts) -> Finding:
    ports = facts.machine.ports
    if ports is None:
        return _unknown("local-ports")
    return _unless(
        ports >= PORTS_MIN,
        "local-ports",
        f"{ports:,} ports",
        f"with --close about {ports // TIME_WAIT_S:,} requests/s to one address exhaust them:"
        " the rest end as `local.ports`",
        "sysctl -w net.ipv4.ip_local_port_range='15000 65000', or several --local-address",
    )


def _judge_time_wait(facts: Facts) -> Finding:
    machine = facts.machine
    if machine.time_wait is None:
        return _unknown("time-wait")
    value = f"{counted(machine.time_wait, 'socket')}, tcp_tw_reuse {machine.time_wait_reuse}"
    crowded = machine.ports and machine.time_wait > TIME_WAIT_SHARE_MAX * machine.ports
    return _unless(
        not crowded,
        "time-wait",
        value,
        "closed connections hold more than half of the local ports: new ones may fail or be slow",
        f"wait {TIME_WAIT_S} s, or sysctl -w net.ipv4.tcp_tw_reuse=1",
    )


def _judge_backlog(facts: Facts) -> Finding:
    backlog = facts.machine.backlog
    if backlog is None:
        return _unknown("backlog")
    return _unless(
        backlog >= BACKLOG_MIN,
        "backlog",
        f"somaxconn {backlog:,}",
        "a burst of new connections overflows the queue: some wait 1 s or 3 s to connect",
        "sysctl -w net.core.somaxconn=4096",
    )


def _judge_clock(facts: Facts) -> Finding:
    machine = facts.machine
    source, resolution_ns, read_ns = (
        machine.clock_source,
        machine.clock_resolution_ns,
        machine.clock_read_ns,
    )
    value = source or "source not visible"
    if resolution_ns is None or read_ns is None:
        # A shell cannot time the clock.
        value += "; resolution and time to read are not measured on other hosts"
        if source is None:
            return _unknown("clock", value)
        slow, coarse = source in SLOW_CLOCKS, False
    else:
        value += f", {resolution_ns:.0f} ns resolution, {read_ns:.0f} ns to read"
        slow, coarse = read_ns > CLOCK_READ_NS_MAX, resolution_ns > CLOCK_RESOLUTION_NS_MAX
    return _unless(
        not slow and not coarse,
        "clock",
        value,
        "reading the time costs as much as a request: the engine is slower than it could be"
        if slow
        else "times below the resolution cannot be told apart",
        "use the clock source tsc or kvm-clock (kernel option clocksource=)",
    )


def _judge_subjects(facts: Facts) -> Finding:
    skipped = facts.skipped
    if not facts.is_here:
        return _unknown("subjects", "looked at on the machine that builds them only")
    if skipped is None:
        return _unknown("subjects", "not looked at (--quick, or no catalogue here)")
    value = f"{facts.subjects - len(skipped)} of {facts.subjects} have what they need here"
    if facts.untried:
        value += f"; {facts.untried} were never built from their registries"
    if not skipped:
        return _pass("subjects", value)
    # Variants of one program mostly lack the same thing.
    reasons = sorted(set(skipped.values()))
    cure = "provide what is missing: " + "; ".join(reasons)
    if len(reasons) > REASONS_MOST:
        cure = (
            "`trueload subjects list` says what each lacks;"
            " `trueload subjects install` names the packages of Debian among it"
        )
    return _warn("subjects", value, f"skipped by suites: {_some(sorted(skipped))}", cure)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MOST} more" if len(names) > NAMES_MOST else ""
    return ", ".join(names[:NAMES_MOST]) + more


def _judge_ceiling(facts: Facts) -> Finding:
    name, ceiling = "ceiling", facts.ceiling
    if ceiling is None:
        return _unknown(name, "not measured (--quick, or no engine)")
    if ceiling.depth_1_per_s is None or ceiling.pipelined_per_s is None:
        return _warn(
            name,
            f"could not be measured: {ceiling.trouble}",
            "how much the generator can carry here is not known",
            "see the other findings; `trueload serve http` and `trueload http` show more",
        )
    where = "a CPU each" if ceiling.apart else "on one CPU together"
    depth_1 = format_rate(ceiling.depth_1_per_s, "requests")
    pipelined = format_rate(ceiling.pipelined_per_s, "requests")
    value = f"{depth_1}, pipelined {pipelined}: one thread each, {where}"
    return _pass(name, f"{value}; a faster server needs --threads")


JUDGES: tuple[Callable[[Facts], Finding], ...] = (
    _judge_engine,
    _judge_cpus,
    _judge_pinning,
    _judge_core_latency,
    _judge_quota,
    _judge_frequency,
    _judge_noise,
    _judge_stolen,
    _judge_wakeups,
    _judge_memory,
    _judge_open_files,
    _judge_ports,
    _judge_time_wait,
    _judge_backlog,
    _judge_clock,
    _judge_subjects,
    _judge_ceiling,
)
