"""The CPU use of others and our threads' waits for a CPU, from two samples."""

from __future__ import annotations

import os
from typing import Any

import pytest
from samples import server_tree
from trueload.machine.accounting import CpuTimes, MachineSample, ThreadSample, TreeSample
from trueload.machine.noise import (
    CpuUse,
    NoiseSample,
    ProcessUse,
    Wait,
    beside,
    cpu_use,
    noise_sample,
    wait_of,
)

S = 1_000_000_000
FRONT, ENGINE, SERVER, CHILD, OTHER = 10, 11, 20, 21, 30
PARENTS = {FRONT: 1, ENGINE: FRONT, SERVER: 1, CHILD: SERVER, OTHER: 1}


def sample(at_s: float, programs_s: float, waited_s: float = 0, **used_s: float) -> NoiseSample:
    """A sample on two CPUs, with the CPU seconds of each process by name."""
    pids = {name.upper(): seconds for name, seconds in used_s.items()}
    processes = {
        (globals()[name], 5): ProcessUse(
            PARENTS[globals()[name]],
            int(seconds * S),
            int(waited_s * S) if name == "SERVER" else 0,
        )
        for name, seconds in pids.items()
    }
    return NoiseSample(int(at_s * S), processes, int(programs_s * S), cpus=2)


BEFORE = sample(0, 100, front=1, engine=1, server=1, child=1, other=50)


@pytest.mark.parametrize(
    ("sentence", "after", "share"),
    [
        ("all of it is ours", sample(2, 102, front=1, engine=2, server=1, child=2, other=50), 0),
        ("a process is seen", sample(2, 103, front=1, engine=2, server=2, other=51), 0.25),
        ("what came and went shows in the machine's", sample(
            2, 103, front=1, engine=2, server=2, child=1, other=50), 0.25),
        ("what interrupts took is not theirs", sample(
            2, 101, front=1, engine=2, server=2, child=1, other=50), 0),
        ("the server's ended children are the server's", sample(
            2, 103, front=1, engine=2, server=2, waited_s=1, other=50), 0),
        ("a new child of ours is ours", sample(
            2, 102, front=1, engine=3, server=1, child=1, other=50), 0),
        ("in short, ticks may be off by 40 ms", sample(
            0.5, 100.54, front=1, engine=1.5, server=1, child=1, other=50), 0),
        ("in short, what is seen is exact", sample(
            0.5, 100.5, front=1, engine=1.5, server=1, child=1, other=50.25), 0.25),
    ],
)  # fmt: skip
def test_the_share_of_others(sentence: str, after: NoiseSample, share: float) -> None:
    found = cpu_use(BEFORE, after, {FRONT, SERVER}).others_share
    assert found == pytest.approx(share), sentence


def test_what_a_server_may_have_used_that_cannot_be_seen_is_nobodys() -> None:
    after = sample(2, 104, front=1, engine=2, other=50.5)
    assert cpu_use(BEFORE, after, {FRONT}).others_ns == 3 * S
    assert cpu_use(BEFORE, after, {FRONT}, all_seen=False).others_ns == S // 2


def tree(at_s: float, **threads: tuple[float, float]) -> TreeSample:
    """One process, with each thread's seconds on a CPU and waiting for one."""
    found = {int(name[1:]): ThreadSample(int(ran * S), int(waited * S))
             for name, (ran, waited) in threads.items()}  # fmt: skip
    cpu_ns = sum(thread.run_ns for thread in found.values())
    return server_tree(int(at_s * S), threads=found, cpu_ns=cpu_ns)


def used(ours_s: float, others_s: float, kernel_s: float = 0) -> CpuUse:
    """The use of two CPUs over ten seconds."""
    return CpuUse(10 * S, 2, int(ours_s * S), int(others_s * S), int(kernel_s * S))


@pytest.mark.parametrize(
    ("sentence", "thread", "use", "more", "wait"),
    [
        ("nobody else was there", (5, 3), used(13, 0), {}, Wait(0.3, 0)),
        ("a hog on its CPU, the server on another", (5, 5), used(13, 5),
         {"elsewhere_ns": 8 * S}, Wait(0.5, 0.5)),
        ("all share two CPUs", (6, 3), used(12, 6), {}, Wait(0.3, 0.15)),
        ("a hog elsewhere, and hardly a wait", (5, 0.02), used(8, 10), {}, Wait(0.002, 0.0015385)),
        ("others used next to nothing", (6, 4), used(18, 0.1), {}, Wait(0.4, 0.0033058)),
        ("not longer than they ran", (5, 5), used(5.1, 0.2), {}, Wait(0.5, 0.02)),
        ("the kernel's threads are waited for, too", (5, 2), used(5, 1, 3), {}, Wait(0.2, 0.05)),
        ("its own CPU was nearly free", (5, 1), used(13, 10),
         {"beside_ns": S // 10}, Wait(0.1, 0.01)),
        ("on its own CPU only others were", (5, 2), used(13, 2),
         {"beside_ns": 2 * S}, Wait(0.2, 0.2)),
        ("a CPU limit stopped it", (1, 9), used(1, 0.5), {"throttled_ns": 9 * S}, Wait(0.9, 0)),
    ],
)  # fmt: skip
def test_the_others_part_of_a_wait_is_their_part_of_what_ran_there(
    sentence: str, thread: tuple[float, float], use: CpuUse, more: dict[str, Any], wait: Wait
) -> None:
    before = tree(0, t7=(0, 0), t8=(0, 0))
    found = wait_of(before, tree(10, t7=thread, t8=(0, 0.001)), use, **more)
    assert found is not None
    assert found.share == pytest.approx(wait.share), sentence
    assert found.for_others == pytest.approx(wait.for_others, rel=1e-3), sentence


def test_what_a_new_thread_waited_counts_and_nothing_is_known_without_threads() -> None:
    found = wait_of(tree(0), tree(10, t9=(1, 2)), used(1, 9))
    assert found is not None
    assert (found.share, found.for_others) == pytest.approx((0.2, 0.2))
    assert wait_of(tree(0), tree(10), used(1, 9)) is None


def test_what_else_was_on_some_cpus_is_known_from_a_second_on() -> None:
    def machine(at_s: float, *programs_s: float) -> MachineSample:
        cpus = {n: CpuTimes(0, 0, int(one * S)) for n, one in enumerate(programs_s)}
        return MachineSample(int(at_s * S), cpus)

    def found(wall_s: float, cpus: set[int]) -> int | None:
        first, last = machine(0, 5, 5), machine(wall_s, 6.5, 9)
        return beside(first, last, cpus, tree(0, t7=(0, 0)), tree(wall_s, t7=(1, 0)))

    assert found(10, {0}) == S // 2
    assert found(10, {0, 1}) == 9 * S // 2
    assert found(10, set()) is None
    assert found(10, {7}) is None
    assert found(0.9, {0}) is None


def test_a_look_at_this_machine_sees_this_process_and_no_kernel_thread() -> None:
    found = noise_sample()
    pids = {pid for pid, _ in found.processes}
    assert os.getpid() in pids
    assert 2 not in pids or os.getpid() < 100  # kthreadd; in a container, 2 may be another process
    assert found.cpus >= 1
    assert cpu_use(found, noise_sample(), {os.getpid()}).others_share <= 1
