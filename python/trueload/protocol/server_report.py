"""What a reference server of HTTP saw from mark to mark; ``plan`` has the rest of the protocol.

``throughput_per_s`` is by the server's clock. Every request is counted once: those open at the
beginning + ``requests`` = ``answered`` + ``aborted`` + ``dropped`` + those open at the end. Must
not know who the client was, or what it claims.
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
    """A quarter of a second of an interval; ``ns`` is how much of it lies in the interval."""

    began_ns: int
    ns: int
    requests: int
    answered: int
    connections_peak: int
    connections_mean: float
    open_requests_peak: int
    open_requests_mean: float


class Seen(Model):
    """What a server saw since the mark before, or since it began; times are of its own clock.

    With several ``threads`` the peaks are upper bounds; everything else is exact. ``answered``:
    handed whole to the kernel, by status in ``statuses``, ``ok`` with 200. ``aborted``: the client
    ended the connection before the answer; ``dropped``: the server did. ``half_sent``: connections
    that the client ended in the middle of a request. ``faults``: deliberate faults, by kind.
    ``gap_ns``: from an answer to the next request on its connection. ``delay_error_ns``: by how
    much answers of ``/wait/MS`` left later than asked for. ``used_once`` and ``unused``:
    connections with one request, and with none, in this interval.
    """

    type: Literal["seen"]
    id: str
    began_ns: int
    at_ns: int
    threads: int
    requests: int
    answered: int
    ok: int
    statuses: dict[str, int]
    aborted: int
    dropped: int
    half_sent: int
    malformed: int
    faults: dict[str, int]
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
    unused: int
    gap_ns: Quantiles | None
    delay_error_ns: Quantiles | None
    span_ns: int
    series: tuple[Span, ...]

    @property
    def throughput_per_s(self) -> float | None:
        """Answers per second, from the first request to the last answer; None if in no time."""
        if self.first_request_ns is None or self.last_answer_ns is None:
            return None
        took_ns = self.last_answer_ns - self.first_request_ns
        return self.answered * 1e9 / took_ns if took_ns > 0 else None
