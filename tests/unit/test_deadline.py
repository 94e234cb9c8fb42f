"""Deadlines of a front that could not read for a while: what arrived by then was not late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from trueload.deadline import looks
from trueload.places.local import LocalChannel, LocalPlace
from waiting import hold_the_interpreter


@pytest.mark.parametrize(
    ("clock", "expected", "what"),
    [
        ([10.0, 10.4, 11.0], [1.0, 0.6, 0.0], "as many as there is time for, and a last one"),
        ([99.0], [0.0], "one, though the time is over"),
    ],
)
def test_there_is_always_a_last_look(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], expected: list[float], what: str
) -> None:
    monkeypatch.setattr("trueload.deadline.time.monotonic", iter(clock).__next__)
    assert list(looks(11.0)) == pytest.approx(expected), what


@pytest.fixture
def speaker() -> Iterator[LocalChannel]:
    """A program that prints a line after a moment, and continues."""
    channel = LocalPlace().open(["sh", "-c", "sleep 0.3; echo here; exec sleep 60"])
    yield channel
    channel.kill()


def test_a_line_that_came_while_another_held_the_interpreter_is_heard(
    speaker: LocalChannel,
) -> None:
    held = threading.Event()

    def hold() -> None:
        held.set()
        hold_the_interpreter(0.9)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert speaker.read_line(0.5) == b"here"
    assert speaker.read_line(0.0) is None
    holder.join()
