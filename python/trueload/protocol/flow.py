"""How answers flowed through a phase, as an engine says it; ``plan`` has the rest."""

from __future__ import annotations

from trueload.protocol.model import Model


class Flow(Model):
    """Good answers in each ``part_ns`` of the window, as they came, up to the last part that has
    any. For ``whole_ns`` there was enough to send for all connections. ``gaps`` are stretches
    without an answer on any thread, by length, as a sparse histogram; of several hosts each has its
    own."""

    whole_ns: int
    part_ns: int
    answered: tuple[int, ...]
    gaps: dict[int, int]
