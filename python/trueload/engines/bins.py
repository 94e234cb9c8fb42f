"""The ticks of a phase over time: bins of one second, and wider ones after an hour. Pure.

How: by the engine's rule. The width of all bins is a power of two of seconds. When there would be
more than ``BINS_MOST`` bins, each two neighbours are merged. Only resolution in time is lost, and a
run of days takes no more memory than one of an hour. The latencies of a closed bin are packed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trueload.protocol.packed import PackedCounts
from trueload.protocol.tick import Counts, Second, Sparse
from trueload.stats import add_sparse

BINS_MOST = 3_600


NOTHING = PackedCounts({})


@dataclass
class _Bin:
    """The phase's totals at the end of the bin, and the latencies of the bin itself."""

    ok: int
    failed: int
    latency: PackedCounts = NOTHING


class Bins:
    """The bins of ticks, ``most`` of them; time does not go back."""

    def __init__(self, most: int = BINS_MOST) -> None:
        self.width_s = 1
        self._most = most
        self._bins: dict[int, _Bin] = {}
        self._open = -1
        self._latency: Sparse = {}

    def __len__(self) -> int:
        return len(self._bins)

    def add(self, second: int, counts: Counts, latency: Mapping[int, int]) -> None:
        """Add a tick: the totals up to this second, and the latencies since the tick before."""
        while second // self.width_s >= self._most:
            self._coarsen()
        place = max(second // self.width_s, self._open)
        if place != self._open:
            self._close()
            self._open = place
        self._bins[place] = _Bin(counts.ok, sum(counts.failed.values()))
        add_sparse(self._latency, latency)

    def seconds(self) -> tuple[Second, ...]:
        """Return the bins in the form in which the engine reports a phase over time."""
        found = []
        ok = failed = 0
        for place, one in self._bins.items():
            found.append(
                Second(
                    t_s=place * self.width_s,
                    width_s=self.width_s,
                    ok=one.ok - ok,
                    failed=one.failed - failed,
                    latency=PackedCounts(self._latency) if place == self._open else one.latency,
                )
            )
            ok, failed = one.ok, one.failed
        return tuple(found)

    def latencies(self) -> Iterator[Mapping[int, int]]:
        """Yield the latencies of each bin, as counts by bucket."""
        for place, one in self._bins.items():
            yield self._latency if place == self._open else one.latency

    def _close(self) -> None:
        if self._open >= 0:
            self._bins[self._open].latency = PackedCounts(self._latency)
        self._latency = {}

    def _coarsen(self) -> None:
        self._close()
        merged: dict[int, _Bin] = {}
        for place, one in self._bins.items():
            latency = merged[place // 2].latency.as_dict() if place // 2 in merged else {}
            add_sparse(latency, one.latency)
            merged[place // 2] = _Bin(one.ok, one.failed, PackedCounts(latency))
        self._bins = merged
        self.width_s *= 2
        # The last bin stays open: it may be only half full.
        last = max(merged, default=-1)
        self._open, self._latency = last, merged[last].latency.as_dict() if merged else {}
