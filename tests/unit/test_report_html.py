"""Reports as HTML: what is gathered, said, drawn and shown of real runs, of odd ones and of hostile
ones. That a browser is of the same opinion is in ``test_report_browser.py``."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest
from report_samples import HOSTILE, NAMES, hostile, html, made, put, put_records, read, report_of
from samples import counts, good_record, histogram, staged
from trueload.protocol.plan import Histograms
from trueload.protocol.tick import Second
from trueload.published.tables import broadcast_curves
from trueload.record.schema import CoreLatency, Record
from trueload.repetitions import Interval
from trueload.report.html import draw
from trueload.report.html.charts import load_curve, percentiles, ranking, ratios
from trueload.report.html.charts.heat_map import Field, heat_map
from trueload.report.html.charts.resources import byte_ticks
from trueload.report.html.charts.theme import COLOURS, log_ticks
from trueload.report.html.curves import (
    RateLatency,
    largest_kept,
    offered_points,
    percentile_points,
    second_points,
)
from trueload.report.html.entries import in_order, with_own_names
from trueload.report.html.page import policy, stylesheet
from trueload.report.html.view import heat_fields
from trueload.report.html.words import remarks, results
from trueload.stats import Distribution
from trueload.store.runs import Store
from trueload.suites.load_tables import LoadTable
from trueload.suites.plan import Cell, PlannedLoad, PlannedSubject
from trueload.suites.pools import PlannedPools
from trueload.suites.summary import Summary, Trial
from trueload.verdict import judge

XHTML = "{http://www.w3.org/1999/xhtml}"
KNOWN = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "div",
        "p",
        "b",
        "h1",
        "h2",
        "h3",
    ),
    *("span", "ul", "li", "strong", "nav", "a", "main", "section", "table", "thead", "tbody", "tr"),
    "code",
    *("th", "td", "figure", "figcaption", "details", "summary", "pre", "dl", "dt", "dd", "footer"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite3") as opened:
        yield opened


def parsed(text: str) -> Any:
    """The page as a browser reads it; a page that is no proper HTML fails."""
    parser = html5lib.HTMLParser(strict=True)
    return parser.parse(text)


def assert_inert(text: str) -> None:
    """Nothing in the page acts, loads or leads away."""
    seen = set()
    for element in parsed(text).iter():
        namespace, _, name = str(element.tag).rpartition("}")
        seen.add(name)
        if f"{namespace}}}" == XHTML:
            assert name in KNOWN, f"the page has an element of its own: {name}"
        else:
            assert name in draw.ELEMENTS, f"a drawing has an element of its own: {name}"
        for attribute, value in element.attrib.items():
            assert not str(attribute).lower().startswith("on"), (name, attribute)
            assert attribute not in ("src", "style", "srcdoc", "formaction"), (name, attribute)
            if attribute == "href":
                assert re.fullmatch(r"#[a-z0-9-]+", value), value
            if "url(" in value and name != "meta":
                assert attribute != "fill" or value.startswith("url(#"), value
    assert "script" not in seen
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    allowed = text_of_policy(text)
    assert allowed.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:;")
    assert "script" not in allowed
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800]", text)


def text_of_policy(page: str) -> str:
    """What the page says that it may do."""
    found = [e.get("content") for e in parsed(page).iter(f"{XHTML}meta") if e.get("http-equiv")]
    assert len(found) == 1
    return str(found[0])


def text_of(page: str) -> str:
    """What a reader sees."""
    return " ".join("".join(parsed(page).itertext()).split())


# ---- real runs


@pytest.mark.parametrize("name", NAMES)
def test_a_real_run_of_each_kind_becomes_a_page_that_does_nothing_of_itself(
    store: Store, name: str
) -> None:
    run = put(store, read(name))
    page = html(store, run)
    assert_inert(page)
    shown = text_of(page)
    assert run.id in shown
    assert "How to repeat it trueload" in shown or "trueload" in shown
    assert page.count("<svg") >= 1, "something is drawn"


CHARTS = {
    "http": {"percentiles", "latency-over-time", "throughput-over-time", "cpu"},
    "stages": {"latency-against-load", "percentiles", "latency-over-time", "throughput-over-time"},
    "search": {"latency-against-load", "percentiles", "cpu"},
    "ab": {"ranking", "percentiles", "ratios", "cpu", "memory"},
    "tcp": {"percentiles", "latency-over-time", "cpu"},
    "ws": {"percentiles", "latency-over-time", "cpu"},
    "broadcast": {"percentiles", "cpu"},  # of 40 receipts a step nobody knows the p95
    "suite": {"ranking", "percentiles", "cpu", "memory"},
    "broadcasts": {"ranking", "clients"},
    "c10k": {"ranking", "percentiles", "memory", "idle-memory"},
    "clients": {"ranking", "heat-map"},
    "targets": {"percentiles", "latency-by-step", "cpu"},
}


@pytest.mark.parametrize("name", [name for name in CHARTS if name in NAMES])
def test_each_kind_of_run_has_the_charts_that_apply_to_it(store: Store, name: str) -> None:
    view = made(store, put(store, read(name))).view
    drawn = {each.slug for part in view.parts for each in part.drawn}
    assert drawn >= CHARTS[name], "a chart is missing"
    if name not in ("search", "stages"):
        assert "latency-against-load" not in drawn


@pytest.mark.parametrize("name", NAMES)
def test_what_altair_is_told_is_what_vega_lite_knows(store: Store, name: str) -> None:
    for part in made(store, put(store, read(name))).view.parts:
        for each in part.drawn:
            each.chart.to_dict()  # validates against the schema


def test_a_suite_says_what_the_command_line_says(store: Store) -> None:
    run = put(store, read("suite"))
    found = report_of(store, run)
    for section in found.sections:
        ranked = [entry for entry in section.everything if entry.rank is not None]
        assert [e.score for e in ranked] == sorted((e.score for e in ranked), reverse=True)
    shown = text_of(html(store, run))
    for section in found.sections:
        for entry in section.measured:
            assert f"{round(entry.score):,}" in shown, entry.name


def test_a_search_shows_the_sentence_and_the_largest_load(store: Store) -> None:
    run = put(store, read("search"))
    search = report_of(store, run).sections[0].searches[0]
    shown = text_of(html(store, run))
    assert search.sentence in shown
    assert len(search.steps) == run.row_count


def test_of_a_search_the_checks_of_the_step_that_decided_count(store: Store) -> None:
    run = put(store, read("search"))
    found = report_of(store, run)
    assert {sum(tally.counts.values()) for tally in found.checks.values()} == {1}
    page = made(store, run).view
    assert page.verdict == found.sections[0].everything[0].verdict


def test_the_heat_map_of_a_client_has_its_pools_and_no_figure_of_an_invalid_row() -> None:
    def cell(pools: int, size: int, at_once: int, verdict: str) -> Summary:
        planned = PlannedLoad(
            connections=pools * size,
            pipeline=1,
            cores="multi",
            pools=PlannedPools(pools=pools, pool_size=size, concurrency=at_once),
        )
        subject = PlannedSubject(
            name="go/a",
            language="go",
            framework="a",
            variant="",
            category="",
            trap=False,
            digest="",
        )
        cell = Cell(subject, planned)
        return entry("x", 90, 110, verdict=verdict, planned=cell)

    entries = (cell(1, 64, 1024, "valid"), cell(4, 16, 1024, "invalid"))
    fields = heat_fields(LoadTable("load", "requests/s", entries))
    assert [(f.pools, f.concurrency, f.value) for f in fields["go/a"]] == [
        ("1 x 64", 1024, 100.0),
        ("4 x 16", 1024, None),
    ]


def test_several_runs_stand_side_by_side_with_ratios_to_the_first(store: Store) -> None:
    one, two = put(store, read("http")), put(store, read("http"))
    page = html(store, one, two)
    shown = text_of(page)
    assert "2 runs are shown side by side" in shown
    assert f"{two.id} against {one.id}" in shown
    assert one.id in shown
    assert two.id in shown
    assert_inert(page)
    slugs = [each.slug for part in made(store, one, two).view.parts for each in part.drawn]
    assert "ranking" in slugs
    assert "ratios" in slugs


def test_runs_of_other_kinds_stand_side_by_side_without_a_comparison(store: Store) -> None:
    page = html(store, put(store, read("suite")), put(store, read("tcp")))
    assert "have no row in common" in text_of(page)
    assert_inert(page)


def test_secrets_of_a_command_are_not_shown(store: Store) -> None:
    words = ("trueload", "http", "http://me:hush@localhost/", "-H", "Authorization: hush")
    page = html(store, put_records(store, [good_record()], command=words))
    assert "hush" not in page
    assert "&lt;redacted&gt;" in page


# ---- hostile ones


@pytest.mark.parametrize("payload", HOSTILE, ids=map(str, range(len(HOSTILE))))
@pytest.mark.parametrize("name", [name for name in ("http", "suite", "search") if name in NAMES])
def test_text_of_somebody_elses_choice_stays_text(store: Store, name: str, payload: str) -> None:
    page = html(store, put(store, hostile(read(name), payload)))
    assert_inert(page)
    assert "62615533" not in text_of(page), "7907 * 7919 was computed"


def test_a_drawing_keeps_shapes_and_text_and_nothing_else() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' onload="x()" style="fill:url(http://evil.example)"><script>x()</script>'
        '<a xlink:href="javascript:x()"><text>gone</text></a><image href="http://evil.example"/>'
        '<foreignObject><p>x</p></foreignObject><defs><clipPath id="c1"><rect width="1"/>'
        '</clipPath></defs><g clip-path="url(#c1)" fill="url(http://evil.example)" onclick="x()">'
        '<text x="1" fill="rgb(1, 2, 3)" stroke="rgb(url(http://evil.example))">'
        '&lt;b&gt; kept</text><use href="#c1"/><style>*{}</style></g></svg>'
    )
    text = draw.inline(svg, "d1-", 'says "<hi>"')
    found = ElementTree.fromstring(text)
    assert [element.tag for element in found.iter()] == [
        *("svg", "defs", "clipPath", "rect", "g", "text")
    ]
    for gone in ("script", "evil", "javascript", "onclick", "onload", "style"):
        assert gone not in text
    assert 'id="d1-c1"' in text
    assert "url(#d1-c1)" in text
    assert 'fill="rgb(1, 2, 3)"' in text
    assert "&lt;b&gt; kept" in text
    assert found.get("aria-label") == 'says "<hi>"'


def test_the_policy_allows_our_style_sheet_and_nothing_else() -> None:
    style = stylesheet()
    assert "</" not in style
    assert "http" not in style
    assert "{{" not in style
    assert policy(style).startswith("default-src 'none'; style-src 'sha256-")
    for light, dark in COLOURS:
        assert f'[fill="{light}"]' in style, "each colour of a chart has a dark one"
        assert dark in style


# ---- odd ones


def no_answer() -> Record:
    """Every request failed."""
    return judge(
        good_record(
            counts=counts(ok=0, failed={"connect.refused": 10_000}, statuses={}),
            latency_ns=Distribution(),
            service_ns=Distribution(),
            histograms=Histograms(
                latency=None, service=None, connect=None, first_byte=None, total=None
            ),
            series=(),
            server=None,
        )
    )


def test_a_page_of_twenty_records_stays_below_3_mb(store: Store) -> None:
    values = {round(1e5 * 1.02**each): 1 + each % 50 for each in range(600)}
    latency = histogram(*values.items())
    kept = good_record().histograms.model_copy(update={"latency": latency, "service": latency})
    records = [good_record(id=f"{each}", histograms=kept) for each in range(20)]
    assert len(html(store, put_records(store, records))) < 3_000_000


def test_a_run_without_rows_renders_and_says_so(store: Store) -> None:
    for kind in ("http", "suite", "search", "ab", "something-new"):
        run = store.new_run(kind=kind, title="", plan=None)
        page = html(store, run)
        assert_inert(page)
        assert f"Run {run.id} has no rows." in text_of(page)


def test_a_run_in_which_all_failed_renders_and_says_so(store: Store) -> None:
    page = html(store, put_records(store, [no_answer()]))
    assert_inert(page)
    assert "invalid" in text_of(page)
    assert "is invalid, so its figures mean nothing: errors: 10,000 of" in text_of(page)
    assert "came to" not in text_of(page), "no figure stands before the reason"


def test_rows_that_were_not_measured_are_there_with_their_reasons(store: Store) -> None:
    run = store.new_run(kind="suite", title="gone", plan={"of": "another version"})
    store.add_row(run, "skipped", "go is missing", labels={"subject": "go/x"})
    store.add_row(run, "failed", "it <b>crashed</b>", labels={"subject": "c/y"})
    shown = text_of(html(store, run))
    assert "go/x is skipped: go is missing." in shown
    assert "c/y is failed: it <b>crashed</b>." in shown
    assert "its plan cannot be read by this version" in shown


def test_a_damaged_row_is_told_and_the_others_are_shown(store: Store) -> None:
    run = put_records(store, [good_record(), good_record(id="another")])
    store._db.execute("UPDATE rows SET reason = 'changed' WHERE number = 1")
    shown = text_of(html(store, run))
    assert f"1 row of run {run.id} cannot be read" in shown
    assert "10,000 requests/s" in shown


def test_a_run_whose_cpus_were_moved_says_so(store: Store) -> None:
    latencies = [CoreLatency(cpus=(1, 0), before_ns=ns, after_ns=ns) for ns in (90.0, 400.0)]
    near, far = (good_record(id=f"at {each.before_ns}", cpu_distance=each) for each in latencies)
    run = put_records(store, [near, far])
    assert f"In run {run.id} the host moved the CPUs" in text_of(html(store, run))
    assert "the host moved the CPUs" not in text_of(html(store, put_records(store, [near])))


def test_figures_that_are_no_numbers_are_left_out_of_charts() -> None:
    entries = [
        Summary("a", "r", "measured", "valid", "", float("nan"), Interval(1, 2, "range")),
        Summary("b", "r", "measured", "valid", "", float("inf"), Interval(1, 2, "range")),
        Summary("c", "r", "measured", "valid", "", 5.0, Interval(4, 6, "range")),
        Summary("d", "r", "measured", "valid", "", 0.0, Interval(0, 0, "range")),
    ]
    drawn = ranking.ranking(LoadTable("load", "requests/s", tuple(entries)))
    assert drawn is not None
    text = draw.to_svg(drawn.chart)
    assert "NaN" not in text
    assert "Infinity" not in text
    assert ranking.ranking(LoadTable("load", "requests/s", tuple(entries[:1]))) is None


def test_one_entry_is_told_in_figures_and_not_in_bars(store: Store) -> None:
    view = made(store, put_records(store, [good_record()])).view
    slugs = {each.slug for part in view.parts for each in part.drawn}
    assert "ranking" not in slugs
    assert "memory" not in slugs
    assert [tile.value for tile in view.tiles][:2] == ["10,000", "1.00 ms"]


# ---- pure parts


def entry(name: str, low: float, high: float, **changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "outcome": "measured",
        "verdict": "valid",
        "why": "",
        "score": (low + high) / 2,
        "interval": Interval(low, high, "range"),
        "trials": tuple(Trial(low + (high - low) * step / 5) for step in range(6)),
    }
    return Summary(name, changes.pop("run", "r1"), **{**fields, **changes})


def words_of(*entries: Summary) -> str:
    section = LoadTable("load", "requests/s", in_order(entries))
    return " ".join([*results(section), *remarks(section)])


def test_the_words_say_who_is_ahead_who_ties_and_what_does_not_count() -> None:
    table = [
        ((entry("a", 90, 110), entry("b", 40, 60)), "a is ahead with 100 requests/s (range 90 to"),
        ((entry("a", 90, 110), entry("b", 40, 60)), "Next is b with 50 requests/s, 50 % of that."),
        ((entry("a", 90, 110), entry("b", 80, 100)), "a and b cannot be told apart"),
        (
            (entry("a", 90, 110), entry("b", 85, 100), entry("c", 1, 3)),
            "a and b may each be the first",
        ),
        (
            (entry("a", 90, 110), entry("b", 40, 60), entry("c", 45, 50)),
            "Not told apart either: b and c (rank 2-3).",
        ),
        (
            (entry("a", 9, 11), entry("b", 90, 99, verdict="invalid", why="errors: 80 %")),
            "b is invalid, so its figures mean nothing: errors: 80 %.",
        ),
        ((entry("a", 9, 11), entry("b", 90, 99, trap=True, why="w")), "b is a trap, measured to"),
        ((entry("a", 9, 11, verdict="suspect", why="noise: x"),), "a is suspect: noise: x."),
        ((entry("a", 1, 1, verdict="invalid", why="w"), entry("b", 1, 1, verdict="invalid")), "No"),
        ((entry("a", 1, 2), entry("b", 3, 3, verdict="invalid")), "a is the only row that can be"),
        ((), "Nothing was measured."),
    ]
    for entries, expected in table:
        assert expected in words_of(*entries), expected


def absent(name: str, why: str) -> Summary:
    return entry(name, 0, 0, outcome="skipped", verdict=None, score=None, interval=None, why=why)


def test_the_words_say_each_reason_for_not_measuring_once() -> None:
    names = "abcdef"
    table = [
        ((absent("a", "no php"),), "a is skipped: no php."),
        ((absent("a", "no php."), absent("b", "no php.")), "a and b are skipped: no php."),
        ((absent("a", "x"), absent("b", "")), "b is skipped: no reason is given."),
        (tuple(absent(n, "x") for n in names), "a, b, c, d and 2 more are skipped: x."),
        (
            tuple(absent(f"s{n}", f"reason {n}") for n in range(8)),
            "2 more are skipped; the table has their reasons.",
        ),
    ]
    for entries, expected in table:
        text = words_of(*entries)
        assert expected in text, text
        assert text.count("no php") <= 1


def test_an_invalid_row_is_never_ahead_whatever_it_scored() -> None:
    ordered = in_order([entry("fast", 900, 999, verdict="invalid"), entry("true", 9, 11)])
    assert [(each.name, each.rank) for each in ordered] == [("true", 1), ("fast", None)]


def test_names_that_would_fall_together_are_kept_apart() -> None:
    table = [
        ([entry("a", 1, 2), entry("b", 1, 2)], ["a", "b"]),
        ([entry("a", 1, 2), entry("a", 1, 2)], ["a", "a (2)"]),
        ([entry("a", 1, 2), entry("a", 1, 2, run="r2")], ["r1 a", "r2 a"]),
    ]
    for entries, names in table:
        assert [each.name for each in with_own_names(entries)] == names


def test_a_curve_ends_where_nothing_more_is_known() -> None:
    latency = histogram((1_000_000, 900), (5_000_000, 90))
    record = good_record(
        counts=counts(scheduled=1_000, issued=1_000, ok=990, cancelled=10),
        histograms=good_record().histograms.model_copy(update={"latency": latency}),
    )
    points = percentile_points(record)
    assert points[0].share == 0
    assert points[-1].share <= 0.99, "of the slowest 1 % nothing is known"
    assert points[-1].share > 0.98
    assert percentile_points(no_answer()) == ()


def seconds(*found: tuple[int, int]) -> tuple[Second, ...]:
    return tuple(
        Second(t_s=t, ok=ok, failed=failed, latency={100: ok} if ok else {})
        for t, (ok, failed) in enumerate(found)
    )


def test_seconds_are_the_whole_ones_of_the_window() -> None:
    window = good_record().window.model_copy(update={"window_ns": 3_500_000_000})
    record = good_record(window=window, series=seconds((5, 0), (0, 3), (7, 0), (1, 0)))
    assert [(p.t_s, p.ok_per_s, p.failed_per_s) for p in second_points(record)] == [
        (0.5, 5, 0),
        (1.5, 0, 3),
        (2.5, 7, 0),
    ]
    assert second_points(record)[1].p99_ns is None
    assert second_points(good_record()) == (), "one second has no course"


def test_a_long_window_is_thinned_out_and_loses_nothing() -> None:
    window = good_record().window.model_copy(update={"window_ns": 1_000 * 10**9})
    record = good_record(window=window, series=seconds(*[(4, 1)] * 1_000))
    points = second_points(record)
    assert len(points) <= 180
    assert {(point.ok_per_s, point.failed_per_s) for point in points} == {(4.0, 1.0)}


def test_stages_are_shown_by_the_rate_that_was_offered() -> None:
    window = good_record().window.model_copy(update={"window_ns": 4_000_000_000})
    phase = staged((100, 500))
    load = phase.load
    stage = load.stages[0].model_copy(update={"ns": 4_000_000_000})  # type: ignore[union-attr]
    phase = phase.model_copy(update={"load": load.model_copy(update={"stages": (stage,)})})
    record = good_record(window=window, series=seconds((150, 0), (250, 0), (350, 0), (200, 9)))
    record = record.model_copy(update={"plan": record.plan.model_copy(update={"window": phase})})
    points = offered_points(record)
    assert [point.rate_per_s for point in points] == [150, 250, 350, 450]
    assert [point.kept for point in points] == [True, True, True, False]
    assert largest_kept(points) == 350
    assert offered_points(good_record()) == ()


def test_the_largest_rate_that_was_kept_is_below_the_first_that_was_not() -> None:
    def points(*kept: bool) -> list[RateLatency]:
        return [RateLatency(float(number), 1, 1, each) for number, each in enumerate(kept, 1)]

    table = [((True, True), 2.0), ((True, False, True), 1.0), ((False, True), None), ((), None)]
    for kept, largest in table:
        assert largest_kept(points(*kept)) == largest, kept


def test_ticks_are_round_and_few() -> None:
    table = [
        ((20_000, 90_000), [20_000, 50_000]),
        ((9_000, 110_000), [10_000, 20_000, 50_000, 100_000]),
        ((1_000, 9_000_000), [1e3, 1e4, 1e5, 1e6]),
        ((1, 1), [1]),
    ]
    for (low, high), expected in table:
        assert log_ticks(low, high) == expected, (low, high)
    assert byte_ticks(3 * 1024) == [0, 1024, 2048, 3072]
    assert byte_ticks(0.5) == [0.0]


def test_heat_maps_have_a_cell_a_combination_and_none_for_what_is_invalid() -> None:
    fields = [
        Field(f"{count} x {size}", (count, size), at_once, None if count == 4 else 100.0 * count)
        for count in (1, 4, 16)
        for size in (64, 256)
        for at_once in (1024, 4096)
    ]
    drawn = heat_map("client", fields)
    assert drawn is not None
    text = draw.to_svg(drawn.chart)
    assert text.count("invalid") == 4
    assert text.index("1 x 64") < text.index("4 x 64") < text.index("16 x 64"), "by number"
    assert heat_map("client", fields[:1]) is None
    assert heat_map("client", [Field("4 x 64", (4, 64), 1024, None)] * 2) is None


def test_nothing_to_see_is_no_chart() -> None:
    assert percentiles.percentiles({}) is None
    assert percentiles.percentiles({"a": ()}) is None
    assert ratios.ratios("", (), "b / a") is None
    assert load_curve.of_stages("a", ()) is None


def test_the_published_broadcasts_are_all_there() -> None:
    curves = broadcast_curves()
    assert len(curves) == 27
    assert sum(len(curve.p95_ms) for curve in curves) == 461
    by_name = {curve.name: dict(curve.p95_ms) for curve in curves}
    assert by_name["Go / Gorilla"][1_000] == 17
    assert by_name["Rails / MRI"] == {100: 107, 200: 197, 300: 273, 400: 405, 500: 484}


def test_golden_runs_hold_no_path_of_a_machine() -> None:
    for name in NAMES:
        text = json.dumps(read(name))
        for word in ("/tmp/", "/root", "/home/", "/work"):
            assert word not in text, (name, word)
