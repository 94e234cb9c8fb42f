"""The pure parts of the report on broadcasts: frames, costs, ratios and marks."""

from __future__ import annotations

from typing import Any

import pytest


def masked(payload: bytes, mask: bytes = b"\x01\x02\x03\x04") -> bytes:
    """A client's text frame."""
    length = len(payload)
    short = length < 126
    head = bytes([0x81, 0x80 | (length if short else 126)])
    body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return head + (b"" if short else length.to_bytes(2, "big")) + mask + body


@pytest.mark.parametrize("length", [0, 1, 4, 125, 126, 300, 65_535])
def test_frames_are_taken_whole_however_they_are_split(bench: Any, length: int) -> None:
    take = bench["coalescing"].take_frame
    payload = bytes(at % 251 for at in range(length))
    wire = masked(payload)
    for cut in {0, 1, 5, len(wire) - 1} - {len(wire)}:
        assert take(bytearray(wire[:cut])) is None
    received = bytearray(wire + wire[:3])
    assert take(received) == payload
    assert received == wire[:3]


def test_ratios_are_of_one_round_and_their_median_is_judged(bench: Any) -> None:
    broadcast, cost = bench["broadcast"], bench["broadcasts"].Cost
    ours = [cost(100, 100 * ns, 1e6) for ns in (100, 200, 100)]
    theirs = [cost(100, 100 * ns, 1e6) for ns in (1_000, 2_000, 3_000)]
    found = {broadcast.OURS: ours, broadcast.GO: theirs}
    limit = broadcast.PER_TASK_LEAST
    judged = broadcast.judge_ratio(found, broadcast.GO, broadcast.OURS, limit, "piled up")
    assert (judged.word, judged.measured.split()[0]) == ("met", "10.000")
    assert broadcast.judge_piled(found).word == "met"
    absent = broadcast.judge_ratio(found, broadcast.BARE, broadcast.OURS, limit, "piled up")
    assert absent.word == "not measured"


def test_many_clients_that_could_not_be_had_are_not_measured_and_say_why(bench: Any) -> None:
    broadcast = bench["broadcast"]
    assert [each.word for each in broadcast.judge_many(None, "no files")] == ["not measured"] * 2
    busy = bench["broadcasts"].Cost(600_000, 9e8, 1e9)
    assert [each.word for each in broadcast.judge_many(busy, "")] == ["met", "missed"]
