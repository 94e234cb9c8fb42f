"""Comparisons: ratios, where they lie, words, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest
from samples import OK, counts, distribution, good_record, histogram
from trueload.baseline import read_side, row_name
from trueload.cli.compare import exit_code
from trueload.compare import (
    Within,
    Word,
    compare,
    compare_metric,
    crossed_rows,
    with_metrics,
    word_of,
)
from trueload.distance import HANDED
from trueload.distance import MOVED as MOVED_BY_HOST
from trueload.errors import UserError
from trueload.pairs import Turn, compare_pairs, turns, whole_pairs
from trueload.plan import Histograms, RequestPlan, Second
from trueload.record import CpuDistance, Record, Throughput
from trueload.report.compare import Compared, render
from trueload.thresholds import RATIO, parse_condition


def record(per_s: float, latency_ms: float = 1.0, seconds: int = 10) -> Record:
    """A trial of so many requests per second, each as slow."""
    latency = histogram((round(latency_ms * 1e6), OK))
    good = good_record(
        throughput=Throughput(ok_per_s=per_s, bytes_in_per_s=1.0, bytes_out_per_s=1.0),
        histograms=Histograms(
            latency=latency, service=latency, connect=None, first_byte=None, total=None
        ),
        latency_ns=distribution(latency),
        service_ns=distribution(latency),
        series=tuple(
            Second(t_s=t, ok=round(per_s) + t % 2, failed=0, latency={}) for t in range(seconds)
        ),
    )
    window = good.window.model_copy(update={"window_ns": seconds * 10**9})
    return good.model_copy(update={"window": window, "verdict": "valid", "checks": ()})


@pytest.mark.parametrize(
    ("base", "new", "word", "kind"),
    [
        ([100], [100], "same", "within the runs"),
        ([100], [104], "same", "within the runs"),
        ([100], [120], "better", "within the runs"),
        ([100], [80], "worse", "within the runs"),
        ([100, 101, 102, 103], [90, 91, 92, 93], "worse", "range"),
        # Three of three apart come so by chance in one of ten orders.
        ([100, 101, 102], [90, 91, 92], "unclear", "range"),
        ([100, 101, 102], [101, 102, 103], "same", "range"),
        ([100, 101, 102, 103], [104, 105, 106, 107], "better", "range"),
        ([100, 101, 99, 100, 101, 99], [90, 91, 89, 90, 91, 89], "worse", "95 % interval"),
        ([100, 110, 90, 100, 110, 90], [99, 109, 91, 102, 108, 93], "same", "95 % interval"),
    ],
)
def test_throughput_is_better_worse_or_the_same(
    base: Sequence[float], new: Sequence[float], word: str, kind: str
) -> None:
    found = compare_metric("throughput", [record(x) for x in base], [record(x) for x in new])
    assert found.word == word
    assert found.within is not None
    assert found.within.kind == kind
    assert found.ratio is not None
    assert found.within.low <= found.ratio <= found.within.high


def test_a_longer_latency_is_worse() -> None:
    found = compare_metric("p99", [record(100, 1.0)], [record(100, 2.0)])
    assert found.word == "worse"
    assert found.ratio == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(
    ("metric", "ratio", "within", "word"),
    [
        ("throughput", None, None, "unclear"),
        ("throughput", 1.5, None, "unclear"),
        ("p99", inf, None, "worse"),
        ("p99", 0.0, None, "better"),
        ("throughput", 0.0, None, "worse"),
        ("p99", 1.2, Within(0.9, 1.25, "range"), "same"),
        ("p99", 1.2, Within(0.9, 1.26, "range"), "unclear"),
        ("throughput", 1.0, Within(0.79, 1.1, "95 % interval"), "unclear"),
        ("throughput", 1.04, Within(0.5, 2.0, "within the runs"), "unclear"),
        ("p99", 1.2, Within(1.1, 1.4, "range"), "worse"),
        ("p99", 1.04, Within(1.03, 1.05, "within the runs"), "same"),
        ("p99", 1.04, Within(1.03, 1.05, "95 % interval"), "worse"),
    ],
)
def test_a_ratio_has_a_word(
    metric: str, ratio: float | None, within: Within | None, word: Word
) -> None:
    assert word_of(metric, ratio, within) == word


def test_failing_is_never_better() -> None:
    failed = record(100).model_copy(update={"counts": counts(failed={"reset": OK // 10})})
    found = compare_metric("p99", [record(100)], [failed])
    assert (found.ratio, found.word) == (inf, "worse")
    both = compare_metric("p99", [failed], [failed])
    assert (both.ratio, both.word) == (None, "unclear")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("throughput<0.95", ["slow"]),
        ("throughput<0.5", []),
        ("p99>1.2", ["slow"]),
        ("p99>1.2 and throughput<0.5", []),
        ("p99.99>1.2", ["slow"]),
    ],
)
def test_a_condition_is_of_a_rows_ratio(condition: str, expected: list[str]) -> None:
    conditions = [parse_condition(condition, RATIO)]
    base = {"slow": [record(100)], "equal": [record(100)]}
    new = {"slow": [record(80, 2.0)], "equal": [record(100)], "fresh": [record(1)]}
    comparison = compare(base, new, with_metrics(conditions))
    assert [each.row for each in crossed_rows(comparison, conditions)] == expected
    assert comparison.only_new == ("fresh",)


def invalid(good: Record) -> Record:
    bad = good_record(counts=counts(failed={"unsolicited": 1}))
    return good.model_copy(update={"checks": bad.checks, "verdict": "invalid"})


@pytest.mark.parametrize(
    ("base", "new", "crossed", "code"),
    [
        ([record(100)], [record(100)], False, 0),
        ([record(100)], [record(90)], True, 1),
        ([record(100)], [invalid(record(90))], True, 4),
        ([invalid(record(100))], [record(100)], False, 4),
    ],
)
def test_an_exit_code_follows(
    base: list[Record], new: list[Record], crossed: bool, code: int
) -> None:
    comparison = compare({"": base}, {"": new})
    conditions = [parse_condition("throughput<0.95", RATIO)]
    found = crossed_rows(comparison, conditions)
    assert bool(found) is crossed
    assert exit_code(comparison, found) == code


def asking(method: str = "GET", path: str = "/", host: str = "a", body: str = "") -> Record:
    good = record(100)
    request = RequestPlan(
        method=method, path=path, headers=(("Host", host),), body_sha256=body or None
    )
    generate = good.plan.generate.model_copy(update={"request": request})
    return good.model_copy(update={"plan": good.plan.model_copy(update={"generate": generate})})


@pytest.mark.parametrize(
    ("new", "notes"),
    [
        (asking(host="b"), ()),
        (asking(path="/perf"), ("what is asked differs: GET / against GET /perf",)),
        (asking("POST"), ("what is asked differs: GET / against POST /",)),
        (asking(body="0" * 64), ("what is asked differs in headers, bodies or weights",)),
    ],
)
def test_another_question_is_told_and_another_server_is_not(
    new: Record, notes: tuple[str, ...]
) -> None:
    assert compare({"": [asking()]}, {"": [new]}).notes == notes


MOVED = f"{MOVED_BY_HOST}: {HANDED}"


def apart(*looks_ns: tuple[float | None, float | None]) -> list[Record]:
    """Trials, of each how far apart the CPUs were before and after it."""
    return [
        record(100).model_copy(
            update={"cpu_distance": CpuDistance(cpus=(1, 0), before_ns=before, after_ns=after)}
        )
        for before, after in looks_ns
    ]


@pytest.mark.parametrize(
    ("base", "new", "notes"),
    [
        ([record(100)], apart((400, 410)), ()),
        (apart((90, 95)), apart((70, 110)), ()),
        (apart((90, None)), apart((None, None)), ()),
        (
            apart((90, 95), (88, None)),
            apart((400, 410)),
            (f"{MOVED} 88 ns to 95 ns in base, 400 ns to 410 ns in new",),
        ),
        (
            apart((90, 95)),
            apart((90, 90), (91, 401)),
            (f"{MOVED} 90 ns to 95 ns in base, 90 ns to 401 ns in new",),
        ),
    ],
)
def test_cpus_that_were_elsewhere_are_told_once(
    base: list[Record], new: list[Record], notes: tuple[str, ...]
) -> None:
    assert compare({"": base}, {"": new}).notes == notes
    both = compare({"one": base, "two": base}, {"one": new, "two": new})
    assert both.notes == notes


def test_a_trap_that_stays_invalid_spoils_no_suite() -> None:
    base = {"good": [record(100)], "trap": [invalid(record(100))]}
    assert exit_code(compare(base, base), []) == 0


HOSTILE = 'x<script>"&|\x1b[31m`'


def compared() -> Compared:
    conditions = [parse_condition("throughput<0.95", RATIO)]
    comparison = compare(
        {HOSTILE: [record(100)], "gone": [record(1)]}, {HOSTILE: [record(80, seconds=1)]}
    )
    return Compared("one", "two", comparison, tuple(crossed_rows(comparison, conditions)))


def test_text_and_markdown_say_what_was_found() -> None:
    text = render(compared(), "text")
    assert "throughput" in text
    assert "only in base: gone" in text
    assert "\x1b" not in text
    assert "threshold crossed" in text
    page = render(compared(), "markdown")
    assert "<script>" not in page
    assert "\x1b" not in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_junit_is_xml_with_a_failure_for_what_was_crossed() -> None:
    suite = ElementTree.fromstring(render(compared(), "junit"))
    assert suite.attrib["failures"] == "1"
    assert len(suite.findall("testcase")) == int(suite.attrib["tests"])
    assert len(suite.findall("testcase/failure")) == 1
    assert len(suite.findall("testcase/skipped")) == 1


def test_json_has_null_for_what_is_unknown() -> None:
    failed = record(100).model_copy(update={"counts": counts(failed={"reset": OK})})
    shown = Compared("one", "two", compare({"": [record(100)]}, {"": [failed]}), ())
    found = json.loads(render(shown, "json"), parse_constant=lambda name: pytest.fail(name))
    p99 = next(each for each in found["rows"][0]["ratios"] if each["metric"] == "p99")
    assert (p99["new"], p99["ratio"], p99["word"]) == (None, None, "worse")


def test_a_row_has_the_same_name_in_each_repetition() -> None:
    labels = {"subject": "go/x", "connections": "64", "pipeline": "10", "cores": "single"}
    assert row_name({**labels, "repetition": "r1"}) == row_name({**labels, "digest": "abc"})
    assert row_name(labels) == "go/x, 64 connections, pipeline 10, single core"
    assert row_name({**labels, "rate": "1,000/s"}) != row_name({**labels, "rate": "2,000/s"})
    assert row_name({}) == ""


@pytest.mark.parametrize("shape", ["record", "trials"])
def test_a_side_may_be_a_file_of_a_result(tmp_path: Path, shape: str) -> None:
    one = good_record()
    path = tmp_path / "result.json"
    value = one.model_dump(mode="json")
    path.write_text(json.dumps(value if shape == "record" else {"trials": [value, value]}))
    side = read_side(str(path), None)
    assert side.rows == {"": [one] * (1 if shape == "record" else 2)}


def test_a_side_may_be_the_json_of_a_suite_row_by_row(tmp_path: Path) -> None:
    row = {"language": "go", "connections": 64, "pipeline": 1, "cores": "single"}
    fast, tuned = (good_record().model_copy(update={"id": each}) for each in "ab")
    rows = [
        {**row, "framework": "x", "name": "", "rate_per_s": None, "record_ids": ["a"]},
        {**row, "framework": "x", "name": "tuned", "rate_per_s": 1000.0, "record_ids": ["b"]},
        {**row, "framework": "y", "name": "", "rate_per_s": None, "record_ids": []},
    ]
    trials = [each.model_dump(mode="json") for each in (tuned, fast)]
    path = tmp_path / "suite.json"
    path.write_text(json.dumps({"suite": "quick", "rows": rows, "trials": trials}))
    assert read_side(str(path), None).rows == {
        "go/x:tuned, 64 connections, 1,000/s, single core": [tuned],
        "go/x, 64 connections, single core": [fast],
    }


def test_a_side_may_be_the_json_of_pairs(tmp_path: Path) -> None:
    one = good_record()
    value = one.model_dump(mode="json")
    trials = [{**value, "pair": 1, "side": "b"}, {**value, "pair": 1, "side": "a"}]
    path = tmp_path / "ab.json"
    path.write_text(json.dumps({"a": "http://h/", "b": "http://h/perf", "trials": trials}))
    assert read_side(str(path), None).rows == {"http://h/perf": [one], "http://h/": [one]}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "3", "null", '{"rows": 1, "kind": "http"}', '{"steps": [{}]}']
)
def test_a_file_that_is_no_run_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UserError):
        read_side(str(path), None)


def test_a_device_is_no_file_of_a_run() -> None:
    with pytest.raises(UserError, match="has no end"):
        read_side("/dev/null", None)


def test_rows_are_in_the_order_of_their_names_and_loads() -> None:
    names = ["go/x, 16 connections", "c/y, 8 connections", "go/x, 8 connections"]
    shuffled = {name: [record(100)] for name in names}
    found = compare(shuffled, dict(reversed(shuffled.items())))
    assert [row.name for row in found.rows] == [names[1], names[2], names[0]]
    assert compare(shuffled, {}).only_base == (names[1], names[2], names[0])


def test_pairs_are_in_an_order_of_chance_that_a_seed_repeats() -> None:
    order = turns(50, seed=7)
    assert order == turns(50, seed=7)
    assert order != turns(50, seed=8)
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert first.pair == second.pair
        assert {first.letter, second.letter} == {"a", "b"}
    assert 10 < sum(turn.letter == "a" for turn in order[::2]) < 40


def test_a_drift_that_both_sides_share_is_not_in_the_ratio() -> None:
    taken = [
        (turn, record((100 if turn.letter == "a" else 90) * turn.pair)) for turn in turns(6, 1)
    ]
    found = compare_pairs(whole_pairs(taken))[0]
    assert found.metric == "throughput"
    assert found.ratio == pytest.approx(0.9)
    assert found.within is not None
    assert found.within.low == pytest.approx(0.9)
    assert found.within.high == pytest.approx(0.9)
    assert found.word == "worse"


@pytest.mark.parametrize(("pairs", "word"), [(1, "unclear"), (5, "unclear"), (6, "worse")])
def test_few_pairs_may_fall_to_one_side_by_chance(pairs: int, word: str) -> None:
    taken = [
        (turn, record(100 if turn.letter == "a" else 80 + turn.pair)) for turn in turns(pairs, 1)
    ]
    assert compare_pairs(whole_pairs(taken))[0].word == word


def test_half_a_pair_is_no_pair() -> None:
    taken = [(Turn(1, "a"), record(100)), (Turn(1, "b"), record(90)), (Turn(2, "a"), record(100))]
    pairs = whole_pairs(taken)
    assert len(pairs) == 1
    found = compare_pairs(pairs)[0]
    assert found.word == "unclear"
    assert found.ratio == pytest.approx(0.9)
    assert compare_pairs([]) == []
