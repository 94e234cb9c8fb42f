"""Combines the ticks of several engines into those of one. Pure.

How: totals are the sum of each engine's latest tick. What ended since an engine's previous tick is
added up until a merged tick includes it. A merged tick is due when every engine has sent a tick, or
one has sent its second: an engine that lags does not hold up the others. Many engines may lag, and
then send several ticks each. There is still only one merged tick for each stretch of time.
"""

from __future__ import annotations

from trueload.protocol.packed import SparseSum
from trueload.protocol.sums import add_up, sums
from trueload.protocol.tick import Tick, Track

APART_NS = 200_000_000  # an engine's ticks are 250 ms apart


class _TrackSum:
    """What several engines told of one part of the traffic, added up."""

    def __init__(self) -> None:
        self._ok = self._failed = 0
        self._latency = SparseSum()

    def add(self, part: Track) -> None:
        self._ok += part.ok
        self._failed += part.failed
        self._latency.add(part.latency)

    def sum(self) -> Track:
        return Track(ok=self._ok, failed=self._failed, latency=self._latency.as_dict())


class Ticks:
    """The ticks of one phase. Engines are known by their number, out of ``count``."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._merged_ns: int | None = None
        self._latest: dict[int, Tick] = {}
        self._fresh: set[int] = set()
        self._is_empty = True
        self._latency, self._service = SparseSum(), SparseSum()
        self._tracks: list[_TrackSum] = []

    def receive(self, index: int, tick: Tick) -> Tick | None:
        """Add an engine's tick, timed on the front's clock; return a merged tick if one is due."""
        apart = self._merged_ns is None or tick.at_ns - self._merged_ns >= APART_NS
        due = self._merged() if index in self._fresh and apart else None
        self._latest[index] = tick
        self._fresh.add(index)
        self._latency.add(tick.latency)
        self._service.add(tick.service)
        self._tracks += (_TrackSum() for _ in tick.tracks[len(self._tracks) :])
        for total, part in zip(self._tracks, tick.tracks, strict=False):
            total.add(part)
        self._is_empty = False
        if due is None and len(self._fresh) == self._count:
            due = self._merged()
        return due

    def rest(self) -> Tick | None:
        """A last merged tick of what none has included yet; None if there is nothing."""
        return None if self._is_empty else self._merged()

    def with_one_more(self) -> None:
        """Wait for one more engine from now on."""
        self._count += 1

    def without(self, index: int) -> None:
        """Wait for this engine no longer. What it has told stays in the totals."""
        self._count -= 1
        self._fresh.discard(index)

    def _merged(self) -> Tick:
        ticks = list(self._latest.values())
        merged = Tick(
            **sums(ticks, "open", "bytes_in", "bytes_out"),
            type="tick",
            at_ns=max(tick.at_ns for tick in ticks),
            id=ticks[0].id,
            counts=add_up([tick.counts for tick in ticks]),
            latency=self._latency.as_dict(),
            service=self._service.as_dict(),
            tracks=tuple(total.sum() for total in self._tracks),
            busiest_ns=max(tick.busiest_ns for tick in ticks),
        )
        self._merged_ns = merged.at_ns
        self._fresh.clear()
        self._latency, self._service = SparseSum(), SparseSum()
        self._tracks = []
        self._is_empty = True
        return merged
