"""The machine's state in each repetition: which is usual, which is unlike it, what is owed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import samples
from suite_samples import LOAD, figures, invalid, plan, subject
from trueload.record.schema import Check, CoreLatency
from trueload.suites.figures import Figures
from trueload.suites.plan import Cell, SuitePlan
from trueload.suites.repeats import owed, still_disturbed
from trueload.suites.states import State, state_of, usual_of
from trueload.suites.summary import CellRows, summarise

NEAR, FAR = State((90.0, 100.0)), State((400.0, 410.0))
MOVED, NOISY = State((90.0, 400.0)), State((90.0, 95.0), "noise: others took 20 %")
UNSEEN = State()

USUAL = [
    ("all near", [NEAR] * 3, ["", "", ""]),
    ("one far", [NEAR, NEAR, FAR], ["", "", "far apart"]),
    ("most far", [NEAR, FAR, FAR], ["near each other", "", ""]),
    ("as many near", [NEAR, FAR], ["", "far apart"]),
    ("moved in the middle", [NEAR, MOVED], ["", "moved meanwhile (90 ns to 400 ns)"]),
    ("disturbed", [NEAR, NOISY], ["", "noise: others took 20 %"]),
    ("not seen", [NEAR, UNSEEN], ["", ""]),
    ("never seen", [UNSEEN, UNSEEN], ["", ""]),
    ("never twice the same", [MOVED, MOVED], ["", ""]),
]


@pytest.mark.parametrize(("what", "states", "reasons"), USUAL, ids=[each[0] for each in USUAL])
def test_what_is_unlike_most_says_why(what: str, states: list[State], reasons: list[str]) -> None:
    usual = usual_of(states)
    for state, expected in zip(states, reasons, strict=True):
        why = usual.unlike(state)
        assert expected in why if expected else not why, what


def test_a_record_tells_the_state_it_was_measured_in() -> None:
    checks = (
        Check(name="client-share", status="warn", why="it is busy", value=None, limit=None),
        Check(name="noise", status="warn", why="others took 20 %", value=None, limit=None),
        Check(name="hiccup", status="pass", why="", value=None, limit=None),
    )
    latency = CoreLatency(cpus=(0, 1), before_ns=90.0, after_ns=100.0)
    record = samples.good_record(cpu_distance=latency).model_copy(update={"checks": checks})
    assert state_of(record) == State((90.0, 100.0), "noise: others took 20 %")
    assert state_of(samples.good_record(cpu_distance=None, checks=())) == State()


def disturbed(rate: float = 50.0) -> Figures:
    return figures(rate, unlike="noise: others took 20 %")


def row(*measured: Figures, failed: int = 0) -> CellRows:
    lost = ["no port"] * failed
    return CellRows(Cell(subject("a"), LOAD), list(measured), lost, planned=6)


def test_a_disturbed_repetition_counts_for_nothing() -> None:
    found = summarise(row(*[figures(100.0)] * 6, disturbed()))
    assert found is not None
    assert found.interval is not None
    assert (found.interval.low, found.counted, found.repetitions) == (100.0, 6, 7)
    assert found.verdict == "valid", "another stands in for it"
    assert found.why == "1 of 7 repetitions left out: noise: others took 20 %"
    assert len(found.record_ids) == 7


def test_a_row_that_lacks_repetitions_is_suspect() -> None:
    found = summarise(row(*[figures(100.0)] * 5, disturbed()))
    assert found is not None
    assert (found.verdict, found.counted) == ("suspect", 5)


def test_where_most_were_disturbed_none_is_left_out() -> None:
    found = summarise(row(*[figures(100.0)] * 3, *[disturbed()] * 3))
    assert found is not None
    assert found.counted == 6
    assert found.interval is not None
    assert found.interval.low == 50.0


def test_a_disturbed_repetition_does_not_hide_what_the_subject_did() -> None:
    liar = replace(invalid("unsolicited"), unlike="noise: others took 20 %")
    found = summarise(row(*[figures(100.0)] * 6, liar))
    assert found is not None
    assert found.verdict == "invalid"


def of_six(**changes: object) -> SuitePlan:
    made = plan(subject("a"), repeat=6)
    return made.model_copy(update={"patience_ns": 1, **changes})


OWED = [
    ("nothing, where all are alike", row(*[figures()] * 6), None),
    ("one for the one that was disturbed", row(*[figures()] * 5, disturbed()), 7),
    ("nothing, once it was taken again", row(*[figures()] * 6, disturbed()), None),
    ("the next, where that was disturbed, too", row(*[figures()] * 5, *[disturbed()] * 2), 8),
    ("no more than as many again", row(*[figures()] * 5, *[disturbed()] * 7), None),
    ("nothing of what is invalid anyway", row(invalid("errors"), *[disturbed()] * 5), None),
    ("nothing of what fails to start", row(*[disturbed()] * 5, failed=1), None),
]  # fmt: skip


@pytest.mark.parametrize(("what", "rows", "number"), OWED, ids=[each[0] for each in OWED])
def test_what_a_row_is_owed(what: str, rows: CellRows, number: int | None) -> None:
    found = owed(of_six(), [rows])
    assert [trial.repetition for trial in found] == ([] if number is None else [number]), what


def test_a_machine_that_stays_disturbed_is_waited_for_no_longer() -> None:
    once, twice = (
        row(*[figures()] * 5, *[disturbed()] * 2),
        row(*[figures()] * 5, *[disturbed()] * 3),
    )
    assert not still_disturbed([once])
    assert still_disturbed([twice])
    assert not still_disturbed([once, twice]), "the other row may still get its repetition"
    assert not still_disturbed([row(*[figures()] * 6)])
    fixed = row(*[figures()] * 4, *[disturbed()] * 3, figures())
    assert not still_disturbed([fixed]), "the machine has become quiet"


def test_a_first_look_takes_nothing_again() -> None:
    rows = row(*[figures()] * 2, disturbed())
    assert owed(of_six(repeat=3), [rows]) == []
    assert len(owed(of_six(), [rows])) == 1
