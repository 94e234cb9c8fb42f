"""Records of disturbed trials, for tests."""

from __future__ import annotations

from typing import Any

from samples import good_record
from trueload.protocol.plan import Open, Stage
from trueload.record.schema import Check, Record
from trueload.verdict import bounds_of, decide, is_lower_bound

STAGE = Stage(**{"from": 1_000, "to": 1_000, "ns": 10**10})
OPEN = Open(stages=(STAGE,), arrivals="constant", seed=1)


def with_checks(*failed: str, load: Any = OPEN, bound: bool = False, **changes: Any) -> Record:
    """A record in which these checks fail, with what is certain then."""
    record = good_record(**changes)
    window = record.plan.window.model_copy(update={"load": load})
    plan = record.plan.model_copy(update={"window": window})
    record = record.model_copy(update={"plan": plan})
    checks = [
        Check(name=name, status="fail", value=None, limit=None, why=f"{name} was bad")
        for name in failed
    ]
    if bound:
        full = Check(name="generator-limit", status="bound", value=0.99, limit=0.9, why="full")
        checks.append(full)
    decided = {"verdict": decide(checks), "lower_bound": is_lower_bound(checks)}
    found = {"checks": tuple(checks), "bounds": bounds_of(record, checks)}
    return record.model_copy(update={**found, **decided})
