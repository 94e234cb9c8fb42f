"""The pauses of the front: which ones are remembered, and for how long they explain an end."""

from __future__ import annotations

import pytest
from trueload.engines.pauses import BEAT_S, BLAMED_S, LEASE_S, ORPHANED_S, Beats, Pauses

LONG_S = LEASE_S + 1.0


@pytest.mark.parametrize(
    ("why", "beats_s", "now_s", "expected_s"),
    [
        ("it ran all the time", [0.1, 0.2, 0.3], 0.35, None),
        ("a busy machine", [0.1, 0.8], 0.9, None),
        ("a pause that no engine minds", [0.1, LEASE_S], LEASE_S + 0.1, None),
        ("a long one", [0.1, LONG_S], LONG_S + 0.1, LONG_S - 0.1 - BEAT_S),
        ("one that the thread has yet to notice", [0.1], LONG_S, LONG_S - 0.1 - BEAT_S),
        (
            "a long one, then a shorter",
            [LONG_S, LONG_S + 0.8],
            LONG_S + 0.9,
            LONG_S - BEAT_S,
        ),
        ("a longer one takes its place", [2.5, 9.5], 9.6, 7.0 - BEAT_S),
        (
            "one of long ago",
            [LONG_S, *(LONG_S + tenth / 10 for tenth in range(1, 80))],
            LONG_S + BLAMED_S + 0.1,
            None,
        ),
    ],
)
def test_a_pause_that_ended_engines(
    why: str, beats_s: list[float], now_s: float, expected_s: float | None
) -> None:
    beats = Beats(0.0)
    for beat_s in beats_s:
        if beat_s < now_s:
            beats.beat(beat_s)
    found_s = beats.fatal_s(now_s, LEASE_S)
    assert found_s == (None if expected_s is None else pytest.approx(expected_s)), why


def test_a_process_that_runs_has_no_pause_to_tell_of() -> None:
    with Pauses() as pauses:
        assert pauses.behind("the engine ended by itself: orphaned") is None


def test_a_shorter_pause_explains_an_engine_that_says_it_heard_nothing() -> None:
    beats = Beats(0.0)
    beats.beat(ORPHANED_S + 0.2)
    now_s = ORPHANED_S + 0.3
    assert beats.fatal_s(now_s, LEASE_S) is None
    assert beats.fatal_s(now_s, ORPHANED_S) == pytest.approx(ORPHANED_S + 0.1)
