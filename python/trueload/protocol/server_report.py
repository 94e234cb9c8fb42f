"""What a reference server of HTTP saw from mark to mark; ``plan`` has the rest of the protocol.

``throughput_per_s`` is by the server's clock. Every request is counted once: those open at the
beginning + ``requests`` = ``answered`` + ``aborted`` + ``dropped`` + those open at the end.
"""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model


class Concurrent(Model):
    """A number of things at one time: at the end, at most, and on average over time."""

    now: int
    peak: int
    mean: float


class Quantiles(Model):
    """Statistics of many values, in the unit of the field's name; percentiles to three digits."""

    count: int
    min: int
    mean: float
    p50: int
    p90: int
    p99: int
    max: int


class Span(Model):
    """A quarter of a second of an interval."""

    began_ns: int
    ns: int
    """How much of it lies in the interval."""
    requests: int
    answered: int
    connections_peak: int
    connections_mean: float
    open_requests_peak: int
    open_requests_mean: float


class ServerReport(Model):
    """What a server saw since the mark before, or since it began; times are of its own clock."""

    type: Literal["seen"]
    id: str
    began_ns: int
    at_ns: int
    threads: int
    """With several the peaks are upper bounds; everything else is exact."""
    requests: int
    answered: int
    """Answers handed whole to the kernel."""
    ok: int
    """Answers with status 200."""
    statuses: dict[str, int]
    """Answers by status."""
    aborted: int
    """Requests whose connection the client ended before the answer."""
    dropped: int
    """Requests whose connection the server ended before the answer."""
    half_sent: int
    """Connections that the client ended in the middle of a request."""
    malformed: int
    faults: dict[str, int]
    """Deliberate faults, by kind."""
    first_request_ns: int | None
    last_answer_ns: int | None
    bytes_in: int
    bytes_out: int
    accepted: int
    closed: int
    connections: Concurrent
    open_requests: Concurrent
    requests_per_connection: Quantiles | None
    used_once: int
    """Connections with one request in this interval."""
    unused: int
    """Connections without one."""
    gap_ns: Quantiles | None
    """From an answer to the next request on its connection."""
    delay_error_ns: Quantiles | None
    """By how much answers of ``/wait/MS`` left later than asked for."""
    span_ns: int
    series: tuple[Span, ...]

    @property
    def throughput_per_s(self) -> float | None:
        """Answers per second, from the first request to the last answer; None if in no time."""
        if self.first_request_ns is None or self.last_answer_ns is None:
            return None
        took_ns = self.last_answer_ns - self.first_request_ns
        return self.answered * 1e9 / took_ns if took_ns > 0 else None
