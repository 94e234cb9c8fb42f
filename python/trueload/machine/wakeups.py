"""How late this machine wakes a sleeping thread: no open loop can send more punctually than that.

How: it sleeps for a millisecond at a time, on each CPU in turn, and compares the time of waking
with the time asked for. The thread has nothing else to do, so lateness is due to the kernel and the
hypervisor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

# A thousand wake-ups per second and CPU catch what happens once a second, and use about 2 % of it.
STEP_S = 0.001
# Below this, lateness is timer slack and one scheduler's turn.
LAG_WARN_NS, LAG_FAIL_NS = 250_000, 1_000_000


@dataclass(frozen=True)
class WakeupLatency:
    """Lateness of ``count`` wake-ups: 99 % and 99.9 % of them were at most this late."""

    count: int
    p99_ns: int
    p999_ns: int


def measure_wakeups(watch_s: float, cpus: Sequence[int]) -> WakeupLatency:
    """Sleep for ``watch_s`` seconds in all, an equal part on each of ``cpus``."""
    late_ns: list[int] = []
    until_s = time.monotonic()
    try:
        for cpu in cpus:
            # Where threads cannot be pinned, this measures wherever the kernel puts the thread.
            with suppress(OSError):
                os.sched_setaffinity(0, {cpu})
            until_s += watch_s / len(cpus)
            late_ns += sleep_until(until_s)
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, cpus)
    return summarise(late_ns)


def sleep_until(
    until_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[int]:
    """Sleep step by step until ``until_s``, at least once; return each wake-up's lateness in ns."""
    late_ns = []
    now_s = clock()
    while True:
        due_s = now_s + STEP_S
        sleep(STEP_S)
        now_s = clock()
        late_ns.append(max(0, round((now_s - due_s) * 1e9)))
        if now_s >= until_s:
            return late_ns


def summarise(late_ns: Sequence[int]) -> WakeupLatency:
    """Percentiles by nearest rank; ``late_ns`` is not empty."""
    ordered = sorted(late_ns)
    count = len(ordered)
    # The 990th and the 999th of 1,000 sorted values: 99 % and 99.9 % of them are no larger.
    p99_ns, p999_ns = (ordered[-(-count * share // 1000) - 1] for share in (990, 999))
    return WakeupLatency(count, p99_ns, p999_ns)
