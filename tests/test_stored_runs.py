"""Runs that earlier versions have stored: each command that takes a run reads them.

``stored/before-0.1.0.tar.xz`` has runs of every kind, and some with ``--h2c-upgrade``, which was
removed before the first release. Each release adds one (``write_stored.py``).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, Trueload
from subject_world import World
from trueload.api.results.stored import load_run
from trueload.store.runs import Store
from write_stored import FOLDER, REPETITIONS, SUBJECT

BEFORE = FOLDER / "before-0.1.0.tar.xz"
RELEASED = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
ARCHIVES = [BEFORE, *(FOLDER / f"{version}.tar.xz" for version in RELEASED)]

ON_A_PAGE = 10

of_each = pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)


def unpack(archive: Path, trueload: Trueload) -> list[Any]:
    """Make an archive the command's store; return its runs."""
    if not archive.exists():
        pytest.fail(f"there is no {archive}: write it with tests/write_stored.py of that release")
    with tarfile.open(archive) as packed:
        # Python 3.11 knows filters from 3.11.4 on; Debian 12 has 3.11.2.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(trueload.folder)
    listed = trueload.run("runs", "list", "--json")
    assert listed.err == "", "nothing is damaged"
    found: list[Any] = listed.json()
    return found


def batched(names: list[str], count: int) -> list[list[str]]:
    return [names[first : first + count] for first in range(0, len(names), count)]


@of_each
def test_each_run_is_shown_and_exported_whole(archive: Path, trueload: Trueload) -> None:
    runs = unpack(archive, trueload)
    assert {run["kind"] for run in runs} == {"http", "search", "ab", "ws", "tcp", "udp", "suite"}
    for run in runs:
        shown = trueload.run("runs", "show", run["id"], "--why")
        assert (shown.code, shown.err) == (0, ""), shown
        assert "cannot be read" not in shown.out
        exported = trueload.run("runs", "export", run["id"]).json()
        assert {row["outcome"] for row in exported["rows"]} == {"measured"}
        assert all(row["record"] for row in exported["rows"])


@of_each
def test_a_report_shows_the_runs_of_a_store_and_of_files(
    archive: Path, trueload: Trueload, tmp_path: Path
) -> None:
    runs = unpack(archive, trueload)
    names = [run["id"] for run in runs]
    shown: list[tuple[Sequence[str | Path], list[str]]] = [
        (part, part) for part in batched(names, ON_A_PAGE)
    ]
    # One file of each kind: the file of each run is read by the test of comparisons.
    of_kinds = list({run["kind"]: run["id"] for run in runs}.values())
    files = [tmp_path / f"{name}.json" for name in of_kinds]
    for name, file in zip(of_kinds, files, strict=True):
        assert trueload.run("runs", "export", name, "-o", file).code == 0
    page = tmp_path / "report.html"
    for selectors, expected in (*shown, (files, of_kinds)):
        done = trueload.run("report", *selectors, "-o", page)
        assert done.code == 0, done
        text = page.read_text()
        assert "cannot be read" not in done.err + text
        assert all(name in text for name in expected)


@of_each
def test_a_run_of_a_store_is_compared_with_its_own_file(
    archive: Path, trueload: Trueload, tmp_path: Path
) -> None:
    for run in unpack(archive, trueload):
        file = tmp_path / f"{run['id']}.json"
        assert trueload.run("runs", "export", run["id"], "-o", file).code == 0
        done = trueload.run("runs", "compare", run["id"], file)
        if run["kind"] == "search":
            assert "has confirmed no load" in done.err, "none keeps to the limit of these"
        else:
            assert (done.code in (0, 4), done.err) == (True, ""), done


@of_each
def test_python_gets_the_results(archive: Path, trueload: Trueload) -> None:
    runs = unpack(archive, trueload)
    with Store.open(trueload.folder / "store.sqlite") as store:
        assert all(load_run(store, run["id"]) for run in runs)


@pytest.mark.engine
@of_each
def test_an_interrupted_suite_goes_on(archive: Path, world: World) -> None:
    [run] = [run for run in unpack(archive, world.trueload) if run["kind"] == "suite"]
    assert run["state"] == "interrupted"
    world.add(SUBJECT)
    done = world.run("suite", "run", "--resume", run["id"])
    assert done.code in (0, 4), done
    rows = world.run("runs", "show", run["id"], "--json").json()["rows"]
    whole = {row["key"] for row in rows if not row["record"]["partial"]}
    assert len(whole) == REPETITIONS, "those of the earlier version count"
