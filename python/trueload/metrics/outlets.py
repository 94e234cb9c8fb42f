"""The ways out of metrics: which were asked for, and what each can do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Tell = Callable[[str], object]


@dataclass(frozen=True)
class ScrapeAt:
    """Where Prometheus finds the metrics. Port 0 is a free one."""

    host: str
    port: int


@dataclass(frozen=True)
class Wanted:
    """Which ways out were asked for. ``linger_ns``: how long to wait at the end for one more
    scrape; ``otlp`` is the address of the collector."""

    scrape: ScrapeAt | None = None
    linger_ns: int = 0
    otlp: str | None = None


NOTHING_WANTED = Wanted()


class Outlet(Protocol):
    """One way out. It begins to read at once."""

    @property
    def thread(self) -> threading.Thread: ...

    def finish(self, stopped: Callable[[], bool], tell: Tell) -> None:
        """Nothing new comes: give what there is to whom it concerns, in bounded time."""
        ...

    def close(self) -> str | None:
        """End, in bounded time; what went wrong, in one line."""
        ...
