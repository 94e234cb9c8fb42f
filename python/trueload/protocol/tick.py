"""What an engine reports of a phase in progress, and of its seconds."""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model, left_out
from trueload.protocol.packed import Packed

Sparse = dict[int, int]
"""A sparse histogram: index to count; ``stats.sparse_bounds`` gives the values of an index."""


class Counts(Model):
    """Requests of one phase up to now; in the end issued = ok + sum(failed) + cancelled.

    ``failed`` is by class. ``statuses`` counts complete answers by code, expected or not.
    ``stale_resets`` are those of ``stale`` whose connection was reset; 0 in older records.
    ``skipped`` requests of a session were not sent, because one before them failed; they are not in
    ``scheduled``, and ticks do not count them.
    """

    scheduled: int
    unsent: int
    issued: int
    ok: int
    stale: int
    stale_resets: int = 0
    cancelled: int
    skipped: int = left_out(0)
    failed: dict[str, int]
    statuses: dict[str, int]


class Second(Model):
    """One bin of a phase, by the time of settling: one second, and after an hour of it 2, 4, 8 and
    so on. All bins of a series have the same width."""

    t_s: int
    width_s: int = 1
    ok: int
    failed: int
    latency: Packed


class Tick(Model):
    """The progress of a phase, at least every 250 ms. ``counts`` and bytes are totals of the phase.
    ``latency`` is what ended well since the tick before; ``service`` is the same from the actual
    send, for an open loop, else empty. ``busiest_ns`` is how long the busiest thread was on a CPU,
    or waited for one, in the phase."""

    type: Literal["tick"]
    at_ns: int
    id: str | None
    counts: Counts
    latency: Packed
    service: Packed
    open: int
    bytes_in: int
    bytes_out: int
    busiest_ns: int
