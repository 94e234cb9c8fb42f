"""What a reader of a report sees first, and how things that differ are told apart: tiles, colours,
ratios, invalid results, the requests of a targets file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import html, made, put, read
from trueload.compare.difference import Ratio, Word
from trueload.repetitions import Interval
from trueload.report.html import draw
from trueload.report.html.charts import ratios
from trueload.report.html.charts.theme import GREY, SERIES, SERIES_MAX, TitledChart, colours
from trueload.report.html.tiles import tiles
from trueload.report.html.view import View, palette_of
from trueload.store.runs import Store
from trueload.suites.load_tables import LoadTable
from trueload.suites.ranks import Places
from trueload.suites.summary import Summary


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite3") as opened:
        yield opened


def view_of(store: Store, *names: str) -> View:
    return made(store, *(put(store, read(name)) for name in names)).view


def entry(name: str, score: float, rank: int | None, **changes: Any) -> Summary:
    fields: dict[str, Any] = {"outcome": "measured", "verdict": "valid", "why": ""}
    fields |= {"score": score, "interval": Interval(score, score, "range")}
    places = None if rank is None else Places(rank, rank)
    return Summary(name, "run", **{**fields, "places": places, **changes})


def section(*entries: Summary, title: str = "load") -> LoadTable:
    return LoadTable(title, "requests/s", entries)


# ---- tiles


def test_tiles_say_who_is_best_and_worst_how_far_apart_and_what_it_is_worth() -> None:
    a, b, c = entry("a", 900, 1), entry("b", 300, 2), entry("c", 100, 3, verdict="suspect")
    skipped = entry("d", 0, None, outcome="skipped", verdict=None)
    table: list[tuple[tuple[LoadTable, ...], list[tuple[str, str]]]] = [
        (
            (section(a, b, c, skipped),),
            [
                ("900", "best, requests/s: a"),
                ("100", "worst, requests/s: c"),
                ("9 x", "spread, from worst to best"),
                ("2 of 3 valid", "1 suspect, 1 skipped"),
            ],
        ),
        (
            (section(entry("a", 110, 1), entry("b", 100, 1)),),
            [
                ("110", "most, requests/s: a"),
                ("100", "least, requests/s: b"),
                ("1.1 x", "spread, from least to most: not told apart"),
                ("2 of 2 valid", "verdict"),
            ],
        ),
        (
            (section(a, b), section(b, title="more")),
            [
                ("900", "best, requests/s: a, load"),
                ("300", "best, requests/s: b, more"),
                ("3 of 3 valid", "verdict"),
            ],
        ),
        ((section(entry("a", 9, None, verdict="invalid"), entry("t", 9, None, trap=True)),), []),
    ]
    for sections, expected in table:
        found = [(tile.value, tile.label) for tile in tiles(sections, (), None)]
        assert found == (expected or [("0 of 1 valid", "1 invalid, 1 trap")])


def test_tiles_of_repetitions_have_the_best_the_worst_and_the_spread(store: Store) -> None:
    found = [(tile.value, tile.label) for tile in view_of(store, "http").tiles]
    assert found[:4] == [
        ("384,671", "requests/s"),
        ("423,137", "best of 3, requests/s"),
        ("314,933", "worst of 3, requests/s"),
        ("28.1 %", "spread, from worst to best"),
    ]
    assert found[-1] == ("suspect", "verdict")


def test_tiles_of_a_comparison_have_its_word_and_its_ratio(store: Store) -> None:
    found = [(tile.value, tile.label) for tile in view_of(store, "ab").tiles]
    assert found == [
        ("unclear", "B against A, by throughput"),
        ("0.982", "ratio of throughput, 0.923 to 2.756 (95 % interval)"),
        ("545,057/s", "throughput of B"),
        ("390,719/s", "throughput of A"),
        ("0 of 2 valid", "2 suspect"),
    ]
    assert view_of(store, "ab").parts[0].title == "Compared", "the result comes first"


# ---- what is invalid


def test_of_an_invalid_run_the_reason_comes_first_and_its_figures_are_grey(store: Store) -> None:
    view = view_of(store, "targets")
    assert view.words[0].startswith("http://127.0.0.1:18555 is invalid, so its figures mean")
    assert not [tile for tile in view.tiles if not tile.void and not tile.mark]
    assert all(part.void for part in view.parts)
    page = html(store, put(store, read("targets")))
    assert page.index("mean nothing") < page.index('class="tiles of-')
    assert '<section id="load-1" class="void">' in page
    assert '<tr class="void">' in page
    assert not any(tile.void for tile in view_of(store, "http").tiles)


def test_a_remark_of_the_machine_stands_below_the_result(store: Store) -> None:
    page = html(store, put(store, read("http")))
    places = [
        page.index(text) for text in ("came to 384,671", 'class="tiles of-', "is suspect: gen")
    ]
    assert places == sorted(places)


# ---- colours


def test_a_subject_has_one_colour_on_the_whole_page(store: Store) -> None:
    one = section(*(entry(name, 9 - at, at + 1) for at, name in enumerate("abc")))
    two = section(*(entry(name, 9 - at, at + 1) for at, name in enumerate("cba")))
    assert palette_of((one, two)) == {"a": 0, "c": 1, "b": 2}, "those that lead come first"
    many = section(*(entry(f"{at:02}", 99 - at, at + 1) for at in range(12)))
    assert len(palette_of((many,))) == SERIES_MAX
    assert colours(["11", "00"], palette_of((many,))) == [GREY[0], SERIES[0][0]]
    assert colours(["b", "a"], None) == [SERIES[0][0], SERIES[1][0]], "of a chart by itself"

    view = view_of(store, "c10k")
    seen: dict[str, set[int | None]] = {}
    for part in view.parts:
        for row, number in zip(part.tables[0].rows, part.tables[0].series, strict=True):
            seen.setdefault(row[part.tables[0].named or 0], set()).add(number)
    assert seen == {"rust/trueload": {0}, "c/epoll": {1}}
    bars = [each for part in view.parts for each in part.drawn if each.slug == "memory"]
    assert bars
    for drawn in bars:
        found = {row["name"]: row["colour"] for row in data_of(drawn)}
        assert found == {"rust/trueload": SERIES[0][0], "c/epoll": SERIES[1][0]}


def data_of(drawn: TitledChart, field: str = "colour") -> list[dict[str, Any]]:
    """The rows of the first data set of a chart that has such a field."""
    sets = drawn.chart.to_dict(validate=False)["datasets"].values()
    return next(rows for rows in sets if field in rows[0])


# ---- ratios


def ratio(metric: str, value: float, low: float, high: float, word: Word) -> Ratio:
    within = Interval(low, high, "95 % interval")
    return Ratio(metric, 1.0, value, value, within, word, "", None, None)


def test_what_is_off_the_scale_of_ratios_has_an_arrow_at_the_edge() -> None:
    found = (
        ratio("throughput", 1.05, 1.0, 1.1, "better"),
        *(ratio(name, 1.0, 0.95, 1.02, "same") for name in ("p50", "p75", "p95")),
        ratio("p90", 1.02, 0.2, 7.0, "unclear"),
        ratio("p99", 30.0, 20.0, 40.0, "worse"),
        ratio("p99.9", math.inf, 2.0, math.inf, "unclear"),
    )
    drawn = ratios.ratios("", found, "B / A")
    assert drawn is not None
    rows = {row["metric"]: row for row in data_of(drawn, "shape")}
    assert {name: row["shape"] for name, row in rows.items() if row["shape"] != "circle"} == {
        "p99": "triangle-right",
        "p99.9": "triangle-right",
    }
    assert {name: row["out"] for name, row in rows.items() if row["out"]} == {
        "p90": ["low", "high"],
        "p99": ["high"],
        "p99.9": ["high"],
    }
    edge = rows["p99"]["at"]
    assert all(0.99 / edge < row["low"] <= row["high"] <= edge for row in rows.values())
    assert edge < 2, "one that is far out does not press the others together"
    text = draw.to_svg(drawn.chart)
    assert ">30<" in text
    assert ">endless<" in text
    assert "An arrow at the edge" in drawn.note


def test_the_same_and_the_unclear_are_told_apart() -> None:
    both = (ratio("p50", 1, 0.9, 1.1, "same"), ratio("p90", 1, 0.5, 2, "unclear"))
    assert len(set(ratios.WORDS.values())) == len(ratios.WORDS), "each has a look of its own"
    drawn = ratios.ratios("", both, "B / A")
    assert drawn is not None
    text = draw.to_svg(drawn.chart)
    assert re.findall(r">(same|unclear|better|worse)<", text) == ["same", "unclear"], "the legend"


# ---- the requests of a targets file


def test_what_became_of_each_request_is_there_without_a_click(store: Store) -> None:
    tables = {table.title: table for table in view_of(store, "targets").parts[0].tables}
    grid = tables["By request"]
    assert not grid.folded
    assert [row[0].split(" ")[0] for row in grid.rows] == ["item", "GET", "GET"]
    assert [row[4] for row in grid.rows] == ["0", "0", "12,068"]
    page = html(store, put(store, read("targets")))
    assert page.index("By request") < page.index("<details>")


def test_a_page_of_several_runs_says_that_they_are_compared(store: Store) -> None:
    runs = [put(store, read("http")) for _ in range(2)]
    assert "2 runs compared" in html(store, *runs)
