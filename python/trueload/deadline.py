"""Deadlines that are judged only after a last look at what has come by then.

A thread that waits may be held up: a library in another thread holds the interpreter's lock for
seconds, or the whole process is paused. What came meanwhile was not late; the front was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Answer = TypeVar("Answer")
LATE_S = 0.1  # a wait that took so much longer was held up itself
LAST_LOOK_S = 0.5  # for an answer that was held up in the same way


def seconds_left(deadline_s: float) -> float:
    """Seconds until a time of ``time.monotonic``, never negative."""
    return max(0.0, deadline_s - time.monotonic())


def looks(deadline_s: float) -> Iterator[float]:
    """Yield the seconds left as long as there are any, and finally 0 for a last look."""
    while (left_s := seconds_left(deadline_s)) > 0:
        yield left_s
    yield 0.0


def within(seconds: float, work: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call ``work``, and return or raise its result; raise ``TimeoutError`` if it takes longer. For
    work that cannot be cancelled: its thread is then abandoned, and dies with the process."""
    outcome: list[Answer | Exception] = []
    over = threading.Event()

    def attempt() -> None:
        try:
            outcome.append(work(*arguments))
        except Exception as error:  # raised again below
            outcome.append(error)
        over.set()

    threading.Thread(target=attempt, name="within", daemon=True).start()
    due_s = time.monotonic() + seconds
    if not over.wait(seconds) and time.monotonic() > due_s + LATE_S:
        over.wait(LAST_LOOK_S)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]
