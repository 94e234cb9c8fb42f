"""Sums of times that 64 bits do not hold: the engine writes them, and a record keeps each digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samples import flow, good_record
from trueload.protocol.flow import Backlog
from trueload.protocol.plan import PhaseDone, parse_from_engine
from trueload.record.schema import Record

EXAMPLES = Path(__file__).parents[2] / "schema" / "examples" / "from-engine.jsonl"
LARGE = 2**70 + 1


SUMS = ("permitted_ns", "before_ns", "after_ns", "latency_sum_ns", "streams_ns", "waits_ns")


def enlarged(value: Any, name: str = "") -> Any:
    """The same message, with every sum of times as large as days of overload make it."""
    if isinstance(value, dict):
        return {
            key: enlarged(each, key if name not in SUMS else name) for key, each in value.items()
        }
    if isinstance(value, list):
        return [enlarged(each, name) for each in value]
    return LARGE if name in SUMS else value


def test_an_engine_s_sums_are_read_with_all_their_digits() -> None:
    lines = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    texts = [json.dumps(enlarged(line)) for line in lines if line["type"] == "phase_done"]
    for text in texts:
        message = parse_from_engine(text.encode())
        assert isinstance(message, PhaseDone)
        found = json.dumps(message.model_dump(mode="json"))
        assert found.count(str(LARGE)) == text.count(str(LARGE)) > 0
    assert max(text.count(str(LARGE)) for text in texts) >= 8


def test_a_record_keeps_them() -> None:
    sums = Backlog(at_start=0, at_end=0, answered=(1,) * 4, latency_sum_ns=(LARGE,) * 4)
    record = good_record(flow=flow().model_copy(update={"backlog": sums}))
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert record.model_dump_json().count(str(LARGE)) == 4
