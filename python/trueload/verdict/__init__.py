"""The verdict: each check is a pure function of a record, and all checks are in one table.

A check's status is ``pass``, ``warn``, ``fail`` or, with the reason, ``n/a``. One *fail* makes the
verdict invalid, and one *warn* makes it suspect. *bound* leaves the verdict unchanged: the
throughput is a lower bound. Every ``why`` is one line with the figures that decided. Thresholds are
constants beside their check, with their source. To add a check, declare a `Definition` below its
compute function, in any module of this package, and add its limits to docs/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trueload.record.account import declared
from trueload.record.schema import Bounds, Check, Direction, Record, Verdict
from trueload.verdict.common import ANYTHING, SERVES_MORE, Definition, Moves, is_open
from trueload.verdict.flow import offered_per_s, sent_per_s
from trueload.verdict.generator_share import generator_shares
from trueload.verdict.hosts import SEVERITY, with_hosts
from trueload.verdict.limit import estimate_per_s
from trueload.verdict.machine import GENERATOR_FULL

__all__ = [
    "CHECKS",
    "GENERATOR_FULL",
    "SEVERITY",
    "decide",
    "generator_shares",
    "is_lower_bound",
    "judge",
    "offered_per_s",
    "sent_per_s",
    "worst_checks",
]


_DECLARED = declared(__name__, __path__, Definition)
CHECKS = {each.name: each for each in sorted(_DECLARED, key=lambda each: each.order)}
"""All checks by name, in the order of listing."""


KINDS = ("latency", "throughput", "errors")


def judge(record: Record) -> Record:
    """Return the record with its checks and the verdict that follows from them."""
    checks = tuple(each.check(record) for each in CHECKS.values())
    if record.client is None:
        checks = tuple(with_hosts(check, record.hosts) for check in checks)
    decided = {"verdict": decide(checks), "lower_bound": is_lower_bound(checks)}
    bounds = bounds_of(record, checks)
    estimate = {"estimate_per_s": estimate_per_s(record, bounds)}
    found = {"bounds": bounds, "throughput": record.throughput.model_copy(update=estimate)}
    return record.model_copy(update={"checks": checks, **found, **decided})


def bounds_of(record: Record, checks: Sequence[Check]) -> Bounds:
    """Return what the figures are certain of although checks failed."""
    names = [each.name for each in checks if each.status == "fail" and each.name in CHECKS]
    failed = [CHECKS[name].moves for name in names]
    disturbed = any(moves.delays for moves in failed)
    found = [_moves(record, each) for each in failed if not (each.by_delays and disturbed)]
    if record.trouble is not None:
        found.append(ANYTHING)
    if any(check.status == "bound" for check in checks):
        found.append(SERVES_MORE)
    return Bounds(**{kind: _joined(getattr(each, kind) for each in found) for kind in KINDS})


def _moves(record: Record, moves: Moves) -> Moves:
    if not moves.delays:
        return moves
    if not is_open(record):
        return replace(moves, latency="unknown")
    # Requests that a pause held back are answered all at once behind it, perhaps in the window.
    caught_up = (record.throughput.ok_per_s or 0.0) > offered_per_s(record)
    return replace(moves, throughput="unknown") if caught_up else moves


def _joined(directions: Iterable[Direction]) -> Direction:
    """The direction that is left of several: none but the one that all agree on."""
    moved = set(directions) - {"exact"}
    if not moved:
        return "exact"
    return moved.pop() if len(moved) == 1 else "unknown"


def decide(checks: Sequence[Check]) -> Verdict:
    """Return invalid if any check fails, suspect if any warns, else valid."""
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        return "invalid"
    return "suspect" if "warn" in statuses else "valid"


def is_lower_bound(checks: Sequence[Check]) -> bool:
    """Whether the throughput is a lower bound; an invalid figure is no bound."""
    return decide(checks) != "invalid" and any(check.status == "bound" for check in checks)


def worst_checks(records: Sequence[Record]) -> tuple[Check, ...]:
    """Return each check with its worst outcome over several trials, in the order of the table."""
    worst: dict[str, Check] = {}
    for record in records:
        for check in record.checks:
            known = worst.get(check.name)
            if known is None or SEVERITY[check.status] > SEVERITY[known.status]:
                worst[check.name] = check
    return tuple(worst.values())
