"""Deadlines, judged only after a look at what has come by then.

Whoever waits may be kept from it: a library in another thread holds the interpreter's lock for
seconds, or the whole process stands still. What came meanwhile was not late: the front was. Must
not know what is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator


def seconds_left(deadline_s: float) -> float:
    """Until a time of ``time.monotonic``, never negative."""
    return max(0.0, deadline_s - time.monotonic())


def looks(deadline_s: float) -> Iterator[float]:
    """The seconds left, for as many looks as there is time for; and none, for a last one."""
    while (left_s := seconds_left(deadline_s)) > 0:
        yield left_s
    yield 0.0
