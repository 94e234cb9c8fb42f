"""Waiting for what other processes do, where nothing tells that it has happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LONG_ENOUGH_S = 45.0  # a bound for what never happens, not a measure of how quick it should be


def until(happened: Callable[[], bool], what: str) -> float:
    """Wait until it has happened; after how many seconds. Else an AssertionError says what did
    not."""
    began_s = time.monotonic()
    pause = threading.Event()
    while not happened():
        assert time.monotonic() - began_s < LONG_ENOUGH_S, f"it never happened: {what}"
        pause.wait(0.02)
    return time.monotonic() - began_s
