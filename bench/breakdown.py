"""Where our generator's time goes: system calls per request, and CPU samples by place.

The reference server runs on CPU 0 and the generator on CPU 1, one load after the other; for one of
the loads wrk is measured too. `perf record` samples the CPU clock with the kernel's stacks, because
many virtual machines have no hardware counters. `perf stat` counts system calls; where perf cannot,
strace does. The time per request comes from a run without either. Writes its section of
docs/contributors/accuracy.md. Needs root. Exit code 2 when this machine cannot run it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import engine
import generators
from cells import OURS
from engine import Work
from generators import PATIENCE_S, Took
from machine import describe
from page import ACCURACY, write_section
from placement import find_placement
from process import BenchError, run
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from stacks import TCP, Frame, Stack, crate_of_files, folded, read_lines, read_stacks, shares
from trueload.protocol.engine_options import DriverName

SAMPLES_PER_S = 2_999
SECONDS = 5.0
LEAST_SHARE = 0.005


@dataclass(frozen=True)
class Load:
    """One load: the generator, its driver, the number of connections and the pipeline depth."""

    tool: str
    driver: DriverName
    connections: int
    depth: int

    @property
    def name(self) -> str:
        tool = f"{self.tool} on {self.driver}" if self.tool == OURS else self.tool
        return f"{tool}, {self.connections} connections, depth {self.depth}"


LOADS = (
    Load(OURS, "io_uring", 64, 1),
    Load(OURS, "epoll", 64, 1),
    Load("wrk", "epoll", 64, 1),
    Load(OURS, "io_uring", 256, 1),
    Load(OURS, "io_uring", 64, 16),
)
# Only these calls are named: each is a tracepoint of its own, and opening hundreds takes long.
CALLS = (
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_ctl",
    "io_uring_enter",
    "recvfrom",
    "sendto",
    "read",
    "write",
    "writev",
    "recvmsg",
    "sendmsg",
    "clock_gettime",
    "futex",
)
EVERY_CALL = "raw_syscalls:sys_enter"
Talk = Callable[[IO[str], IO[str]], str]


@dataclass(frozen=True)
class Watched:
    """The result of one load: cost and system calls per request, and where the time goes."""

    name: str
    cpu_us: float
    calls: Mapping[str, float]
    """Per request."""
    parts: Mapping[str, float]
    """Shares of the CPU time."""


@dataclass(frozen=True)
class Program:
    """A generator that can be started under a program that watches it, such as perf."""

    command: Sequence[str]
    talk: Talk | None
    binary: Path | None
    """With line tables, to tell its crates apart."""
    requests: Callable[[str], int]
    """From what it said."""


def program_of(tool: str, binary: Path, work: Work) -> Program:
    """Return the command and conversation that run this load with the given tool."""
    if tool == OURS:
        talk = partial(_talk, work)
        return Program([str(binary)], talk, binary, generators.our_requests)
    return Program(generators.wrk_command(work), None, None, generators.wrk_requests)


def _talk(work: Work, stdin: IO[str], stdout: IO[str]) -> str:
    return engine.measure(work, stdin, stdout)


def watch(program: Program, watcher: Sequence[str], work: Work) -> int:
    """Run the program under the watcher; return how many requests it completed."""
    ended = run(
        [*watcher, *program.command],
        cpu=GENERATOR_CPU,
        timeout_s=work.duration_s + PATIENCE_S,
        talk=program.talk,
    )
    return program.requests(ended.out)


def count_calls(program: Program, work: Work, folder: Path) -> dict[str, float]:
    """Return system calls per request, by name; `all` is their sum."""
    report = folder / "calls"
    events = [EVERY_CALL, *(f"syscalls:sys_enter_{name}" for name in CALLS)]
    try:
        watcher = ["perf", "stat", "-x", ";", "-o", str(report), "-e", ",".join(events), "--"]
        requests = watch(program, watcher, work)
        counts = read_perf_stat(report.read_text())
    except BenchError:
        requests = watch(program, ["strace", "-f", "-c", "-o", str(report)], work)
        counts = read_strace(report.read_text())
    return {name: count / requests for name, count in counts.items()}


def read_perf_stat(text: str) -> dict[str, int]:
    """Parse `perf stat -x ;` into counts by system call. Raises `BenchError` if there are none."""
    counts = {}
    for line in text.splitlines():
        count, _, event = line.split(";")[:3] if line.count(";") >= 2 else ("", "", "")
        if count.isdigit():
            name = "all" if event == EVERY_CALL else event.rpartition("sys_enter_")[2]
            counts[name] = int(count)
    if not counts:
        raise BenchError("perf stat counted nothing")
    return counts


def read_strace(text: str) -> dict[str, int]:
    """Parse the table of `strace -c`: counts by system call."""
    rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", text, re.MULTILINE)
    counts = {name: int(count) for count, name in rows}
    return {"all": counts.pop("total", 0), **counts}


def sample_stacks(program: Program, work: Work, folder: Path) -> list[Stack]:
    """Sample the call stacks, `SAMPLES_PER_S` times a second.

    Raises `BenchError` if there are none.
    """
    data = folder / "samples"
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_PER_S), "-g"]
    watch(program, [*record, "-o", str(data), "--"], work)
    script = ["perf", "script", "-i", str(data), "-F", "ip,sym,dso"]
    ran = subprocess.run(script, capture_output=True, text=True, check=False)
    stacks = list(read_stacks(ran.stdout))
    if not stacks:
        raise BenchError(f"perf took no samples: {ran.stderr[-200:]}")
    return stacks


def crates(stacks: Sequence[Stack], binary: Path | None) -> Callable[[Frame], str]:
    """Return a function that names a frame's crate by the line tables, else its object file."""
    lines: dict[int, list[str]] = {}
    if binary is not None and shutil.which("addr2line"):
        segments = list(executable_segments(binary.read_bytes()))
        leaves = {stack[0] for stack in stacks if stack[0].object == str(binary)}
        # perf gives offsets in the file; addr2line needs addresses in memory.
        moved = {leaf.address: to_memory(leaf.address, segments) for leaf in leaves}
        command = ["addr2line", "-a", "-f", "-i", "-e", str(binary)]
        text = "\n".join(f"{address:#x}" for address in set(moved.values()))
        ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        by_memory = read_lines(ran.stdout)
        lines = {at: by_memory.get(memory, []) for at, memory in moved.items()}

    def crate_of(frame: Frame) -> str:
        known = crate_of_files(lines.get(frame.address, []))
        return known or f"{Path(frame.object.strip('[]')).name}: outside the kernel"

    return crate_of


def executable_segments(elf: bytes) -> Iterator[tuple[int, int, int]]:
    """(offset in the file, address in memory, size) of a 64-bit program's code."""
    table, size, count = *struct.unpack_from("<Q", elf, 32), *struct.unpack_from("<HH", elf, 54)
    for number in range(count):
        kind, flags, offset, memory = struct.unpack_from("<IIQQ", elf, table + number * size)
        length = struct.unpack_from("<Q", elf, table + number * size + 32)[0]
        if kind == 1 and flags & 1:  # PT_LOAD, PF_X
            yield offset, memory, length


def to_memory(offset: int, segments: Sequence[tuple[int, int, int]]) -> int:
    """Convert an offset in the file to an address in memory."""
    for start, memory, length in segments:
        if start <= offset < start + length:
            return offset - start + memory
    return offset


def measure(load: Load, binary: Path, work: Work, folder: Path) -> Watched:
    """Measure one load three times: unwatched, counted, sampled."""
    program = program_of(load.tool, binary, work)
    unwatched = generators.ours(binary) if load.tool == OURS else generators.wrk
    took: Took = unwatched(work, GENERATOR_CPU, False)
    calls = count_calls(program, work, folder)
    stacks = sample_stacks(program, work, folder)
    parts = shares(stacks, crates(stacks, program.binary))
    name = load.name.replace(f"on {load.driver}", f"on {took.driver}")
    return Watched(name, took.cpu_s_per_million, calls, parts)


def markdown(all_watched: Sequence[Watched]) -> list[str]:
    """Two Markdown tables (µs and shares by place; system calls per request) and a conclusion."""
    names = " | ".join(watched.name for watched in all_watched)
    dashes = "|---|" + "--:|" * len(all_watched)
    lines = [f"| CPU µs per request (share) | {names} |", dashes]
    lines += _rows(
        [folded(watched.parts, LEAST_SHARE) for watched in all_watched],
        lambda number, part: f"{part * all_watched[number].cpu_us:.3f} ({part:.1%})",
    )
    totals = " | ".join(f"{watched.cpu_us:.3f}" for watched in all_watched)
    lines += [f"| **in all** | {totals} |", "", f"| system calls per request | {names} |", dashes]
    lines += _rows(
        [folded_calls(watched.calls) for watched in all_watched],
        lambda _, calls: f"{calls:.3f}",
    )
    first = all_watched[0]
    tcp = sum(first.parts.get(place, 0.0) for place in TCP)
    summary = f"Of the {first.cpu_us:.2f} µs of a request ({first.name}), TCP in the kernel takes"
    summary += (
        f" {tcp * first.cpu_us:.2f} µs ({tcp:.0%}), which no generator on sockets is without:"
    )
    summary += f" {(1 - tcp) * first.cpu_us:.2f} µs are left to be gained at most."
    return [*lines, "", summary]


def folded_calls(calls: Mapping[str, float]) -> dict[str, float]:
    """Keep the calls made at least once in 1,000 requests, and the sum."""
    kept = {name: calls[name] for name in calls if name != "all" and calls[name] >= 0.001}
    return {**kept, "all": calls.get("all", 0.0)}


def _rows(
    columns: Sequence[Mapping[str, float]], show: Callable[[int, float], str]
) -> Iterator[str]:
    names = dict.fromkeys(name for column in columns for name in column)
    last = [name for name in ("everything smaller", "all") if names.pop(name, "") is None]
    for name in [*names, *last]:
        shown = [
            show(number, column[name]) if name in column else ""
            for number, column in enumerate(columns)
        ]
        yield f"| {name} | {' | '.join(shown)} |"


def main() -> int:
    """Measure, print Markdown, and write it into its section of the page."""
    parser = argparse.ArgumentParser(description="Where our generator's CPU time goes.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a run ({SECONDS:g})")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    try:
        if shutil.which("perf") is None:
            raise SettingError("there is no perf", "install it (Debian: linux-perf)")
        lines = _report(prepare_setting(), options.seconds)
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    except BenchError as error:
        print(f"error: {error}\nhint: perf may be allowed to root only", file=sys.stderr)
        return 2
    print("\n".join(lines))
    if not options.no_page:
        write_section(ACCURACY, "breakdown", lines)
    return 0


def _report(binary: Path, seconds: float) -> list[str]:
    all_watched, quiet, placement = [], Quiet(), find_placement()
    with tempfile.TemporaryDirectory() as name, reference(binary, SERVER_CPU) as server:
        for load in LOADS:
            if shutil.which("wrk") or load.tool == OURS:
                size = (load.connections, load.depth)
                work = Work(server.port, *size, seconds, driver=load.driver)
                watch = partial(measure, load, binary, work, Path(name))
                all_watched.append(placement.measured(watch))
    return [str(describe()), "", f"{quiet} {placement}", "", *markdown(all_watched)]


if __name__ == "__main__":
    sys.exit(main())
