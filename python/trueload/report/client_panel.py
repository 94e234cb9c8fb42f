"""What the live panel says of a client at work: progress, the cell, what its server sees. Pure.

How: the server tells its totals four times a second; a point of the moving line is of the last
second or so. What failed is the client's word, and comes with the end of each order. Must not know
terminals, keys, threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from trueload.protocol.client_progress import ClientProgress
from trueload.protocol.plan import Served
from trueload.report.panel import (
    POINTS,
    RECENT_TICKS,
    counted_line,
    failures_line,
    moving_line,
    moving_row,
)
from trueload.units import format_count, format_duration, format_rate


@dataclass
class ClientCourse:
    """What the server told in the last second, and answers per second of the last seconds."""

    recent: deque[Served] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    per_s: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))

    def add(self, served: Served) -> None:
        """One more."""
        self.recent.append(served)
        first = self.recent[0]
        if served.at_ns > first.at_ns:
            made = served.responses - first.responses
            self.per_s.append(made * 1e9 / (served.at_ns - first.at_ns))


def client_lines(progress: ClientProgress, course: ClientCourse) -> list[str]:
    """All lines of the panel."""
    return list(_lines(progress, course))


def _lines(progress: ClientProgress, course: ClientCourse) -> Iterator[str]:
    setup, served = progress.setup, progress.served
    if progress.requests is None:
        yield f"{progress.stage:<12} {format_duration(progress.elapsed_ns)}"
    else:
        yield counted_line(
            progress.stage, progress.answered, progress.requests, progress.elapsed_ns
        )
    pools = f"{setup.pools} pool{'' if setup.pools == 1 else 's'}"
    yield (
        f"{'cell':<12} {pools} of {format_count(setup.pool_size)},"
        f" {format_count(setup.concurrency)} at once"
    )
    if course.per_s:
        rate = format_rate(course.per_s[-1], "answers")
        yield moving_row("throughput", moving_line(course.per_s), rate)
    yield (
        f"{'server':<12} {format_count(served.responses)} answered,"
        f" {format_count(served.waiting)} not due yet"
    )
    if progress.failed:
        yield failures_line(progress.failed)
    if served.aborted or served.malformed:
        yield (
            f"{'server saw':<12} {format_count(served.aborted)} ended before the answer,"
            f" {format_count(served.malformed)} malformed"
        )
    room = setup.pools * setup.pool_size
    yield (
        f"{'connections':<12} {format_count(served.open)} open of {format_count(room)},"
        f" {format_count(served.open_peak)} at most, {format_count(served.accepted)} opened"
    )
