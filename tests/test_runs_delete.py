"""Deleted runs are gone, the file is smaller, and nothing else has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from samples import good_record
from trueload.cli.app import run as run_command
from trueload.errors import UserError
from trueload.ids import now_iso
from trueload.store import runs as store_module
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.runs import Store

RECORD = good_record()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with five runs a day apart, the last begun now."""
    path = tmp_path / "store"
    monkeypatch.setenv("TRUELOAD_STORE", str(path))
    now = now_iso()
    days = ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", now[:10]]
    with Store.open(path) as store:
        for number, day in enumerate(days):
            with monkeypatch.context() as patched:
                patched.setattr(store_module, "now_iso", lambda day=day: day + now[10:])
                run = store.new_run(kind="http", title=f"run {number}", command=["secret"])
                for row in range(20):
                    store.add_record(run, RECORD, key=f"cell {row}")
                store.end_run(run)
    return path


def left(path: Path) -> list[str]:
    with Store.open(path) as store:
        assert store.damaged_runs() == []
        for run in store.runs():
            rows = list(store.rows(run))
            assert len(rows) == run.row_count
            assert all(isinstance(row, Row) and row.record == RECORD for row in rows)
        return [run.title for run in store.runs()]


def ids(path: Path) -> list[str]:
    with Store.open(path) as store:
        return [run.id for run in store.runs()]


@pytest.mark.parametrize(
    ("words", "stay"),
    [
        (["delete", "{0}"], "1234"),
        (["delete", "{1}", "{3}", "{1}"], "024"),
        (["delete", "last"], "0123"),
        (["delete", "--older-than", "30d"], "4"),
        (["delete", "--older-than", "24h"], "4"),
        (["delete", "--older-than", "36500d"], "01234"),
        (["prune", "--keep", "2"], "34"),
        (["prune", "--keep", "0"], ""),
        (["prune", "--keep", "5"], "01234"),
        (["prune", "--keep", "100"], "01234"),
    ],
)
def test_what_is_deleted_is_gone_and_said_with_its_bytes(
    path: Path, capsys: pytest.CaptureFixture[str], words: list[str], stay: str
) -> None:
    before = path.stat().st_size
    named = ids(path)
    code = run_command(["runs", *(word.format(*named) for word in words), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert left(path) == [f"run {number}" for number in stay]
    assert result["deleted"] == [
        each for number, each in enumerate(named) if str(number) not in stay
    ]
    assert result["going_on"] == []
    if len(stay) < 5:
        assert path.stat().st_size < before
        assert result["freed_bytes"] == before - path.stat().st_size
    assert result["store_bytes"] == path.stat().st_size


def test_a_line_says_what_was_deleted_and_nothing_of_it_stays_in_the_file(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["runs", "prune", "--keep", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("deleted 4 runs, ")
    assert " bytes) freed; the store has " in out
    assert err == ""
    assert b"run 2" not in path.read_bytes()
    with Store.open(path) as store:
        added = store.new_run(kind="http", title="new")
        assert store.find_run("last") == added
        store.add_record(added, RECORD)
        store.end_run(added)
    assert left(path) == ["run 4", "new"]


def test_a_run_that_is_going_on_is_never_deleted(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(path) as store:
        running = store.new_run(kind="http", title="going on")
        resumed = store.find_run(ids(path)[0])
        store.hold_run(resumed)
        assert run_command(["runs", "delete", ids(path)[1], running.id]) == 2
        out, err = capsys.readouterr()
        assert (out, len(left(path))) == ("", 6)
        assert f"run {running.id} is still running" in err
        assert run_command(["runs", "prune", "--keep", "0"]) == 0
        out, err = capsys.readouterr()
        assert out.startswith("deleted 4 runs")
        for each in (running, resumed):
            assert f"note: run {each.id} is still running, and was not deleted" in err
        store.add_record(running, RECORD)
        store.end_run(running)
    assert left(path) == ["run 0", "going on"]


def test_a_row_cannot_be_added_to_a_run_that_was_deleted(path: Path) -> None:
    with Store.open(path) as store:
        run: Run = store.find_run("last")
        assert run_command(["runs", "delete", "last"]) == 0
        with pytest.raises(UserError, match="was deleted meanwhile"):
            store.add_record(run, RECORD)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["delete"], "either runs or --older-than"),
        (["delete", "last", "--older-than", "1d"], "either runs or --older-than"),
        (["delete", "last", "nope"], "there is no run 'nope'"),
        (["delete", "--older-than", "30"], "has no unit"),
        (["prune"], "--keep"),
        (["prune", "--keep", "-1"], "--keep"),
    ],
)
def test_what_is_not_understood_deletes_nothing(
    path: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    assert run_command(["runs", *words]) == 2
    assert complaint in capsys.readouterr().err
    assert len(left(path)) == 5


def test_a_damaged_store_is_left_as_it_is(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)
    before = path.read_bytes()
    assert run_command(["runs", "prune", "--keep", "1"]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert path.read_bytes() == before
    with Store.open(path) as store:
        found = [row for run in store.runs() for row in store.rows(run)]
    assert any(isinstance(row, Row) for row in found)
    assert any(isinstance(row, DamagedRow) for row in found)
