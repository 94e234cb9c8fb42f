"""What a disturbed run still decides: bounds, conditions, exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from disturbed_samples import with_checks
from search_samples import SLOW
from trueload.protocol.lateness import Lateness, Stalls
from trueload.protocol.plan import Closed
from trueload.record.certainty import range_of, rule, usable_text
from trueload.record.schema import Bounds, Direction, Record
from trueload.record.thresholds import parse_condition
from trueload.verdict import CHECKS
from trueload.verdict.common import Moves

ROOT = Path(__file__).resolve().parents[2]
DELAYED = Bounds(latency="unknown", throughput="at_least", errors="at_most")
NO_BOUND = Bounds(latency="unknown", throughput="unknown", errors="unknown")


def states(record: Record, *conditions: str) -> list[str]:
    return [each.state for each in rule([parse_condition(text) for text in conditions], [record])]


@pytest.mark.parametrize(
    ("failed", "bounds"),
    [
        ((), Bounds()),
        (("hiccup",), Bounds(latency="at_most", throughput="at_least", errors="at_most")),
        (("errors",), Bounds()),
        # The rate is uneven because of the pause; without one nobody knows why.
        (
            ("hiccup", "steady-state"),
            Bounds(latency="at_most", throughput="at_least", errors="at_most"),
        ),
        (("steady-state",), NO_BOUND),
        (("starvation",), Bounds(latency="at_least")),
        # Two that move a figure in different directions leave nothing certain of it.
        (("hiccup", "starvation"), DELAYED),
        (("unsolicited",), NO_BOUND),
        (("hiccup", "audit"), NO_BOUND),
    ],
)
def test_bounds_are_what_all_failed_checks_leave(failed: tuple[str, ...], bounds: Bounds) -> None:
    assert with_checks(*failed).bounds == bounds


def test_a_closed_loop_that_stood_still_bounds_no_latency() -> None:
    """It also skips the pauses of the server."""
    closed = with_checks("hiccup", load=Closed())
    assert closed.bounds == DELAYED


def test_every_check_has_directions() -> None:
    for check in CHECKS.values():
        assert isinstance(check.moves, Moves)
        words = [getattr(check.moves, kind) for kind in ("latency", "throughput", "errors")]
        assert set(words) <= set(get_args(Direction))


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        # p99 of the sample record is 1 ms or so, and 1,000 requests/s are carried.
        ("p99>20s", "kept"),
        ("p99<20s", "crossed"),
        ("p99>1ns", "undecided"),
        ("throughput<1/s", "kept"),
        ("throughput>1/s", "crossed"),
        ("throughput<100M/s", "undecided"),
        ("errors>50%", "kept"),
        # One part that is certainly false decides a condition of several.
        ("p99>1ns and errors>50%", "kept"),
        ("p99>1ns and errors<50%", "undecided"),
    ],
)
def test_a_bound_decides_in_its_direction(condition: str, state: str) -> None:
    assert states(with_checks("hiccup"), condition) == [state]


def test_an_exact_figure_decides_whatever_the_verdict() -> None:
    record = with_checks("errors")
    assert record.verdict == "invalid"
    assert states(record, "p99>1ns", "p99>20s", "errors>50%") == ["crossed", "kept", "kept"]


def test_a_lower_bound_of_the_throughput_decides_nothing_above_it() -> None:
    record = with_checks(bound=True, load=Closed())
    assert record.verdict == "valid"
    assert states(record, "throughput<1/s", "throughput<100M/s") == ["kept", "undecided"]


def test_records_of_before_are_decided_as_they_were() -> None:
    record = with_checks("hiccup").model_copy(update={"bounds": None})
    assert states(record, "p99>1ns", "p99>20s") == ["crossed", "kept"]
    low, high = range_of("throughput", record)
    assert low == high
    again = Record.model_validate_json(record.model_dump_json())
    assert again.bounds is None


def test_the_sentences_say_the_bound_and_what_is_missing() -> None:
    record = with_checks("hiccup")
    conditions = [parse_condition(text) for text in ("p99>20s", "p99>1ns")]
    kept, undecided = rule(conditions, [record])
    assert kept.why.startswith("p99 is at most ")
    assert kept.why.endswith(", whatever disturbed this run, and --fail-on says p99>20s")
    assert undecided.why.endswith("and --fail-on says p99>1ns; hiccup: hiccup was bad")


def test_an_invalid_run_says_what_can_be_used() -> None:
    text = usable_text(with_checks("hiccup"))
    assert text.startswith("p50 ≤ ")
    assert ", p99 ≤ " in text
    assert ", at least " in text
    assert usable_text(with_checks("hiccup", load=Closed())).startswith("at least ")
    for nothing in (with_checks(), with_checks("errors"), with_checks("unsolicited")):
        assert usable_text(nothing) == ""


def test_a_throughput_that_is_not_known_decides_nothing() -> None:
    record = with_checks()
    unknown = record.throughput.model_copy(update={"ok_per_s": None})
    record = record.model_copy(update={"throughput": unknown, "verdict": "invalid"})
    assert states(record, "throughput<50k/s", "p99>20s") == ["undecided", "kept"]


def test_a_percentile_that_is_an_upper_bound_by_itself_names_no_check() -> None:
    record = with_checks(histograms=SLOW)
    stop = Stalls(at_least_ns=10_000_000, count=1, ns=20_000_000, requests=1_000)
    generator = record.generator.model_copy(update={"lateness": Lateness(stopped=(stop,))})
    late = record.model_copy(update={"generator": generator})
    low, high = range_of("p99", late)
    assert low < high
    middle = f"p99>{(low + high) / 2:.0f}ns"
    (ruling,) = rule([parse_condition(middle)], [late])
    assert ruling.state == "undecided"
    assert ruling.why.startswith("p99 is at most ")
    assert ruling.why.endswith(f"--fail-on says {middle}")


def test_trials_that_are_bounded_on_different_sides_decide_nothing_between() -> None:
    trials = [with_checks("hiccup"), with_checks("starvation")]
    for condition in ("p99>1ns", "p99>20s"):
        (ruling,) = rule([parse_condition(condition)], trials)
        assert ruling.state == "undecided", condition
