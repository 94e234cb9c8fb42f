"""Percentiles that are upper bounds, because requests waited for a generator that was paused."""

from __future__ import annotations

import csv

import pytest
from report_samples import run_of
from samples import SERVER, good_record
from stall_samples import FOR_THE_SERVER, GOOD, SHARED, answers, queued, stopped
from trueload.api.results.result import Result
from trueload.record import figures
from trueload.record.schema import Server
from trueload.record.stalls import has_own_cpus
from trueload.record.thresholds import crossed, parse_condition
from trueload.report.export import export
from trueload.report.result import latency_text
from trueload.report.times import figure_text
from trueload.suites.figures import figures as figures_of_row
from trueload.suites.figures import together


def test_a_percentile_that_short_pauses_may_have_moved_is_an_upper_bound_everywhere() -> None:
    # Six pauses of 2 ms, while 10 of 10,000 requests waited in each: p99.9 is 7 ms, or down to 5.
    slow = {**answers({5: 9_930, 7: 70}), **queued(2, 6, 10, FOR_THE_SERVER)}
    record = good_record(**slow)
    (check,) = (each for each in record.checks if each.name == "hiccup")
    assert (record.verdict, check.status) == ("valid", "pass")
    assert "up to 2.00 ms of p99.9 7.00 ms is the generator's own delay" in check.why
    assert figures.latency(record).figures.overstated_ns == {"p999": 1_998_848}
    shown = "≤ 7.00 ms"
    assert f"p99 5.00 ms   p99.9 {shown}   max 7.00 ms" in latency_text(record)
    table = "".join(export(*run_of(record), "csv"))
    assert next(csv.DictReader(table.splitlines()))["latency_at_most"] == "p999"
    assert str(Result(records=(record,)).latency.p999) == shown
    (found,) = crossed([parse_condition("p99.9>6ms")], [record])
    assert found.sentence().startswith("p99.9 (an upper bound) is 7.00 ms, and")


def test_a_server_that_shares_our_cpus_may_be_what_we_waited_for() -> None:
    slow = {**answers({5: 9_930, 7: 70}), **queued(2, 6, 10, FOR_THE_SERVER), **SHARED}
    assert figures.latency(good_record(**slow)).figures.overstated_ns == {}


@pytest.mark.parametrize(
    ("target", "server", "own"),
    [
        ("127.0.0.1:80", SERVER, True),
        ("127.0.0.1:80", SHARED["server"], False),
        ("127.0.0.1:80", None, False),
        ("192.0.2.1:80", None, True),
    ],
)
def test_waits_for_a_cpu_are_ours_if_the_server_has_others(
    target: str, server: Server | None, own: bool
) -> None:
    generate = GOOD.plan.generate.model_copy(update={"addresses": (target,)})
    plan = GOOD.plan.model_copy(update={"generate": generate})
    assert has_own_cpus(good_record(plan=plan, server=server)) is own


def test_the_row_of_a_suite_is_an_upper_bound_if_half_of_its_repetitions_are() -> None:
    good = {**answers({5: 9_800, 6: 200}), "verdict": "valid"}
    moved = figures_of_row(good_record(**good, **stopped(1, 1, 100)), {})
    still = figures_of_row(good_record(**good), {})
    assert figure_text(moved, "p99") == "≤ 6.00 ms"
    assert figure_text(together([moved, still]), "p99") == "≤ 6.00 ms"
    assert figure_text(together([moved, still, still]), "p99") == "6.00 ms"
