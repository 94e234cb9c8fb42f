"""What one of several engines told of a phase in its ticks. Pure.

It is all that is known of the phase if the host is lost before the phase has ended. Seconds of one
host have no latencies: with very many hosts they would take most of the front's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from trueload.engines.bins import Bins
from trueload.protocol.packed import PackedCounts, SparseSum
from trueload.protocol.tick import Second, Tick
from trueload.units import NS_PER_S

HOST_SECONDS_MOST = 120  # of each host; in a longer phase one stands for several seconds
NO_LATENCY = PackedCounts({})


@dataclass
class HostTicks:
    """The ticks of one engine in a phase, added up; their times are on the front's clock."""

    first: Tick | None = None
    last: Tick | None = None
    latency: SparseSum = field(default_factory=SparseSum)
    bins: Bins = field(default_factory=lambda: Bins(HOST_SECONDS_MOST))

    def add(self, tick: Tick, start_ns: int) -> None:
        """Add a tick of a phase that began at ``start_ns``."""
        self.first = self.first or tick
        self.last = tick
        self.latency.add(tick.latency)
        self.bins.add(max(0, tick.at_ns - start_ns) // NS_PER_S, tick.counts, {})


def condensed(series: Sequence[Second]) -> tuple[Second, ...]:
    """Return the counts of a series over time, in at most ``HOST_SECONDS_MOST`` bins."""
    width_s = max((second.width_s for second in series), default=1)
    last_s = max((second.t_s for second in series), default=0)
    while last_s // width_s >= HOST_SECONDS_MOST:
        width_s *= 2
    found: dict[int, tuple[int, int]] = {}
    for second in series:
        t_s = second.t_s // width_s * width_s
        ok, failed = found.get(t_s, (0, 0))
        found[t_s] = (ok + second.ok, failed + second.failed)
    return tuple(
        Second(t_s=t_s, width_s=width_s, ok=ok, failed=failed, latency=NO_LATENCY)
        for t_s, (ok, failed) in sorted(found.items())
    )
