"""Durations, sizes, rates, counts: one parser for every flag and file, and the way back.

Strategy: a number, then a unit from a table. Fractions are exact (``Decimal``), so ``0.1s`` is
exactly 100,000,000 ns. ``ValueError`` says in one line what is wrong and what would be right.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn, TypeVar

Value = TypeVar("Value")

TOO_FEW = "too few"  # shown instead of a percentile that says nothing
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
NS_BY_UNIT = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
BYTES_BY_UNIT = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
COUNT_BY_UNIT = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_SPELLED_OUT = {
    **dict.fromkeys(("usec", "usecs"), "us"),
    **dict.fromkeys(("msec", "msecs"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
"""Other ways to write a unit of time."""

# Beyond these no trial makes sense, and a 64-bit engine would overflow.
SEED_MAX = 2**63 - 1  # the most that store and engine can hold
DURATION_NS_MAX = NS_BY_UNIT["d"]
AGE_NS_MAX = 36_500 * NS_BY_UNIT["d"]
COUNT_MAX = 10**15

# Two digits are enough for the exponent of any value that makes sense.
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?"
_QUANTITY = re.compile(rf"({NUMBER})([A-Za-zµ]*)", re.ASCII)
_RATE = re.compile(
    rf"({NUMBER})([kmg]?)(?:[rq]ps|(?:req(?:uests)?)?/(.+))?", re.ASCII | re.IGNORECASE
)


def parse_duration(text: str, most_ns: int = DURATION_NS_MAX) -> int:
    """Parse ``500ms``, ``10s``, ``1.5m``, ``1m30s``, ``30d`` as whole nanoseconds, rounded. Raises
    ``ValueError``."""
    parts = _QUANTITY.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise ValueError(f"'{text}' is not a duration: write for example 10s")
    scales = [_ns_of_unit(unit, text) for _, unit in parts]
    if scales != sorted(set(scales), reverse=True):
        raise ValueError(f"'{text}' is not a duration: the largest unit comes first, as in 1m30s")
    numbers = [Decimal(number) for number, _ in parts]
    ns = _whole(sum(map(operator.mul, numbers, scales), Decimal()))
    if ns > most_ns:
        days = most_ns // NS_BY_UNIT["d"]
        raise ValueError(f"'{text}' is too long: at most {'a day' if days == 1 else f'{days:,}d'}")
    return ns


def _ns_of_unit(unit: str, text: str) -> int:
    ns = NS_BY_UNIT.get(_SPELLED_OUT.get(unit, unit))
    if ns is None:
        what = f"unit '{unit}' is not known" if unit else "has no unit"
        raise ValueError(f"'{text}' {what}: durations are like 500ms, 10s, 2m")
    return ns


def parse_size(text: str) -> int:
    """Parse ``64``, ``10KiB``, ``1MB`` as bytes. Raises ``ValueError``."""
    return _scaled(text, BYTES_BY_UNIT, "a size", "10KiB")


def parse_count(text: str) -> int:
    """Parse ``100``, ``20k``, ``1M``, ``1e6`` as a whole number. Raises ``ValueError``."""
    return _scaled(text, COUNT_BY_UNIT, "a count", "20k")


def parse_rate(text: str) -> float:
    """Parse ``5000/s``, ``50k/s``, ``20k``, ``1e3``, ``1000rps``, ``300/m``, ``50/100ms`` as events
    per second. Raises ``ValueError``."""
    found = _RATE.fullmatch(text.strip())
    per_ns = None if found is None else _period_ns(found[3] or "s")
    if found is None or not per_ns:
        raise ValueError(f"'{text}' is not a rate: write for example 50k/s")
    return float(Decimal(found[1]) * COUNT_BY_UNIT[found[2].lower()] * NS_PER_S / per_ns)


def _period_ns(text: str) -> int | None:
    """Parse what a rate counts for: ``s``, ``m`` or ``100ms``; None if it is not a time."""
    try:
        return parse_duration(text if text[0].isdigit() else f"1{text}")
    except ValueError:
        return None


@dataclass(frozen=True)
class Ramp:
    """A stretch of time over which a quantity changes linearly from ``first`` to ``last``; it is
    constant if they are the same."""

    ns: int
    first: float
    last: float


def parse_stages(text: str, parse_value: Callable[[str], float]) -> tuple[Ramp, ...]:
    """Parse ``10s@1k,30s@1k..20k,10s@20k``: TIME@VALUE holds it, TIME@FIRST..LAST is a ramp. Raises
    ``ValueError`` that points at the character."""
    stages: list[Ramp] = []
    at = 0
    for part in text.split(","):
        time_text, sign, values = part.partition("@")
        value_at = at + len(time_text) + len(sign)
        if not part.strip():
            _refuse_at(text, at, "a stage is missing")
        if not sign:
            _refuse_at(text, at, f"stage '{part.strip()}' has no @: write TIME@VALUE")
        ns = _parse_at(text, at, time_text, parse_duration, "a time")
        if ns == 0:
            _refuse_at(text, at, f"stage '{part.strip()}' lasts 0 s")
        first_text, dots, last_text = values.partition("..")
        first = _parse_at(text, value_at, first_text, parse_value, "a value")
        last_at = value_at + len(first_text) + len(dots)
        last = _parse_at(text, last_at, last_text, parse_value, "a value") if dots else first
        stages.append(Ramp(ns, first, last))
        at += len(part) + 1
    if sum(stage.ns for stage in stages) > DURATION_NS_MAX:
        raise ValueError(f"'{text}' is too long: at most a day in all")
    if not any(stage.first or stage.last for stage in stages):
        raise ValueError(f"'{text}' asks for nothing")
    return tuple(stages)


def _parse_at(text: str, at: int, part: str, parse: Callable[[str], Value], what: str) -> Value:
    if not part.strip():
        _refuse_at(text, at, f"{what} is missing")
    try:
        return parse(part)
    except ValueError as error:
        _refuse_at(text, at, str(error))


def _refuse_at(text: str, at: int, why: str) -> NoReturn:
    pointer = f"at character {at + 1}" if at < len(text.rstrip()) else "at its end"
    raise ValueError(f"'{text}', {pointer}: {why}")


def format_stages(stages: Sequence[Ramp]) -> str:
    """The inverse of ``parse_stages``: ``10s@1000,30s@1000..20000``."""

    def one(stage: Ramp) -> str:
        ramp = f"..{stage.last:.10g}" if stage.last != stage.first else ""
        return f"{format_span(stage.ns)}@{stage.first:.10g}{ramp}"

    return ",".join(one(stage) for stage in stages)


def parse_share(text: str) -> float:
    """Parse ``1%`` or ``0.01`` as a share. Raises ``ValueError``."""
    plain = text.strip()
    number, unit = _split(plain.removesuffix("%"), "a share", "1%")
    if unit:
        raise ValueError(f"'{text}' is not a share: shares are like 1% or 0.01")
    share = float(number) / 100 if plain.endswith("%") else float(number)
    if share > 1:  # 5 for 5 % would be a threshold that nothing can cross
        raise ValueError(f"'{text}' is more than all: shares are like 1% or 0.01")
    return share


def _split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not {what}: write for example {example}")
    return Decimal(match[1]), match[2]


def _scaled(text: str, units: Mapping[str, int], what: str, example: str) -> int:
    number, unit = _split(text, what, example)
    if unit.lower() not in units:
        raise ValueError(f"'{text}' is not {what}: write for example {example}")
    value = number * units[unit.lower()]
    if value != _whole(value):
        raise ValueError(f"'{text}' is not a whole number")
    if value > COUNT_MAX:
        raise ValueError(f"'{text}' is too large")
    return int(value)


def _whole(value: Decimal) -> int:
    return int(value.to_integral_value())


def format_bound(
    ns: float | None, *, above: bool = False, too_few: bool = False, at_most: bool = False
) -> str:
    """A time for people: ``1.20 ms``; ``> 5.00 s`` if it is only known to be more, ``≤ 5.00 s`` if
    it may be less, ``too few`` if so few were measured that it says nothing, and empty for None."""
    if ns is None or too_few:
        return "" if ns is None else TOO_FEW
    sign = "> " if above else "≤ " if at_most else ""
    return f"{sign}{format_duration(ns)}"


def largest_text(text: str, largest_of: int | None) -> str:
    """A maximum for people: ``8.27 ms (largest of 100)`` if it is of so few."""
    return text if largest_of is None else f"{text} (largest of {format_count(largest_of)})"


def format_duration(ns: float) -> str:
    """``420 us``, ``1.50 s``: three significant digits, the largest unit that keeps it above 1."""
    for unit in ("s", "ms", "us"):
        if abs(ns) >= NS_BY_UNIT[unit]:
            return f"{_three_digits(ns / NS_BY_UNIT[unit])} {unit}"
    return "0 s" if ns == 0 else f"{ns:.0f} ns"


def format_span(ns: int) -> str:
    """A duration as one would type it: ``10s``, ``500ms``, ``2m``; ``parse_duration`` reads it."""
    for unit in ("h", "m", "s", "ms", "us"):
        if ns and ns % NS_BY_UNIT[unit] == 0:
            return f"{ns // NS_BY_UNIT[unit]}{unit}"
    return f"{ns}ns"


def format_size(size_bytes: float) -> str:
    """``13 B``, ``1.50 KiB``, ``4.20 MiB``."""
    if abs(size_bytes) < 1024:
        return f"{size_bytes:.0f} B"
    for unit in ("kib", "mib"):
        if abs(size_bytes) < BYTES_BY_UNIT[unit] * 1024:
            break
    else:
        unit = "gib"
    return f"{_three_digits(size_bytes / BYTES_BY_UNIT[unit])} {unit[0].upper()}iB"


def format_count(count: float) -> str:
    """A count for people: ``1,234,567``. Below 100 up to two decimals are kept, and below 1 two
    significant digits, so that little is never shown as nothing."""
    if count == int(count) or abs(count) >= 100:
        return f"{round(count):,}"
    if abs(count) < 1:
        return f"{count:.2g}"
    return f"{count:.2f}".rstrip("0").rstrip(".")


def counted(count: float, noun: str, plural: str | None = None) -> str:
    """A count with its noun, and what agrees with it: ``1 request``, ``2 requests are``."""
    return f"{format_count(count)} {noun if count == 1 else plural or f'{noun}s'}"


def format_cell(value: float | None) -> str:
    """A number in a column of them: whole, without separators; below 1 two significant digits.
    Empty for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if value == 0 or abs(value) >= 1 else f"{value:.2g}"


def format_rate(per_s: float, what: str = "") -> str:
    """``12,345 requests/s``."""
    return f"{format_count(per_s)}{' ' + what if what else ''}/s"


def format_share(share: float) -> str:
    """``0.012 %``, ``99.2 %``, ``100 %``: enough digits that little is never shown as nothing."""
    percent = share * 100
    if percent == 0 or abs(percent) >= 10:
        return f"{percent:.3g} %" if abs(percent) < 1000 else f"{percent:.0f} %"
    return f"{percent:.2g} %"


def _three_digits(value: float) -> str:
    decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}"


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Parse ``1`` or ``0-1,3`` as CPU numbers in rising order. Raises ``ValueError``."""
    cpus: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part, re.ASCII)
        if match is None:
            raise ValueError(f"'{text}' is not a list of CPUs: write for example 0-1,3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"'{part.strip()}' runs backwards: write {last}-{first}")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """The inverse of ``parse_cpu_list``: ``0-1,3``."""
    ordered = sorted(set(cpus))
    parts: list[str] = []
    start = 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or ordered[end] != ordered[end - 1] + 1:
            first, last = ordered[start], ordered[end - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = end
    return ",".join(parts)


def close_text(close: bool | None) -> str:
    """How connections of a load end: ``close`` after each request, or ``kept``; empty if not
    said."""
    return {None: "", True: "close", False: "kept"}[close]


def idle_text(steps: Sequence[int]) -> str:
    """Steps of idle connections: ``0-1000-5000``; empty if there are none."""
    return "-".join(map(str, steps))
