"""Packed histograms: unpacking gives what was packed, by us or by the engine."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from trueload.protocol.packed import INDEXES, Packed, PackedCounts, SparseSum
from trueload.protocol.plan import parse_from_engine
from trueload.protocol.tick import Second
from trueload.zigzag import COUNT_MOST

FIELD = TypeAdapter(Packed)
EXAMPLES = Path(__file__).parents[2] / "schema" / "examples" / "from-engine.jsonl"


def encoded(*numbers: int) -> str:
    return base64.b64encode(bytes(numbers)).decode()


@given(st.dictionaries(st.integers(0, INDEXES - 1), st.integers(0, COUNT_MOST)))
def test_what_is_packed_comes_out_again_without_its_zeros(counts: dict[int, int]) -> None:
    there = {index: count for index, count in sorted(counts.items()) if count}
    packed = PackedCounts(counts)
    assert list(packed.items()) == list(there.items())
    assert list(packed) == list(there)
    assert packed == there == PackedCounts(there)
    assert len(packed) == len(there)
    assert FIELD.validate_json(FIELD.dump_json(packed)) == packed


def test_the_bytes_are_those_of_the_engine() -> None:
    # The bytes of crates/meter/src/packed.rs: -200 is 399, in two groups of seven bits; 5 is 10.
    assert PackedCounts.of_base64(encoded(0x8F, 0x03, 10)) == {200: 5}
    assert PackedCounts.of_base64(encoded(5, 2, 1, 0x80, 0x02)) == {3: 1, 5: 128}
    assert PackedCounts.of_base64("") == {}


@given(st.lists(st.dictionaries(st.integers(0, 4_000), st.integers(0, 2**40)), max_size=9))
def test_a_sum_is_that_of_each_index(parts: list[dict[int, int]]) -> None:
    total = SparseSum()
    for part in parts:
        total.add(PackedCounts.of_base64(PackedCounts(part).as_base64()))
    expected = sum(map(Counter, parts), Counter[int]())
    assert total.as_dict() == {index: expected[index] for index in sorted(expected)}


def test_a_count_that_no_sum_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        SparseSum().add({1: COUNT_MOST + 1})


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
    [
        "*",
        encoded(0xC8),
        encoded(0xFF, 0x40, 2),
        7,
        None,
        {"x": 1},
        {"1": -1},
        {"1": "1"},
        {"4096": 1},
        {"1": COUNT_MOST + 1},
        PackedCounts({1: COUNT_MOST + 1}).as_base64(),
    ],
)
def test_what_is_no_histogram_is_refused(junk: object) -> None:
    with pytest.raises(ValidationError):
        FIELD.validate_python(junk)
