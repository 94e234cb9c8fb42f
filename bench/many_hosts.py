"""What does the front need to combine what very many hosts report?

`bench/many_hosts.py` lets a real engine measure the reference server once and records its output.
Then stand-ins (`standin.py`), a hundred in a process, replay it in several variants, each on its
own clock. The front runs a whole trial over them: clocks, start, ticks, histograms, checks, record.
Its CPU time is that of this process, which plays no host. All sums are checked, bucket by bucket,
and each host's measured clock is checked against the one that it was given.

Targets, with as many hosts as the front takes without a warning: at most 0.15 cores over the
window, 250 MB, 3 s from the last report to the record, and exact sums. Prints Markdown. Exit code
1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
from engine import Work
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from process import BenchError, vm_hwm_bytes
from recording import Recording, load, record, scaled, window_s
from setting import SERVER_CPU, Quiet, SettingError, find_setting
from standin import nature_of, variant_of
from standin_place import Stage, staged
from trueload.engines.engine import EngineError
from trueload.errors import UserError
from trueload.places import EngineHost
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Duration
from trueload.protocol.tick import Tick
from trueload.record.schema import Record
from trueload.request.traffic import Traffic as Sent
from trueload.request.values import Request
from trueload.stats import decode_histogram, merge_sparse
from trueload.trial.plan import make_phases
from trueload.trial.run import Session
from trueload.trial.spec import Load, Progress, TrialSpec

COUNTS = (10, 100, 256)
WINDOW_S = 30.0
CONNECTIONS = 64
VARIANTS = 7
NS_PER_S = 1_000_000_000
MB = 1_000_000
CPU_MOST = Limit(0.15, unit=" cores")
RSS_MOST = Limit(250, unit=" MB")
RECORD_MOST = Limit(3.0, unit=" s")
EXACT = Limit(0, unit=" sums off")
TABLE_HEAD = (
    "| hosts | set-up | front's CPU over the window | CPU s in all | peak memory | from the hosts"
    " | to them | last `phase_done` to record |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Outcome:
    """One trial over `hosts` stand-ins; CPU and memory are the front's."""

    hosts: int
    set_up_s: float
    window_cpu_s: float
    window_wall_s: float
    cpu_s: float
    peak_rss_bytes: int
    said_bytes: int
    heard_bytes: int
    to_record_s: float
    off: tuple[str, ...]
    """Which sums are not what they should be."""

    @property
    def cores(self) -> float:
        """The front's CPU use over the window, in cores."""
        return self.window_cpu_s / self.window_wall_s


class Watch:
    """Receives the trial's progress as a live view does, and records the front's CPU time."""

    def __init__(self) -> None:
        self.window_began: tuple[float, float] | None = None
        self.window_ended: tuple[float, float] | None = None
        self.ticked = 0
        self.fresh = 0

    def __call__(self, progress: Progress) -> None:
        if progress.phase == "window" and self.window_began is None:
            self.window_began = _times()
        if progress.phase == "drain" and self.window_ended is None:
            self.window_ended = _times()
        if progress.tick is not None:
            self.ticked += 1
            self.fresh += sum(progress.tick.latency.values())


def _times() -> tuple[float, float]:
    """Return the time, and the front's CPU time, in s."""
    return time.monotonic(), time.process_time()


def spec_of(hosts: tuple[EngineHost, ...], total: int, seconds: float) -> TrialSpec:
    """A trial over all hosts.

    Its address is reserved for documentation (RFC 5737); nobody connects to it.
    """
    return TrialSpec(
        url="http://192.0.2.1/",
        addresses=("192.0.2.1:80",),
        traffic=Sent(request=Request(host="192.0.2.1")),
        load=Load(connections=total, stop=Duration(ns=int(seconds * NS_PER_S)), warmup=None),
        engine=EngineOptions(connect_rate_per_s=1_000_000),
        hosts=hosts,
    )


@dataclass(frozen=True)
class Traffic:
    """What the hosts and the front said to each other, and when the last host was done."""

    said_bytes: int
    heard_bytes: int
    done_s: float


def measure(folder: Path, variants: Sequence[Recording], count: int) -> Outcome:
    """Run one trial over `count` hosts. Raises `BenchError`."""
    paths = [folder / f"{number}.jsonl" for number in range(len(variants))]
    for path, each in zip(paths, variants, strict=True):
        each.save(path)
    recordings = [variants[variant_of(number, len(variants))] for number in range(count)]
    with staged(folder, paths, count) as stage:
        return _run(stage, recordings)


def _traffic_of(stage: Stage) -> Traffic:
    found = stage.end()
    return Traffic(
        said_bytes=sum(each["said_bytes"] for each in found),
        heard_bytes=sum(each["heard_bytes"] for each in found),
        done_s=max(each["done_ns"] for each in found) / NS_PER_S,
    )


def _run(stage: Stage, recordings: Sequence[Recording]) -> Outcome:
    count = len(recordings)
    total = sum(each.measurement.connections.requested for each in recordings)
    watch = Watch()
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to this trial's
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    hosts = tuple(EngineHost(place) for place in stage.places)
    spec = spec_of(hosts, total, window_s(recordings[0]))
    with Session(spec, on_progress=watch) as session:
        found = session.measure(*make_phases(spec), last=True)
        recorded_s = time.monotonic()
    cpu_s = time.process_time() - began_cpu_s
    peak_rss_bytes = vm_hwm_bytes(os.getpid())
    traffic = _traffic_of(stage)
    if found.trouble is not None:
        raise BenchError(f"{count} hosts: {found.trouble.what}")
    if watch.window_began is None or watch.window_ended is None:
        raise BenchError(f"{count} hosts: no window was seen")
    wall_s, window_cpu_s = (
        after - before for before, after in zip(watch.window_began, watch.window_ended, strict=True)
    )
    return Outcome(
        hosts=count,
        set_up_s=watch.window_began[0] - began_s,
        window_cpu_s=window_cpu_s,
        window_wall_s=wall_s,
        cpu_s=cpu_s,
        peak_rss_bytes=peak_rss_bytes,
        said_bytes=traffic.said_bytes,
        heard_bytes=traffic.heard_bytes,
        to_record_s=recorded_s - traffic.done_s,
        off=tuple(off(found, recordings, watch)),
    )


def off(found: Record, recordings: Sequence[Recording], watch: Watch) -> list[str]:
    """Name the figures that are not the sum of what the hosts reported. Pure."""
    parts = [each.measurement for each in recordings]
    sums: dict[str, tuple[Any, Any]] = {
        "connections": (
            found.connections.established,
            sum(part.connections.established for part in parts),
        ),
        "latency": (
            _counts(found.histograms.latency),
            added([part.histograms.latency for part in parts]),
        ),
        "seconds": (
            [(second.t_s, second.ok) for second in found.series],
            _seconds(parts),
        ),
        "latency by second": (
            merge_sparse(second.latency for second in found.series),
            merge_sparse(second.latency for part in parts for second in part.series),
        ),
        "hosts": ([host.ok for host in found.hosts], [part.counts.ok for part in parts]),
        "live": (watch.fresh, sum(_fresh(each.ticks) for each in recordings)),
    }
    for name in ("scheduled", "issued", "ok", "cancelled", "unsent", "stale"):
        sums[name] = getattr(found.counts, name), sum(getattr(p.counts, name) for p in parts)
    wrong = [name for name, (got, wanted) in sums.items() if got != wanted]
    for number, host in enumerate(found.hosts):
        assert host.clock_offset_ns is not None
        assert host.clock_bound_ns is not None
        if abs(host.clock_offset_ns - nature_of(number).ahead_ns) > host.clock_bound_ns:
            wrong.append(f"clock of {host.place}")
    return wrong


def _counts(encoded: str | None) -> Counter[tuple[int, int]]:
    """The count of each bucket, known by its bounds."""
    found = decode_histogram(encoded)
    bounds = zip(found.lows, found.highs, strict=True)
    return Counter(dict(zip(bounds, found.counts, strict=True)))


def added(encoded: Sequence[str | None]) -> Counter[tuple[int, int]]:
    """Add histograms bucket by bucket, without the library's own addition."""
    return sum(map(_counts, encoded), Counter[tuple[int, int]]())


def _seconds(parts: Sequence[Any]) -> list[tuple[int, int]]:
    sums: dict[int, int] = {}
    for part in parts:
        for second in part.series:
            sums[second.t_s] = sums.get(second.t_s, 0) + second.ok
    return sorted(sums.items())


def _fresh(ticks: Sequence[Tick]) -> int:
    return sum(sum(tick.latency.values()) for tick in ticks)


def row(found: Outcome) -> str:
    """One row of the table."""
    shown = (
        f"{found.hosts:,}",
        f"{found.set_up_s:.1f} s",
        f"{found.cores:.3f} cores",
        f"{found.cpu_s:.1f}",
        f"{found.peak_rss_bytes / MB:.0f} MB",
        f"{found.said_bytes / found.window_wall_s / MB:.2f} MB/s",
        f"{found.heard_bytes / found.window_wall_s / MB:.3f} MB/s",
        f"{found.to_record_s:.2f} s",
    )
    return f"| {' | '.join(shown)} |"


def judge(found: Outcome) -> list[Mark]:
    """Judge a large trial."""
    name = f"{found.hosts:,} hosts"
    megabytes = found.peak_rss_bytes / MB
    what = ", ".join(found.off[:5]) or "none: each is exact"
    cores = f"{found.cores:.3f} cores"
    to_record = f"{found.to_record_s:.2f} s"
    return [
        mark(f"{name}: front's CPU", CPU_MOST, found.cores, cores),
        mark(f"{name}: front's peak memory", RSS_MOST, megabytes, f"{megabytes:.0f} MB"),
        mark(f"{name}: last report to record", RECORD_MOST, found.to_record_s, to_record),
        mark(f"{name}: what does not add up", EXACT, len(found.off), what),
    ]


def recorded(path: Path | None, seconds: float) -> Recording:
    """Load the recording from the file if it exists; otherwise make it, and save it there."""
    if path is not None and path.exists():
        return load(path)
    with engine.serving(find_setting(), SERVER_CPU) as (port, _, _):
        work = Work(port=port, connections=CONNECTIONS, depth=1, duration_s=seconds)
        found = record(work)
    if path is not None:
        found.save(path)
    return found


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="The front over many hosts.")
    parser.add_argument("--hosts", type=int, action="append", help=f"how many {COUNTS}")
    parser.add_argument("--seconds", type=float, default=WINDOW_S, help=f"window ({WINDOW_S:g})")
    parser.add_argument("--recording", type=Path, help="keep what the engine said, or take it")
    parser.add_argument("--profile", type=Path, help="write where the main thread's time goes")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    counts = tuple(options.hosts or COUNTS)
    # Each host needs a socket here; a place by ssh would need three pipes.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    try:
        recording = recorded(options.recording, options.seconds)
        lines, marked = _report(recording, counts, options.profile)
    except (BenchError, EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    if counts == COUNTS and not options.no_page:
        write_section(ACCURACY, "hosts", lines)
    return exit_code(marked)


def _report(
    recording: Recording, counts: Sequence[int], profile: Path | None
) -> tuple[list[str], list[Mark]]:
    """Measure each number of hosts; return the lines of a section, and judge the largest."""
    variants = [scaled(recording, times) for times in range(1, VARIANTS + 1)]
    quiet = Quiet()
    outcomes = [_profiled(profile, variants, count) for count in counts]
    marked = judge(outcomes[-1])
    ticks = recording.ticks
    about = (
        f"A window of {window_s(recording):.0f} s; {len(ticks)} ticks from each host, with"
        f" {sum(len(tick.latency) for tick in ticks) / len(ticks):.0f} buckets each. {quiet}"
    )
    table = [TABLE_HEAD, *map(row, outcomes)]
    return [str(describe({})), "", about, "", *mark_table(marked), "", *table], marked


def _profiled(path: Path | None, variants: Sequence[Recording], count: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        if path is None:
            return measure(Path(folder), variants, count)
        profile = cProfile.Profile()
        try:
            return profile.runcall(measure, Path(folder), variants, count)
        finally:
            profile.dump_stats(path)


if __name__ == "__main__":
    sys.exit(main())
