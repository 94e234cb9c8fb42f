"""How answers flowed through a phase, as an engine says it; ``plan`` has the rest."""

from __future__ import annotations

from trueload.protocol.model import Model


class Backlog(Model):
    """What an open loop had scheduled and was not yet answered, ``at_start``: left by the phase
    before, and ``at_end`` of the window, or when the last of a number of requests was sent;
    ``answered`` and ``latency_sum_ns`` are of what each quarter of the schedule asked for."""

    at_start: int
    at_end: int
    answered: tuple[int, ...]
    latency_sum_ns: tuple[int, ...]


class Work(Model):
    """Good answers in each ``part_ns``, each spread evenly over the time that it took, up to the
    last part that has any. What was done before the window, or behind ``whole_ns``, is left out."""

    part_ns: int = 1
    answers: tuple[float, ...] = ()


class Flow(Model):
    """Good answers in each ``part_ns`` of the window, as they came, up to the last part that has
    any. For ``whole_ns`` there was enough to send for all connections. ``gaps`` are stretches
    without an answer on any thread, by length, as a sparse histogram; of several hosts each has its
    own. ``backlog`` is of an open loop. ``came`` are good answers that came in the window or its
    drain, those to requests of the warm-up among them; older records have 0, and no ``work``."""

    whole_ns: int
    part_ns: int
    answered: tuple[int, ...]
    gaps: dict[int, int]
    backlog: Backlog | None = None
    work: Work = Work()
    came: int = 0
