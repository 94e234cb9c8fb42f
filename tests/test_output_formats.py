"""The formats of a result: one object, rows, or nothing."""

from __future__ import annotations

import csv
import io
import json

import pytest
from harness import Trueload, start_server

pytestmark = pytest.mark.engine

FEW = ("-c", "1", "--requests", "20")


@pytest.fixture
def url(trueload: Trueload) -> str:
    return start_server(trueload).url


def test_json_is_one_object_on_stdout_and_the_text_is_for_people(
    trueload: Trueload, url: str
) -> None:
    done = trueload.run("http", url, *FEW, "--format", "json")
    whole = json.loads(done.out)
    assert whole["counts"]["ok"] == 20
    assert "20 ok" in done.err
    assert json.loads(trueload.run("http", url, *FEW, "--json", "-").out).keys() == whole.keys()


def test_csv_has_a_row_for_each_trial(trueload: Trueload, url: str) -> None:
    done = trueload.run("http", url, *FEW, "--repeat", "2", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["number"], row["ok"]) for row in rows] == [("1", "20"), ("2", "20")]
    assert len({row["run"] for row in rows}) == 1
    unsaved = trueload.run("http", url, *FEW, "--no-save", "--format", "csv")
    assert [row["run"] for row in csv.DictReader(io.StringIO(unsaved.out))] == [""]


def test_markdown_is_a_table_and_of_a_search_its_steps(trueload: Trueload, url: str) -> None:
    one = trueload.run("http", url, *FEW, "--format", "markdown").out.splitlines()
    assert one[0].startswith("| row | what | requests/s |")
    assert len(one) == 3
    assert f"| 1 | {url}" in one[2]

    # No load meets this limit, so the search ends at its smallest load.
    search = ("--limit", "p99<1ns", "--rate", "100", "-c", "1", "-d", "20ms", "--warmup", "0")
    steps = trueload.run("http", url, *search, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(steps)))
    assert len(rows) > 1
    assert "load=100" in rows[0]["labels"]


def test_quiet_prints_what_was_asked_for_and_errors_alone(trueload: Trueload, url: str) -> None:
    done = trueload.run("http", url, *FEW, "--quiet")
    # 4: a machine that is busy with other tests can make it invalid.
    assert done.code in (0, 4)
    assert (done.out, done.err) == ("", "")
    rows = trueload.run("http", url, *FEW, "--quiet", "--format", "csv")
    assert (rows.out.count("\n"), rows.err) == (2, "")
    over = trueload.run("http", url, *FEW, "--quiet", "--fail-on", "throughput>1")
    assert over.code in (1, 4)
    assert over.out == ""
    assert over.err.startswith("threshold crossed: ")
    assert trueload.run("compare", url, url, *FEW, "--repeat", "2", "--quiet").out == ""
    refused = trueload.run("http", "http://127.0.0.1:1/", *FEW, "--quiet")
    assert (refused.code, refused.out) == (3, "")
    assert "connect.refused" in refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("http", "--json", "-", "--format", "csv"), "--json - and --format both write to stdout"),
        (("ws", "--json", "-", "--format", "csv"), "--json - and --format both write to stdout"),
        (("ws", "--format", "shootout"), "--format shootout works only with --mode broadcast"),
        (("http", "--format", "shootout"), "is not one of 'text', 'json', 'csv', 'markdown'"),
    ],
)
def test_what_cannot_be_printed_is_refused(
    trueload: Trueload, words: tuple[str, ...], message: str
) -> None:
    command, *flags = words
    done = trueload.run(command, f"{command}://127.0.0.1:1/", *flags)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_colours_can_be_had_in_a_pipe_and_be_done_without(trueload: Trueload, url: str) -> None:
    forced = {"NO_COLOR": "", "CLICOLOR_FORCE": "1"}
    assert "\x1b[" in trueload.run("http", url, *FEW, env=forced).out
    assert "\x1b[" not in trueload.run("http", url, *FEW, "--no-color", env=forced).out
    assert "\x1b[" not in trueload.run("http", url, *FEW, env={"NO_COLOR": ""}).out
