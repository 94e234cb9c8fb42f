"""What an engine reports of a phase in progress, and of its seconds."""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model, left_out
from trueload.protocol.packed import Packed

Sparse = dict[int, int]
"""A sparse histogram: index to count; ``stats.sparse_bounds`` gives the values of an index."""


class Counts(Model):
    """Requests of one phase up to now; in the end issued = ok + sum(failed) + cancelled."""

    scheduled: int
    """Requests that the load asked for."""
    unsent: int
    """Scheduled requests that were not sent."""
    issued: int
    ok: int
    stale: int
    """Requests that were sent again, because the server had just closed their connection."""
    stale_resets: int = 0
    """The requests among ``stale`` whose connection was reset; 0 in older records."""
    cancelled: int
    """Requests that were still open at the very end."""
    skipped: int = left_out(0)
    """Requests of a session that were not sent, because one before them failed. They are not in
    ``scheduled``, and ticks do not count them."""
    failed: dict[str, int]
    """Failed requests, by class."""
    statuses: dict[str, int]
    """Complete answers by code, expected or not."""


class Second(Model):
    """One bin of a phase, by the time of settling: one second, and after an hour of it 2, 4, 8 and
    so on. All bins of a series have the same width."""

    t_s: int
    width_s: int = 1
    ok: int
    failed: int
    latency: Packed


class Track(Model):
    """What ended of one part of the traffic since the tick before."""

    ok: int
    failed: int
    latency: Packed


class Tick(Model):
    """The progress of a phase, at least every 250 ms."""

    type: Literal["tick"]
    at_ns: int
    id: str | None
    counts: Counts
    """Totals of the phase, as those of bytes."""
    latency: Packed
    """Latencies of what ended well since the tick before."""
    service: Packed
    """The same from the actual send, for an open loop, else empty."""
    tracks: tuple[Track, ...] = left_out(())
    """With streamed answers, the first parts and then the gaps, whose ``ok`` counts all parts. The
    first 32 targets or steps follow, in the plan's order."""
    open: int
    """Connections that are open now."""
    bytes_in: int
    bytes_out: int
    busiest_ns: int
    """How long the busiest thread was on a CPU, or waited for one, in the phase."""
