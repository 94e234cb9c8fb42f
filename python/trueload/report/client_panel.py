"""The live view of a client: progress, the cell, what its server sees, and both ends' CPUs. Pure.

How: the server reports its totals four times a second, and a point of the line over time covers
about the last second. Failures are the client's claim, and come with the end of each order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from trueload.protocol.client_progress import ClientProgress
from trueload.protocol.cpu_time import CpuTime, cpus_of
from trueload.protocol.plan import Served
from trueload.report.course import POINTS, RECENT_TICKS
from trueload.report.heading import Heading, heading_rows
from trueload.report.layout import Band, Block, lay_out
from trueload.report.phases import counted_rows, labelled
from trueload.report.rows import Row, Size, Span, fit
from trueload.report.widgets import Line, cpu_row, failure_rows, moving_rows, shortened
from trueload.units import counted, format_count, format_duration, format_rate


@dataclass
class ClientCourse:
    """The server's reports of the last second, and both ends' CPU times.

    ``per_s`` has the answers per second of the last seconds.
    """

    recent: deque[Served] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    per_s: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    client: deque[CpuTime] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))
    server: deque[CpuTime] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))

    def receive(self, progress: ClientProgress) -> None:
        served = progress.served
        self.recent.append(served)
        first = self.recent[0]
        if served.at_ns > first.at_ns:
            made = served.responses - first.responses
            self.per_s.append(made * 1e9 / (served.at_ns - first.at_ns))
        _keep(self.client, progress.client_cpu)
        _keep(self.server, progress.server_cpu)


def _keep(times: deque[CpuTime], found: CpuTime | None) -> None:
    """Add a CPU time; None clears them, as an earlier order's processes are not this one's."""
    if found is None:
        times.clear()
    else:
        times.append(found)


def client_rows(
    progress: ClientProgress, course: ClientCourse, heading: Heading, size: Size
) -> list[Row]:
    """Return all rows of the view, each ``size.width`` wide, at most ``size.height`` of them."""
    rows = [*heading_rows(heading, size.width), *_phase_rows(progress, size.width)]
    rows = [fit(row, size.width) for row in rows]
    left = Size(size.width, size.height - len(rows))
    return [*rows, *lay_out(_bands(progress, course), left)][: size.height]


def _phase_rows(progress: ClientProgress, width: int) -> list[Row]:
    phase, done, of = progress.phase, progress.answered, progress.requests
    if of is None:
        return [labelled(phase, Span(format_duration(progress.elapsed_ns)))]
    return counted_rows(phase, done, of, progress.elapsed_ns, width)


def _bands(progress: ClientProgress, course: ClientCourse) -> list[Band]:
    client = list(_client_rows(progress, course))
    server = list(_server_rows(progress, course))
    bands: list[Band] = [
        (
            Block("client", partial(_gauged, client, "client", course.client), 0, len(client) + 1),
            Block("server", partial(_gauged, server, "server", course.server), 1, len(server) + 1),
        )
    ]
    if course.per_s:
        per_s = list(course.per_s)
        line = Line("rate", per_s, format_rate(per_s[-1]), format_rate, "rate")
        bands.append((Block("last seconds", partial(moving_rows, [line]), 3, 1, 5),))
    if progress.failed:
        failed = failure_rows(progress.failed)
        least = min(len(failed), 4)
        rows = partial(shortened, failed)
        bands.append((Block("failures of orders before", rows, 2, least, len(failed)),))
    return bands


def _gauged(rows: Sequence[Row], label: str, times: Sequence[CpuTime], size: Size) -> list[Row]:
    """Return the rows, and one for the CPUs that this end uses."""
    return [*rows, cpu_row(f"{label} CPU", cpus_of(times), size.width)]


def _client_rows(progress: ClientProgress, course: ClientCourse) -> Iterator[Row]:
    setup = progress.setup
    if course.per_s:
        yield labelled("throughput", Span(format_rate(course.per_s[-1], "answers"), "rate"))
    pools = counted(setup.pools, "pool")
    yield labelled("pools", Span(f"{pools} of {format_count(setup.pool_size)}"))
    yield labelled("requests", Span(f"{format_count(setup.concurrency)} at once"))


def _server_rows(progress: ClientProgress, course: ClientCourse) -> Iterator[Row]:
    setup, served = progress.setup, progress.served
    counted = f"{format_count(served.responses)}, {format_count(served.waiting)} not due yet"
    yield labelled("answered", Span(counted))
    room = setup.pools * setup.pool_size
    yield labelled("connections", Span(f"{format_count(served.open)} open of {format_count(room)}"))
    opened = f"{format_count(served.open_peak)} at most, {format_count(served.accepted)} opened"
    yield labelled("", Span(opened))
    if served.aborted or served.malformed:
        yield labelled(
            "aborted",
            Span(
                f"{format_count(served.aborted)}, malformed {format_count(served.malformed)}", "bad"
            ),
        )
