"""`trueload suite new`: what it creates is complete, runs as it is, and overwrites nothing."""

from __future__ import annotations

import json
import re
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


def test_a_new_subject_is_for_the_contract_of_the_suite_that_is_there(
    trueload: Trueload, tmp_path: Path
) -> None:
    assert trueload.run("suite", "new", "my-api", cwd=tmp_path).code == 0
    for name in ("python/my-api-2", "go/my-api"):
        made = trueload.run("subjects", "new", name, cwd=tmp_path)
        assert made.code == 0, made
        folder = tmp_path / "subjects" / name
        manifest, readme = ((folder / f).read_text() for f in ("subject.toml", "README.md"))
        assert 'contracts = ["my-api"]        # GET /item/1 answers an item as JSON' in manifest
        assert f"`trueload suite run my-api --subjects {name}`" in readme
    # With a program put there, it can be checked as it is.
    folder = tmp_path / "subjects/python/my-api-2"
    (folder / "server.py").write_text((folder.parent / "my-api/server.py").read_text())
    manifest = (folder / "subject.toml").read_text()
    run = 'run = ["python3", "server.py", "--listen", "{host}:{port}"]\n'
    (folder / "subject.toml").write_text(re.sub(r"(?m)^run .*\n", run, manifest))
    checked = trueload.run("subjects", "check", "python/my-api-2", cwd=tmp_path)
    assert (checked.code, checked.out.count("ok ")) == (0, 1), checked

    client = trueload.run("subjects", "new", "go/load", "--client", cwd=tmp_path)
    assert (client.code, client.out) == (2, "")
    assert "has no contract for a client" in client.err
    assert "hint: copy one there, such as http-client.toml" in client.err


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
