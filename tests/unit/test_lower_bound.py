"""A generator as full as the server gives a lower bound: true, ranked as such, and no doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import GENERATOR, SERVER, good_record
from trueload.api.results.result import Result
from trueload.commands.output import exit_code
from trueload.compare.difference import lower_bound, of_pairs, of_trials
from trueload.compare.trials import compare
from trueload.errors import ExitCode
from trueload.metrics import names
from trueload.metrics.families import _outcome_samples
from trueload.metrics.tally import Outcome
from trueload.record.schema import Record, Window
from trueload.repetitions import Interval
from trueload.report.export.json import result_json
from trueload.report.html.entries import is_better
from trueload.report.result import repeated_lines, result_lines
from trueload.report.sheets import record_values
from trueload.suites.figures import figures
from trueload.suites.summary import Summary, repeated
from trueload.verdict import is_lower_bound, worst_checks


def record(generator: float = 0.97, server: float = 0.96, **changes: object) -> Record:
    return good_record(
        generator=GENERATOR.model_copy(update={"saturation": generator}),
        server=SERVER.model_copy(update={"saturation": server}),
        **changes,
    )


BOUND, EXACT = record(), good_record()
WARNED = record(
    window=Window(
        window_ns=1_000_000_000,
        drain_ns=0,
        connect_wall_s=0.0,
        wall_s=2.0,
        host_idle_share=0.5,
        others_share=0.0,
        stolen_share=0.06,
    )
)


@pytest.mark.parametrize(
    ("sentence", "found", "verdict", "lower_bound"),
    [
        ("both ends are full", BOUND, "valid", True),
        ("both ends are just full enough", record(0.90, 0.90), "valid", True),
        ("the generator is just full enough", record(0.90, 0.70), "valid", True),
        ("the server is not at its limit", record(0.94, 0.969), "valid", True),
        ("the server is at its limit", record(0.94, 0.97), "valid", False),
        ("so is the generator", record(1.0, 0.97), "valid", False),
        ("the generator has time to spare", record(0.89, 0.99), "valid", False),
        ("the generator is full, the server nearly", record(0.95, 0.67), "valid", True),
        ("only the generator is full: its times are its own", record(0.95, 0.66), "invalid", False),
        ("both have time to spare", record(0.89, 0.89), "valid", False),
        ("something else may be wrong", WARNED, "suspect", True),
    ],
)
def test_what_is_a_lower_bound(
    sentence: str, found: Record, verdict: str, lower_bound: bool
) -> None:
    assert (found.verdict, found.lower_bound) == (verdict, lower_bound), sentence


def test_what_is_invalid_bounds_nothing() -> None:
    failing = [check.model_copy(update={"status": "fail"}) for check in BOUND.checks[:1]]
    assert not is_lower_bound([*failing, *BOUND.checks])


def test_a_lower_bound_is_said_in_text_json_and_csv() -> None:
    text = "\n".join(result_lines(BOUND))
    assert "≥ 10,000 requests/s" in text
    assert "valid (lower bound)" in text
    assert "  bound generator-limit: " in text
    assert "suspect" not in text
    assert result_json([BOUND], None)["lower_bound"] is True
    assert record_values(BOUND)["lower_bound"] is True
    assert "≥" not in "\n".join(result_lines(EXACT))


def test_several_trials_are_a_lower_bound_as_soon_as_one_is() -> None:
    assert "median ≥ 10,000 requests/s" in "\n".join(repeated_lines([EXACT, BOUND]))
    assert result_json([EXACT, BOUND], None)["lower_bound"] is True
    assert result_json([EXACT, EXACT], None)["lower_bound"] is False
    assert is_lower_bound(worst_checks([BOUND, EXACT]))


def test_python_has_the_word_and_the_flag() -> None:
    result = Result((BOUND,))
    assert (result.verdict, result.lower_bound) == ("valid", True)
    assert "≥ 10,000 requests/s" in repr(result)
    assert "valid (lower bound)" in repr(result)


@pytest.mark.parametrize("strict", [True, False])
def test_a_lower_bound_ends_a_command_with_0(strict: bool) -> None:
    assert exit_code([BOUND], [], interrupted=False, strict=strict) is ExitCode.OK


def test_a_metric_says_whether_the_throughput_is_a_lower_bound() -> None:
    for found, value in ((BOUND, 1.0), (EXACT, 0.0)):
        outcome = Outcome(
            found.verdict, found.checks, 1.0, found.latency_ns, {}, lower_bound=found.lower_bound
        )
        assert (names.LOWER_BOUND, (), value) in list(_outcome_samples((), outcome))


def summary(name: str, found: Record, low: float, high: float) -> Summary:
    made = repeated(name, name, [replace(figures(found, {}), ok_per_s=(low + high) / 2)])
    return replace(made, interval=Interval(low, high, "95 % interval"))


def test_no_row_is_known_to_be_above_a_lower_bound() -> None:
    bound, exact = summary("b", BOUND, 80, 90), summary("e", EXACT, 100, 110)
    assert bound.why.startswith("generator-limit: ")
    assert exact.why == ""
    assert not is_better(exact, bound)


@pytest.mark.parametrize(
    ("new", "bounded", "verdict"),
    [
        (120.0, "", "better"),
        (120.0, "B", "better"),
        (120.0, "A", "unclear: A is a lower bound"),
        (120.0, "AB", "unclear: A is a lower bound; B is a lower bound"),
        (80.0, "", "worse"),
        (80.0, "A", "worse"),
        (80.0, "B", "unclear: B is a lower bound"),
        (80.0, "AB", "unclear: A is a lower bound; B is a lower bound"),
        (100.0, "", "same"),
        (100.0, "A", "unclear: A is a lower bound"),
        (100.0, "B", "unclear: B is a lower bound"),
    ],
)
def test_a_lower_bound_is_at_least_as_good_as_measured(
    new: float, bounded: str, verdict: str
) -> None:
    base, news = [100.0] * 6, [new] * 6
    a, b = (
        lower_bound(name, side) if name in bounded else None
        for name, side in (("A", base), ("B", news))
    )
    pairs = list(zip(base, news, strict=True))
    assert of_pairs("throughput", pairs, bounds=(a, b)).verdict == verdict
    assert of_trials("throughput", base, news, bounds=(a, b)).verdict == verdict


def test_two_lower_bounds_are_not_compared() -> None:
    (row,) = compare({"": [BOUND] * 6}, {"": [BOUND] * 6}).rows
    assert (row.base_lower_bound, row.new_lower_bound) == (True, True)
    assert {each.word for each in row.ratios} == {"unclear"}
