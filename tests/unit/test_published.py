"""Suites in the columns of their published sources, and runs as Parquet."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from report_samples import HOSTILE, put, read
from trueload.errors import UserError
from trueload.published import tables as data
from trueload.report.export.parquet import write_parquet
from trueload.report.grid import Grid
from trueload.report.published import as_csv, as_html, as_text, sheets
from trueload.report.sheets import TRIALS, Sheet, trials_sheet
from trueload.report.suite_json import read_plan
from trueload.store.rows import Row
from trueload.store.runs import Store
from trueload.subjects.selection import select_subjects
from trueload.suites.load_tables import tabulate
from trueload.suites.summary import collect


def as_tcp(value: dict[str, Any]) -> dict[str, Any]:
    """Turn a suite's run into one of TCP echo, whose first subject is in the published table."""
    plan = value["plan"]
    rows = [{"name": "theirs", "value": 158.0, "subject": plan["subjects"][0]["name"]}]
    title, connections = "As published", plan["loads"][0]["connections"]
    table = {"title": title, "connections": connections, "rows": rows}
    return {**value, "plan": {**plan, "contract": "tcp-echo", "published_tables": [table]}}


def as_suite(value: dict[str, Any]) -> dict[str, Any]:
    """Turn a broadcast into the trial of a suite."""
    plan = {**read("suite")["plan"], "broadcast": BROADCAST}
    labels = {"subject": "go/gorilla", "repetition": "r1"}
    rows = [{**row, "labels": {**labels, **row["labels"]}} for row in value["rows"]]
    return {**value, "kind": "suite", "plan": plan, "rows": rows}


BROADCAST = {"limit": "p95<500ms", "concurrent": 4, "padding_bytes": 200, "steps": None}
RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    "suite": lambda: read("suite"),
    "broadcast": lambda: as_suite(read("broadcast")),
    "tcp": lambda: as_tcp(read("suite")),
    "c10k": lambda: read("c10k"),
    "clients": lambda: read("clients"),
}


def sheets_of(name: str, folder: Path) -> list[Grid]:
    with Store.open(folder / "store.sqlite") as store:
        run = put(store, RUNS[name]())
        plan = read_plan(run)
        tables = [] if plan.broadcast else tabulate(collect(plan, store.rows(run)), plan)
        return sheets(plan, tables, store.rows(run))


NOTED = {"suite": "Published times are of answers", "broadcast": "of answers", "c10k": "Ours:"}


@pytest.mark.parametrize("name", RUNS)
def test_where_times_stand_it_is_said_whose_they_are(name: str, tmp_path: Path) -> None:
    made = sheets_of(name, tmp_path)
    for text in (as_text(made), as_html(made)):
        assert ("of answers" in text) is (name in NOTED)
        assert NOTED.get(name, "") in text


COLUMNS = {
    "suite": (
        *("whose", "Language", "Framework", "Category", "Name", "Res[B]", "Req", "Err", "RPS"),
        *("BPS", "min", "25%", "50%", "75%", "99%", "max", "verdict"),
    ),
    "broadcast": (
        *("whose", "clients", "95per-rtt", "min-rtt", "median-rtt", "max-rtt", "verdict"),
    ),
    "clients": (
        *("whose", "Client", "Pool Count", "Pool Size", "Concurrency", "Req/sec", "Error %"),
        "verdict",
    ),
    "tcp": ("whose", "server", "k requests/s", "verdict"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_suite_has_the_published_columns(name: str, tmp_path: Path) -> None:
    made = sheets_of(name, tmp_path)
    assert made
    for sheet in made:
        assert sheet.header == COLUMNS[name]
        assert {row[0] for row in sheet.rows} <= {"ours", "published"}
        assert all(len(row) == len(sheet.header) for row in sheet.rows)
        assert any(row[0] == "ours" for row in sheet.rows)


def test_c10k_has_every_published_figure_with_ours_beside(tmp_path: Path) -> None:
    for sheet in sheets_of("c10k", tmp_path):
        assert sheet.header[0] == "figure"
        names = [row[0] for row in sheet.rows]
        assert names == [*data.c10k_figures(), "verdict"]
        assert all(len(row) == len(sheet.header) for row in sheet.rows)


def test_published_rows_stand_below_those_of_the_same_subject(tmp_path: Path) -> None:
    (first, *_) = sheets_of("tcp", tmp_path)
    subject = read("suite")["plan"]["subjects"][0]["name"]
    names = [row[1] for row in first.rows]
    assert names[names.index(subject) + 1] == "theirs"
    assert first.rows[0][0] == "ours", "a published figure never leads"
    (steps,) = sheets_of("broadcast", tmp_path)
    theirs = [row[1:-1] for row in steps.rows if row[0] == "published"]
    assert theirs[0][:2] == ("1000", str(data.broadcast_steps()["Go / Gorilla"][0].cells[0]))


def test_the_published_data_is_whole_and_names_subjects_that_exist() -> None:
    root = Path(__file__).resolve().parents[2] / "subjects"
    named = {row.subject for row in data.server_rows()} | set(data.OF_BROADCASTS)
    named |= {row.subject for row in data.client_rows()}
    assert named - {""} <= {subject.name for subject in select_subjects(root, [])}
    best = max(data.client_rows(), key=lambda row: int(row.cells[4]))
    assert best.cells == ("Buoy", "1", "1024", "4096", "101280", "79.6")
    assert (len(data.server_rows()), len(data.client_rows())) == (180, 538)


def test_only_these_published_rows_have_no_subject() -> None:
    servers = {row.cells["Framework"] for row in data.server_rows() if not row.subject}
    assert servers == {"adio-http", "mecca"}
    assert all(row.subject for row in data.client_rows())
    assert set(data.broadcast_steps()) - set(data.OF_BROADCASTS.values()) == {
        "C++ / Crow / RapidJSON -- 8 threads",
        "C++ / WebsocketPP / jsoncpp -- 8 thread",
    }


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]


def test_whatever_a_cell_holds_is_inert() -> None:
    evil = (*HOSTILE, "+1", "-1", "@x", "\t=1", "=1+1")
    sheet = Grid(("a",), tuple((text,) for text in evil), HOSTILE[0])
    cells = [cell for row in csv.reader(io.StringIO(as_csv([sheet]))) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
    page = Tags(as_html([sheet]))
    expected = {
        "html",
        "head",
        "meta",
        "title",
        "body",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert page.seen == expected
    assert all(char.isprintable() or char == "\n" for char in as_text([sheet]))


@pytest.mark.parametrize("name", ["suite", "broadcast", "http", "failed"])
def test_a_run_is_parquet_with_a_column_for_each_of_csv(name: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        run = put(store, read(name))
        rows = [row for row in store.rows(run) if isinstance(row, Row)]
        write_parquet(trials_sheet(run.id, store.rows(run)), tmp_path / "run.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert tuple(table.column_names) == tuple(each.name for each in TRIALS)
    assert table.num_rows == len(rows)
    rates = [row.record.throughput.ok_per_s if row.record else None for row in rows]
    assert table.column("ok_per_s").to_pylist() == rates


def test_a_mean_that_is_no_whole_number_is_written_as_it_is(tmp_path: Path) -> None:
    columns = tuple(each for each in TRIALS if each.name == "redirects_mean")
    write_parquet(Sheet(columns, [{"redirects_mean": 1.5}]), tmp_path / "run.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert table.column("redirects_mean").to_pylist() == [1.5]


def test_without_pyarrow_one_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="needs pyarrow") as refused:
        write_parquet(Sheet(TRIALS, ()), tmp_path / "run.parquet")
    assert refused.value.hint == "pip install 'trueload[parquet]'"
