"""How answers flowed through a phase, as an engine reports it; ``plan`` has the rest."""

from __future__ import annotations

from trueload.protocol.model import Model


class Backlog(Model):
    """Requests that an open loop had scheduled and that were not yet answered."""

    at_start: int
    """Left by the phase before."""
    at_end: int
    """At the end of the window, or when the last of a number of requests was sent."""
    answered: tuple[int, ...]
    """Good answers to the requests of each quarter of the schedule."""
    latency_sum_ns: tuple[int, ...]
    """The sum of the latencies of these answers."""


class Work(Model):
    """Good answers by when the server worked on them: each is spread evenly over its time."""

    part_ns: int = 1
    """The length of a part of the window."""
    answers: tuple[float, ...] = ()
    """Answers in each part, up to the last that has any. Work before the window, or after the time
    in which there was enough to send, is left out."""
    before_ns: int | None = None
    """For answers that had begun before the window, the sum of their times in it; null in older
    records."""
    after_ns: int | None = None
    """For answers that had begun in the window, the sum of their times after it; null in older
    records."""
    together: tuple[tuple[int, int], ...] = ()
    """Long waits and, among them, those that followed another that was as long, within a sixteenth
    of that length. The first pair counts waits of at least 2^23 ns (8.4 ms), each further one those
    of twice the length. Waits within one part are left out; older records have none."""


class Flow(Model):
    """Good answers as they came."""

    whole_ns: int
    """Until then there was enough to send on all connections."""
    part_ns: int
    """The length of a part of the window."""
    answered: tuple[int, ...]
    """Good answers in each part, up to the last that has any."""
    gaps: dict[int, int]
    """Stretches without an answer on any thread, by length, as a sparse histogram; each of several
    hosts has its own."""
    backlog: Backlog | None = None
    """Null for a closed loop."""
    work: Work = Work.model_construct()
    """When the server worked on answers; older records have none."""
    came: int = 0
    """Good answers that came in the window or its drain, including those to requests of the
    warm-up; 0 in older records."""
