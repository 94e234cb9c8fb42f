"""A host that a Ray cluster may have later, as a place. Must not know what is run there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trueload.places.copying import Copying
from trueload.places.ray.channel import RayChannel, RayPlace
from trueload.places.ray.cluster import Reservation


class LaterPlace:
    """One more host of a reservation. It is reserved by the first ``prepare`` that finds it."""

    def __init__(self, reservation: Reservation) -> None:
        self._reservation = reservation
        self._place: RayPlace | None = None

    @property
    def name(self) -> str:
        """The host's name, once it is there."""
        return "a host of the Ray cluster" if self._place is None else self._place.name

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        """Reserve the host, and make sure that the program is there. Raises ``UserError``; it is a
        ``HostError`` as long as the cluster has no such host."""
        if copying is not None:
            copying.check()
        self._place = self._place or self._reservation.one_more()
        self._place.prepare(program)

    def open(self, argv: Sequence[str]) -> RayChannel:
        """Start a program on the host. Raises as ``RayPlace.open``."""
        assert self._place is not None, "it has not been prepared"
        return self._place.open(argv)
