"""Packed histograms: unpacking gives what was packed, by us or by the engine."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from trueload.protocol.packed import Packed, PackedCounts
from trueload.protocol.plan import Second, parse_from_engine

FIELD = TypeAdapter(Packed)
EXAMPLES = Path(__file__).parents[2] / "schema" / "examples" / "from-engine.jsonl"


def encoded(*numbers: int) -> str:
    return base64.b64encode(bytes(numbers)).decode()


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)))
def test_what_is_packed_comes_out_again_without_its_zeros(counts: dict[int, int]) -> None:
    there = {index: count for index, count in sorted(counts.items()) if count}
    packed = PackedCounts(counts)
    assert list(packed.items()) == list(there.items())
    assert list(packed) == list(there)
    assert packed == there == PackedCounts(there)
    assert len(packed) == len(there)
    assert FIELD.validate_json(FIELD.dump_json(packed)) == packed


def test_the_bytes_are_those_of_the_engine() -> None:
    # The bytes of crates/meter/src/packed.rs: 200 in two groups of seven bits, then the count.
    assert PackedCounts.of_base64(encoded(0xC8, 0x01, 5)) == {200: 5}
    assert PackedCounts.of_base64(encoded(3, 1, 2, 0x80, 0x01)) == {3: 1, 5: 128}
    assert PackedCounts.of_base64("") == {}


def test_an_engine_s_series_holds_as_many_latencies_as_answers() -> None:
    lines = EXAMPLES.read_bytes().splitlines()
    ended = [message for line in lines if (message := parse_from_engine(line)).type == "phase_done"]
    seconds = [second for message in ended for second in message.measurement.series]
    assert seconds
    assert all(sum(second.latency.values()) == second.ok for second in seconds)


def test_people_read_it_as_an_object() -> None:
    second = Second(t_s=0, ok=5, failed=0, latency={200: 5})
    assert json.loads(second.model_dump_json())["latency"] == {"200": 5}
    assert repr(second.latency) == "{200: 5}"
    assert second.latency[200] == 5
    with pytest.raises(KeyError):
        second.latency[199]


@pytest.mark.parametrize(
    "junk",
    ["*", encoded(0xC8), encoded(3), encoded(3, 1, 2), 7, None, {"x": 1}, {"1": -1}, {"1": "1"}],
)
def test_what_is_no_histogram_is_refused(junk: object) -> None:
    with pytest.raises(ValidationError):
        FIELD.validate_python(junk)
