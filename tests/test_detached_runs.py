"""Runs that earlier versions detached: they are read and deleted as any other, and what detached
them says what to use instead.

``stored/detached.tar.xz`` is a store that such a version has written, with what it keeps beside it:
a run that ended, and one whose process was killed.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from harness import ROOT, Trueload

ENDED, KILLED = "20261129-025415-acfe", "20261129-025419-1757"


@pytest.fixture
def beside(trueload: Trueload) -> Path:
    """Unpack the store; return the folder with the output of its runs."""
    trueload.store = trueload.folder / "store.sqlite3"
    with tarfile.open(ROOT / "tests" / "stored" / "detached.tar.xz") as packed:
        # Python 3.11 knows filters from 3.11.4 on; Debian 12 has 3.11.2.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(trueload.folder)
    return trueload.folder / "store.sqlite3-detached"


def test_a_run_that_was_detached_is_read_as_any_other(
    trueload: Trueload, beside: Path, tmp_path: Path
) -> None:
    listed = trueload.run("runs", "list", "--json").json()
    assert [(run["id"], run["state"]) for run in listed] == [
        (ENDED, "finished"),
        (KILLED, "interrupted"),
    ]
    shown = trueload.run("runs", "show", ENDED)
    assert (shown.code, shown.err) == (0, "")
    assert "-n 200 -c 2 --detach" in shown.out, "the command as it was typed then"
    assert "200 ok" in shown.out
    exported = trueload.run("runs", "export", ENDED).json()
    assert exported["id"] == ENDED
    page = tmp_path / "report.html"
    assert trueload.run("report", ENDED, "-o", page).code == 0
    assert "200" in page.read_text()


def test_one_that_was_killed_is_interrupted_and_not_going_on(
    trueload: Trueload, beside: Path
) -> None:
    shown = trueload.run("runs", "show", KILLED)
    assert shown.code == 0
    assert "(interrupted)" in shown.out
    assert trueload.run("runs", "delete", KILLED).code == 0
    assert os.listdir(beside) == [ENDED]


def test_what_was_kept_of_a_run_is_deleted_with_it_also_behind_a_link(
    trueload: Trueload, beside: Path
) -> None:
    link = trueload.folder / "link"
    link.symlink_to(trueload.store)
    trueload.store = link
    assert trueload.run("runs", "prune", "--keep", "1").code == 0
    assert os.listdir(beside) == [KILLED]
    assert trueload.run("runs", "delete", KILLED).code == 0
    assert os.listdir(beside) == []
    assert trueload.run("runs", "list", "--json").json() == []


@pytest.mark.parametrize(
    ("words", "error", "instead"),
    [
        ("http http://127.0.0.1:9/ --detach", "trueload http has no option --detach", "tmux"),
        (
            "compare http://a/ http://b/ --detach",
            "trueload compare has no option --detach",
            "systemd-run",
        ),
        ("suite run x --detach", "trueload suite run has no option --detach", "Kubernetes Job"),
        ("attach last --stop", "trueload has no command 'attach'", "`trueload runs show`"),
        ("doctor --install ssh:h1", "trueload doctor has no option --install", "pip install"),
    ],
)
def test_what_is_no_longer_there_is_named_with_what_to_use_instead(
    trueload: Trueload, words: str, error: str, instead: str
) -> None:
    ended = trueload.run(*words.split())
    first, hint = ended.err.splitlines()
    assert (ended.code, ended.out, first) == (2, "", f"error: {error}")
    assert hint.startswith("hint: ")
    assert instead in hint


def test_a_default_that_detaches_says_the_same(trueload: Trueload) -> None:
    ended = trueload.run("http", "http://127.0.0.1:9/", env={"TRUELOAD_HTTP_DETACH": "1"})
    assert ended.code == 2
    assert ended.err.splitlines()[1].startswith("hint: run it in tmux")
