"""The figures of one record are the same on every surface."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_samples import html, put_records, run_of
from samples import GOOD_HOST, counts, good_record, histogram, staged
from trueload import stats
from trueload.api.results.result import Result
from trueload.compare.difference import Ratio
from trueload.compare.pairs import Pair, compare_pairs
from trueload.compare.trials import compare, compare_records
from trueload.metrics import names
from trueload.metrics.families import make_families
from trueload.metrics.tally import Tally
from trueload.protocol.plan import Histograms
from trueload.protocol.tick import Counts, Second, Tick
from trueload.record import figures
from trueload.record.accounts.targets import TargetRecord
from trueload.record.outcomes import Outcomes
from trueload.record.schema import Claim, Record
from trueload.record.thresholds import LIMIT, RATIO, crossed, parse_condition
from trueload.record.turn import Letter, Turn
from trueload.report.ab import PairedTrials
from trueload.report.accounts.hosts import host_line
from trueload.report.accounts.targets import target_lines
from trueload.report.apachebench import percentile_lines
from trueload.report.course import Course
from trueload.report.export import export
from trueload.report.heading import Heading
from trueload.report.html.curves import percentile_points, second_points
from trueload.report.panel import load_rows
from trueload.report.result import latency_text, result_lines, service_text
from trueload.report.rows import Size, row_text
from trueload.report.times import figure_text
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.search.broadcast_rows import clients_lines
from trueload.search.decide import Try
from trueload.search.execute import StepResult
from trueload.search.judge import judge_step
from trueload.stats import Distribution, Quantile
from trueload.store.rows import Row
from trueload.store.runs import Store
from trueload.suites.figures import figures as figures_of_row
from trueload.suites.figures import together
from trueload.trial.spec import Progress, TrialSpec
from trueload.verdict import judge
from trueload.verdict.apachebench import apachebench
from trueload.verdict.precision import check_quantile_width

MS = 1_000_000
# 10,000 requests, 6,000 answers: the median of answers alone is 1 ms, that of all requests 5 ms.
ANSWERED = ((1 * MS, 4_000), (5 * MS, 2_000))
SPARSE = {954: 4_000, 1100: 2_000}  # the same, to two digits
FATE: dict[str, Any] = {"ok": 6_000, "failed": {"reset": 2_000}, "cancelled": 1_000}
COUNTS = counts(**FATE, unsent=1_000, issued=9_000, statuses={"200": 6_000})


def record_of(counted: Counts, **changes: Any) -> Record:
    encoded = histogram(*ANSWERED)
    made = good_record(
        counts=counted,
        histograms=Histograms(
            latency=encoded, service=encoded, connect=None, first_byte=encoded, total=encoded
        ),
        **changes,
    )
    return judge(figures.with_figures(made))


TARGET = TargetRecord(
    name="one",
    method="GET",
    url="http://h/",
    weight=1,
    counts=Outcomes(**{**FATE, "cancelled": 2_000}, issued=10_000, stale=0, statuses={}),
    latency_ns=Distribution(),
    latency=SPARSE,
)
PLAN = good_record().plan
RECORD = record_of(
    COUNTS,
    targets=(TARGET,),
    plan=PLAN.model_copy(
        update={"window": staged((10_000, 10_000)), "claim": Claim(percentile="p99")}
    ),
    series=tuple(Second(t_s=s, ok=6_000, failed=4_000, latency=SPARSE) for s in range(3)),
    window=good_record().window.model_copy(update={"window_ns": 3_000_000_000}),
)
# The same, but with every request answered.
WHOLE = record_of(counts(scheduled=6_000, issued=6_000, ok=6_000, statuses={"200": 6_000}))
TRUTH = figures.latency(RECORD).figures
TEXT = ("5.00 ms", "> 5.00 ms")
TWO_DIGITS = {"5.05 ms": TEXT[0], "> 5.05 ms": TEXT[1]}


def test_the_rule_counts_what_has_no_time_as_slower_than_any_answer() -> None:
    assert figures.without_time(COUNTS) == 4_000
    assert figures.without_service(COUNTS) == 3_000, "what was never sent has no service time"
    assert TRUTH.at("p25") == Quantile(
        TRUTH.min and stats.decode_histogram(histogram((1 * MS, 1))).highs[0], above=False
    )
    assert (TRUTH.at("p50").above, TRUTH.p50) == (False, TRUTH.max)
    assert TRUTH.at_least == ("p75", "p90", "p95", "p99", "p999")
    assert TRUTH.count == 6_000, "of answers"
    assert TRUTH.mean == pytest.approx((4_000 * 1 + 2_000 * 5) / 6_000 * MS, rel=1e-3)
    assert TRUTH.max == pytest.approx(5 * MS, rel=1e-3)


def _in_text(text: str) -> tuple[str, ...]:
    """p50 and p99 as the words of a line."""
    found = dict(re.findall(r"(p50|p99) +(> \S+ \S+?|\S+ \S+?)(?=,|\s\s|$)", text))
    return found["p50"], found["p99"]


def _csv() -> tuple[str, ...]:
    [line] = csv.DictReader(io.StringIO("".join(export(*run_of(RECORD), "csv"))))
    return tuple(
        _shown(int(line[f"latency_{name}_ns"]), name in line["latency_at_least"].split("; "))
        for name in ("p50", "p99")
    )


def _json() -> tuple[str, ...]:
    found = json.loads("".join(export(*run_of(RECORD), "json")))["rows"][0]["record"]["latency_ns"]
    return tuple(_shown(found[name], name in found["at_least"]) for name in ("p50", "p99"))


def _shown(ns: float, above: bool) -> str:
    return f"{'> ' if above else ''}{ns / MS:.2f} ms"


def _markdown() -> tuple[str, ...]:
    line = "".join(export(*run_of(RECORD), "markdown")).splitlines()[-1]
    p50, p99 = (cell.strip() for cell in line.split("|")[6:8])
    return p50, p99.replace("&gt;", ">").replace("\\", "")


def _frame() -> tuple[str, ...]:
    [row] = Result(records=(RECORD,)).rows()
    return tuple(
        _shown(float(str(row[f"latency_{name}_ns"])), name in str(row["latency_at_least"]))
        for name in ("p50", "p99")
    )


def _table() -> tuple[str, ...]:
    found = together([figures_of_row(RECORD, {})] * 3)
    return tuple(
        _shown(getattr(found.latency, name), name in found.latency_at_least)
        for name in ("p50", "p99")
    )


def _apachebench() -> tuple[str, ...]:
    lines = percentile_lines(apachebench(RECORD))
    return tuple(
        f"{next(line for line in lines if line.startswith(f'  {name}%'))[5:].strip()}.00 ms"
        for name in ("50", "99")
    )


def _target() -> tuple[str, ...]:
    cells = re.split(r"\s{2,}", target_lines(RECORD)[-2].strip())
    return tuple(cells[-3:-1])


def _host() -> tuple[str, ...]:
    return _in_text(host_line(replace_host(latency_ns=RECORD.latency_ns)))


def replace_host(**changes: Any) -> Any:
    return GOOD_HOST.model_copy(update=changes)


def _panel() -> tuple[str, ...]:
    course = Course()
    zero = counts(scheduled=0, ok=0, issued=0, statuses={})
    for at_s, counted, sparse in ((1, zero, {}), (2, COUNTS, SPARSE)):
        tick = Tick(
            type="tick",
            at_ns=at_s * 10**9,
            id="window",
            counts=counted,
            latency=sparse,
            service={},
            open=1,
            bytes_in=0,
            bytes_out=0,
            busiest_ns=0,
        )
        course.receive(Progress("window", at_s * 10**9, tick), is_open=True)
    spec = TrialSpec(
        url="http://h/", addresses=("h:1",), traffic=Traffic(request=Request(host="h"))
    )
    progress = Progress("window", 2 * 10**9, tick)
    rows = load_rows(spec, progress, course, Heading(""), Size(40, 40))
    found = [re.split(r"\s{2,}", row_text(row)) for row in rows]
    cells = {cells[0]: cells[1] for cells in reversed(found) if len(cells) > 1}
    return cells["p50"], cells["p99"]


def _metrics() -> tuple[str, ...]:
    tally = Tally.of(
        TrialSpec(url="http://h/", addresses=("h:1",), traffic=Traffic(request=Request(host="h"))),
        (),
        (),
        0,
    ).receive(Progress("ended", 0, None, record=RECORD))
    [family] = [each for each in make_families([tally]) if each.metric is names.PERCENTILE]
    found = {dict(each.labels)["quantile"]: each.value for each in family.samples}
    assert found["0.99"] == math.inf
    assert found["1"] == pytest.approx(0.005, rel=1e-3), "of answers"
    return _shown(float(str(found["0.5"])) * 1e9, above=False), TEXT[1]


def _thresholds() -> tuple[str, ...]:
    assert figures.metric_value("p99", RECORD) == math.inf
    assert crossed([parse_condition("p99>1h")], [RECORD])
    return _shown(figures.metric_value("p50", RECORD), above=False), TEXT[1]


def _search() -> tuple[str, ...]:
    judged = judge_step(RECORD, parse_condition("p50<6ms and p99<6ms", LIMIT), "bracket")
    p50, p99 = (each.value for each in judged.values)
    assert p99 == math.inf
    return _shown(p50, above=False), TEXT[1]


def _of_ratios(found: list[Ratio]) -> tuple[str, ...]:
    by_metric = {each.metric: each for each in found}
    assert by_metric["p99"].new == math.inf
    return _shown(by_metric["p50"].new, above=False), TEXT[1]


def _curve() -> tuple[str, ...]:
    points = percentile_points(RECORD)
    assert max(point.share for point in points) <= 0.6
    p50 = next(point for point in points if point.share == 0.5)
    return _shown(p50.ns, above=False), TEXT[1]


def _seconds() -> tuple[str, ...]:
    points = second_points(RECORD)
    assert [point.p99_ns for point in points] == [None] * 3
    return _shown(points[0].p50_ns or 0, above=False), TEXT[1]


SURFACES: dict[str, Callable[[], tuple[str, ...]]] = {
    "text": lambda: _in_text(latency_text(RECORD)),
    "text of the service time": lambda: _in_text(service_text(RECORD)),
    "JSON": _json,
    "CSV": _csv,
    "Markdown": _markdown,
    "data frame": _frame,
    "table": _table,
    "ApacheBench": _apachebench,
    "target": _target,
    "host": _host,
    "live panel": _panel,
    "metrics": _metrics,
    "thresholds": _thresholds,
    "search": _search,
    "runs diff": lambda: _of_ratios(compare_records([WHOLE], [RECORD])),
    "ab": lambda: _of_ratios(compare_pairs([Pair(a=WHOLE, b=RECORD)])),
    "curve": _curve,
    "seconds": _seconds,
    "Python": lambda: (
        str(Result(records=(RECORD,)).latency.p50), str(Result(records=(RECORD,)).latency.p99)
    ),
    "Python's service time": lambda: (
        str(Result(records=(RECORD,)).service.p50), str(Result(records=(RECORD,)).service.p99)
    ),
}  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_says_the_same_of_one_record(surface: str) -> None:
    assert tuple(TWO_DIGITS.get(each, each) for each in SURFACES[surface]()) == TEXT


def few(number: int) -> Record:
    """A record of ``number`` requests, all answered."""
    encoded = histogram((1 * MS, number))
    return good_record(
        counts=counts(scheduled=number, issued=number, ok=number, statuses={"200": number}),
        histograms=RECORD.histograms.model_copy(update={"latency": encoded}),
    )


NAMES = ("p50", "p90", "p95", "p99", "p99.9")


@pytest.mark.parametrize(
    ("number", "known"),
    [(5, ()), (367, ("p50", "p90", "p95")), (368, ("p50", "p90", "p95", "p99")), (3_688, NAMES)],
)
def test_a_percentile_of_too_few_requests_is_not_printed(
    number: int, known: tuple[str, ...]
) -> None:
    shown = {name: "1.00 ms" if name in known else "too few" for name in NAMES}
    record = few(number)
    expected = "   ".join(f"{name} {text}" for name, text in shown.items())
    most = "max" if number == 3_688 else f"largest of {number}"
    assert latency_text(record) == f"{expected}   {most} 1.00 ms"
    p99 = shown["p99"]
    assert p99 in "".join(export(*run_of(record), "markdown"))
    assert figure_text(figures_of_row(record, {}), "p99") == p99
    assert figure_text(together([figures_of_row(record, {})] * 3), "p99") == p99


def test_what_has_no_time_is_told_however_few_there_are() -> None:
    record = few(5).model_copy(update={"counts": counts(ok=5, issued=10, failed={"reset": 5})})
    assert "p99 > 1.00 ms" in latency_text(record)
    assert "largest of 5 answers 1.00 ms" in latency_text(record)


def test_of_several_trials_the_middle_one_decides_everywhere() -> None:
    slow = record_of(counts(scheduled=6_000, issued=6_000, ok=6_000))
    nothing = Histograms(latency=None, service=None, connect=None, first_byte=None, total=None)
    none = good_record(counts=counts(ok=0, failed={"reset": 10_000}), histograms=nothing)
    quick = good_record()
    for trials, p99 in (
        ([quick, RECORD, slow], "5.00 ms"),
        ([RECORD, quick, RECORD], "> 5.00 ms"),
        ([quick, RECORD, RECORD, quick], "> 3.00 ms"),
        ([none, RECORD, quick], "> 1.00 ms"),
        ([none, none, quick], "unknown"),
    ):
        found = together([figures_of_row(each, {}) for each in trials])
        above = "p99" in found.latency_at_least
        assert found.latency.p99 is None or _shown(found.latency.p99, above) == p99
        assert str(Result(records=tuple(trials)).latency.p99) == p99
        assert bool(crossed([parse_condition("p99>1h")], trials)) is (p99[0] != "5")


def test_the_row_of_a_broadcast_says_so_too() -> None:
    limit = parse_condition("p50<1h", LIMIT)
    taken = StepResult(Try(100, "bracket"), RECORD, judge_step(RECORD, limit, "bracket"))
    row = re.split(r"\s{2,}", clients_lines(taken)[0].strip())
    assert row[1] == "> 5.00 ms"


def test_the_report_says_so_too(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        page = html(store, put_records(store, [RECORD]))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert "&gt; 5.00 ms" in cells
    assert "max of answers" in page


def test_the_check_of_the_claimed_percentile_does_not_know_it_either() -> None:
    assert "p99 is not known" in check_quantile_width(RECORD).why


def test_mean_and_max_are_of_answers_on_every_surface() -> None:
    [row] = Result(records=(RECORD,)).rows()
    result = Result(records=(RECORD,))
    for name in ("min", "mean", "max"):
        truth = getattr(TRUTH, name)
        assert figures.metric_value(name, RECORD) == truth
        assert getattr(RECORD.latency_ns, name) == row[f"latency_{name}_ns"] == truth
        assert float(getattr(result.latency, name)) == pytest.approx(truth / 1e9)
    assert "max of answers 5.00 ms" in "\n".join(result_lines(RECORD))
    assert "max 5.00 ms" in latency_text(WHOLE), "where all were answered it is that of all"
    [mean] = [each for each in compare_records([WHOLE], [RECORD]) if each.metric == "mean"]
    assert mean.new == mean.base


def without_checks(record: Record) -> Record:
    """A record that no other check stands against."""
    return record.model_copy(update={"checks": (), "verdict": "valid", "bounds": None})


@pytest.mark.parametrize("metric", ["mean", "max"])
@pytest.mark.parametrize("lost", [{"failed": {"reset": 1}}, {"cancelled": 1}, {"unsent": 1}])
def test_no_threshold_on_answers_passes_because_a_request_has_no_time(
    metric: str, lost: dict[str, Any]
) -> None:
    one = record_of(counts(ok=6_000, issued=6_001 - lost.get("unsent", 0), scheduled=6_001, **lost))
    condition = parse_condition(f"{metric}>1h")
    assert not crossed([condition], [WHOLE])
    [found] = crossed([condition], [one])
    assert f"{metric} of answers is" in found.sentence()
    assert "1 request that failed, was left open or was never sent" in found.sentence()
    # A metric over all requests is left as it is, and so is a condition that contains one.
    assert not crossed([parse_condition(f"{metric}>1h and errors>50%")], [one])
    assert not crossed([parse_condition("min>1h")], [one])
    limit = parse_condition(f"{metric}<1h", LIMIT)
    assert judge_step(without_checks(WHOLE), limit, "bracket").outcome == "kept"
    judged = judge_step(without_checks(one), limit, "bracket")
    assert judged.outcome == "exceeded"
    assert "1 request that failed" in judged.why


def test_a_ratio_of_means_is_no_better_for_requests_without_a_time() -> None:
    condition = [parse_condition("mean>1.2", RATIO)]
    # One in a thousand fails no check, and the ratio itself is 1.
    good = without_checks(WHOLE)
    worse = record_of(counts(ok=6_000, scheduled=6_001, issued=6_001, failed={"reset": 1}))
    bad = without_checks(worse)
    sides = {"": [good] * 6}, {"": [bad] * 6}
    equal, better = compare(sides[0], sides[0], condition), compare(sides[1], sides[0], condition)
    assert [each.ruling.state for each in equal.rulings] == ["kept"]
    assert [each.ruling.state for each in better.rulings] == ["kept"], "the base may be worse"
    [found] = compare(*sides, condition).rulings
    assert found.ruling.state == "crossed"
    assert "mean of answers is" in found.sentence()
    assert "6 requests that failed, were left open or were never sent" in found.sentence()
    pair: tuple[tuple[Letter, Record], ...] = (("a", good), ("b", bad))
    taken = [(Turn(number, letter), record) for number in range(1, 7) for letter, record in pair]
    paired = PairedTrials.of(("a", "b"), taken, seed=1, conditions=condition)
    assert "mean of answers of B" in paired.sentences("crossed")[0]


def test_a_stored_record_of_an_older_version_shows_the_figures_of_the_rule(tmp_path: Path) -> None:
    encoded = RECORD.histograms.latency
    old = replace(stats.summarise(stats.decode_histogram(encoded)))
    older = RECORD.model_copy(
        update={"latency_ns": old, "service_ns": old, "first_byte_ns": old, "total_ns": old}
    )
    assert older.latency_ns.p99 == older.latency_ns.max
    assert older.latency_ns.at_least == ()
    with Store.open(tmp_path / "s") as store:
        run = put_records(store, [older])
        [row] = store.rows(run)
    assert isinstance(row, Row)
    assert row.record is not None
    assert row.record.latency_ns == TRUTH
    assert row.record.targets == RECORD.targets
