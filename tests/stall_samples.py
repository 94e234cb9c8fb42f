"""Sample records of a generator that was paused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samples import GENERATOR, SERVER, counts, good_record, histogram
from trueload.protocol.lateness import Lateness, Stalls
from trueload.record.schema import CpuWait

MS = 1_000_000
GOOD = good_record()
SHARED = {"server": SERVER.model_copy(update={"allowed_cpus": (0, 1)})}
FOR_OTHERS, FOR_THE_SERVER = (
    CpuWait(share=0.1, for_others=0.1),
    CpuWait(share=0.1, for_others=0.004),
)


def stalls(length_ms: float, count: int, requests: int) -> tuple[Stalls, ...]:
    """Stalls of one length, during each of which this many requests waited."""
    ns = int(length_ms * MS)
    return (Stalls(at_least_ns=ns // 2 + 1, count=count, ns=ns * count, requests=requests * count),)


def stopped(length_ms: float, count: int, requests: int, **changes: Any) -> dict[str, Any]:
    late = Lateness(waited_ns=MS, stopped=stalls(length_ms, count, requests))
    return {"generator": GENERATOR.model_copy(update={"lateness": late, **changes})}


def queued(
    length_ms: float, count: int, requests: int, waited: CpuWait | None, **changes: Any
) -> dict[str, Any]:
    late = Lateness(waited_ns=MS, queued=stalls(length_ms, count, requests))
    update = {"lateness": late, "waited": waited, **changes}
    return {"generator": GENERATOR.model_copy(update=update)}


def answers(ms: Mapping[float, int]) -> dict[str, Any]:
    """The answers per latency in ms."""
    latency = histogram(*((int(after * MS), count) for after, count in ms.items()))
    found = GOOD.histograms.model_copy(
        update={"latency": latency, "send_lag": None, "receive_lag": None, "round_trip": None}
    )
    return {"histograms": found, "counts": counts(ok=sum(ms.values()))}
