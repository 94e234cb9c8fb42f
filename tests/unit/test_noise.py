"""What others used of the machine's CPU time, from two looks at its processes."""

from __future__ import annotations

import os

import pytest
from trueload.machine.noise import NoiseSample, Used, noise_sample, others_share

S = 1_000_000_000
FRONT, ENGINE, SERVER, CHILD, OTHER = 10, 11, 20, 21, 30
PARENTS = {FRONT: 1, ENGINE: FRONT, SERVER: 1, CHILD: SERVER, OTHER: 1}


def sample(at_s: float, programs_s: float, waited_s: float = 0, **used_s: float) -> NoiseSample:
    """Two CPUs; processes by name, seconds of CPU time."""
    pids = {name.upper(): seconds for name, seconds in used_s.items()}
    processes = {
        (globals()[name], 5): Used(
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
    ],
)  # fmt: skip
def test_the_share_of_others(sentence: str, after: NoiseSample, share: float) -> None:
    assert others_share(BEFORE, after, {FRONT, SERVER}) == pytest.approx(share), sentence


def test_a_look_at_this_machine_sees_this_process_and_no_kernel_thread() -> None:
    found = noise_sample()
    pids = {pid for pid, _ in found.processes}
    assert os.getpid() in pids
    assert 2 not in pids or os.getpid() < 100  # kthreadd; a container may give 2 to another
    assert found.cpus >= 1
    assert others_share(found, noise_sample(), {os.getpid()}) <= 1
