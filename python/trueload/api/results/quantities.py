"""Figures as floats that know their unit: ``r.p99 < 0.020``, ``r.p99 < "20ms"``, ``r.p99.ms``.

How: a figure is a ``float`` (seconds, a share, requests per second), so it works in arithmetic,
sorting, numpy and data frames. A text is parsed by the command line's parsers before it is
compared. ``==`` with a text is refused: equal values must have equal hashes, and a text has its
own.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Self

from trueload.errors import UserError
from trueload.units import (
    NS_PER_S,
    format_bound,
    format_rate,
    format_share,
    largest_text,
    parse_duration,
    parse_rate,
    parse_share,
)

Comparable = float | str | timedelta


class IncomparableError(UserError, TypeError):
    """A figure was compared with something of another kind."""


class Quantity(float):
    """A float with a unit, which also compares with text; each subclass is a unit."""

    example: str

    def __new__(cls, value: Comparable) -> Self:
        """Take a number in the unit, or a text. Raises ``IncomparableError``."""
        return float.__new__(cls, cls._number(value))

    @classmethod
    def _parse(cls, text: str) -> float:
        """Return the number in the unit that a text states. Raises ``ValueError``."""
        raise NotImplementedError

    @classmethod
    def _number(cls, value: Comparable) -> float:
        """Return a value in the unit; ``float`` itself refuses what is not a number at all."""
        if isinstance(value, str):
            try:
                return cls._parse(value)
            except ValueError as error:
                raise IncomparableError(str(error), f"write for example {cls.example}") from None
        is_other = isinstance(value, Quantity) and not isinstance(value, cls)
        is_nan = isinstance(value, float) and math.isnan(value)
        if is_other or is_nan or isinstance(value, bool):
            why = f"{value} is not a {cls.__name__.lower()}"
            raise IncomparableError(why, f"write for example {cls.example}")
        return value  # type: ignore[return-value]

    def _refuse_text(self, other: object) -> None:
        if isinstance(other, str | timedelta):
            made = f"trueload.{type(self).__name__}({other!r})"
            raise IncomparableError(f"== and != do not read {other!r}", f"compare with {made}")

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __eq__(self, other: object) -> bool:
        self._refuse_text(other)
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._refuse_text(other)
        return float.__ne__(self, other)

    def __lt__(self, other: Comparable) -> bool:
        return float.__lt__(self, self._number(other))

    def __le__(self, other: Comparable) -> bool:
        return float.__le__(self, self._number(other))

    def __gt__(self, other: Comparable) -> bool:
        return float.__gt__(self, self._number(other))

    def __ge__(self, other: Comparable) -> bool:
        return float.__ge__(self, self._number(other))

    def __repr__(self) -> str:
        return str(self)


class Time(Quantity):
    """A time in seconds, as a float; ``.ms`` to show it, ``"10ms"`` and a ``timedelta`` compare.

    A time beyond everything that was answered is infinite; ``at_least`` is then its lower bound.
    ``too_few`` marks a percentile for which there were too few requests, ``at_most`` one that may
    be less, since the generator was paused. ``largest_of`` is the number of answers that a maximum
    is the largest of, if there are few; None if there are many. ``str`` mentions these; the number
    itself stays.
    """

    example = "0.010, '10ms' or a timedelta"
    at_least: Time | None
    too_few: bool
    at_most: bool
    largest_of: int | None

    def __new__(
        cls,
        value: Comparable,
        at_least: float | None = None,
        *,
        too_few: bool = False,
        at_most: bool = False,
        largest_of: int | None = None,
    ) -> Self:
        """Take seconds, a text or a ``timedelta``. Raises ``IncomparableError``."""
        made = super().__new__(cls, value)
        made.at_least = None if at_least is None else Time(at_least)
        made.too_few, made.at_most, made.largest_of = too_few, at_most, largest_of
        return made

    @classmethod
    def _parse(cls, text: str) -> float:
        return parse_duration(text) / NS_PER_S

    @classmethod
    def _number(cls, value: Comparable) -> float:
        return super()._number(value.total_seconds() if isinstance(value, timedelta) else value)

    @property
    def ns(self) -> float:
        """The time in nanoseconds."""
        return round(self * NS_PER_S, 3)

    @property
    def us(self) -> float:
        """The time in microseconds."""
        return self.ns / 1e3

    @property
    def ms(self) -> float:
        """The time in milliseconds."""
        return self.ns / 1e6

    @property
    def is_known(self) -> bool:
        """Whether the time was measured; else it is only known to exceed ``at_least``."""
        return math.isfinite(self)

    def __str__(self) -> str:
        if self.too_few or self.is_known:
            text = format_bound(self.ns, too_few=self.too_few, at_most=self.at_most)
            return text if self.too_few else largest_text(text, self.largest_of)
        return "unknown" if self.at_least is None else f"> {self.at_least}"


class Share(Quantity):
    """A share, 0 to 1; compares with text (``"0.1%"``) and with numbers."""

    example = "0.001 or '0.1%'"

    @classmethod
    def _parse(cls, text: str) -> float:
        return parse_share(text)

    def __str__(self) -> str:
        return format_share(self)


class Throughput(Quantity):
    """Requests that ended well, per second of the window, as a float; ``"50k/s"`` compares.

    ``ok_per_s`` is the same number, or None if nothing was measured: the float is 0 then.
    """

    example = "50_000 or '50k/s'"
    ok_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None

    def __new__(
        cls,
        value: Comparable | None,
        bytes_in_per_s: float | None = None,
        bytes_out_per_s: float | None = None,
    ) -> Self:
        """Take requests per second, or a text. Raises ``IncomparableError``."""
        made = super().__new__(cls, 0.0 if value is None else value)
        made.ok_per_s = None if value is None else float(made)
        made.bytes_in_per_s, made.bytes_out_per_s = bytes_in_per_s, bytes_out_per_s
        return made

    @classmethod
    def _parse(cls, text: str) -> float:
        return parse_rate(text)

    def __str__(self) -> str:
        return "nothing measured" if self.ok_per_s is None else format_rate(self, "requests")
