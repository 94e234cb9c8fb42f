"""The front's models of the protocol: the engine's examples, read and written again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples import TO_ENGINE
from trueload.protocol.packed import PackedCounts
from trueload.protocol.plan import parse_from_engine, to_json

EXAMPLES = Path(__file__).resolve().parents[2] / "schema" / "examples"


def lines(name: str) -> list[str]:
    found = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert found, f"{name} has no examples"
    return found


@pytest.mark.parametrize("line", lines("from-engine.jsonl"))
def test_what_the_engine_says_is_read_and_written_back_unchanged(line: str) -> None:
    fields = json.loads(line)
    # Packed on the wire, but an object in JSON for people.
    packed = [(second, "latency") for second in fields.get("measurement", {}).get("series", [])]
    packed += [(fields, name) for name in ("latency", "service") if name in fields]
    parts = fields.get("measurement", {}).get("tracks", [fields.get("tracks", [])])
    packed += [(bin_or_track, "latency") for part in parts for bin_or_track in part]
    for of, name in packed:
        of[name] = {str(index): n for index, n in PackedCounts.of_base64(of[name]).items()}
    assert to_json(parse_from_engine(line)) == fields


@pytest.mark.parametrize("line", lines("to-engine.jsonl"))
def test_what_the_engine_is_told_is_read_and_written_back_unchanged(line: str) -> None:
    assert to_json(TO_ENGINE.validate_json(line)) == json.loads(line)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"type": "hello", "protocol": 1, "version": "1", "pid": 1, "more": 1}', "more"),
        ('{"type": "hello", "protocol": 1, "version": "1"}', "pid"),
        ('{"type": "goodbye"}', "type"),
        ("hello", "JSON"),
        ("", "JSON"),
    ],
)
def test_what_is_not_known_is_refused_by_name(line: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_from_engine(line)
