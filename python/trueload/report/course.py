"""The course of a load: the ticks of the last second, earlier points, and their sum. Pure.

How: ticks come four times a second, and a point covers about the last second. A course covers one
phase, and the drain after it. The figures of the whole phase are computed only once a second, and
at a new maximum. They cost as much as all the rest, while a measurement runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from trueload.protocol.cpu_time import CpuTime, cpus_of
from trueload.protocol.tick import Counts, Tick, Track
from trueload.record import figures
from trueload.record.figures import Sample
from trueload.stats import Distribution, Quantile, add_sparse
from trueload.trial.spec import DRAIN, HostTick, Progress

RECENT_TICKS = 5  # about a second
POINTS = 200  # as many as a wide terminal has columns: fifty seconds
SUM_NS = 900_000_000  # between two sums: every fourth tick
NOTHING, UNTIMED = Distribution(), Sample()


@dataclass(frozen=True)
class Point:
    """Answers per second in the last second, and their times in ns.

    The times are None if there were no answers. ``elapsed_ns`` is the time in the phase.
    """

    elapsed_ns: int
    per_s: float
    p50: Quantile | None
    p99: Quantile | None


@dataclass
class TrackCourse:
    """One part of the traffic in the phase so far; its p99 is computed once a second."""

    latency: dict[int, int] = field(default_factory=dict)
    failed: int = 0
    p99: Quantile | None = None

    @property
    def p99_ns(self) -> int:
        return (self.p99.value if self.p99 is not None else None) or 0

    def receive(self, track: Track) -> None:
        add_sparse(self.latency, track.latency)
        self.failed += track.failed

    def sum_up(self) -> None:
        sample = figures.of_sparse([self.latency], self.failed)
        self.p99 = sample.percentile(0.99) if sample.known.total else None


@dataclass
class Course:
    """The progress of one phase so far."""

    phase: str = ""
    elapsed_ns: int = 0
    recent: deque[Tick] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=POINTS))
    hosts: dict[str, deque[Tick]] = field(default_factory=dict)
    server: deque[CpuTime] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    latency: dict[int, int] = field(default_factory=dict)
    tracks: list[TrackCourse] = field(default_factory=list)
    last_second: Distribution = NOTHING
    so_far: Sample = UNTIMED
    summed_ns: int = 0
    greatest: int = 0

    def receive(self, progress: Progress, *, is_open: bool) -> None:
        """Add a progress report.

        A report without a tick begins a new phase, unless the phase is a drain.
        """
        tick = progress.tick
        if progress.phase != DRAIN:
            self.phase, self.elapsed_ns = progress.phase, progress.elapsed_ns
        if tick is None:
            if progress.phase != DRAIN:
                self._begin()
            return
        for host in progress.hosts():
            self._receive_host(host)
        add_sparse(self.latency, tick.latency)
        self.tracks += (TrackCourse() for _ in tick.tracks[len(self.tracks) :])
        for course, track in zip(self.tracks, tick.tracks, strict=False):
            course.receive(track)
        if progress.server is not None and progress.phase != DRAIN:
            self.server.append(progress.server)
        self.recent.append(tick)
        greatest = max(tick.latency, default=0)
        if greatest > self.greatest or tick.at_ns - self.summed_ns >= SUM_NS:
            slower = _waiting(tick.counts, is_open=is_open)
            self.so_far, self.summed_ns = figures.of_sparse([self.latency], slower), tick.at_ns
            self.greatest = max(self.greatest, greatest)
            for course in self.tracks:
                course.sum_up()
        if len(self.recent) >= 2:
            self.last_second = recent_sample(self.recent, is_open=is_open).figures
            self.points.append(_point(self))

    def _begin(self) -> None:
        for kept in (self.recent, self.points, self.hosts, self.server, self.latency, self.tracks):
            kept.clear()
        self.last_second, self.so_far = NOTHING, UNTIMED
        self.summed_ns = self.greatest = 0

    def _receive_host(self, host: HostTick) -> None:
        ticks = self.hosts.setdefault(host.place, deque(maxlen=RECENT_TICKS))
        if not ticks or ticks[-1].at_ns < host.tick.at_ns:
            ticks.append(host.tick)

    @property
    def server_cpus(self) -> float | None:
        """The CPUs that the server's processes used in the last second; None if unknown."""
        return cpus_of(self.server)


def seconds_of(ticks: Sequence[Tick]) -> float:
    """Return the time from the first tick to the last, in s."""
    return (ticks[-1].at_ns - ticks[0].at_ns) / 1e9


def per_s_of(ticks: Sequence[Tick]) -> float | None:
    """Return good answers per second from the first tick to the last; None for a single tick."""
    seconds = seconds_of(ticks)
    made = ticks[-1].counts.ok - ticks[0].counts.ok
    return max(0.0, made / seconds) if seconds > 0 else None


def recent_track(recent: Sequence[Tick], number: int) -> tuple[int, Sample]:
    """Return what one part of the traffic did since the first tick: how much, and its times."""
    told = [tick.tracks[number] for tick in list(recent)[1:] if number < len(tick.tracks)]
    failed = sum(track.failed for track in told)
    sample = figures.of_sparse([track.latency for track in told], failed)
    return sum(track.ok for track in told), sample


def busy_of(ticks: Sequence[Tick]) -> float | None:
    """Return the share of this time in which the busiest thread was busy, from 0 to 1."""
    ns = ticks[-1].at_ns - ticks[0].at_ns
    return min(max((ticks[-1].busiest_ns - ticks[0].busiest_ns) / ns, 0.0), 1.0) if ns > 0 else None


def recent_sample(recent: Sequence[Tick], *, is_open: bool) -> Sample:
    """Return the times of requests that ended since the first tick.

    Requests that failed since, or are due and not yet sent, count as slower than all others.
    """
    first, last = recent[0].counts, recent[-1].counts
    slower = max(0, _waiting(last, is_open=is_open) - figures.failed(first))
    return figures.of_sparse([tick.latency for tick in recent], slower)


def recent_service(recent: Sequence[Tick]) -> Distribution:
    """Return the times from the actual send; an unsent request has no service time yet."""
    failed = max(0, figures.failed(recent[-1].counts) - figures.failed(recent[0].counts))
    return figures.of_sparse([tick.service for tick in recent], failed).figures


def _waiting(counts: Counts, *, is_open: bool) -> int:
    """Count requests without a time: failed ones and, in an open loop, due and unsent ones."""
    due = max(0, counts.scheduled - counts.issued) if is_open else 0
    return figures.failed(counts) + due


def _point(course: Course) -> Point:
    per_s, found = per_s_of(course.recent) or 0.0, course.last_second
    if not found.count:
        return Point(course.elapsed_ns, per_s, None, None)
    return Point(course.elapsed_ns, per_s, found.at("p50"), found.at("p99"))
