"""A percentile of too few requests is printed nowhere; a maximum of few says how few.

How: stored runs of every kind get the times of 100 requests, one of which is at the rank of p99, or
of five requests. Every surface for people is then searched for that time.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from client_samples import CLAIM, LATE, SEEN, good_client_record
from report_samples import html, put, read
from samples import GOOD_HOST, counts, good_record, histogram
from trueload.api.results.stored import load_run
from trueload.cli.runs import _row_lines
from trueload.compare.trials import compare
from trueload.errors import UserError
from trueload.metrics import names
from trueload.metrics.families import make_families
from trueload.metrics.tally import Tally
from trueload.protocol.plan import Histograms
from trueload.record import figures
from trueload.record.accounts.targets import TargetRecord
from trueload.record.outcomes import Outcomes
from trueload.record.schema import Record
from trueload.record.thresholds import LIMIT, RATIO, crossed, parse_condition
from trueload.report.ab import compared
from trueload.report.accounts.hosts import host_line
from trueload.report.accounts.targets import target_lines
from trueload.report.apachebench import report_text
from trueload.report.client_result import client_lines
from trueload.report.compare import ShownComparison, render
from trueload.report.export import export
from trueload.report.html.curves import percentile_points
from trueload.report.published import as_text, sheets
from trueload.report.result import repeated_lines, result_lines
from trueload.report.server_report import seen_lines
from trueload.report.suite_json import read_plan
from trueload.report.table import text
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.search.judge import judge_step
from trueload.stats import RANKED, Distribution, can_bound, highest_bounded, is_too_few
from trueload.store.rows import Row, Run
from trueload.store.runs import Store
from trueload.suites.load_tables import LoadTable, tabulate
from trueload.suites.summary import collect
from trueload.trial.spec import Progress, TrialSpec

MS = 1_000_000
# The time at the rank of p99 or of the median, and the largest; no other figure has their digits.
AT_RANK, LARGEST = "7.77", r"\b4\.?56"
FEW: dict[str, Mapping[int, int]] = {
    "p99 of 100": {1 * MS: 90, 2 * MS: 8, 7_770_000: 1, 4_560_000_000: 1},
    "p50 of 5": {1 * MS: 2, 7_770_000: 1, 9 * MS: 1, 4_560_000_000: 1},
}


def few(record: Record, times: Mapping[int, int]) -> Record:
    """The record as if only these requests had been sent and answered."""
    number, encoded = sum(times.values()), histogram(*times.items())
    answered = counts(scheduled=number, issued=number, ok=number, statuses={"200": number})
    every = Histograms(
        latency=encoded, service=encoded, connect=None, first_byte=encoded, total=encoded
    )
    changed = record.model_copy(
        update={"counts": answered, "histograms": every, "checks": (), "series": (), "client": None}
    )
    return figures.with_figures(changed)


def stored(name: str, times: Mapping[int, int]) -> dict[str, Any]:
    """An exported run in which every record has these times."""
    value = read(name)
    for row in value["rows"]:
        if row["record"] is not None:
            record = Record.model_validate_json(json.dumps(row["record"]))
            row["record"] = few(record, times).model_dump(mode="json")
    return value


def seen(page: str) -> str:
    """The text that a reader of HTML sees, including drawings."""
    page = re.sub(r"(?s)<(script|style).*?</\1>", "", page)
    return re.sub(r"<[^>]*>", " ", page)


def surfaces_of(store: Store, run: Run) -> Iterator[tuple[str, str]]:
    """Yield every text for people about a stored run."""
    rows = [row for row in store.rows(run) if isinstance(row, Row) and row.record is not None]
    records = [row.record for row in rows if row.record is not None]
    for record in records[:2]:
        yield "text", "\n".join(result_lines(record))
    yield "trials", "\n".join(repeated_lines(records[:3]))
    yield "runs show", "\n".join("\n".join(_row_lines(row, why=True)) for row in rows)
    yield "Markdown", "".join(export(run, rows, "markdown"))
    yield "report", seen(html(store, run))
    with suppress(UserError):  # runs without a result in Python
        result: Any = load_run(store, run.id)
        yield "Python", f"{result!r} {result}"
        yield "notebook", seen(result._repr_html_())
        if run.kind == "ab":
            shown = compared(result.paired)
            yield from ((f"ab {kind}", render(shown, kind)) for kind in ("markdown", "junit"))
    both = compare({"": records}, {"": records}, GATES)
    for kind in ("text", "markdown", "junit"):
        yield f"runs diff {kind}", render(ShownComparison("a", "b", both), kind)
    if run.kind == "suite":
        yield from _of_suite(run, rows)


GATES = [parse_condition(text, RATIO) for text in ("throughput<0.5", "p99.95>2")]


def _of_suite(run: Run, rows: list[Row]) -> Iterator[tuple[str, str]]:
    plan = read_plan(run)
    tables: list[LoadTable] = tabulate(collect(plan, rows), plan)
    yield "table", text(tables, width=None, published=False)
    yield "published", as_text(sheets(plan, tables, rows))
    yield "ApacheBench", report_text(tables)


KINDS = ("http", "ab", "suite", "c10k", "search", "broadcast", "stages")
CASES = [*((name, "p99 of 100") for name in KINDS), *((n, "p50 of 5") for n in ("http", "suite"))]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_what_few_requests_do_not_say_is_on_no_surface(
    tmp_path: Path, name: str, what: str
) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        run = put(store, stored(name, FEW[what]))
        for surface, text in surfaces_of(store, run):
            # It must not match a time of day, such as 17:01:57.776.
            assert not re.search(rf"(?<!\d){re.escape(AT_RANK)}", text), (
                f"{surface}: {around(text, AT_RANK)}"
            )
            if re.search(LARGEST, text):
                assert "argest of " in text or "longest of " in text, surface


def around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 200) : at + 100]


FEW_RECORD = few(good_record(), FEW["p99 of 100"])
FEW_LATE = LATE.model_copy(update={"count": 100})
TARGET = TargetRecord(
    name="one",
    method="GET",
    url="http://h/",
    weight=1,
    counts=Outcomes(ok=100, issued=100, failed={}, cancelled=0, stale=0, statuses={}),
    latency_ns=Distribution(),
    latency={1130: 1, 955: 99},
)


def _metrics() -> str:
    spec = TrialSpec(
        url="http://h/", addresses=("h:1",), traffic=Traffic(request=Request(host="h"))
    )
    tally = Tally.of(spec, (), (), 0).receive(Progress("ended", 0, None, record=FEW_RECORD))
    [family] = [each for each in make_families([tally]) if each.metric is names.PERCENTILE]
    found = {dict(each.labels)["quantile"]: each.value for each in family.samples}
    assert found["1"] == pytest.approx(4.56, rel=1e-3), "the largest stays a number"
    return " ".join(found)


def _csv() -> str:
    run = Run(1, "r", "http", "t", (), None, None, FEW_RECORD.started_at, "finished", None, 1)
    row = Row(1, 1, "", {}, "measured", None, None, FEW_RECORD.started_at, FEW_RECORD)
    [line] = csv.DictReader(io.StringIO("".join(export(run, [row], "csv"))))
    assert line["latency_max_ns"].startswith("456")
    return f"{line['latency_too_few']}: too few"


def _crossed() -> str:
    [found] = crossed([parse_condition("p99>5ms and p50<1h")], [FEW_RECORD])
    assert found.sentence().startswith("p99 of too few requests is 7.77 ms and p50 is 1.00 ms")
    return "p99: too few"


def _limit() -> str:
    judged = judge_step(FEW_RECORD, parse_condition("p99<5ms", LIMIT), "bracket")
    assert (judged.outcome, judged.values[0].sentence()) == ("exceeded", "p99 too few")
    return judged.values[0].sentence()


def _client() -> str:
    claim = good_client_record(claim=CLAIM.model_copy(update={"ok": 100})).client
    assert claim is not None
    return dict(client_lines(good_client_record(), claim))["claims"]


RECORDS: dict[str, tuple[Callable[[], str], str, str]] = {
    "metrics": (_metrics, r"0\.5 0\.9 0\.95 1", r"0\.99"),
    "CSV": (_csv, "p99; p999: too few", "p95"),
    "a condition": (_crossed, "too few", "ms"),
    "a limit": (_limit, "p99 too few", "ms"),
    "a target": (
        lambda: "\n".join(target_lines(FEW_RECORD.model_copy(update={"targets": (TARGET,)}))),
        r"ms +too few +\S+ ms \(largest of 100\)",
        "> ",
    ),
    "a host": (
        lambda: host_line(GOOD_HOST.model_copy(update={"latency_ns": FEW_RECORD.latency_ns})),
        "p99 too few",
        AT_RANK,
    ),
    "a curve": (
        lambda: f"{max(p.share for p in percentile_points(FEW_RECORD)):.2f}",
        r"0\.96",
        r"0\.99",
    ),
    "a server's view": (
        lambda: seen_lines(SEEN.model_copy(update={"delay_error_ns": FEW_LATE}))[-1],
        r"p50 \S+ us, p99 too few, max \S+ ms \(largest of 100\)",
        "200 us",
    ),
    "a client's claim": (_client, r"p50 \S+ ms; p99 too few", "70"),
}


@pytest.mark.parametrize("surface", RECORDS)
def test_one_record_of_few_requests_says_so(surface: str) -> None:
    shown, pattern, absent = RECORDS[surface]
    assert re.search(pattern, shown()), shown()
    assert not re.search(absent, shown()), shown()


@pytest.mark.parametrize(
    ("name", "enough"), [("p50", 6), ("p90", 36), ("p95", 72), ("p99", 368), ("p999", 3_688)]
)
def test_how_many_requests_a_percentile_takes(name: str, enough: int) -> None:
    share = RANKED[name]
    assert not is_too_few(name, enough)
    assert is_too_few(name, enough - 1)
    assert can_bound(share, enough)
    assert highest_bounded(enough) >= share > highest_bounded(enough - 1)
    assert not is_too_few("max", 1)
