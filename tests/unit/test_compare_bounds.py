"""Comparisons of disturbed trials: a claim stands wherever the truth may lie, or is not made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from disturbed_samples import OPEN, with_checks
from samples import counts
from trueload.api.results.ab import AbResult
from trueload.api.results.result import Result
from trueload.cli.compare import exit_code as compare_code
from trueload.commands.output import exit_code
from trueload.compare.difference import Bounded, of_pairs, of_trials
from trueload.compare.trials import compare
from trueload.protocol.plan import Closed
from trueload.pytest_plugin import Trueload
from trueload.record.certainty import rule
from trueload.record.schema import Record
from trueload.record.thresholds import RATIO, parse_condition
from trueload.record.turn import Letter, Turn
from trueload.report.ab import PairedTrials, compared, paired_json, paired_lines
from trueload.report.compare import ShownComparison, ratio_cells, render, within_text

INF = float("inf")
SIX = [100.0, 101, 99, 100, 102, 98]


def at(per_s: float, *failed: str, bound: bool = False) -> Record:
    """A trial of a closed loop with this throughput in which these checks failed."""
    record = with_checks(*failed, bound=bound, load=Closed())
    rate = record.throughput.model_copy(update={"ok_per_s": per_s})
    return record.model_copy(update={"throughput": rate})


def paired(a: Sequence[Record], b: Sequence[Record], *conditions: str) -> PairedTrials:
    """The pairs of two sides, with what became of the conditions."""
    sides: list[tuple[Letter, Sequence[Record]]] = [("a", a), ("b", b)]
    taken = [
        (Turn(number, letter), some[number - 1])
        for number in range(1, len(a) + 1)
        for letter, some in sides
    ]
    given = [parse_condition(text, RATIO) for text in conditions]
    return PairedTrials.of(("A", "B"), taken, seed=1, conditions=given)


@pytest.mark.parametrize(
    ("metric", "new", "lows", "highs", "verdict"),
    [
        ("throughput", 110, 110, INF, "better"),
        ("throughput", 110, 0, 110, "unclear: hidden"),
        ("throughput", 110, 106, 110, "better"),
        ("throughput", 110, 90, 110, "same"),
        ("throughput", 90, 0, 90, "worse"),
        ("throughput", 90, 90, INF, "unclear: hidden"),
        ("throughput", 90, 0, INF, "unclear: hidden"),
        ("throughput", 100, 0, 100, "unclear: hidden"),
        ("p99", 110, 110, INF, "worse"),
        ("p99", 110, 0, 110, "unclear: hidden"),
        ("p99", 90, 0, 90, "better"),
        ("p99", 90, 90, INF, "unclear: hidden"),
    ],
)
def test_a_claim_holds_wherever_the_truth_lies(
    metric: str, new: float, lows: float, highs: float, verdict: str
) -> None:
    bound = Bounded([lows] * 6, [highs] * 6, "hidden")
    pairs = [(100.0, new)] * 6
    assert of_pairs(metric, pairs, bounds=(None, bound)).verdict == verdict
    assert of_trials(metric, [100.0] * 6, [new] * 6, bounds=(None, bound)).verdict == verdict
    # Seen from the other side it is the opposite.
    opposite = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    turned = [(now, old) for old, now in pairs]
    assert of_pairs(metric, turned, bounds=(bound, None)).verdict == opposite


def test_a_bounded_pair_is_one_that_may_disagree() -> None:
    """Two of twelve may, by the sign test, and three may not."""
    for bounded, word in ((2, "worse"), (3, "unclear")):
        b = [at(90, bound=number < bounded) for number in range(12)]
        found = paired([at(100)] * 12, b)
        assert found.ratios[0].word == word
    assert found.ratios[0].why == "B is a lower bound"


def test_a_single_disturbed_pair_of_six_hides_a_difference_in_its_direction_only() -> None:
    five = [at(100)] * 5
    worse = paired([*five, at(100)], [*[at(90)] * 5, at(90, "hiccup")]).ratios[0]
    assert worse.verdict == "unclear: of B only a bound is known (hiccup)"
    better = paired([*five, at(100)], [*[at(110)] * 5, at(110, "hiccup")]).ratios[0]
    assert better.verdict == "better"


@pytest.mark.parametrize(
    ("a", "b", "condition", "state", "code"),
    [
        # Exact figures are decided as before.
        (at(100), at(90), "throughput<0.95", "crossed", 1),
        (at(100), at(99), "throughput<0.95", "kept", 0),
        (at(100), at(90), "throughput<0.5", "kept", 0),
        # Whatever failed, if it leaves the figure exact.
        (at(100), at(90, "errors"), "throughput<0.95", "crossed", 1),
        (at(100, "errors"), at(99), "throughput<0.95", "kept", 0),
        # B carries at least so much.
        (at(100), at(99, "hiccup"), "throughput<0.95", "kept", 0),
        (at(100), at(90, "hiccup"), "throughput<0.95", "undecided", 4),
        (at(100), at(120, "hiccup"), "throughput>1.1", "crossed", 1),
        (at(100), at(99, bound=True), "throughput<0.95", "kept", 0),
        (at(100), at(90, bound=True), "throughput<0.95", "undecided", 4),
        # So does A.
        (at(100, "hiccup"), at(90), "throughput<0.95", "crossed", 1),
        (at(100, "hiccup"), at(99), "throughput<0.95", "undecided", 4),
        (at(100, "noise"), at(99, "noise"), "throughput<0.95", "undecided", 4),
        # Nothing is certain of B.
        (at(100), at(90, "unsolicited"), "throughput<0.95", "undecided", 4),
        # One part that is certainly false decides.
        (at(100), at(90, "hiccup"), "throughput<0.95 and throughput>50", "undecided", 4),
        (at(100), at(99, "hiccup"), "throughput<0.95 and p99<5", "kept", 0),
    ],
)
def test_a_condition_of_pairs_is_decided_by_bounds(
    a: Record, b: Record, condition: str, state: str, code: int
) -> None:
    found = paired([a] * 6, [b] * 6, condition)
    assert [each.state for each in found.rulings] == [state]
    assert exit_code(found.records, found.rulings, interrupted=False) == code
    # Two runs side by side are decided alike.
    runs = compare({"": [a] * 6}, {"": [b] * 6}, [parse_condition(condition, RATIO)])
    assert [each.ruling.state for each in runs.rulings] == [state]
    assert compare_code(runs) == code
    for shown in (compared(found), ShownComparison("A", "B", runs)):
        assert junit_code(shown) == code
    # So is a test with the fixture.
    result = AbResult(found)
    assert (bool(result.crossed), bool(result.undecided)) == (code == 1, code == 4)
    assert fails(result, fail_on=condition) is (code != 0)


def fails(result: AbResult | Result, **options: object) -> bool:
    """Whether the fixture of pytest fails the test."""
    try:
        Trueload(lambda _: None)._judged(result, options, invalid_ok=False)
    except pytest.fail.Exception:
        return True
    return False


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("condition", ["p99>20s", "p99<20s", "p99>1ns", "throughput>1/s", None])
@pytest.mark.parametrize(
    "record",
    [with_checks(), with_checks("hiccup"), with_checks("errors"), with_checks("unsolicited")],
)
def test_the_fixture_fails_where_the_command_does(
    record: Record, condition: str | None, strict: bool
) -> None:
    rulings = rule([parse_condition(condition)] if condition else [], [record])
    code = exit_code([record], rulings, interrupted=False, strict=strict)
    crossed, undecided = (
        tuple(each.why for each in rulings if each.state == state)
        for state in ("crossed", "undecided")
    )
    result = Result((record,), crossed=crossed, undecided=undecided)
    assert fails(result, fail_on=condition, strict=strict) is (code != 0)


def junit_code(shown: ShownComparison) -> int:
    """The exit code that a reader of the XML expects."""
    suite = ElementTree.fromstring(render(shown, "junit"))
    if suite.attrib["errors"] != "0":
        return 4
    return 1 if suite.attrib["failures"] != "0" else 0


def test_an_invalid_comparison_without_conditions_is_an_error() -> None:
    found = paired([at(100)] * 6, [at(90, "hiccup")] * 6)
    assert exit_code(found.records, found.rulings, interrupted=False) == 4
    assert junit_code(compared(found)) == 4


def test_junit_has_each_condition_with_its_sentence() -> None:
    gates = ("throughput<0.95", "throughput<0.5", "p99>5")
    found = paired([at(100)] * 6, [at(90, "hiccup")] * 6, *gates)
    suite = ElementTree.fromstring(render(compared(found), "junit"))
    cases = {each.attrib["name"]: each for each in suite.findall("testcase")}
    error = cases["--fail-on throughput<0.95"].find("error")
    assert error is not None
    assert error.attrib["message"] == found.sentences("undecided")[0]
    kept = cases["--fail-on throughput<0.5"]
    assert [each.tag for each in kept] == ["system-out"]
    assert "whatever disturbed this run" in (kept[0].text or "")
    decided = paired([at(100)] * 6, [at(90, "hiccup")] * 6, "throughput<0.5")
    suite = ElementTree.fromstring(render(compared(decided), "junit"))
    skipped = suite.find("testcase[@name='verdict']/skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "the new run is invalid"


def test_the_sentences_say_the_bound_and_what_quiet_is_missing() -> None:
    found = paired([at(100)] * 6, [at(90, "hiccup")] * 6, "throughput<0.95", "throughput<0.5")
    undecided, kept = found.rulings
    assert undecided.why == (
        "throughput of B is at least 0.900 of A's, and --fail-on says throughput<0.95;"
        " hiccup: hiccup was bad"
    )
    assert kept.why == (
        "throughput of B is at least 0.900 of A's, whatever disturbed this run,"
        " and --fail-on says throughput<0.5"
    )
    crossed = paired([at(100, "hiccup")] * 6, [at(90)] * 6, "throughput<0.95").rulings[0]
    assert crossed.why == (
        "throughput of B is at most 0.900 of A's, and --fail-on says throughput<0.95"
    )


def test_text_and_json_show_the_bounds() -> None:
    found = paired([at(100)] * 6, [at(90, "hiccup")] * 6, "throughput<0.95")
    throughput = found.ratios[0]
    *_, ratio, within, word = ratio_cells(throughput)
    assert (ratio, within) == ("≥ 0.900", "at least 0.900 (95 % interval)")
    assert word == "unclear: of B only a bound is known (hiccup)"
    assert any("≥ 0.900" in line for line in paired_lines(found))
    shown = paired_json(found, None)
    json.dumps(shown, allow_nan=False)
    of_throughput = shown["ratios"][0]
    assert (of_throughput["at_least"], of_throughput["at_most"]) == (pytest.approx(0.9), None)
    assert of_throughput["interval"]["high"] is None
    assert shown["undecided"] == list(found.sentences("undecided"))
    both = paired([at(100, "hiccup")] * 6, [at(90, "hiccup")] * 6).ratios[0]
    assert within_text(both.within) == ""


def test_a_mean_of_answers_is_no_better_because_many_requests_failed() -> None:
    lost = with_checks("errors", load=OPEN, counts=counts(failed={"reset": 100}))
    found = {each.metric: each for each in paired([with_checks()] * 6, [lost] * 6).ratios}
    assert found["mean"].bound == "at_least"
    assert found["mean"].at_most == INF


def test_records_of_before_are_compared_as_they_were() -> None:
    old = at(90, "hiccup").model_copy(update={"bounds": None})
    found = paired([at(100)] * 6, [old] * 6, "throughput<0.95")
    assert found.ratios[0].verdict == "unclear: a trial of B is invalid"
    assert found.rulings[0].state == "undecided"
