"""The times in which this process itself did not run: stopped, suspended, or starved of CPU time.

How: a thread wakes ten times a second, and notes how much later than planned it woke. An engine
that hears nothing for 2 s ends itself, wherever it is. So after such a pause no host is to blame.
"""

from __future__ import annotations

import threading
import time

from trueload.closeable import Closeable

BEAT_S = 0.1
PAUSE_S = 0.5  # shorter delays are those of a busy machine
LEASE_S = 1.9  # after a longer pause every engine has ended, whatever is seen of it
ORPHANED_S = 1.0
"""An engine that reports that it heard nothing for 2 s may have missed half a second before the
pause, and some more on a busy machine."""
ORPHANED = "orphaned"
BLAMED_S = 5.0  # what ends so soon after a pause has ended because of it


class Beats:
    """The beats of a thread, and the last long pause between two of them. Pure."""

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s
        self._ended_s = float("-inf")
        self._lasted_s = 0.0

    def beat(self, now_s: float) -> None:
        """Note that the thread runs."""
        self._ended_s, self._lasted_s = self._longest(now_s)
        self._last_s = now_s

    def fatal_s(self, now_s: float, least_s: float) -> float | None:
        """How long the process was paused just now, if for at least ``least_s``. A pause counts
        before the thread itself has noticed it."""
        ended_s, lasted_s = self._longest(now_s)
        return lasted_s if lasted_s >= least_s and now_s - ended_s <= BLAMED_S else None

    def _longest(self, now_s: float) -> tuple[float, float]:
        """When the pause to remember ended, and how long it was."""
        lasted_s = now_s - self._last_s - BEAT_S
        is_fresh = now_s - self._ended_s <= BLAMED_S
        if lasted_s < PAUSE_S or (is_fresh and lasted_s < self._lasted_s):
            return self._ended_s, self._lasted_s
        return now_s, lasted_s


class Pauses(Closeable):
    """Watches this process until it is closed."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._beats = Beats(_now_s())
        threading.Thread(target=self._watch, name="pauses", daemon=True).start()

    def behind(self, end: str) -> str | None:
        """What to say of a pause that has just caused this end of an engine; None if none has."""
        lasted_s = self._beats.fatal_s(_now_s(), ORPHANED_S if ORPHANED in end else LEASE_S)
        return None if lasted_s is None else describe(lasted_s)

    def close(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(BEAT_S):
            self._beats.beat(_now_s())


def describe(lasted_s: float) -> str:
    """One line about a pause that ended engines."""
    return (
        f"trueload itself was paused for {lasted_s:.1f} s (stopped, suspended, or without CPU"
        " time), and its engines end when they hear nothing from it for 2 s"
    )


def _now_s() -> float:
    """Seconds of the clock that also runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
