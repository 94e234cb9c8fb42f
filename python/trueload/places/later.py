"""A host that a cluster may have later, as a place. Must not know what is run there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trueload.places import Channel, Place
from trueload.places.copying import Copying, Preparable


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
