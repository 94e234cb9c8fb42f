"""The exporters of metrics: which were asked for, and what each can do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Announce = Callable[[str], object]


@dataclass(frozen=True)
class ScrapeAt:
    """The address at which Prometheus finds the metrics. Port 0 picks a free one."""

    host: str
    port: int


@dataclass(frozen=True)
class ExporterOptions:
    """The exporters that were asked for.

    ``linger_ns`` is how long to wait at the end for one more scrape. ``otlp`` is the URL of the
    collector.
    """

    scrape: ScrapeAt | None = None
    linger_ns: int = 0
    otlp: str | None = None


NOTHING_WANTED = ExporterOptions()


class Outlet(Protocol):
    """One exporter. It begins to read at once."""

    @property
    def thread(self) -> threading.Thread: ...

    def finish(self, stopped: Callable[[], bool], announce: Announce) -> None:
        """Deliver the last values, in bounded time; no new ones come."""
        ...

    def close(self) -> str | None:
        """Close in bounded time; return what went wrong, in one line."""
        ...
