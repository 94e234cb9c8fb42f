"""The lines that a suite prints about its trials, on a terminal and in a pipe."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from samples import counts, good_record
from trueload.commands.suite_progress import CLEAR, DIM, PLAIN, Progress, time_left
from trueload.metrics.exports import Exports
from trueload.record.schema import Record
from trueload.runner.trials import TrialFailure, TrialResult
from trueload.suites.plan import Cell, PlannedLoad, PlannedSubject, Trial
from trueload.verdict import judge

SUBJECT = PlannedSubject(
    name="c/epoll",
    language="c",
    framework="epoll",
    category="micro",
    variant="",
    trap=False,
    digest="",
)
TRIAL = Trial(Cell(SUBJECT, PlannedLoad(connections=8, pipeline=1, cores="single")), 2)
GOOD = TrialResult(judge(good_record()), None, None, "")
HEAD = "[ 3/24] c/epoll, 8 connections, single core, r2: "


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def invalid() -> Record:
    """A record in which half of the requests failed."""
    return judge(good_record(counts=counts(ok=5_000, failed={"reset": 5_000})))


def shown(out: io.StringIO, outcome: TrialResult | TrialFailure) -> str:
    progress = Progress(out, Exports({}))
    progress.starts(TRIAL, 3, 24)
    before = len(out.getvalue())
    progress.ended(TRIAL, outcome)
    return out.getvalue()[before:]


def test_a_result_is_a_line_with_its_verdict() -> None:
    line = f"{HEAD}10,000 requests/s, valid\n"
    assert shown(io.StringIO(), GOOD) == line
    assert shown(Terminal(), GOOD) == CLEAR + line


def test_on_a_terminal_an_invalid_result_has_its_reason_first_and_its_figure_dim() -> None:
    outcome = replace(GOOD, record=invalid())
    line = shown(Terminal(), outcome)
    assert line.startswith(f"{CLEAR}{HEAD}invalid, errors: 5,000 of 10,000 requests failed")
    assert line.endswith(f": {DIM}10,000 requests/s{PLAIN}\n")
    assert shown(io.StringIO(), outcome) == f"{HEAD}10,000 requests/s, invalid\n"


def test_a_subject_that_died_is_the_reason() -> None:
    line = shown(Terminal(), replace(GOOD, died="it ended with signal 11"))
    assert line.startswith(f"{CLEAR}{HEAD}invalid, it ended with signal 11: ")


def test_a_trial_that_could_not_be_measured_says_why() -> None:
    assert shown(io.StringIO(), TrialFailure("it hangs", "")) == f"{HEAD}failed: it hangs\n"


def test_a_status_line_is_cut_so_that_it_can_be_taken_back() -> None:
    out = Terminal()
    Progress(out, Exports({})).starts(replace(TRIAL, repetition=10**90), 3, 24)
    assert len(out.getvalue()) < 100
    assert "\n" not in out.getvalue()


@pytest.mark.parametrize(
    ("elapsed_s", "done", "left", "words"),
    [
        (3.0, 0, 9, ""),
        (10.0, 2, 3, ", about 15 s left"),
        (120.0, 4, 6, ", about 3 min left"),
    ],
)
def test_the_time_left_is_that_of_trials_like_those_done(
    elapsed_s: float, done: int, left: int, words: str
) -> None:
    assert time_left(elapsed_s, done, left) == words
