"""What a list of runs shows of a record, read without the models of all the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace

from trueload.record.sample import sample
from trueload.record.untimed import without_time
from trueload.stats import Distribution


@dataclass(frozen=True)
class RecordHead:
    """The result in short; its fields are those of the record."""

    issued: int
    ok_per_s: float | None
    latency_ns: Distribution
    verdict: str
    lower_bound: bool


def read_head(text: bytes) -> RecordHead:
    """Read the head of a stored record. Raises ``ValueError``."""
    try:
        value = json.loads(text)
        counts = value["counts"]
        untimed = without_time(SimpleNamespace(**{"skipped": 0, **counts}))
        latency_ns = Distribution(**value["latency_ns"])
        if latency_ns.slower != untimed:  # it is of an older release
            latency_ns = sample(value["histograms"]["latency"], untimed).figures
        return RecordHead(
            issued=counts["issued"],
            ok_per_s=value["throughput"]["ok_per_s"],
            latency_ns=latency_ns,
            verdict=value["verdict"],
            lower_bound=value.get("lower_bound", False),
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no record: {error}") from error
