"""What a terminal shows: results of 80 columns and few lines, tables of 100."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_samples
from report_samples import NAMES
from samples import good_record, staged
from trueload.cli.runs import _row_lines
from trueload.record.schema import Check, Record
from trueload.report.ab import paired_lines, stored_pairs
from trueload.report.colour import painted
from trueload.report.result import repeated_lines, result_lines
from trueload.report.suite_json import read_plan as read_suite_plan
from trueload.report.table import text
from trueload.search.result import read_plan, read_steps, search_lines
from trueload.store.rows import Row, Run
from trueload.store.runs import Store
from trueload.suites.load_tables import tabulate
from trueload.suites.summary import collect
from trueload.text import folded, labelled

LONG = "word " * 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite3") as opened:
        yield opened


def with_reason(status: Any, why: str = LONG) -> Record:
    check = Check(name="noise", status=status, value=None, limit=None, why=why)
    verdict: Any = {"fail": "invalid", "warn": "suspect"}.get(status, "valid")
    return good_record().model_copy(update={"checks": (check,), "verdict": verdict})


GOOD = good_record()
assert GOOD.server is not None
ENDS = {
    "server": GOOD.server.model_copy(update={"saturation": 0.97}),
    "generator": GOOD.generator.model_copy(update={"saturation": 0.4}),
}
AT_A_RATE = {"plan": GOOD.plan.model_copy(update={"window": staged((1e4, 1e4))})}
GOOD_RUNS = {
    "a closed loop": good_record(**ENDS),
    "an open loop": good_record(**ENDS, **AT_A_RATE),
}


@pytest.mark.parametrize("name", GOOD_RUNS)
def test_a_good_run_fits_15_lines_of_80_columns_with_the_place_where_it_is_saved(name: str) -> None:
    lines = result_lines(GOOD_RUNS[name])
    assert len(lines) + 1 <= 15
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("status", ["pass", "bound", "warn", "fail"])
def test_the_verdict_is_always_below_the_headline(status: str) -> None:
    for lines in (result_lines(with_reason(status)), repeated_lines([with_reason(status)] * 3)):
        assert lines[1] == ""
        assert lines[2].startswith("verdict      ")


@pytest.mark.parametrize("words", [3, 9, 10, 11, 12, 30])
def test_a_reason_that_is_cut_keeps_its_beginning_and_its_end(words: int) -> None:
    reason = f"generator-limit: {'some word ' * words}the server may carry 7.3 % more"
    shown = folded(reason, 2)
    assert len(shown) <= 2
    assert max(map(len, shown)) <= 80
    assert shown[0].startswith("generator-limit: some word")
    assert " ".join(shown).endswith("may carry 7.3 % more")
    is_cut = "… " in shown[-1]
    assert is_cut != (" ".join(each.strip() for each in shown) == reason)


def test_a_reason_has_two_lines_and_all_of_them_with_why() -> None:
    def told(*, whole: bool) -> list[str]:
        lines = result_lines(with_reason("warn"), whole=whole)
        return [line for line in lines if "word" in line]

    brief, whole = told(whole=False), told(whole=True)
    assert (len(brief), brief[-1][:6]) == (2, "    … ")
    assert " ".join(whole).count("word") == 60
    assert all(len(line) <= 80 for line in (*brief, *whole))


def test_the_second_line_of_a_reason_is_not_grey() -> None:
    lines = result_lines(with_reason("fail"))
    at = next(number for number, line in enumerate(lines) if line.startswith("  fail"))
    assert painted(lines)[at + 1] == lines[at + 1]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("p50 1.00 ms", ["latency      p50 1.00 ms"]),
        (
            "   ".join(f"p{n} 1.00 ms" for n in range(10, 70, 10)),
            [
                "latency      p10 1.00 ms   p20 1.00 ms   p30 1.00 ms   p40 1.00 ms   p50 1.00 ms",
                "             p60 1.00 ms",
            ],
        ),
        ("x" * 90, ["latency      " + "x" * 90]),
    ],
)
def test_a_line_breaks_between_figures_first(text: str, lines: list[str]) -> None:
    assert labelled("latency", text) == lines


def test_a_url_is_never_broken() -> None:
    url = "http://host/" + "a-b/" * 40
    assert url in [line.strip() for line in folded(f"see {url} for more")]


def shown(store: Store, run: Run, rows: list[Row], *, why: bool) -> dict[int, list[str]]:
    """What a terminal shows of a stored run, by the width that it has to keep to."""
    single = [line for row in rows for line in _row_lines(row, why=why)]
    wide = []
    if run.kind == "search":
        plan = read_plan(run.plan)
        steps = [(row.labels, row.record) for row in rows if row.record]
        single += search_lines(plan, read_steps(plan, steps))
    if run.kind == "ab":
        single += paired_lines(stored_pairs(run, rows))
    if run.kind == "suite":
        suite = read_suite_plan(run)
        of_suite = text(tabulate(collect(suite, rows), suite), width=None, published=False)
        wide = of_suite.splitlines()
        if suite.broadcast is not None:
            single += [line for line in wide if gaps(line) > 3]
    return {80: single, 100: wide}


def gaps(line: str) -> int:
    """How many times columns are apart."""
    return len(re.findall(r"\S  +(?=\S)", line))


def is_of_targets(line: str) -> bool:
    """Whether it is a row of targets, steps or hosts, which has as many columns as it has."""
    return gaps(line) > 3


@pytest.mark.parametrize("why", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_run_keeps_to_the_width(store: Store, name: str, why: bool) -> None:
    run = report_samples.put(store, report_samples.read(name))
    rows = report_samples.rows(store, run)
    for width, lines in shown(store, run, rows, why=why).items():
        wider = [line for line in lines if len(line) > width and " " in line]
        assert [line for line in wider if not (run.kind == "http" and is_of_targets(line))] == []
