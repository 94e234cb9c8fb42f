"""`trueload suite new`: what it creates is complete, runs as it is, and overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Trueload

pytestmark = pytest.mark.engine


def test_what_is_made_is_checked_and_measured_as_it_is(trueload: Trueload, tmp_path: Path) -> None:
    made = trueload.run("suite", "new", "my-api", cwd=tmp_path)
    assert made.code == 0, made
    assert made.out.splitlines()[-1] == "next: trueload suite run my-api"
    assert len(list(tmp_path.rglob("*.*"))) == 4

    checked = trueload.run("subjects", "check", "my-api", cwd=tmp_path)
    assert (checked.code, checked.out.count("ok ")) == (0, 2), checked

    flags = ("-d", "100ms", "-c", "2", "--repeat", "1", "--format", "json")
    ran = trueload.run("suite", "run", "my-api", *flags, cwd=tmp_path)
    assert ran.code in (0, 4), ran  # 4 on a machine with much else to do
    rows = json.loads(ran.out)["rows"]
    assert sorted((row["name"], row["outcome"]) for row in rows) == [
        ("", "measured"),
        ("large", "measured"),
    ]


def test_nothing_that_is_there_is_touched(trueload: Trueload, tmp_path: Path) -> None:
    contract = tmp_path / "contracts" / "mine.toml"
    contract.parent.mkdir()
    contract.write_text("mine")
    done = trueload.run("suite", "new", "mine", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: contracts/mine.toml already exists")
    assert contract.read_text() == "mine"
    assert not (tmp_path / "suites").exists()


def test_a_name_leads_nowhere_else(trueload: Trueload, tmp_path: Path) -> None:
    done = trueload.run("suite", "new", "../x", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "'../x' is not a name" in done.err
    assert not list(tmp_path.rglob("*.toml"))
