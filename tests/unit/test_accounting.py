"""Accounting: the arithmetic as tables, and readings of real processes, which wait for events."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trueload.machine.accounting import (
    TICK_NS,
    CpuTimes,
    GroupCpu,
    MachineSample,
    ProcessSample,
    ProcessTree,
    ThreadSample,
    TreeSample,
    accounts_for_all,
    machine_sample,
    machine_usage,
    read_process,
    usage,
    used_since,
)
from trueload.machine.listeners import listeners, unix_listeners
from trueload.machine.processes import descendants
from trueload.trial.server_discovery import Followed, found_pids

MS = 1_000_000
IDLE = ProcessSample(
    pid=10,
    parent_pid=1,
    start_ticks=5,
    cpu_ns=0,
    user_ns=0,
    system_ns=0,
    waited_user_ns=0,
    waited_system_ns=0,
    peak_rss_bytes=1000,
    threads={10: ThreadSample(0, 0)},
    cpus=frozenset({0}),
)


def tree(at_ms: int, *processes: ProcessSample, group: GroupCpu | None = None) -> TreeSample:
    return TreeSample(at_ms * MS, {p.identity: p for p in processes}, group)


def busy(process: ProcessSample, run_ms: int, wait_ms: int = 0) -> ProcessSample:
    thread = ThreadSample(run_ms * MS, wait_ms * MS)
    return replace(process, cpu_ns=run_ms * MS, user_ns=run_ms * MS, threads={process.pid: thread})


def test_cpu_time_is_what_was_used_between_the_samples() -> None:
    used = usage(tree(0, busy(IDLE, 300)), tree(1000, busy(IDLE, 800)))
    assert used.cpu_s == pytest.approx(0.5)
    assert used.user_s == pytest.approx(0.5)
    assert used.lifetime_user_s == pytest.approx(0.8)


def test_time_in_the_run_queue_counts_as_saturation_but_not_as_cpu_time() -> None:
    used = usage(tree(0, IDLE), tree(1000, busy(IDLE, 500, wait_ms=450)))
    assert used.cpu_s == pytest.approx(0.5)
    assert used.saturation == pytest.approx(0.95)


def test_a_runtime_that_hops_between_threads_on_one_cpu_is_saturated() -> None:
    threads = {tid: ThreadSample(240 * MS, 0) for tid in range(4)}
    hopping = replace(IDLE, cpu_ns=960 * MS, user_ns=960 * MS, threads=threads)
    assert usage(tree(0, IDLE), tree(1000, hopping)).saturation == pytest.approx(0.96)


def test_a_child_that_ended_in_the_window_counts_only_from_its_start() -> None:
    child = replace(busy(IDLE, 200), pid=11)
    parent = replace(IDLE, waited_user_ns=500 * MS)
    used = usage(tree(0, IDLE, child), tree(1000, parent))
    assert used.cpu_s == pytest.approx(0.3), "500 ms of its life, 200 ms of them before"


def test_a_child_whose_end_nobody_waited_for_never_makes_the_time_negative() -> None:
    child = replace(busy(IDLE, 200), pid=11)
    assert usage(tree(0, IDLE, child), tree(1000, IDLE)).cpu_s == 0.0


def test_another_process_under_the_same_pid_is_another_process() -> None:
    successor = replace(busy(IDLE, 100), start_ticks=6)
    assert usage(tree(0, busy(IDLE, 900)), tree(1000, successor)).cpu_s == pytest.approx(0.1)


def test_a_group_counts_processes_that_came_and_went_between_the_samples() -> None:
    before = tree(0, IDLE, group=GroupCpu(100 * MS, 50 * MS))
    after = tree(1000, IDLE, group=GroupCpu(400 * MS, 150 * MS))
    used = usage(before, after)
    assert (used.cpu_s, used.user_s, used.system_s) == pytest.approx((0.4, 0.3, 0.1))
    assert used.lifetime_system_s == pytest.approx(0.15)


def test_a_tree_that_died_has_no_peak_memory_and_no_saturation() -> None:
    used = usage(tree(0, IDLE), tree(1000))
    assert (used.peak_rss_bytes, used.saturation, used.threads) == (None, None, 0)


def test_of_a_process_that_ended_only_its_parent_or_its_group_tells() -> None:
    parent, child = IDLE, replace(IDLE, pid=11, parent_pid=IDLE.pid)
    again = replace(IDLE, pid=12)
    group = GroupCpu(0, 0)
    for name, before, after, expected in (
        ("all are there", tree(0, parent, child), tree(1, parent, child), True),
        ("one came", tree(0, parent), tree(1, parent, child), True),
        ("a child ended", tree(0, parent, child), tree(1, parent), True),
        ("all ended", tree(0, parent, child), tree(1), False),
        ("the parent ended", tree(0, parent, child), tree(1, child), False),
        ("another took its place", tree(0, parent), tree(1, again), False),
        ("all of a group ended", tree(0, parent, group=group), tree(1, group=group), True),
    ):
        assert accounts_for_all(before, after) == expected, name


def test_a_server_that_was_found_is_followed_when_it_no_longer_listens() -> None:
    found = {os.getpid()}
    server = ProcessTree(Followed(lambda _: set(found)))
    assert server.sample().pids == {os.getpid()}
    found.clear()
    assert server.sample().pids == {os.getpid()}, "without its socket"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        found.add(other.pid)
        assert server.sample().pids == {os.getpid(), other.pid}, "another one beside it"
        other.communicate()
    found.clear()
    assert server.sample().pids == {os.getpid()}, "the other has ended"


def test_peak_memory_is_the_sum_over_the_tree() -> None:
    assert usage(tree(0), tree(1, IDLE, replace(IDLE, pid=11))).peak_rss_bytes == 2000


def test_idle_and_stolen_shares_are_of_the_cpus_named() -> None:
    before = MachineSample(0, {0: CpuTimes(0, 0, 0), 1: CpuTimes(0, 0, 0)})
    after = MachineSample(1000 * MS, {0: CpuTimes(0, 100 * MS, 0), 1: CpuTimes(1000 * MS, 0, 0)})
    both = machine_usage(before, after)
    assert (both.idle_share, both.stolen_share) == pytest.approx((0.5, 0.05))
    assert machine_usage(before, after, cpus=[0]).idle_share == 0.0


def test_a_stolen_tick_or_two_in_a_short_window_may_be_a_rounding_error() -> None:
    tick = TICK_NS / MS
    before = MachineSample(0, {0: CpuTimes(0, 0, 0)})
    for stolen, share in ((1, 0.0), (2, 0.0), (3, tick / 100)):
        after = MachineSample(100 * MS, {0: CpuTimes(0, round(stolen * tick) * MS, 0)})
        assert machine_usage(before, after).stolen_share == pytest.approx(share), stolen


def test_a_process_that_has_gone_is_left_out() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert read_process(child.pid) is None


def test_what_a_tree_uses_later_is_read_from_the_clocks_of_its_processes() -> None:
    before = ProcessTree(lambda: [os.getpid()]).sample()
    used = sum(process.cpu_ns for process in before.processes.values())
    while used_since(before) < used + 20 * MS:
        pass
    gone = replace(next(iter(before.processes.values())), pid=2**22 + 1, cpu_ns=7)
    assert used_since(tree(0, gone)) == 7, "of a process that has gone what it had used"


def test_a_grandchild_belongs_to_the_tree() -> None:
    grandchild = "import sys; print(1, flush=True); sys.stdin.read()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = descendants(child.pid)
        sample = ProcessTree(child.pid).sample()
        child.communicate(b"")
    assert len(found) == 1
    assert sample.pids == found | {child.pid}


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_listening_socket_is_found_with_its_owner(family: int, host: str) -> None:
    with socket.create_server((host, 0), family=socket.AddressFamily(family)) as server:
        port = server.getsockname()[1]
        assert os.getpid() in listeners(host, port)
        assert listeners("127.0.0.2" if host == "127.0.0.1" else "::2", port) == set()
    assert listeners(host, port) == set()


WAITS = "import sys; sys.stdin.read()"
SERVES = f"""
import socket, subprocess, sys
server = socket.create_server(("127.0.0.1", 0))
subprocess.Popen([sys.executable, "-c", {WAITS!r}])
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_server_that_we_started_is_found_and_nothing_else_of_ours() -> None:
    piped: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([sys.executable, "-c", SERVES], **piped) as server,
        subprocess.Popen([sys.executable, "-c", WAITS], **piped) as other,
    ):
        assert server.stdout is not None
        port = int(server.stdout.readline())
        (worker,) = descendants(server.pid)
        assert found_pids(f"127.0.0.1:{port}") == {server.pid, worker}
        for process in (server, other):
            process.communicate("")


def test_of_a_server_within_this_process_its_children_are_not_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE) as other,
    ):
        assert found_pids(f"127.0.0.1:{server.getsockname()[1]}") == {os.getpid()}
        other.communicate(b"")


def test_a_listening_socket_file_is_found_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for bound in (str(tmp_path / "a.sock"), "b.sock"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(bound)
            assert unix_listeners(str(tmp_path / bound)) == set(), "bound, but not listening"
            server.listen()
            assert unix_listeners(str(link / Path(bound).name)) == {os.getpid()}, bound
            assert unix_listeners(f"/elsewhere/{Path(bound).name}") == set()
        assert unix_listeners(str(tmp_path / bound)) == set()


def test_the_machine_has_the_cpus_that_it_has() -> None:
    assert len(machine_sample().cpus) >= len(os.sched_getaffinity(0))
