"""Values that compare with what one would type: ``latency.p99 < "10ms"``, ``errors < "0.1%"``.

How: text is read by the parsers of the command line. A time that nobody knows (it lies among
requests that never ended) is longer than any other, so that failing never looks fast. A bare number
is refused where a time belongs: it would have no unit. Must not know records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from trueload.errors import UserError
from trueload.units import format_duration, format_share, parse_duration, parse_share

Value = TypeVar("Value")
NS_PER_US, NS_PER_MS, NS_PER_S = 1_000, 1_000_000, 1_000_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Time:
    """A time in ns; ``inf`` where it is unknown, and then ``at_least_ns`` is as much as is known.

    Compares with text (``"10ms"``), with a ``timedelta`` and with another time."""

    ns: float
    at_least_ns: float | None = None

    @property
    def us(self) -> float:
        """In microseconds."""
        return self.ns / NS_PER_US

    @property
    def ms(self) -> float:
        """In milliseconds."""
        return self.ns / NS_PER_MS

    @property
    def s(self) -> float:
        """In seconds."""
        return self.ns / NS_PER_S

    @property
    def is_known(self) -> bool:
        """Whether it was measured; else it is only known to be more than ``at_least_ns``."""
        return math.isfinite(self.ns)

    def __str__(self) -> str:
        if self.is_known:
            return format_duration(self.ns)
        return "unknown" if self.at_least_ns is None else f"> {format_duration(self.at_least_ns)}"

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        return hash(self.ns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str | timedelta | Time):
            return NotImplemented
        return self.ns == _ns(other)

    def __lt__(self, other: str | timedelta | Time) -> bool:
        return self.ns < _ns(other)

    def __le__(self, other: str | timedelta | Time) -> bool:
        return self.ns <= _ns(other)

    def __gt__(self, other: str | timedelta | Time) -> bool:
        return self.ns > _ns(other)

    def __ge__(self, other: str | timedelta | Time) -> bool:
        return self.ns >= _ns(other)


class Share(float):
    """A share, 0 to 1; compares with text (``"0.1%"``) and with numbers."""

    def __str__(self) -> str:
        return format_share(self)

    def __repr__(self) -> str:
        return str(self)

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return float.__eq__(self, _share(other) if isinstance(other, str) else other)

    def __lt__(self, other: str | float) -> bool:
        return float.__lt__(self, _share(other))

    def __le__(self, other: str | float) -> bool:
        return float.__le__(self, _share(other))

    def __gt__(self, other: str | float) -> bool:
        return float.__gt__(self, _share(other))

    def __ge__(self, other: str | float) -> bool:
        return float.__ge__(self, _share(other))


def _ns(value: object) -> float:
    match value:
        case Time():
            return value.ns
        case timedelta():
            return value / timedelta(microseconds=1) * NS_PER_US
        case str():
            return float(_read(value, parse_duration, "a time"))
    raise UserError(
        f"a time cannot be compared with {value!r}, which has no unit",
        "write for example '10ms', or compare .ms, .us or .ns",
    )


def _share(value: str | float) -> float:
    return _read(value, parse_share, "a share") if isinstance(value, str) else value


def _read(text: str, parse: Callable[[str], Value], what: str) -> Value:
    try:
        return parse(text)
    except ValueError as error:
        raise UserError(f"{what} cannot be compared: {error}", "write it so") from None
