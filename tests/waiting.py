"""Waiting in tests: the one file of the tests that may sleep (``tools/tidy.py``).

A test waits for an event, never for a time. Where nothing announces the event, ``wait_until``
polls. The other functions are for peers and processes whose delay is what is tested.

Only the standard library is used, because scripted programs import this, too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

BOUND_S = 60.0
"""When a wait is given up: a bound for what never happens, not a measure of speed."""
LOOK_EVERY_S = 0.01

Found = TypeVar("Found")


def wait_until(
    look: Callable[[], Found], what: str | Callable[[], str], bound_s: float = BOUND_S
) -> Found:
    """Poll until ``look`` returns something true, and return it.

    Raises an AssertionError that names what never happened; ``what`` may be a function that finds
    this out only then.
    """
    end_s = time.monotonic() + bound_s
    while not (found := look()):
        if time.monotonic() > end_s:
            raise AssertionError(f"it never happened: {what if isinstance(what, str) else what()}")
        time.sleep(LOOK_EVERY_S)
    return found


def has_ended(pid: int) -> bool:
    """Whether a process has ended; in a container, its parent may never ask for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def be_late(late_s: float) -> None:
    """Do nothing for ``late_s``, as a slow peer or a frozen process does."""
    time.sleep(late_s)


def hang() -> None:
    """Do nothing until killed, but for at most a minute, so that no process is left behind."""
    time.sleep(BOUND_S)


def hold_the_interpreter(held_s: float) -> None:
    """Block every other Python thread: PyDLL, unlike CDLL, keeps the interpreter lock."""
    ctypes.PyDLL(None).usleep(round(held_s * 1e6))
