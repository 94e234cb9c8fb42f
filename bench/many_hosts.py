"""What does the front need to combine what very many hosts report, and with aggregators?

`bench/many_hosts.py` lets a real engine measure the reference server once and records its output.
Then stand-ins (`standin.py`), a hundred in a process, replay it in several variants, each on its
own clock. The front runs a whole trial over them: clocks, start, ticks, histograms, checks, record.
Its CPU time is that of this process, which plays no host. All sums are checked, bucket by bucket,
and each host's measured clock is checked against the one that it was given.

1,024 and 4,096 hosts are below 16 and 64 real aggregators. There each stand-in is a process
(`standin_tree.py`), and replays 200 requests/s.

Targets: with 1,000 hosts less than a core over the window, less than 1 GB, and exact sums. With
hosts below aggregators a fifth of a core, and exact sums. Prints Markdown. Exit code 1 if a target
is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
import psutil
import standin_tree
from engine import Work
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import SCALE, write_section
from process import BenchError, vm_hwm_bytes
from recording import Recording, load, record, scaled, window_s
from setting import SERVER_CPU, Quiet, SettingError, find_setting
from standin_hosts import nature_of, variant_of
from standin_place import Stage, staged
from standin_tree import ahead_ns, tree_hosts
from trueload.engines.engine import EngineError
from trueload.errors import UserError
from trueload.places import EngineHost
from trueload.protocol.plan import Duration, EngineOptions, Open, Tick
from trueload.record.schema import Record
from trueload.request.values import Request
from trueload.stats import decode_histogram, merge_sparse
from trueload.trial.plan import make_phases
from trueload.trial.run import Session
from trueload.trial.spec import Load, Progress, TrialSpec, make_stage

COUNTS = (10, 100, 1_000)
TREE_COUNTS = (1_024, 4_096)  # each needs a process here, and CPU time at least once in 1.5 s
TRIES = 5
TREE_RATE_PER_S = 200  # of each host, so that two CPUs can play thousands of them
WINDOW_S = 30.0
CONNECTIONS = 64
VARIANTS = 7
NS_PER_S = 1_000_000_000
MB = 1_000_000
CPU_MOST = Limit(1.0, unit=" cores")
TREE_CPU_MOST = Limit(0.2, unit=" cores")
RSS_MOST = Limit(1_000, unit=" MB")
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
    aggregators: int = 0
    aggregators_cpu_s: float = 0.0
    """What all of them took over the window."""

    @property
    def cores(self) -> float:
        """The front's CPU use over the window, in cores."""
        return self.window_cpu_s / self.window_wall_s


class Watch:
    """Receives the trial's progress as a live view does, and records the front's CPU time, and that
    of aggregators."""

    def __init__(self) -> None:
        self.window_began: tuple[float, float, float] | None = None
        self.window_ended: tuple[float, float, float] | None = None
        self.ticked = 0
        self.fresh = 0

    def __call__(self, progress: Progress) -> None:
        if progress.stage == "window" and self.window_began is None:
            self.window_began = _times()
        if progress.stage == "drain" and self.window_ended is None:
            self.window_ended = _times()
        if progress.tick is not None:
            self.ticked += 1
            self.fresh += sum(progress.tick.latency.values())


def _times() -> tuple[float, float, float]:
    """Return the time, and the CPU time of the front and of its aggregators, in s."""
    spent = [child.cpu_times() for child in psutil.Process().children() if _is_engine(child)]
    aggregators_s = sum(each.user + each.system for each in spent)
    return time.monotonic(), time.process_time(), aggregators_s


def _is_engine(process: psutil.Process) -> bool:
    return process.name() == "trueload-engine"


def spec_of(hosts: tuple[EngineHost, ...], total: int, seconds: float) -> TrialSpec:
    """A trial over all hosts.

    Its address is reserved for documentation (RFC 5737); nobody connects to it.
    """
    return TrialSpec(
        url="http://192.0.2.1/",
        addresses=("192.0.2.1:80",),
        request=Request(host="192.0.2.1"),
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


def measure(folder: Path, variants: Sequence[Recording], count: int, tree: bool) -> Outcome:
    """Run one trial over `count` hosts, below aggregators or not. Raises `BenchError`."""
    paths = [folder / f"{number}.jsonl" for number in range(len(variants))]
    for path, each in zip(paths, variants, strict=True):
        each.save(path)
    recordings = [variants[variant_of(number, len(variants))] for number in range(count)]
    if tree:
        leads_ns = [ahead_ns(number) for number in range(count)]
        return _run(tree_hosts(paths, count), recordings, leads_ns, _own_traffic())
    leads_ns = [nature_of(number).ahead_ns for number in range(count)]
    with staged(folder, paths, count) as stage:
        hosts = tuple(EngineHost(place) for place in stage.places)
        return _run(hosts, recordings, leads_ns, lambda _: _traffic_of(stage))


def _traffic_of(stage: Stage) -> Traffic:
    found = stage.end()
    return Traffic(
        said_bytes=sum(each["said_bytes"] for each in found),
        heard_bytes=sum(each["heard_bytes"] for each in found),
        done_s=max(each["done_ns"] for each in found) / NS_PER_S,
    )


def _own_traffic() -> Callable[[Watch], Traffic]:
    """Return what tells, later, what this process has read and written; the hosts are done with the
    window."""
    read, written = _read_and_written()

    def tell(watch: Watch) -> Traffic:
        now = _read_and_written()
        ended_s = watch.window_ended[0] if watch.window_ended else 0.0
        return Traffic(now[0] - read, now[1] - written, ended_s)

    return tell


def _read_and_written() -> tuple[int, int]:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["wchar"])


def _run(
    hosts: tuple[EngineHost, ...],
    recordings: Sequence[Recording],
    leads_ns: Sequence[int],
    traffic_of: Callable[[Watch], Traffic],
) -> Outcome:
    count = len(hosts)
    total = sum(each.measurement.connections.requested for each in recordings)
    watch = Watch()
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to this trial's
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    spec = spec_of(hosts, total, window_s(recordings[0]))
    with Session(spec, on_progress=watch) as session:
        found = session.measure(*make_phases(spec), last=True)
        recorded_s = time.monotonic()
    cpu_s = time.process_time() - began_cpu_s
    peak_rss_bytes = vm_hwm_bytes(os.getpid())
    traffic = traffic_of(watch)
    if found.trouble is not None:
        raise BenchError(f"{count} hosts: {found.trouble.what}")
    if watch.window_began is None or watch.window_ended is None:
        raise BenchError(f"{count} hosts: no window was seen")
    wall_s, window_cpu_s, aggregators_s = (
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
        off=tuple(off(found, recordings, watch, leads_ns)),
        aggregators=len({host.branch for host in hosts if host.branch is not None}),
        aggregators_cpu_s=aggregators_s,
    )


def off(
    found: Record, recordings: Sequence[Recording], watch: Watch, leads_ns: Sequence[int]
) -> list[str]:
    """Name the figures that are not the sum of what the hosts reported. Pure."""
    parts = [each.measurement for each in recordings]
    sums: dict[str, tuple[Any, Any]] = {
        "connections": (
            found.connections.established,
            sum(part.connections.established for part in parts),
        ),
        "latency": (
            decode_histogram(found.histograms.latency),
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
    for host, lead_ns in zip(found.hosts, leads_ns, strict=True):
        assert host.clock_offset_ns is not None
        assert host.clock_bound_ns is not None
        if abs(host.clock_offset_ns - lead_ns) > host.clock_bound_ns:
            wrong.append(f"clock of {host.place}")
    return wrong


def added(encoded: Sequence[str | None]) -> Any:
    """Add histograms bucket by bucket, without the library's own addition."""
    counts: dict[tuple[int, int], int] = {}
    for each in encoded:
        buckets = decode_histogram(each)
        for low, high, count in zip(buckets.lows, buckets.highs, buckets.counts, strict=True):
            counts[low, high] = counts.get((low, high), 0) + count
    rising = sorted(counts)
    return type(decode_histogram(None))(
        tuple(low for low, _ in rising),
        tuple(high for _, high in rising),
        tuple(counts[each] for each in rising),
    )


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
    below = f" below {found.aggregators} aggregators" if found.aggregators else ""
    shown = (
        f"{found.hosts:,}{below}",
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
    exact = mark(f"{name}: what does not add up", EXACT, len(found.off), what)
    if found.aggregators:
        return [mark(f"{name}: front's CPU", TREE_CPU_MOST, found.cores, cores), exact]
    return [
        mark(f"{name}: front's CPU", CPU_MOST, found.cores, cores),
        mark(f"{name}: front's peak memory", RSS_MOST, megabytes, f"{megabytes:.0f} MB"),
        exact,
    ]


def _about_aggregators(outcomes: Sequence[Outcome]) -> str:
    each = (
        f" The {found.aggregators} aggregators took"
        f" {found.aggregators_cpu_s / found.window_wall_s:.2f} cores over the window."
        for found in outcomes
        if found.aggregators
    )
    return "".join(each)


def recorded(path: Path | None, seconds: float, tree: bool) -> Recording:
    """Load the recording from the file if it exists; otherwise make it, and save it there."""
    if path is not None and path.exists():
        return load(path)
    stage = make_stage(int(seconds * NS_PER_S), TREE_RATE_PER_S, TREE_RATE_PER_S)
    paced = Open(stages=(stage,), arrivals="constant", seed=1)
    with engine.serving(find_setting(), SERVER_CPU) as (port, _, _):
        work = Work(port=port, connections=CONNECTIONS, depth=1, duration_s=seconds)
        found = record(work, paced) if tree else record(work)
    if path is not None:
        found.save(path)
    return found


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="The front over many hosts.")
    parser.add_argument("--hosts", type=int, action="append", help=f"how many {COUNTS}")
    parser.add_argument(
        "--tree", type=int, action="append", help=f"how many below aggregators {TREE_COUNTS}"
    )
    parser.add_argument("--seconds", type=float, default=WINDOW_S, help=f"window ({WINDOW_S:g})")
    parser.add_argument("--recording", type=Path, help="keep what the engine said, or take it")
    parser.add_argument("--profile", type=Path, help="write where the main thread's time goes")
    parser.add_argument("--no-page", action="store_true", help="leave docs/scale.md alone")
    options = parser.parse_args()
    is_all = not (options.hosts or options.tree)
    if options.recording and bool(options.hosts) == bool(options.tree):
        parser.error("--recording is for --hosts or for --tree: they replay different loads")
    # Each host needs a socket here; a place by ssh would need three pipes.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    marked: list[Mark] = []
    try:
        for name, counts in (
            ("hosts", options.hosts or (COUNTS if is_all else ())),
            ("tree", options.tree or (TREE_COUNTS if is_all else ())),
        ):
            if counts:
                recording = recorded(options.recording, options.seconds, name == "tree")
                lines, marks = _report(recording, counts, name == "tree", options.profile)
                print("\n".join(lines))
                if tuple(counts) in (COUNTS, TREE_COUNTS) and not options.no_page:
                    write_section(SCALE, name, lines)
                marked += marks
    except (BenchError, EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    return exit_code(marked)


def _report(
    recording: Recording, counts: Sequence[int], tree: bool, profile: Path | None
) -> tuple[list[str], list[Mark]]:
    """Measure each number of hosts; return the lines of a section, and judge the largest."""
    variants = [scaled(recording, times) for times in range(1, VARIANTS + 1)]
    if tree:
        standin_tree.build()
    quiet = Quiet()
    tried = [_tried(profile, variants, count, tree) for count in counts]
    outcomes = [found for found, _ in tried]
    marked = judge(outcomes[-1])
    ticks = recording.ticks
    about = (
        f"A window of {window_s(recording):.0f} s; {len(ticks)} ticks from each host, with"
        f" {sum(len(tick.latency) for tick in ticks) / len(ticks):.0f} buckets each. {quiet}"
        f"{_about_aggregators(outcomes)}{_about_tries(tried)}"
    )
    table = [TABLE_HEAD, *map(row, outcomes)]
    return [str(describe({})), "", about, "", *mark_table(marked), "", *table], marked


def _tried(
    profile: Path | None, variants: Sequence[Recording], count: int, tree: bool
) -> tuple[Outcome, int]:
    """Measure, and again if a stand-in was lost: thousands on one machine may wait too long for a
    CPU. Return the lost tries, too. Raises `BenchError`."""
    for lost in range(TRIES if tree else 1):
        try:
            return _profiled(profile, variants, count, tree), lost
        except BenchError as error:
            if not (tree and "host lost" in str(error)):
                raise
            print(error, file=sys.stderr)
    raise BenchError(f"{count} hosts: no try was whole")


def _about_tries(tried: Sequence[tuple[Outcome, int]]) -> str:
    each = (
        f" {found.hosts:,} hosts were tried {lost + 1} times: a stand-in waited too long for a CPU."
        for found, lost in tried
        if lost
    )
    return "".join(each)


def _profiled(path: Path | None, variants: Sequence[Recording], count: int, tree: bool) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        if path is None:
            return measure(Path(folder), variants, count, tree)
        profile = cProfile.Profile()
        try:
            return profile.runcall(measure, Path(folder), variants, count, tree)
        finally:
            profile.dump_stats(path)


if __name__ == "__main__":
    sys.exit(main())
