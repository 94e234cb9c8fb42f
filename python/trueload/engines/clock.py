"""Clocks of several hosts against the front's: an offset, and how far it may be off.

How: the front asks and an engine answers with its time. The answer was made somewhere between the
question and its arrival, so the offset is known to half of that time (Cristian 1989); of the last
questions the quickest tells most. Between questions clocks drift apart, which widens the bound.
Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

SAMPLES_KEPT = 64  # at four a second: a quarter of a minute
DRIFT_NS_PER_NS = 10_000
"""In so long two clocks gain at most 1 ns on each other: quartz is within 50 ppm each."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and its answer: front's clock when it was asked and when the answer was here,
    engine's clock in between."""

    asked_ns: int
    answered_ns: int
    engine_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """``ns`` is what an engine's clock shows more than the front's, give or take ``bound_ns``."""

    ns: int
    bound_ns: int

    def to_front(self, engine_ns: int) -> int:
        """A time of the engine's clock on the front's."""
        return engine_ns - self.ns

    def to_engine(self, front_ns: int) -> int:
        """A time of the front's clock on the engine's."""
        return front_ns + self.ns


class Comparison:
    """The readings of one host."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=SAMPLES_KEPT)
        # All age alike: which of them tells most changes only when one comes or goes.
        self._best: Reading | None = None

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, reading: Reading) -> None:
        """One more answer."""
        full = len(self._readings) == SAMPLES_KEPT
        goes = self._readings[0] if full else None
        self._readings.append(reading)
        if self._best is None or goes is self._best:
            self._best = min(self._readings, key=_vagueness)
        else:
            self._best = min(self._best, reading, key=_vagueness)

    def offset(self, now_ns: int) -> Offset | None:
        """The best that is known at a time of the front's clock; None before the first answer."""
        return None if self._best is None else _offset(self._best, now_ns)


def _vagueness(reading: Reading) -> int:
    """The bound of its offset, but for what is the same for all readings at any time."""
    return DRIFT_NS_PER_NS * (_took_ns(reading) // 2) - reading.answered_ns


def _took_ns(reading: Reading) -> int:
    return max(0, reading.answered_ns - reading.asked_ns)


def _offset(reading: Reading, now_ns: int) -> Offset:
    half_ns = _took_ns(reading) // 2
    age_ns = max(0, now_ns - reading.answered_ns)
    middle_ns = reading.asked_ns + half_ns
    return Offset(reading.engine_ns - middle_ns, half_ns + 1 + age_ns // DRIFT_NS_PER_NS)
