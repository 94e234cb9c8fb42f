"""What a host is by what the script printed there: in full, in part, and in truth on this one."""

from __future__ import annotations

import os
import resource
import subprocess

from trueload.machine.facts import Machine, observe
from trueload.machine.remote import SCRIPT, Printed, machine_of, parse_printed

# Two CPUs of three that a program may use; one second in which the first was idle for half of it,
# stolen for a quarter, and the second idle.
PRINTED = """
= /proc/uptime
100.00 150.00
= /proc/stat
cpu  0 0 0 0 0 0 0 0 0 0
cpu0 0 0 0 1000 0 0 0 0 0 0
cpu1 0 0 0 1000 0 0 0 0 0 0
cpu2 0 0 0 1000 0 0 0 0 0 0
intr 1 2 3
= /proc/stat
cpu0 25 0 0 1050 0 0 0 25 0 0
cpu1 0 0 0 1100 0 0 0 0 0 0
cpu2 100 0 0 1000 0 0 0 0 0 0
= /proc/uptime
101.00 151.00
= /proc/self/limits
Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 unlimited            files
= /proc/self/status
Name:\tcat
Cpus_allowed_list:\t0-1
= /sys/fs/cgroup/cpu.max
150000 100000
= /sys/fs/cgroup/cpu/cpu.cfs_quota_us
= /proc/sys/net/ipv4/ip_local_port_range
32768\t60999
= /proc/sys/net/ipv4/tcp_tw_reuse
2
= /proc/sys/net/core/somaxconn
128
= /proc/net/sockstat
sockets: used 9
TCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1
= /proc/meminfo
MemTotal: 4 kB
MemAvailable: 2 kB
= /sys/devices/system/clocksource/clocksource0/current_clocksource
kvm-clock
= /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
0-1
= /sys/devices/system/cpu/cpu1/topology/thread_siblings_list
0-1
= /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor
= end
"""


def read(text: str) -> Printed:
    return parse_printed(text.strip().split("\n"))


def machine(printed: Printed) -> Machine:
    return machine_of(printed, printed.cpus(), can_pin=True, wakeups=None)


def test_what_the_script_printed_is_the_machine() -> None:
    printed = read(PRINTED)
    assert printed.is_whole
    assert machine(printed) == Machine(
        cpus=2,
        cores=1,
        can_pin=True,
        cpu_quota=1.5,
        governors=(),
        open_files_soft=1024,
        open_files_hard=resource.RLIM_INFINITY,
        ports=28_232,
        time_wait=3,
        time_wait_reuse=2,
        backlog=128,
        clock_source="kvm-clock",
        clock_resolution_ns=None,
        clock_read_ns=None,
        memory_available_bytes=2048,
        watched_s=1.0,
        busy_share=0.125,
        stolen_share=0.125,
        wakeups=None,
    )


def test_a_host_that_shows_nothing_is_unknown_and_not_zero() -> None:
    printed = read("= /proc/stat\n= /proc/stat\n= /proc/uptime\n= end")
    assert printed.is_whole
    assert printed.cpus() == ()
    found = machine_of(printed, (0, 1), can_pin=None, wakeups=None)
    known = {name for name, value in vars(found).items() if value is not None}
    limits = {"open_files_soft", "open_files_hard"}
    assert known == {"cpus", "governors", "watched_s", *limits}
    assert (found.cpus, found.governors, found.watched_s) == (2, (), 0.0)


def test_output_that_was_cut_is_not_whole() -> None:
    lines = PRINTED.strip().split("\n")
    for cut in range(len(lines)):
        assert not parse_printed(lines[:cut]).is_whole, f"cut at {cut}"


def test_the_script_says_of_this_machine_what_is_read_here() -> None:
    ended = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", "0.01"], capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    printed = read(ended.stdout)
    assert printed.is_whole
    assert printed.cpus() == tuple(sorted(os.sched_getaffinity(0)))
    there, here = machine(printed), observe(watch_s=0.01)
    # What changes from one moment to the next, or is not in files.
    differs = {"time_wait", "memory_available_bytes", "watched_s", "busy_share", "stolen_share"}
    differs |= {"clock_resolution_ns", "clock_read_ns", "wakeups", "can_pin"}
    same = vars(here).keys() - differs
    assert {name: vars(there)[name] for name in same} == {name: vars(here)[name] for name in same}
    assert there.busy_share is not None
    assert there.memory_available_bytes
