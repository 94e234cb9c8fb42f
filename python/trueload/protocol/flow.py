"""How answers flowed through a phase, as an engine reports it; ``plan`` has the rest."""

from __future__ import annotations

from trueload.protocol.model import Model


class Backlog(Model):
    """Requests that an open loop had scheduled and that were not yet answered. ``at_start``: left
    by the phase before. ``at_end``: at the end of the window, or when the last of a number of
    requests was sent. ``answered`` and ``latency_sum_ns`` are for each quarter of the schedule."""

    at_start: int
    at_end: int
    answered: tuple[int, ...]
    latency_sum_ns: tuple[int, ...]


class Work(Model):
    """Good answers in each ``part_ns``, each spread evenly over the time that it took, up to the
    last part that has any. Work before the window, or after ``whole_ns``, is left out.

    ``before_ns`` sums the times in the window of answers that had begun before it. ``after_ns``
    sums the times after it of answers that had begun in it. Older records have neither.
    """

    part_ns: int = 1
    answers: tuple[float, ...] = ()
    before_ns: int | None = None
    after_ns: int | None = None


class Flow(Model):
    """Good answers in each ``part_ns`` of the window, as they came, up to the last part that has
    any. Until ``whole_ns`` there was enough to send for all connections. ``gaps`` are stretches
    without an answer on any thread, by length, as a sparse histogram; each of several hosts has its
    own. ``backlog`` is for an open loop. ``came`` counts good answers that came in the window or
    its drain, including those to requests of the warm-up; older records have 0, and no ``work``."""

    whole_ns: int
    part_ns: int
    answered: tuple[int, ...]
    gaps: dict[int, int]
    backlog: Backlog | None = None
    work: Work = Work()
    came: int = 0
