"""``-o FILE``: each command that measures writes its result as the ending says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import Finished, Trueload, start_server
from trueload.commands.result_files import Written, write_files
from trueload.errors import UserError

pytestmark = pytest.mark.engine

FEW = ("-c", "1", "--requests", "20", "--warmup", "0")
ENDINGS = ("html", "xml", "md", "csv", "json", "parquet")
SEARCH = ("--limit", "p99<1ns", "--rate", "100", "-c", "1", "-d", "20ms", "--warmup", "0")


@pytest.fixture
def url(trueload: Trueload) -> str:
    return start_server(trueload).url


def asked(folder: Path) -> list[str | Path]:
    return [word for ending in ENDINGS for word in ("-o", folder / f"result.{ending}")]


def seen(folder: Path, done: Finished) -> dict[str, bytes]:
    """What was written, by ending, after each file was read as what it is."""
    import pyarrow.parquet

    found = {each: (folder / f"result.{each}").read_bytes() for each in ENDINGS}
    assert b"<html" in found["html"], done
    assert ElementTree.fromstring(found["xml"]).tag == "testsuite"
    assert found["md"].startswith(b"### ")
    assert found["md"].count(b"\n") <= 15
    rows = list(csv.DictReader(found["csv"].decode().splitlines()))
    assert json.loads(found["json"])
    assert pyarrow.parquet.read_table(folder / "result.parquet").num_rows == len(rows) > 0
    return found


def cases(xml: bytes) -> dict[str, str]:
    """What became of each test case."""
    return {
        each.attrib["name"]: next((part.tag for part in each if part.tag != "system-out"), "passed")
        for each in ElementTree.fromstring(xml)
    }


@pytest.mark.parametrize("flags", [FEW, (*FEW, "--repeat", "2")], ids=str)
def test_a_run_is_written_in_every_form(
    trueload: Trueload, url: str, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    condition = ("--fail-on", "errors>1%", "--fail-on", "max>1ns")
    done = trueload.run("http", url, *flags, *condition, *asked(tmp_path))
    # 4: a machine that is busy with other tests can leave a condition undecided.
    assert done.code in (1, 4), done
    found = seen(tmp_path, done)
    state, kind = ("crossed", "failure") if done.code == 1 else ("undecided", "error")
    assert cases(found["xml"])["--fail-on max>1ns"] == kind
    assert f"threshold {state}" in found["md"].decode()


def test_a_search_is_written_in_every_form(trueload: Trueload, url: str, tmp_path: Path) -> None:
    done = trueload.run("http", url, *SEARCH, *asked(tmp_path))
    found = seen(tmp_path, done)
    assert cases(found["xml"])["--limit p99<1ns"] == "failure"
    assert b"no load keeps to p99" in found["md"]


def test_a_comparison_is_written_in_every_form(
    trueload: Trueload, url: str, tmp_path: Path
) -> None:
    done = trueload.run("ab", url, url, *FEW, "--repeat", "2", *asked(tmp_path))
    found = seen(tmp_path, done)
    assert "verdict" in cases(found["xml"])
    assert b"| throughput |" in found["md"]


@pytest.mark.parametrize(
    ("command", "where"), [("tcp", "{}"), ("udp", "{}"), ("ws", "ws://{}/echo")]
)
def test_other_protocols_are_written_too(
    trueload: Trueload, tmp_path: Path, command: str, where: str
) -> None:
    server = start_server(trueload, service=command)
    url = where.format(f"{server.host}:{server.port}")
    done = trueload.run(command, url, *FEW, *asked(tmp_path))
    assert "verdict" in cases(seen(tmp_path, done)["xml"])


def test_what_cannot_be_made_is_told_and_the_rest_is_written(tmp_path: Path) -> None:
    def fails() -> list[str]:
        raise UserError("no JSON", "none")

    result = Written(
        title="in short", told=(), table=(), cases=(), whole=fails, rows=list, run_id=None
    )
    whole, text = tmp_path / "a.json", tmp_path / "b.md"
    (error,) = write_files([whole, text], result)
    assert error.message == "no JSON"
    assert (whole.exists(), text.read_text()) == (False, "### in short\n\n")


def test_a_file_that_is_there_is_overwritten(trueload: Trueload, url: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text("old")
    assert trueload.run("http", url, *FEW, "-o", file).code in (0, 4)
    assert json.loads(file.read_text())["counts"]["ok"] == 20


def test_a_report_needs_a_stored_run(trueload: Trueload, tmp_path: Path) -> None:
    done = trueload.run("http", ":9", "--no-save", "-o", tmp_path / "page.html")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[1] == "hint: leave out --no-save"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("result", "its ending is not known"),
        ("result.txt", "its ending is not known"),
        ("nowhere/result.csv", "No such file or directory"),
    ],
)
@pytest.mark.parametrize("command", ["http", "ab", "suite run quick", "ws --mode broadcast"])
def test_a_file_that_cannot_be_is_told_before_anything_is_sent(
    trueload: Trueload, tmp_path: Path, command: str, name: str, error: str
) -> None:
    nobody = "ws://127.0.0.1:9/" if command.startswith("ws") else "http://127.0.0.1:9/"
    urls = [] if command.startswith("suite") else [nobody] * (2 if command == "ab" else 1)
    done = trueload.run(*command.split(), *urls, "-o", tmp_path / name)
    assert (done.code, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith("error: -o ")
    assert error in first
    assert second.startswith("hint: ")
