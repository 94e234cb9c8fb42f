"""`trueload runs list` shows what was measured; `last` is the last run that measured something."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import NO_COUNTS, good_record
from trueload.cli.app import run as run_command
from trueload.record.schema import Record
from trueload.stats import Distribution
from trueload.store.runs import Store

GOOD = good_record()
UNREACHED = GOOD.model_copy(
    update={
        "counts": NO_COUNTS,
        "throughput": GOOD.throughput.model_copy(update={"ok_per_s": None}),
        "histograms": GOOD.histograms.model_copy(update={"latency": None}),
        "latency_ns": Distribution(),
        "verdict": "invalid",
    }
)


def stored(path: Path, *runs: tuple[str, list[Record]]) -> None:
    with Store.open(path) as store:
        for title, records in runs:
            run = store.new_run(kind="http", title=title, command=[])
            for record in records:
                store.add_record(run, record)
            store.end_run(run)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store"
    monkeypatch.setenv("TRUELOAD_STORE", str(path))
    return path


def test_figures_of_alike_trials_are_listed_the_newest_first(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bound = GOOD.model_copy(update={"lower_bound": True})
    runs = {
        "one": [GOOD],
        "bound": [bound],
        "three": [GOOD] * 3,
        "refused": [UNREACHED],
        "none": [],
    }
    stored(path, *runs.items())
    assert run_command(["runs", "list"]) == 0
    head, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["run", "kind", "rows", "state", "throughput", "p99", "verdict", "what"]
    listed = [line[2:] for line in lines]
    assert listed == [
        ["0", "finished", "none"],
        ["1", "finished", "invalid", "refused"],
        ["3", "finished", "10,000/s", "1.00", "ms", "valid", "three"],
        ["1", "finished", "≥", "10,000/s", "1.00", "ms", "valid", "(lower", "bound)", "bound"],
        ["1", "finished", "10,000/s", "1.00", "ms", "valid", "one"],
    ]


@pytest.mark.parametrize(
    ("runs", "last"),
    [
        ([("a", [GOOD]), ("b", [UNREACHED])], "a"),
        ([("a", [GOOD]), ("b", [UNREACHED, UNREACHED])], "b"),
        ([("a", [GOOD]), ("b", [])], "b"),
        ([("a", [UNREACHED]), ("b", [UNREACHED])], "b"),
        ([("a", [UNREACHED]), ("b", [GOOD])], "b"),
    ],
)
def test_last_is_the_latest_run_that_has_measured_something(
    path: Path, runs: list[tuple[str, list[Record]]], last: str
) -> None:
    stored(path, *runs)
    with Store.open(path) as store:
        assert store.find_run("last").title == last
