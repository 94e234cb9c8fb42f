"""The offset of several hosts' clocks from the front's, and a bound on its error.

How: the front asks and an engine answers with its time. The answer was made somewhere between the
question and its arrival, so the offset is known to half of that time (Cristian 1989). Of the last
questions the one with the shortest round trip tells most. Between questions clocks drift apart,
which widens the bound. An engine that converts times by itself is told an offset once; how wrong
that becomes is measured by the questions that follow. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

SAMPLES_KEPT = 64  # 16 s at four per second
DRIFT_NS_PER_NS = 10_000
"""In so many ns two clocks drift apart by at most 1 ns: quartz is within 50 ppm each."""
ROUNDED_NS = 3
"""What half a round trip, the drift since then and the engine's whole nanoseconds round off."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and its answer: the front's clock when it asked and when the answer arrived, and
    the engine's clock in between."""

    asked_ns: int
    answered_ns: int
    engine_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """``ns`` is how far an engine's clock is ahead of the front's, give or take ``bound_ns``."""

    ns: int
    bound_ns: int

    def to_front(self, engine_ns: int) -> int:
        """Convert a time of the engine's clock to the front's."""
        return engine_ns - self.ns

    def to_engine(self, front_ns: int) -> int:
        """Convert a time of the front's clock to the engine's."""
        return front_ns + self.ns


@dataclass(slots=True)
class SharedOffset:
    """The offset ``ns`` that an engine was told to convert its times with, and by how much it has
    been wrong at most since then."""

    ns: int
    bound_ns: int = 0

    def compare(self, found: Offset) -> None:
        """Note the offset as it is known at some time. Between two such times only drift adds to
        the error, and the bound of the later one has it, if the best reading is still the same."""
        self.bound_ns = max(self.bound_ns, abs(found.ns - self.ns) + found.bound_ns)


def bounds_across(bounds_ns: Sequence[int]) -> tuple[int, ...]:
    """By how much a time from any other host's clock to this one's is wrong at most, for each of
    several hosts, of which each is converted to the front's clock within its own bound."""
    greatest = sorted(bounds_ns)[-2:]
    if len(greatest) < 2:
        return ()
    second_ns, first_ns = greatest
    at = bounds_ns.index(first_ns)
    others = (second_ns if each == at else first_ns for each in range(len(bounds_ns)))
    return tuple(own_ns + other_ns for own_ns, other_ns in zip(bounds_ns, others, strict=True))


class Comparison:
    """The clock readings of one host."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=SAMPLES_KEPT)
        # All readings age at the same rate, so the best one changes only when one is added or
        # dropped.
        self._best: Reading | None = None

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, reading: Reading) -> None:
        full = len(self._readings) == SAMPLES_KEPT
        goes = self._readings[0] if full else None
        self._readings.append(reading)
        if self._best is None or goes is self._best:
            self._best = min(self._readings, key=_vagueness)
        else:
            self._best = min(self._best, reading, key=_vagueness)

    def offset(self, now_ns: int) -> Offset | None:
        """The best known offset at a time of the front's clock; None before the first answer."""
        return None if self._best is None else _offset(self._best, now_ns)


def _vagueness(reading: Reading) -> int:
    """The error bound of a reading's offset, without the terms that all readings share."""
    return DRIFT_NS_PER_NS * (_took_ns(reading) // 2) - reading.asked_ns


def _took_ns(reading: Reading) -> int:
    return max(0, reading.answered_ns - reading.asked_ns)


def _offset(reading: Reading, now_ns: int) -> Offset:
    half_ns = _took_ns(reading) // 2
    age_ns = max(0, now_ns - reading.asked_ns)  # the engine may have answered at once
    middle_ns = reading.asked_ns + half_ns
    bound_ns = half_ns + age_ns // DRIFT_NS_PER_NS + ROUNDED_NS
    return Offset(reading.engine_ns - middle_ns, bound_ns)
