"""What each exporter of metrics can do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

Announce = Callable[[str], object]


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
