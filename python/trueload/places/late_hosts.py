"""Hosts that were missing at the start of a run, and may come before its end.

How: each is tried again until it is there. A host that a cluster may have later is a place, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from trueload.closeable import Closing
from trueload.errors import HostError, UserError
from trueload.places import Channel, EngineHost, Place
from trueload.places.copying import CalledOffError, Copying, Preparable
from trueload.places.host_wait import PAUSE_S
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


class LaterPlace:
    """One more host of a cluster. ``one_more`` gets it for the first ``prepare`` that finds it; it
    raises a ``HostError`` as long as there is none. ``kind`` is what it is called until then."""

    def __init__(self, kind: str, one_more: Callable[[], Place]) -> None:
        self._kind = kind
        self._one_more = one_more
        self._place: Place | None = None

    @property
    def name(self) -> str:
        """The host's name, once it is there."""
        return self._kind if self._place is None else self._place.name

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        """Get the host, and make sure that the program is there. Raises ``UserError``."""
        if copying is not None:
            copying.check()
        self._place = self._place or self._one_more()
        if isinstance(self._place, Preparable):
            self._place.prepare(program, copying)

    def open(self, argv: Sequence[str]) -> Channel:
        """Start a program on the host. Raises as the host's own place."""
        assert self._place is not None, "it has not been prepared"
        return self._place.open(argv)
