"""Plans and figures of suites, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueload.protocol.plan import Duration
from trueload.stats import Distribution
from trueload.suites.figures import Figures
from trueload.suites.plan import PlannedLoad, PlannedSubject, SuitePlan

LOAD = PlannedLoad(connections=64, pipeline=1, cores="single")


NS_PER_MS = 1e6


def subject(name: str, *, trap: bool = False, variant: str = "") -> PlannedSubject:
    return PlannedSubject(
        name=f"c/{name}" + (f":{variant}" if variant else ""),
        language="c",
        framework=name,
        variant=variant,
        category="micro",
        trap=trap,
        digest="",
    )


def plan(
    *subjects: PlannedSubject, repeat: int = 3, loads: Sequence[PlannedLoad] = (LOAD,)
) -> SuitePlan:
    return SuitePlan(
        suite="s",
        contract="http-plaintext",
        subjects=subjects,
        loads=tuple(loads),
        stop=Duration(ns=1),
        warmup=None,
        timeout_ns=1,
        close=False,
        threads=1,
        repeat=repeat,
        seed=1,
        files=0,
        share_cpus=False,
        port=None,
    )  # fmt: skip


def figures(rate: float | None = 100.0, **changes: object) -> Figures:
    times: dict[str, Any] = {"min": 0.1, "p25": 0.2, "p50": 0.3, "p75": 0.4, "p99": 0.5, "max": 0.6}
    times |= {name: changes.pop(f"{name}_ms") for name in times if f"{name}_ms" in changes}
    in_ns = {name: ms and round(ms * NS_PER_MS) for name, ms in times.items()}
    fields: dict[str, object] = {
        "record_id": "r",
        "verdict": "valid",
        "failed_checks": (),
        "reasons": (),
        "response_bytes": 192,
        "requests": 1000,
        "errors": 0,
        "ok_per_s": rate,
        "bytes_per_s": 19_200.0,
        "latency": Distribution(**in_ns),
        "latency_at_least": (),
        "cpu_share": 0.97,
        "peak_rss_bytes": 3 << 20,
    }
    return Figures(**{**fields, **changes})  # type: ignore[arg-type]


def invalid(check: str, rate: float = 900.0) -> Figures:
    return figures(rate, verdict="invalid", failed_checks=(check,), reasons=(f"{check}: why",))
