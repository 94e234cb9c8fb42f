"""What every check is made of: its result, grades against two limits, and words for reasons.

Thresholds are beside the check that uses them, each with its source; where none is named it is
design.md's section 6. Must not know any single check.
"""

from __future__ import annotations

from collections.abc import Iterable

from trueload.protocol.plan import Closed, Open
from trueload.record.schema import Check, Record, Status
from trueload.units import format_count, format_duration

TELLING_WINDOW_NS = 100_000_000  # shares of less than some ten scheduler ticks tell nothing


def checked(
    name: str, status: Status, why: str, value: float | None = None, limit: float | None = None
) -> Check:
    """A check that could tell; ``why`` is one line with the figures that decided."""
    return Check(name=name, status=status, value=value, limit=limit, why=why)


def not_applicable(name: str, why: str) -> Check:
    """A check that does not apply, or cannot tell."""
    return Check(name=name, status="n/a", value=None, limit=None, why=why)


def graded(value: float, warn: float, fail: float) -> tuple[Status, float]:
    """The status of a value that should be small, and the limit that decided."""
    if value >= fail:
        return "fail", fail
    return ("warn", warn) if value >= warn else ("pass", warn)


def graded_beyond(value: float, warn: float, fail: float) -> tuple[Status, float]:
    """The same where the limits themselves are still kept."""
    if value > fail:
        return "fail", fail
    return ("warn", warn) if value > warn else ("pass", warn)


def is_open(record: Record) -> bool:
    """Whether requests were sent by a schedule."""
    return isinstance(record.plan.window.load, Open)


def is_closed(record: Record) -> bool:
    """Whether each free slot sent at once."""
    return isinstance(record.plan.window.load, Closed)


def is_http(record: Record) -> bool:
    """Whether requests and answers were those of HTTP."""
    return record.plan.generate.exchange is None


def is_staged(record: Record) -> bool:
    """Whether the load changed in the window."""
    load = record.plan.window.load
    if not isinstance(load, Open | Closed):
        return False
    stages = load.stages if isinstance(load, Open) else load.active
    return len({value for stage in stages for value in (stage.from_, stage.to)}) > 1


def too_short(record: Record, least_ns: int = TELLING_WINDOW_NS) -> str | None:
    """Why its window tells nothing, if it is shorter than such a one."""
    if record.window.window_ns >= least_ns:
        return None
    window, least = format_duration(record.window.window_ns), format_duration(least_ns)
    return f"a window of {window} is too short to tell; it takes {least}"


def in_one_line(reasons: Iterable[str]) -> str:
    """Those that there are."""
    return "; ".join(reason for reason in reasons if reason)


def times(count: int, what: str, plural: str | None = None) -> str:
    """``1 request``, ``2 requests``."""
    return f"{format_count(count)} {what if count == 1 else plural or f'{what}s'}"
