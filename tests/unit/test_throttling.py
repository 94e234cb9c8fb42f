"""The cost of cgroup CPU limits: read from files as kernels write them, and from our own group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from limited import limited_group
from trueload.machine.throttling import ThrottleCounters, read_throttled, throttled_share

MS = 1_000_000
V2 = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 8\nnr_throttled 3\nthrottled_usec 1200\n"
V1 = "nr_periods 8\nnr_throttled 3\nthrottled_time 1200000\n"
UNCOUNTED = "usage_usec 9\nuser_usec 5\nsystem_usec 4\n"


def kernel(
    root: Path, cgroup: str, mounts: dict[str, tuple[str, str]], stats: dict[str, str]
) -> Path:
    """A /proc with one process, 7, whose groups are ``cgroup``.

    ``mounts`` says for each folder which group is mounted there, and how; ``stats`` are the files
    of the hierarchies.
    """
    proc = root / "proc"
    (proc / "7").mkdir(parents=True)
    (proc / "self").mkdir()
    (proc / "7" / "cgroup").write_text(cgroup)
    lines = [
        f"31 23 0:{number} {group} {root / at} rw,relatime - {how}"
        for number, (at, (group, how)) in enumerate(mounts.items())
    ]
    other = "22 1 0:20 / /proc rw,nosuid - proc proc rw"
    (proc / "self" / "mountinfo").write_text("\n".join([other, *lines]) + "\n")
    for name, text in stats.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "cpu.stat").write_text(text)
    return proc


V1_CPU = ("/", "cgroup cgroup rw,cpu,cpuacct")
V1_MEMORY = ("/", "cgroup cgroup rw,memory")
TWO = {"cg": ("/", "cgroup2 cgroup2 rw")}


@pytest.mark.parametrize(
    ("sentence", "cgroup", "mounts", "stats", "found"),
    [
        ("version 2, a limit of its own and one above", "0::/a/b\n", TWO,
         {"cg": UNCOUNTED, "cg/a": V2, "cg/a/b": V2, "cg/c": V2}, {"cg/a", "cg/a/b"}),
        ("version 2, a limit above alone", "0::/a/b\n", TWO,
         {"cg": UNCOUNTED, "cg/a": V2, "cg/a/b": UNCOUNTED}, {"cg/a"}),
        ("in a container its own group is the topmost", "0::/\n", TWO, {"cg": V2}, {"cg"}),
        ("a container without a namespace of its own", "0::/docker/x\n",
         {"cg": ("/docker/x", "cgroup2 cgroup2 rw")}, {"cg": V2}, {"cg"}),
        ("a group outside the namespace", "0::/../y\n", TWO, {"cg": UNCOUNTED, "cg/y": V2}, set()),
        ("a group that is not mounted here", "0::/z\n",
         {"cg": ("/docker/x", "cgroup2 cgroup2 rw")}, {"cg": V2}, set()),
        ("version 1", "4:memory:/m\n3:cpu,cpuacct:/a\n0::/\n",
         {"cg/cpu": V1_CPU, "cg/mem": V1_MEMORY},
         {"cg/cpu": V1, "cg/cpu/a": V1, "cg/mem/m": V1}, {"cg/cpu", "cg/cpu/a"}),
        ("both versions side by side", "1:cpu:/a\n0::/b\n",
         {"cg/cpu": ("/", "cgroup cgroup rw,cpu"), "cg/unified": ("/", "cgroup2 cgroup2 rw")},
         {"cg/cpu/a": V1, "cg/unified/b": V2}, {"cg/cpu/a", "cg/unified/b"}),
        ("nobody counts", "0::/a\n", TWO, {"cg/a": UNCOUNTED}, set()),
        ("no cgroup at all", "", {}, {}, set()),
    ],
)  # fmt: skip
def test_the_groups_of_a_process_and_all_above_are_read(
    sentence: str,
    cgroup: str,
    mounts: dict[str, tuple[str, str]],
    stats: dict[str, str],
    found: set[str],
    tmp_path: Path,
) -> None:
    proc = kernel(tmp_path, cgroup, mounts, stats)
    read = read_throttled([7, 8], proc)  # process 8 does not exist
    assert {name: each.stopped_ns for name, each in read.items()} == {
        str(tmp_path / name): 1_200_000 for name in found
    }, sentence


def test_what_a_group_used_is_read_where_it_is_counted(tmp_path: Path) -> None:
    two = kernel(tmp_path / "2", "0::/a\n", TWO, {"cg/a": V2})
    assert list(read_throttled([7], two).values()) == [ThrottleCounters(1_200_000, 9_000)]
    mounts = {"cg/cpu": ("/", "cgroup cgroup rw,cpu,cpuacct")}
    one = kernel(tmp_path / "1", "3:cpu,cpuacct:/a\n", mounts, {"cg/cpu/a": V1})
    assert list(read_throttled([7], one).values()) == [ThrottleCounters(1_200_000, None)]
    (tmp_path / "1" / "cg/cpu/a/cpuacct.usage").write_text("8000\n")
    assert list(read_throttled([7], one).values()) == [ThrottleCounters(1_200_000, 8_000)]


@pytest.mark.parametrize(
    ("sentence", "after_ms", "cpu_ms", "share"),
    [
        ("one thread, half of the time", {"/a": 500}, 500, 0.5),
        ("four busy threads, half of the time", {"/a": 2_000}, 2_000, 0.5),
        ("one that has little to do", {"/a": 120}, 30, 0.12),
        ("the limit that cost most counts", {"/a": 10, "/a/b": 200}, 300, 0.2),
        ("never reached", {"/a": 0}, 900, 0.0),
        ("a group that was made meanwhile", {"/new": 100}, 500, None),
        ("none", {}, 500, None),
    ],
)
def test_the_share_of_the_time_that_a_limit_took(
    sentence: str, after_ms: dict[str, int], cpu_ms: int, share: float | None
) -> None:
    before = {"/a": ThrottleCounters(7, None), "/a/b": ThrottleCounters(7, None)}
    after = {name: ThrottleCounters(7 + ms * MS, None) for name, ms in after_ms.items()}
    found = throttled_share(before, after, 1_000 * MS, cpu_ms * MS)
    assert found == (None if share is None else pytest.approx(share)), sentence


def test_others_in_the_group_ran_and_stood_still_too() -> None:
    before, after = (
        {"/a": ThrottleCounters(0, 5)},
        {"/a": ThrottleCounters(400 * MS, 3_600 * MS + 5)},
    )
    share = throttled_share(before, after, 1_000 * MS, cpu_ns=100 * MS)
    assert share == pytest.approx(0.1), "four busy CPUs, each stopped for a tenth"


BURN = """import time
input()
while time.process_time() < 0.05:
    pass
print("done", flush=True)
input()
"""


def test_a_real_limit_is_seen() -> None:
    with (
        limited_group() as group,
        subprocess.Popen(
            [sys.executable, "-c", BURN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as burner,
    ):
        assert burner.stdin is not None
        assert burner.stdout is not None
        (group / "cgroup.procs").write_text(str(burner.pid))
        before = read_throttled([burner.pid])
        burner.stdin.write("\n")
        burner.stdin.flush()
        assert burner.stdout.readline() == "done\n"
        after = read_throttled([burner.pid])
        burner.stdin.write("\n")
    assert str(group) in before
    assert after[str(group)].stopped_ns > before[str(group)].stopped_ns
