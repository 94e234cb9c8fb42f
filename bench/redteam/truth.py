"""The truth by the server's own clock: answers per second, and how long each took. Pure.

`server.c` logs when each request arrived and when it wrote the answer. The window is the
generator's: it begins with the first request, plus the warm-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from trueload.units import NS_PER_S

ENTRY = np.dtype([("arrived_ns", "<i8"), ("written_ns", "<i8"), ("connection", "<i8")])
Entries = npt.NDArray[np.void]
PAUSE_TIMES = 2.0


@dataclass(frozen=True)
class Truth:
    """The log of a server, and the window to look at."""

    entries: Entries
    report: Mapping[str, Any]
    """The server's last line of output."""
    begin_ns: int
    end_ns: int

    @property
    def per_s(self) -> float:
        """Answers written in the window, per second of it."""
        written_ns = self.entries["written_ns"]
        inside = (written_ns >= self.begin_ns) & (written_ns < self.end_ns)
        return float(inside.sum()) / (self.end_ns - self.begin_ns) * NS_PER_S

    def percentile_ms(self, part: float) -> float:
        """A quantile of the service times of the requests that arrived in the window."""
        arrived_ns = self.entries["arrived_ns"]
        inside = self.entries[(arrived_ns >= self.begin_ns) & (arrived_ns < self.end_ns)]
        service_ns = inside["written_ns"] - inside["arrived_ns"]
        if len(service_ns) == 0:
            return float("nan")
        return float(np.quantile(service_ns, part, method="inverted_cdf")) / 1e6

    def scheduled_ms(self, part: float) -> float:
        """A quantile of the waits of requests that come at any time, to a connection by chance.

        In a closed loop a connection is always in a wait. One of more than twice the p99 is a
        pause, and a request that comes within it waits for what is left of it.
        """
        arrived_ns, written_ns = self.entries["arrived_ns"], self.entries["written_ns"]
        inside = np.asarray((written_ns >= self.begin_ns) & (arrived_ns < self.end_ns), dtype=bool)
        waits_ns = np.asarray(written_ns - arrived_ns, dtype=float)[inside]
        is_pause = waits_ns > PAUSE_TIMES * np.quantile(waits_ns, 0.99)
        pauses_ns, usual_ns = waits_ns[is_pause], waits_ns[~is_pause]
        paused = pauses_ns.sum() / waits_ns.sum()

        def longer(ns: float) -> float:
            left = np.maximum(0, pauses_ns - ns).sum() / waits_ns.sum()
            return float(left + (1 - paused) * (usual_ns > ns).mean())

        low, high = 0.0, float(waits_ns.max())
        while high - low > 1:
            middle = (low + high) / 2
            low, high = (middle, high) if longer(middle) > 1 - part else (low, middle)
        return high / 1e6


def window_of(report: Mapping[str, Any], warmup_s: float, window_s: float) -> tuple[int, int]:
    """Begin and end of the window on the server's clock, in ns."""
    begin_ns = int(report["first_ns"]) + round(warmup_s * NS_PER_S)
    return begin_ns, begin_ns + round(window_s * NS_PER_S)


def read_log(data: bytes) -> Entries:
    """Parse the log of `server.c`."""
    return np.frombuffer(data, dtype=ENTRY)
