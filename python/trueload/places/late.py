"""Hosts that were missing at the start of a run, and may come before its end.

How: each is tried again until it is there. Must not know how a host is reached, or what for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from trueload.closing import Closing
from trueload.errors import HostError, UserError
from trueload.places import EngineHost
from trueload.places.arriving import PAUSE_S
from trueload.places.copying import CalledOffError, Copying, Preparable
from trueload.text import plain

AT_ONCE_MAX = 32  # hosts that are tried at the same time


class LateHosts(Closing):
    """Hosts to be tried again. ``announce`` tells the user of what becomes of them."""

    def __init__(
        self,
        hosts: Sequence[EngineHost],
        program: Path,
        announce: Callable[[str], object],
        pause_s: float = PAUSE_S,
    ) -> None:
        self.announce = announce
        self._missing = list(hosts)
        self._program = program
        self._pause_s = pause_s
        self._over = threading.Event()
        self._copying = Copying()

    def __iter__(self) -> Iterator[EngineHost]:
        """Yield each host once it is there, until none is missing or this is closed."""
        while self._missing and not self._over.wait(self._pause_s):
            with ThreadPoolExecutor(min(AT_ONCE_MAX, len(self._missing)), "late") as pool:
                tried = {pool.submit(self._is_there, host): host for host in self._missing}
                for each in as_completed(tried):
                    if each.result():
                        self._missing.remove(tried[each])
                        yield tried[each]

    def close(self) -> None:
        """Try no more; what is under way ends soon."""
        self._over.set()
        self._copying.call_off()

    def _is_there(self, host: EngineHost) -> bool:
        """Try a host. One that cannot be used at all is not tried again."""
        place = host.place
        assert isinstance(place, Preparable), f"{place.name} is always there"
        if self._over.is_set():
            return False
        try:
            place.prepare(self._program, self._copying)
        except (HostError, CalledOffError):
            return False
        except UserError as error:
            self._missing.remove(host)
            self.announce(f"{plain(place.name)} cannot join: {plain(error.message)}")
            return False
        return not self._over.is_set()
