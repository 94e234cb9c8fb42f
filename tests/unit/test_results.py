"""Results for programs: the figures of records are those of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from html_seen import Seen
from rich.console import Console
from samples import counts, good_record
from trueload.api.results.result import Result
from trueload.errors import UserError
from trueload.protocol.plan import Histograms
from trueload.verdict import judge

GOOD = Result(records=(good_record(),), run_id="20260101-000000-abcd")
NOTHING = Histograms(latency=None, service=None, connect=None, first_byte=None, total=None)
FOUR_S = good_record().window.model_copy(update={"window_ns": 4_000_000_000})
HOSTILE = "http://127.0.0.1/<script>alert(1)</script>[red]&\x1b[31m"


def hostile() -> Result:
    record = good_record()
    shown = record.plan.model_copy(update={"url": HOSTILE})
    return Result(records=(judge(record.model_copy(update={"plan": shown})),))


def with_failures(failed: int) -> Result:
    found = counts(issued=10_000 + failed, scheduled=10_000 + failed, failed={"reset": failed})
    return Result(records=(judge(good_record(counts=found)),))


def test_figures_are_those_of_the_record() -> None:
    record = GOOD.records[0]
    assert GOOD.verdict == record.verdict == "valid"
    assert GOOD.checks == record.checks
    assert GOOD.throughput == GOOD.throughput.ok_per_s == record.throughput.ok_per_s
    assert GOOD.throughput.bytes_in_per_s == record.throughput.bytes_in_per_s
    assert GOOD.latency.p99.ns == record.latency_ns.p99
    assert GOOD.percentile("p99") == GOOD.p99 == GOOD.latency.p99 < 1
    assert GOOD.p50 <= GOOD.p90 <= GOOD.p95 <= GOOD.p999 <= GOOD.latency.max
    assert GOOD.latency.p999.ns == record.latency_ns.p999
    assert GOOD.service.p50.ns == record.service_ns.p50
    assert (GOOD.latency.min.ns, GOOD.latency.max.ns) == (
        record.latency_ns.min,
        record.latency_ns.max,
    )
    assert GOOD.errors == 0
    assert (GOOD.failed, GOOD.ok) == ({}, record.counts.ok)
    assert not GOOD.partial


def test_equal_results_are_one_key() -> None:
    same = Result(records=(good_record(),), run_id="20260101-000000-abcd")
    assert same == GOOD
    assert len({GOOD, same, with_failures(1)}) == 2


def test_failures_are_slower_than_any_request() -> None:
    spoiled = with_failures(1_000)
    assert not spoiled.p99 < "24h"
    assert spoiled.p99 == float("inf")
    assert repr(spoiled.p99).startswith("> ")
    assert spoiled.latency.p50.is_known
    assert spoiled.errors > "9%"
    assert spoiled.failed == {"reset": 1_000}
    assert spoiled.verdict == "invalid"
    assert any(reason.startswith("fail errors") for reason in spoiled.reasons)


def test_of_several_trials_the_median_counts_and_the_worst_check() -> None:
    several = Result(records=(*GOOD.records, *with_failures(1_000).records, *GOOD.records))
    assert several.latency.p99.ns == GOOD.latency.p99.ns
    assert several.verdict == "invalid"
    assert several.ok == 3 * GOOD.ok
    assert [trial.verdict for trial in several.trials] == ["valid", "invalid", "valid"]
    assert len(several.to_dict()["trials"]) == 3


def test_a_percentile_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="'p100x' is not a percentile"):
        GOOD.latency.percentile("p100x")


def test_a_result_is_json_as_the_command_writes_it() -> None:
    assert json.loads(json.dumps(GOOD.to_dict())) == GOOD.records[0].model_dump(mode="json")


def test_a_notebook_shows_text_as_text() -> None:
    seen = Seen(hostile()._repr_html_())
    assert seen.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "<script>alert(1)</script>[red]&" in seen.text
    assert "\x1b" not in seen.text


def test_a_terminal_shows_text_as_text() -> None:
    console = Console(width=200, force_terminal=True, color_system=None)
    with console.capture() as shown:
        console.print(hostile())
    assert "[red]" in shown.get()
    assert "\x1b[31m" not in shown.get()
    assert "\n" not in repr(hostile())


def test_a_result_is_told_in_one_line_and_in_full() -> None:
    assert "valid" in repr(GOOD)
    assert repr(GOOD).startswith("<http://127.0.0.1:8080/: ")
    assert str(GOOD).splitlines()[2].split() == ["verdict", "valid"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rows_become_a_data_frame(library: str) -> None:
    pytest.importorskip(library)
    several = Result(records=GOOD.records * 2, run_id="r")
    frame: Any = getattr(several, f"to_{library}")()
    assert len(frame) == 2
    assert list(frame["number"]) == [1, 2]
    assert list(frame["ok_per_s"]) == [GOOD.throughput.ok_per_s] * 2
    assert list(frame["verdict"]) == ["valid"] * 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_with_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=f"needs {library}") as refused:
        getattr(GOOD, f"to_{library}")()
    assert refused.value.hint == f"pip install 'trueload[{library}]'"


def test_a_chart_is_drawn_shown_and_written(tmp_path: Path) -> None:
    second = GOOD.records[0].series[0]
    series = tuple(second.model_copy(update={"t_s": at}) for at in range(4))
    plot = Result(records=(good_record(series=series, window=FOUR_S),)).plot("throughput")
    assert plot._repr_svg_().startswith("<?xml")
    assert "<script" not in hostile().plot()._repr_svg_()
    for name, begins in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG")):
        plot.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert "requests/s" in plot.svg
    assert plot.chart.to_dict()["width"] > 0


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("pie", "no plot 'pie'"),
        ("latency", "nothing to plot: it needs 3 s or more"),
        ("throughput", "nothing to plot: it needs 3 s or more"),
        ("percentiles", "nothing to plot: it needs good answers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(what: str, expected: str) -> None:
    nothing = good_record(series=(), histograms=NOTHING)
    with pytest.raises(UserError, match=expected):
        Result(records=(nothing,)).plot(what)
