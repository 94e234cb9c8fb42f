"""What stands where on the page of a report, and what can be read off it without its colours: the
verdict, tiles, labels, figures of charts, the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_samples import NAMES, made, put, put_records, read
from samples import counts, good_record, histogram
from trueload.protocol.streams import StreamHistograms
from trueload.protocol.tick import Second
from trueload.record.accounts.streams import Streams
from trueload.record.sample import complete
from trueload.record.schema import Record
from trueload.report.html import draw
from trueload.report.html.make import make, page
from trueload.report.html.page import prose, unbroken
from trueload.report.html.tiles import across
from trueload.report.html.view import View
from trueload.stats import Distribution
from trueload.store.runs import Store

MS = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite3") as opened:
        yield opened


def view_of(store: Store, *records: Record) -> View:
    return made(store, put_records(store, records)).view


def slugs(view: View) -> set[str]:
    return {each.slug for part in view.parts for each in part.drawn}


# ---- what stands where


def test_no_tile_is_alone_in_its_row() -> None:
    for count in range(1, 31):
        wide = across(count)
        assert 4 <= wide <= 6
        assert count % wide != 1 or count <= wide, count
    assert [across(count) for count in (1, 4, 5, 6, 7, 9, 12)] == [4, 4, 5, 6, 4, 5, 6]


@pytest.mark.parametrize("name", ["suite", "clients", "http", "traps"])
def test_the_verdict_stands_beside_the_name_in_its_colour(store: Store, name: str) -> None:
    for part in made(store, put(store, read(name))).view.parts:
        grid = part.tables[0]
        at = grid.header.index("verdict")
        assert (at, at) == (grid.header.index("program") + 1, grid.marked)
        shown = [row[at].partition(" ")[0] for row in grid.rows]
        assert shown == list(grid.marks)


def test_both_sides_of_ab_have_their_letters_on_the_whole_page(store: Store) -> None:
    view = made(store, put(store, read("ab"))).view
    compared, load = view.parts
    assert [table.title for table, drawn in compared.pairs if drawn is not None] == [
        "http://127.0.0.1:18181/perf against http://127.0.0.1:18181/"
    ], "the chart stands beside its table"
    names = {row[load.tables[0].named or 0][:3] for row in load.tables[0].rows}
    assert names == {"A: ", "B: "}
    ranking = next(each for each in load.drawn if each.slug == "ranking")
    assert "A: http" in ranking.description
    assert "B: http" in ranking.description


def test_backticks_become_code_and_what_is_in_them_stays_text() -> None:
    table = [
        ("run `trueload ab`", "run <code>trueload ab</code>"),
        ("`<b>` & `c`", "<code>&lt;b&gt;</code> &amp; <code>c</code>"),
        ("one ` alone", "one ` alone"),
        ("", ""),
    ]
    for text, expected in table:
        assert prose(text) == expected


def test_no_line_breaks_a_figure() -> None:
    for text, expected in [("≤ 2.71 ms", "≤\u00a02.71\u00a0ms"), ("0 of 1,200 valid",) * 2]:
        assert unbroken(text) == expected


def test_the_curves_of_others_are_only_on_the_page_of_what_reproduces_them(store: Store) -> None:
    run = put(store, read("broadcasts"))
    own = put(store, {**read("broadcasts"), "title": "my-chat"})
    for each, published, expected in ((run, False, True), (own, False, False), (own, True, True)):
        drawn = make(store, [each], published=published).view.parts[0].drawn
        note = next(chart.note for chart in drawn if chart.slug == "clients")
        assert ("2016" in note) == expected


# ---- what can be read off it


@pytest.mark.parametrize("name", NAMES)
def test_whoever_cannot_see_a_chart_is_told_figures(store: Store, name: str) -> None:
    for part in made(store, put(store, read(name))).view.parts:
        for drawn in part.drawn:
            assert re.search(r": [\d>≥≤]|\d \w|to [\d,]+", drawn.description), drawn.description
            assert not drawn.description.endswith(" ."), drawn.description


def titles(svg: str) -> list[str]:
    found = ElementTree.fromstring(draw.inline(svg, "d-", "x")).iter("title")
    return [str(each.text) for each in found]


def test_under_the_pointer_a_curve_tells_its_values(store: Store) -> None:
    drawn = {
        chart.slug: draw.to_svg(chart.chart)
        for name in ("broadcasts", "search", "http")
        for part in made(store, put(store, read(name))).view.parts
        for chart in part.drawn
    }
    for slug, pattern in {
        "percentiles": r"^http\S+: p99 [\d.]+ [mu]s$",
        "latency-over-time": r", 0\.5 s: p99 [\d.]+ [mu]s$",
        "throughput-over-time": r", 1\.5 s: [\d,]+ requests/s$",
        "latency-against-load": r"^[\d.]+ [mu]s at [\d,]+, kept$",
        "clients": r": [\d.]+ ms with [\d,]+ clients$",
    }.items():
        assert any(re.search(pattern, text) for text in titles(drawn[slug])), titles(drawn[slug])
    assert titles(drawn["cpu"]) == [], "texts stand beside bars"


# ---- what is drawn


def failing(*failed: int) -> Record:
    window = good_record().window.model_copy(update={"window_ns": len(failed) * 10**9})
    series = [Second(t_s=t, ok=50, failed=n, latency={100: 50}) for t, n in enumerate(failed)]
    return good_record(window=window, series=tuple(series))


def test_failures_have_a_chart_over_time_where_there_are_any(store: Store) -> None:
    assert "failures-over-time" not in slugs(view_of(store, failing(0, 0, 0)))
    view = view_of(store, failing(0, 7, 3))
    drawn = next(e for part in view.parts for e in part.drawn if e.slug == "failures-over-time")
    assert drawn.description.endswith(": 3 to 7."), drawn.description
    assert "failed requests/s" in draw.to_svg(drawn.chart)


def streamed(**changes: Any) -> Record:
    times = {"first_part": histogram((20 * MS, 400)), "gap": histogram((10 * MS, 1_600))}
    fields: dict[str, Any] = {
        "whole": 400,
        "parts": 2_000,
        "parts_per_s": 2_000.0,
        "together": 0,
        "first_part_ns": complete(times["first_part"]).figures,
        "gap_ns": complete(times["gap"]).figures,
        "parts_per_answer": Distribution(),
        "histograms": StreamHistograms(**times),
    }
    counted = counts(scheduled=400, issued=400, ok=400, statuses={"200": 400})
    found = Streams.model_validate({**fields, **changes})
    return good_record(streams=found, counts=counted)


def test_streams_have_tiles_and_curves_of_the_first_part_and_of_the_gaps(store: Store) -> None:
    view = view_of(store, streamed())
    assert {"first-part-percentiles", "gap-between-parts-percentiles"} <= slugs(view)
    found = {tile.label: tile.value for tile in view.tiles}
    assert found["parts/s"] == "2,000"
    names = ("first part, p50", "first part, p99", "gap, p50", "gap, p99")
    assert [round(float(found[name].split()[0])) for name in names] == [20, 20, 10, 10]
    tables = {grid.title.partition(":")[0]: grid for part in view.parts for grid in part.tables}
    assert tables["Streamed answers"].header == ("program", *names, "parts/s"), "and no prose"
    assert not {"first-part-percentiles"} & slugs(view_of(store, good_record()))


def test_each_of_several_requests_has_its_bars(store: Store) -> None:
    view = made(store, put(store, read("targets"))).view
    drawn = next(e for part in view.parts for e in part.drawn if e.slug == "latency-by-step")
    assert re.search(r"item: [\d.]+ [mu]s / [\d.]+ [mu]s", drawn.description), drawn.description


# ---- the machine


def test_the_machine_is_named_unless_the_page_is_to_be_anonymous(store: Store) -> None:
    known = {"hostname": "bench-7", "memory_bytes": 8 << 30, "load_average": 0.25}
    record = good_record()
    environment = record.environment.model_copy(update=known)
    run = put_records(store, [record.model_copy(update={"environment": environment})])
    rows = dict(make(store, [run]).view.environments[0])
    assert rows["host"] == "bench-7"
    assert rows["memory"] == "8.00 GiB"
    assert rows["load before"].startswith("0.25")
    assert "bench-7" not in page(make(store, [run], anonymous=True))
    older = dict(made(store, put_records(store, [record])).view.environments[0])
    assert not {"host", "memory", "load before"} & set(older)


def test_a_machine_whose_load_varies_is_one_machine(store: Store) -> None:
    record = good_record()
    loads = [
        record.model_copy(
            update={"environment": record.environment.model_copy(update={"load_average": load})}
        )
        for load in (0.1, 0.9)
    ]
    view = view_of(store, *loads)
    assert len(view.environments) == 1
    assert "0.1" in dict(view.environments[0])["load before"]
