"""The result of two servers measured in turn, loaded from a real run in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from html_seen import Seen
from report_samples import hostile, put, read
from trueload.api.results.ab import AbResult
from trueload.api.results.stored import load_run
from trueload.errors import UserError
from trueload.record.turn import read_turn
from trueload.report.html.comparisons import of_pairs
from trueload.store.runs import Store

SCRIPT = "<script>window.hacked=1</script>\x1b[31m"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def loaded(store: Store, value: dict[str, Any]) -> AbResult:
    found = load_run(store, put(store, value).id)
    assert isinstance(found, AbResult)
    return found


@pytest.fixture
def found(store: Store) -> AbResult:
    return loaded(store, read("ab"))


def test_a_result_can_be_a_key(found: AbResult) -> None:
    assert {found: "kept"}[found] == "kept"


def test_the_ratio_has_an_interval_and_a_word(found: AbResult) -> None:
    assert len(found.pairs) == 6
    ratios = sorted(
        b.throughput.ok_per_s / a.throughput.ok_per_s
        for a, b in found.pairs
        if a.throughput.ok_per_s and b.throughput.ok_per_s
    )
    assert found.ratio is not None
    assert found.ratio == pytest.approx((ratios[2] + ratios[3]) / 2)
    assert found.interval is not None
    assert found.interval.kind == "95 % interval"
    assert found.interval.low <= found.ratio <= found.interval.high
    assert found.word == found.ratios["throughput"].word
    assert found.of("p99") == found.ratios["p99"]
    assert (len(found.a.records), len(found.b.records)) == (6, 6)


def test_a_figure_that_was_not_compared_yet_is_compared(found: AbResult) -> None:
    assert "p99.95" not in found.ratios
    assert found.of("p99.95").ratio is not None
    with pytest.raises(UserError, match="'speed' is not a metric to compare") as refused:
        found.of("speed")
    assert "throughput, mean" in refused.value.hint


def test_it_is_told_in_one_line_in_full_and_as_json(found: AbResult) -> None:
    assert repr(found).startswith("<http://127.0.0.1:18181/perf against http://127.0.0.1:18181/: ")
    assert "\n" not in repr(found)
    assert "interval" in str(found)
    assert len(found.to_dict()["trials"]) == 12
    assert found.to_dict()["id"] == found.run_id


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_have_their_pair_and_side(found: AbResult, library: str) -> None:
    pytest.importorskip(library)
    frame: Any = getattr(found, f"to_{library}")()
    assert list(frame["pair"]) == [pair for pair in range(1, 7) for _ in "ab"]
    assert sorted(frame["side"]) == ["a"] * 6 + ["b"] * 6
    assert set(frame["subject"]) == set(found.names)
    assert list(frame["ok_per_s"]) == [each.throughput.ok_per_s for each in found.records]


@pytest.mark.parametrize(
    ("what", "shown"), [("ratios", "B / A"), ("percentiles", ">99.9<"), ("pie", None)]
)
def test_charts_are_drawn_of_both_sides(found: AbResult, what: str, shown: str | None) -> None:
    if shown is None:
        with pytest.raises(UserError, match="no plot 'pie'") as refused:
            found.plot(what)
        assert refused.value.hint.startswith("it is one of ratios")
    else:
        assert found.plot(what)._repr_svg_().startswith("<?xml")
        assert shown in found.plot(what).svg


def test_a_notebook_shows_text_as_text(store: Store) -> None:
    spoiled = hostile(read("ab"), SCRIPT)
    for row in spoiled["rows"]:
        row["labels"]["subject"] = SCRIPT
    found = loaded(store, spoiled)
    seen = Seen(found._repr_html_())
    assert seen.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "<script>window.hacked=1" in seen.text
    assert "\x1b" not in seen.text + repr(found) + str(found)


@pytest.mark.parametrize(
    ("plan", "primary"),
    [({"primary": "p99.95"}, "p99.95"), ({"primary": "speed"}, "throughput"), ({}, "throughput")],
)
def test_a_run_of_the_store_keeps_the_metric_that_was_named(
    store: Store, plan: dict[str, str], primary: str
) -> None:
    value = {**read("ab"), "plan": plan}
    found = loaded(store, value)
    assert found.to_dict()["primary"] == primary
    run = put(store, value)
    shown = of_pairs(run, store.rows(run))
    assert shown is not None
    assert shown.ratios == found.paired.ratios
    assert primary in {each.metric for each in shown.ratios}


def test_a_run_without_a_whole_pair_is_none(store: Store) -> None:
    value = read("ab")
    value["rows"] = value["rows"][:1]
    with pytest.raises(UserError, match="has no complete pair"):
        load_run(store, put(store, value).id)


@pytest.mark.parametrize(
    ("labels", "turn"),
    [
        ({"side": "a", "pair": "2"}, (2, "a")),
        ({"side": "b", "pair": "13"}, (13, "b")),
        ({"side": "c", "pair": "2"}, None),
        ({"side": "a", "pair": "two"}, None),
        ({"side": "a"}, None),
        ({}, None),
    ],
)
def test_a_turn_is_read_from_its_labels(
    labels: dict[str, str], turn: tuple[int, str] | None
) -> None:
    found = read_turn(labels)
    assert (None if found is None else (found.pair, found.letter)) == turn
