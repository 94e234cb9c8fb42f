"""Records of steps of a search, for tests."""

from __future__ import annotations

from typing import Any

from samples import GENERATOR, counts, good_record, histogram
from trueload.protocol.plan import Histograms
from trueload.record.schema import Check, Record
from trueload.record.thresholds import LIMIT, parse_condition
from trueload.verdict import bounds_of

LIMIT_10MS = parse_condition("p99<10ms and errors<1%", LIMIT)


def nobody(*classes: str, established: int = 0) -> Record:
    """A record in which connections failed, each for one of these reasons."""
    record = good_record(
        counts=counts(ok=0, issued=64, failed={name: 64 // len(classes) for name in classes})
    )
    failed = {name: (64 - established) // len(classes) for name in classes}
    connections = record.connections.model_copy(
        update={"requested": 64, "established": established, "failed": failed}
    )
    return record.model_copy(update={"connections": connections})


def failing(*names: str, **changes: Any) -> Record:
    """A record in which some checks fail."""
    record = good_record(**changes)
    known = {check.name for check in record.checks}
    checks = [
        c.model_copy(update={"status": "fail"} if c.name in names else {}) for c in record.checks
    ]
    checks += [
        Check(name=name, status="fail", value=None, limit=None, why="why")
        for name in names
        if name not in known
    ]
    bounds = bounds_of(record, checks)
    changed = {"checks": tuple(checks), "verdict": "invalid", "bounds": bounds}
    return record.model_copy(update=changed)


SLOW = Histograms(
    latency=histogram((1_000_000, 9_000), (20_000_000, 1_000)),
    service=None,
    connect=None,
    first_byte=None,
    total=None,
)
SERVED_SLOWLY = SLOW.model_copy(update={"service": SLOW.latency})
READ_LATE = SERVED_SLOWLY.model_copy(update={"round_trip": histogram((9_000_000, 1_000))})
FULL = GENERATOR.model_copy(update={"saturation": 0.99})
