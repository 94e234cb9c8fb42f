"""Waits for hosts that are not there yet: an autoscaler adds them, or they are booting.

How: whoever opens hosts tries again what failed, until all are there or the time is over. Now and
then a line says how many have come.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trueload.deadline import seconds_left
from trueload.errors import HostError
from trueload.units import NS_PER_S, counted, format_span

PAUSE_S = 1.0  # between two tries
STEP_S = 0.1  # until the user is listened to
TELL_EVERY_S = 10.0  # while nothing changes


class HostWait:
    """A wait of at most ``wait_ns`` for hosts."""

    def __init__(
        self,
        wait_ns: int,
        announce: Callable[[str], object] = lambda line: None,
        stopped: Callable[[], bool] = lambda: False,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.span = format_span(wait_ns)
        self._deadline_s = time.monotonic() + wait_ns / NS_PER_S
        self._announce = announce
        self._stopped = stopped
        self._pause_s = pause_s
        self._told_s = float("-inf")
        self._told_here = -1

    def again(self, here: int, expected: int, why: str) -> bool:
        """Say how many of the expected hosts are there, and ``why`` it is not all of them. Return
        whether to try again, after a pause. Raises ``KeyboardInterrupt`` once the user stops."""
        left_s = seconds_left(self._deadline_s)
        if left_s == 0:
            return False
        now_s = time.monotonic()
        if here != self._told_here or now_s - self._told_s >= TELL_EVERY_S:
            self._told_here, self._told_s = here, now_s
            self._announce(line(here, expected, left_s, why))
        due_s = now_s + min(self._pause_s, left_s)
        while True:
            if self._stopped():
                raise KeyboardInterrupt
            if (rest_s := seconds_left(due_s)) == 0:
                return True
            time.sleep(min(STEP_S, rest_s))

    def too_late(self, here: int, expected: int, error: HostError) -> HostError:
        """The error when the time is over; ``error`` is that of a host which is missing."""
        return HostError(
            f"{here} of {counted(expected, 'host')} came within {self.span}: {error.message}",
            error.hint,
        )


def line(here: int, expected: int, left_s: float, why: str) -> str:
    """One line on a wait: ``waiting for hosts: 1 of 3 are there, 58 s left: …``."""
    return f"waiting for hosts: {here} of {expected} are there, {left_s:.0f} s left: {why}"
