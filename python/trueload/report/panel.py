"""What the live panel says: progress, moving lines, failures, the generator's own load. Pure.

How: ticks come four times a second; a point of a moving line is of the last second or so. The
newest point is at the right, and the highest of those shown fills its place.

Must not know: terminals, keys, threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trueload.protocol.plan import Duration, Tick
from trueload.record import figures
from trueload.report.times import quantile_text
from trueload.stats import Quantile
from trueload.text import plain
from trueload.trial.spec import HostTick, Progress, TrialSpec
from trueload.units import format_count, format_duration, format_rate, format_span

RECENT_TICKS = 5  # about a second
BAR_WIDTH = 28
POINTS = 32  # eight seconds
HOSTS_SHOWN = 8
HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Point:
    """Of the last second: answers per second, and times in ns, None where nothing came back."""

    per_s: float
    p50: Quantile | None
    p99: Quantile | None


@dataclass
class Course:
    """The ticks of the last second, and the points of the last seconds, of one stage."""

    recent: deque[Tick] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))
    hosts: dict[str, deque[Tick]] = field(default_factory=dict)

    def add(self, tick: Tick | None, *, is_open: bool, hosts: Sequence[HostTick] = ()) -> None:
        """One more, with what each of several hosts said last; None begins anew."""
        if tick is None:
            self.recent.clear()
            self.points.clear()
            self.hosts.clear()
            return
        for host in hosts:
            of_host = self.hosts.setdefault(host.place, deque(maxlen=RECENT_TICKS))
            if not of_host or of_host[-1].at_ns < host.tick.at_ns:
                of_host.append(host.tick)
        self.recent.append(tick)
        if len(self.recent) >= 2:
            self.points.append(_point(self.recent, is_open=is_open))


def panel_lines(spec: TrialSpec, progress: Progress, course: Course) -> list[str]:
    """All lines of the panel."""
    lines = [_progress_line(spec, progress)]
    if not course.recent:
        return lines
    first, last = course.recent[0], course.recent[-1]
    seconds = (last.at_ns - first.at_ns) / 1e9
    if course.points:
        lines += _moving_lines(spec, list(course.points))
    if spec.load.is_open:
        lines += _open_lines(course.recent, seconds)
    failed = figures.failed(last.counts)
    lines.append(f"requests     {format_count(last.counts.ok)} ok, {format_count(failed)} failed")
    if failed:
        lines.append(failures_line(last.counts.failed))
    lines.append(f"connections  {last.open} open of {spec.load.connections}")
    if seconds > 0:
        lines.append(f"generator    busiest thread {_busy(course.recent):.0%}")
    return lines + _host_lines(course.hosts)


def _host_lines(hosts: Mapping[str, Sequence[Tick]]) -> list[str]:
    """A line for each host; of very many those that do least, where trouble would be."""
    found = sorted((_per_s(ticks), place, ticks) for place, ticks in hosts.items() if ticks)
    if len(found) <= HOSTS_SHOWN:
        found.sort(key=lambda each: list(hosts).index(each[1]))
    lines = []
    for per_s, place, ticks in found[:HOSTS_SHOWN]:
        last = ticks[-1]
        failed = sum(last.counts.failed.values())
        lines.append(
            f"  {plain(place)[:22]:<22} {format_rate(per_s, 'requests'):>20}"
            f"  {last.open} open, {format_count(failed)} failed, {_busy(ticks):.0%} busy"
        )
    if len(found) > HOSTS_SHOWN:
        lines.append(f"  and {len(found) - HOSTS_SHOWN} hosts that do more")
    return lines


def _per_s(ticks: Sequence[Tick]) -> float:
    ns = ticks[-1].at_ns - ticks[0].at_ns
    return (ticks[-1].counts.ok - ticks[0].counts.ok) / ns * 1e9 if ns > 0 else 0.0


def _busy(ticks: Sequence[Tick]) -> float:
    ns = ticks[-1].at_ns - ticks[0].at_ns
    share = (ticks[-1].busiest_ns - ticks[0].busiest_ns) / ns if ns > 0 else 0.0
    return min(max(share, 0.0), 1.0)


def failures_line(failed: Mapping[str, int]) -> str:
    """How many failed, by class."""
    classes = ", ".join(f"{name} {format_count(count)}" for name, count in sorted(failed.items()))
    return f"{'failures':<12} {plain(classes)}"


def moving_line(values: Iterable[float | None]) -> str:
    """A character for each value, from nothing to the highest of them; a blank for None."""
    known = list(values)
    most = max((value for value in known if value is not None), default=0.0)
    if most <= 0:
        return "".join(" " if value is None else HEIGHTS[0] for value in known)
    steps = len(HEIGHTS) - 1
    return "".join(
        " " if value is None else HEIGHTS[round(max(value, 0.0) / most * steps)] for value in known
    )


def _point(recent: Sequence[Tick], *, is_open: bool) -> Point:
    first, last = recent[0], recent[-1]
    seconds = (last.at_ns - first.at_ns) / 1e9
    per_s = max(0.0, (last.counts.ok - first.counts.ok) / seconds) if seconds > 0 else 0.0
    # What failed, or is due and not yet sent, is slower than what has come back.
    slower = max(0, figures.failed(last.counts) - figures.failed(first.counts))
    slower += max(0, last.counts.scheduled - last.counts.issued) if is_open else 0
    found = figures.of_sparse([tick.latency for tick in recent], slower).figures
    if not found.count:
        return Point(per_s, None, None)
    return Point(per_s, found.at("p50"), found.at("p99"))


def _moving_lines(spec: TrialSpec, points: Sequence[Point]) -> list[str]:
    last = points[-1]
    label = "response" if spec.load.is_open else "latency"
    rates = moving_line(point.per_s for point in points)
    lines = [moving_row("throughput", rates, format_rate(last.per_s, "requests"))]
    courses = {"p50": [point.p50 for point in points], "p99": [point.p99 for point in points]}
    for name, found in courses.items():
        values = moving_line(each.value if each is not None else None for each in found)
        lines.append(moving_row(f"{label} {name}", values, _shown(found[-1])))
    return lines


def moving_row(label: str, line: str, value: str) -> str:
    """A moving line with its name, and its newest value in words."""
    return f"{label:<12} {line:>{POINTS}}  {value}"


def _open_lines(recent: Sequence[Tick], seconds: float) -> list[str]:
    """Of an open loop: what was asked of the generator, and the times from the actual send."""
    lines = []
    first, last = recent[0].counts, recent[-1].counts
    if seconds > 0:
        offered = (last.scheduled - first.scheduled) / seconds
        sent = (last.issued - first.issued) / seconds
        lines.append(
            f"rate         offered {format_rate(offered, 'requests')}, sent {format_count(sent)}/s"
        )
    # What waits has no service time yet.
    failed = max(0, figures.failed(last) - figures.failed(first))
    served = figures.of_sparse([tick.service for tick in recent], failed).figures
    if served.count:
        p50, p99 = (_shown(served.at(name)) for name in ("p50", "p99"))
        lines.append(f"{'service':<12} p50 {p50}   p99 {p99}")
    return lines


def _shown(found: Quantile | None) -> str:
    if found is None:
        return "-"
    return quantile_text(found)


def _progress_line(spec: TrialSpec, progress: Progress) -> str:
    stop = {"warm-up": spec.load.warmup, "window": spec.load.stop}.get(progress.stage)
    left = ""
    if isinstance(stop, Duration):
        share = min(1.0, progress.elapsed_ns / stop.ns) if stop.ns else 1.0
        of = f"{format_duration(progress.elapsed_ns)} of {format_span(stop.ns)}"
        left_ns = max(0, stop.ns - progress.elapsed_ns)
        left = f", {left_ns / 1e9:.0f} s left" if progress.stage == "window" else ""
    elif stop is not None and progress.tick is not None:
        issued = progress.tick.counts.issued
        return counted_line(progress.stage, issued, stop.count, progress.elapsed_ns)
    else:
        return f"{progress.stage:<12} {format_duration(progress.elapsed_ns)}"
    return f"{progress.stage:<12} {_bar(share)} {of}{left}"


def counted_line(stage: str, done: int, of: int, elapsed_ns: int) -> str:
    """How far a stage is that ends with a number of requests, and how long the others will take if
    they are like those done."""
    left = ""
    if done:
        left = f", about {elapsed_ns / done * max(0, of - done) / 1e9:.0f} s left"
    share = min(1.0, done / of) if of else 1.0
    return f"{stage:<12} {_bar(share)} {format_count(done)} of {format_count(of)}{left}"


def _bar(share: float) -> str:
    filled = round(share * BAR_WIDTH)
    return "█" * filled + "░" * (BAR_WIDTH - filled)
