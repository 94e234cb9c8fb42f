"""Comparisons: ratios, their intervals, the words for them, and output formats."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pytest
from samples import OK, counts, distribution, good_record, histogram
from trueload.cli.compare import exit_code
from trueload.compare.difference import (
    Ratio,
    counted_once,
    of_pairs,
    of_trials,
    too_few_pairs,
    too_few_trials,
)
from trueload.compare.pairs import compare_pairs, turns, whole_pairs
from trueload.compare.run_records import read_side, row_name
from trueload.compare.trials import (
    METRICS,
    compare,
    compare_records,
)
from trueload.errors import UserError
from trueload.protocol.exchange import RequestPlan
from trueload.protocol.plan import Histograms, Open, Stage
from trueload.protocol.tick import Second
from trueload.record.core_latency import HANDED
from trueload.record.core_latency import MOVED as MOVED_BY_HOST
from trueload.record.schema import CoreLatency, Record, Throughput
from trueload.record.thresholds import RATIO, parse_condition
from trueload.record.turn import Turn
from trueload.report.compare import Format, ShownComparison, render


def record(per_s: float, latency_ms: float = 1.0, seconds: int = 10) -> Record:
    """A trial with this throughput and latency."""
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
    found = {"verdict": "valid", "checks": (), "bounds": None}
    return good.model_copy(update={"window": window, **found})


def throughput_of(base: Sequence[float], new: Sequence[float]) -> Ratio:
    return compare_records([record(x) for x in base], [record(x) for x in new])[0]


ONE_EACH = "unclear: one trial each; use --repeat 6 or trueload compare"


@pytest.mark.parametrize(
    ("base", "new", "verdict", "kind"),
    [
        ([100], [100], ONE_EACH, None),
        ([100], [200], ONE_EACH, None),
        (
            [100],
            [200] * 6,
            "unclear: one trial of base; use --repeat 6 or trueload compare",
            "range",
        ),
        (
            [200] * 99,
            [100],
            "unclear: one trial of new; use --repeat 6 or trueload compare",
            "range",
        ),
        (
            [100, 101],
            [50, 51],
            "unclear: 2 trials each; use --repeat 6 or trueload compare",
            "range",
        ),
        (
            [100, 101],
            [50, 51, 52, 53, 54, 55],
            "unclear: 2 against 6 trials; use --repeat 6 or trueload compare",
            "range",
        ),
        # All three of one side above all of the other: by chance in one of ten orders.
        (
            [100, 101, 102],
            [90, 91, 92],
            "unclear: 3 trials each; use --repeat 6 or trueload compare",
            "range",
        ),
        ([100, 101, 102, 103], [90, 91, 92, 93], "worse", "95 % interval"),
        ([100, 101, 102], [90, 91, 92, 93, 94], "worse", "95 % interval"),
        ([100, 101, 102, 103], [101, 102, 103, 104], "same", "95 % interval"),
        ([100, 101, 102, 103], [104, 105, 106, 107], "better", "95 % interval"),
        ([100, 200, 300, 400], [101, 201, 301, 401], "unclear", "95 % interval"),
        # The medians differ, but 9 of 36 pairs of trials differ in the other direction.
        (
            [100, 101, 102, 150, 151, 152],
            [130, 131, 132, 180, 181, 182],
            "unclear",
            "95 % interval",
        ),
        ([100, 101, 99, 100, 101, 99], [90, 91, 89, 90, 91, 89], "worse", "95 % interval"),
        ([100, 110, 90, 100, 110, 90], [99, 109, 91, 102, 108, 93], "same", "95 % interval"),
    ],
)
def test_throughput_is_better_worse_or_the_same(
    base: Sequence[float], new: Sequence[float], verdict: str, kind: str | None
) -> None:
    found = throughput_of(base, new)
    assert found.verdict == verdict
    assert (found.within.kind if found.within else None) == kind
    if found.within is not None:
        assert found.ratio is not None
        assert found.within.low <= found.ratio <= found.within.high


@pytest.mark.parametrize(
    ("base", "new", "few"),
    [
        (1, 1, True),
        (1, 6, True),
        (1, 1000, True),
        (2, 2, True),
        (2, 7, True),
        (2, 8, False),
        (3, 3, True),
        (3, 5, False),
        (4, 4, False),
        (6, 6, False),
        (0, 6, True),
    ],
)
def test_a_claim_needs_trials_that_chance_cannot_order(base: int, new: int, few: bool) -> None:
    assert bool(too_few_trials(base, new)) is few
    assert bool(too_few_trials(new, base)) is few


def test_a_claim_needs_six_pairs() -> None:
    assert [bool(too_few_pairs(pairs)) for pairs in range(1, 8)] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(
    ("metric", "base", "new", "word"),
    [
        ("p99", [1.0] * 6, [2.0] * 6, "worse"),
        ("p99", [2.0] * 6, [1.0] * 6, "better"),
        ("p99", [1.0] * 6, [inf] * 6, "worse"),
        ("p99", [inf] * 6, [1.0] * 6, "better"),
        ("throughput", [1.0] * 6, [0.0] * 6, "worse"),
        ("throughput", [0.0] * 6, [1.0] * 6, "better"),
        # A percentile unknown in some trials of both sides may be anything.
        ("p99", [1.0, 1.0, 1.0, 1.0, inf, inf], [1.0, 1.0, inf, inf, inf, inf], "unclear"),
        ("p99", [inf] * 6, [inf] * 6, "unclear"),
        ("throughput", [0.0] * 6, [0.0] * 6, "unclear"),
        ("p99", [1.0], [inf], "unclear"),
    ],
)
def test_what_nobody_knows_is_claimed_only_where_all_trials_agree(
    metric: str, base: list[float], new: list[float], word: str
) -> None:
    assert of_trials(metric, base, new).word == word
    assert of_pairs(metric, list(zip(base, new, strict=True))).word == word


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.9] * 5, "unclear: 5 pairs; use --repeat 6"),
        ([0.9], "unclear: one pair; use --repeat 6"),
        ([0.9, 0.91, 0.92, 0.93, 0.94, 0.95], "worse"),
        # Five of six agree by chance too often.
        ([0.7, 0.71, 0.72, 0.73, 0.74, 1.001], "unclear"),
        ([0.9, 0.91, 0.92, 0.93, 0.94, 1.001], "same"),
        ([0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 1.01], "worse"),
        ([0.98, 0.99, 1.0, 1.0, 1.01, 1.02], "same"),
        ([0.5, 0.6, 1.0, 1.0, 1.5, 1.6], "unclear"),
    ],
)
def test_pairs_have_to_agree(ratios: list[float], verdict: str) -> None:
    assert of_pairs("throughput", [(100, 100 * each) for each in ratios]).verdict == verdict


def test_failing_is_never_better() -> None:
    failed = record(100).model_copy(update={"counts": counts(failed={"reset": OK // 10})})
    p99 = METRICS.index("p99")
    found = compare_records([record(100)] * 7, [failed] * 7)[p99]
    assert (found.ratio, found.word) == (inf, "worse")
    both = compare_records([failed] * 6, [failed] * 6)[p99]
    assert (both.ratio, both.word) == (None, "unclear")


def test_the_mean_of_a_closed_loop_is_no_second_claim() -> None:
    fast, slow = [record(100, 1.0)] * 6, [record(80, 1.25)] * 6
    throughput, mean, *others = compare_records(fast, slow)
    assert throughput.verdict == "worse"
    assert mean.verdict == "as throughput: in a closed loop both are the same fact"
    assert mean.ratio == pytest.approx(1.25, rel=0.01)
    assert {each.word for each in others} == {"worse"}
    few = compare_records(fast[:1], slow[:1])
    assert {each.verdict for each in few} == {ONE_EACH}
    wide = [record(per_s, 1.25) for per_s in (40, 60, 80, 100, 150, 200)]
    throughput, mean, *_ = compare_records(fast, wide)
    assert throughput.verdict == "unclear"
    assert mean.verdict == "unclear: as throughput, in a closed loop both are the same fact"


def test_the_mean_of_an_open_loop_is_a_claim_of_its_own() -> None:
    fast, slow = opened(record(100, 1.0)), opened(record(100, 1.25))
    throughput, mean, *_ = compare_records([fast] * 6, [slow] * 6)
    assert (throughput.word, mean.word) == ("same", "worse")


def opened(closed: Record) -> Record:
    """Return the same trial as an open loop."""
    stage = Stage.model_validate({"ns": 10**9, "from": 100, "to": 100})
    load = Open(stages=(stage,), arrivals="constant", seed=1)
    window = closed.plan.window.model_copy(update={"load": load})
    return closed.model_copy(update={"plan": closed.plan.model_copy(update={"window": window})})


def test_an_invalid_trial_leaves_its_row_unclear() -> None:
    good, bad = [record(100)] * 6, [*[record(80)] * 5, invalid(record(80))]
    for base, new, which in (
        (good, bad, "new"),
        (bad, good, "base"),
        (bad, bad, "base and of new"),
    ):
        found = compare_records(base, new)
        assert {each.verdict for each in found} == {f"unclear: a trial of {which} is invalid"}
    taken = list(zip(turns(6, 1), [*bad, *bad], strict=True))
    assert {each.word for each in compare_pairs(whole_pairs(taken))} == {"unclear"}


SEEN = 60  # comparisons of each kind
OF_ALL = ("throughput", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9")


def equal_trials(chance: random.Random, count: int) -> list[dict[str, float]]:
    """Trials of one server, which differ by a common factor and by a small one per percentile.

    Now and then a trial is slow.
    """
    found = []
    for _ in range(count):
        speed = math.exp(chance.gauss(0, 0.05)) * (1.2 if chance.random() < 0.1 else 1.0)
        own = {metric: speed * math.exp(chance.gauss(0, 0.03)) for metric in OF_ALL[2:]}
        found.append({"throughput": 1 / speed, "mean": speed, **own})
    return found


@pytest.mark.usefixtures("pairs_uncounted")
@pytest.mark.parametrize(
    ("base", "new", "share_max"),
    [(1, 1, 0.0), (1, 6, 0.0), (6, 1, 0.0), (2, 2, 0.0), (4, 4, 0.05), (6, 6, 0.05), (6, 8, 0.05)],
)
def test_equal_servers_are_seldom_told_apart(base: int, new: int, share_max: float) -> None:
    chance, false = random.Random(11), 0
    for _ in range(SEEN):
        olds, news = equal_trials(chance, base), equal_trials(chance, new)
        ratios = [
            of_trials(metric, [each[metric] for each in olds], [each[metric] for each in news])
            for metric in OF_ALL
        ]
        false += sum(each.word in ("better", "worse") for each in counted_once(ratios))
    assert false <= share_max * SEEN * len(OF_ALL)


@pytest.mark.usefixtures("pairs_uncounted")
def test_a_server_that_is_a_third_slower_is_mostly_told_apart() -> None:
    chance, found = random.Random(11), 0
    for _ in range(SEEN):
        base = [each["p99"] for each in equal_trials(chance, 6)]
        new = [each["p99"] * 4 / 3 for each in equal_trials(chance, 6)]
        found += of_trials("p99", base, new).word == "worse"
    assert found >= 0.9 * SEEN


@pytest.mark.usefixtures("pairs_uncounted")
@pytest.mark.parametrize("pairs", [1, 5, 6, 7])
def test_equal_servers_in_pairs_are_seldom_told_apart(pairs: int) -> None:
    chance, false = random.Random(11), 0
    for _ in range(SEEN):
        both = list(zip(equal_trials(chance, pairs), equal_trials(chance, pairs), strict=True))
        ratios = [of_pairs(metric, [(a[metric], b[metric]) for a, b in both]) for metric in OF_ALL]
        false += sum(each.word in ("better", "worse") for each in counted_once(ratios))
    assert false <= (0.05 if pairs >= 6 else 0.0) * SEEN * len(OF_ALL)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("throughput<0.95", ["slow"]),
        ("throughput<0.5", []),
        ("p99>1.2", ["slow"]),
        ("p99>1.2 and throughput<0.5", []),
        ("p99.9>1.2", ["slow"]),
        ("p99.8>1.2", ["slow"]),
        ("p99.99>1.2", []),  # unknown with only 10,000 requests
    ],
)
def test_a_condition_is_of_a_rows_ratio(condition: str, expected: list[str]) -> None:
    base = {"slow": [record(100)] * 6, "equal": [record(100)] * 6}
    new = {"slow": [record(80, 2.0)] * 6, "equal": [record(100)] * 6, "fresh": [record(1)]}
    comparison = compare(base, new, [parse_condition(condition, RATIO)])
    crossed = [each.row for each in comparison.rulings if each.ruling.state == "crossed"]
    assert crossed == expected
    assert comparison.only_new == ("fresh",)


def invalid(good: Record) -> Record:
    bad = good_record(counts=counts(failed={"unsolicited": 1}))
    found = {"checks": bad.checks, "verdict": "invalid", "bounds": bad.bounds}
    return good.model_copy(update=found)


@pytest.mark.parametrize(
    ("base", "new", "state", "code"),
    [
        ([record(100)] * 6, [record(100)] * 6, "kept", 0),
        ([record(100)] * 6, [record(90)] * 6, "crossed", 1),
        ([record(100)] * 6, [invalid(record(90))] * 6, "undecided", 4),
        ([invalid(record(100))] * 6, [record(100)] * 6, "undecided", 4),
    ],
)
def test_an_exit_code_follows(base: list[Record], new: list[Record], state: str, code: int) -> None:
    comparison = compare({"": base}, {"": new}, [parse_condition("throughput<0.95", RATIO)])
    assert [each.ruling.state for each in comparison.rulings] == [state]
    assert exit_code(comparison) == code
    without = compare({"": base}, {"": new})
    assert exit_code(without) == (4 if code == 4 else 0)


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


def trials_with(*latencies_ns: tuple[float | None, float | None]) -> list[Record]:
    """Trials with the core latency before and after each."""
    return [
        record(100).model_copy(
            update={"cpu_distance": CoreLatency(cpus=(1, 0), before_ns=before, after_ns=after)}
        )
        for before, after in latencies_ns
    ]


@pytest.mark.parametrize(
    ("base", "new", "notes"),
    [
        ([record(100)], trials_with((400, 410)), ()),
        (trials_with((90, 95)), trials_with((70, 110)), ()),
        (trials_with((90, None)), trials_with((None, None)), ()),
        (
            trials_with((90, 95), (88, None)),
            trials_with((400, 410)),
            (f"{MOVED} 88 ns to 95 ns in base, 400 ns to 410 ns in new",),
        ),
        (
            trials_with((90, 95)),
            trials_with((90, 90), (91, 401)),
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
    base = {"good": [record(100)] * 4, "trap": [invalid(record(100))]}
    assert exit_code(compare(base, base)) == 0
    gated = compare(base, base, [parse_condition("throughput<0.95", RATIO)])
    assert [each.row for each in gated.rulings] == ["good"]


HOSTILE = 'x<script>"&|\x1b[31m`'


def compared() -> ShownComparison:
    comparison = compare(
        {HOSTILE: [record(100)] * 6, "gone": [record(1)]},
        {HOSTILE: [record(80, seconds=1)] * 6},
        [parse_condition("throughput<0.95", RATIO)],
    )
    return ShownComparison("one", "two", comparison)


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


@pytest.mark.parametrize("format_", ["text", "markdown", "json"])
def test_a_row_without_a_difference_says_how_many_pairs_take_one(format_: Format) -> None:
    found = compare({"": [record(100), record(103)]}, {"": [record(98), record(101)]})
    text = render(ShownComparison("one", "two", found), format_)
    if format_ == "json":
        row = json.loads(text)["rows"][0]
        needed = {each["metric"]: each["pairs_needed"] for each in row["ratios"]}
        assert (row["primary"], needed["throughput"]) == ("throughput", 15)
    else:
        expected = "a difference of 3 % in throughput takes some 15 pairs at this spread"
        assert text.count(f"{expected} (trueload compare --repeat 15)") == 1


def test_junit_is_xml_with_a_failure_for_what_was_crossed() -> None:
    suite = ElementTree.fromstring(render(compared(), "junit"))
    assert suite.attrib["failures"] == "1"
    assert len(suite.findall("testcase")) == int(suite.attrib["tests"])
    assert len(suite.findall("testcase/failure")) == 1
    assert len(suite.findall("testcase/skipped")) == 1


def test_json_has_null_for_what_is_unknown() -> None:
    failed = record(100).model_copy(update={"counts": counts(failed={"reset": OK})})
    shown = ShownComparison("one", "two", compare({"": [record(100)] * 7}, {"": [failed] * 7}))
    found = json.loads(render(shown, "json"), parse_constant=lambda name: pytest.fail(name))
    p99 = next(each for each in found["rows"][0]["ratios"] if each["metric"] == "p99")
    assert (p99["new"], p99["ratio"], p99["word"]) == (None, None, "worse")


@pytest.mark.parametrize("format_", ["text", "markdown", "junit"])
def test_single_trials_are_unclear_in_the_same_words_in_every_format(format_: Format) -> None:
    single = compare({"": [record(100)]}, {"": [record(50, 2.0)]})
    text = render(ShownComparison("one", "two", single), format_)
    assert text.count(ONE_EACH) == len(METRICS)
    assert "better" not in text
    assert "worse" not in text
    rows = json.loads(render(ShownComparison("one", "two", single), "json"))["rows"]
    assert {f"{each['word']}: {each['why']}" for each in rows[0]["ratios"]} == {ONE_EACH}


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
    complaint = "is not JSON" if text in ("", "{") else "holds no run that this version can read"
    with pytest.raises(UserError, match=complaint) as caught:
        read_side(str(path), None)
    assert "\n" not in caught.value.message


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
