"""What a list of runs shows of a record, read without the models of all the rest."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import from_json

from trueload.protocol.tick import Counts
from trueload.record.outcomes import without_time
from trueload.record.sample import sample
from trueload.stats import Distribution


@dataclass(frozen=True)
class RecordHead:
    """The result in short; its fields are those of the record."""

    counts: Counts
    ok_per_s: float | None
    latency_ns: Distribution
    verdict: str
    lower_bound: bool


def read_head(text: bytes) -> RecordHead:
    """Read the head of a stored record. Raises ``ValueError``."""
    value = from_json(text)
    try:
        counts = Counts.model_construct(**value["counts"])
        latency_ns = Distribution(**value["latency_ns"])
        if latency_ns.slower != without_time(counts):  # it is of an older release
            latency_ns = sample(value["histograms"]["latency"], without_time(counts)).figures
        return RecordHead(
            counts=counts,
            ok_per_s=value["throughput"]["ok_per_s"],
            latency_ns=latency_ns,
            verdict=value["verdict"],
            lower_bound=value.get("lower_bound", False),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no record: {error}") from error
