"""The generator's own part of the latency: its record, its presentation, and its limit."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_samples import html, put_records
from samples import (
    OK,
    PHASE,
    SERVER,
    connections,
    counts,
    distribution,
    good_record,
    histogram,
    staged,
    trial_facts,
)
from trueload.protocol.plan import Histograms
from trueload.protocol.sums import add_histograms
from trueload.record.accounts.generator_times import GENERATOR_TIMES, GeneratorTime, GeneratorTimes
from trueload.record.schema import Record, Status
from trueload.report.result import generator_share_text, result_lines
from trueload.report.sheets import TRIALS, record_values
from trueload.stats import Distribution, decode_histogram
from trueload.store.runs import Store
from trueload.verdict import generator_shares

US, MS = 1_000, 1_000_000
FULL, NEARLY_FULL = (SERVER.model_copy(update={"saturation": share}) for share in (0.97, 0.96))
Times = tuple[tuple[int, int], ...]


def account(found: Histograms) -> GeneratorTimes:
    made: GeneratorTimes = GENERATOR_TIMES.made(trial_facts(SimpleNamespace(histograms=found)))
    return made


def times(send: Times = ((4 * US, OK),), receive: Times = ((6 * US, 1_000),)) -> GeneratorTimes:
    """The generator's own times; each is given as (value, count) pairs."""
    return account(histograms(send, receive))


def histograms(send: Times, receive: Times) -> Histograms:
    return Histograms(
        latency=None,
        service=None,
        connect=None,
        first_byte=None,
        total=None,
        send_lag=histogram(*send) if send else None,
        receive_lag=histogram(*receive) if receive else None,
    )


def record(ours: GeneratorTimes, latency: Times = ((MS, OK),), **changes: Any) -> Record:
    """An open loop whose answers took these times."""
    encoded = histogram(*latency)
    fields: dict[str, Any] = {
        "plan": good_record().plan.model_copy(update={"window": staged((OK, OK))}),
        "latency_ns": distribution(encoded),
        "histograms": good_record().histograms.model_copy(update={"latency": encoded}),
        "client_ns": ours,
        "round_trip_ns": Distribution(),
    }
    return good_record(**{**fields, **changes})


def closed(**changes: Any) -> dict[str, Any]:
    plan = good_record().plan
    return {"plan": plan.model_copy(update={"window": PHASE}), **changes}


def close_to(value: int, expected: int) -> bool:
    """Compare to the three digits of the histograms."""
    return abs(value - expected) <= expected / 500


# --- the record


def test_the_times_of_several_hosts_are_those_of_all_their_requests() -> None:
    # The medians are 10 us and 90 us; that of all is 10 us, while their mean would be 50 us.
    busy = ((10 * US, 90), (1_000 * US, 10))
    idle = ((90 * US, 20),)
    parts = [histograms(send, send) for send in (busy, idle)]
    ours = account(add_histograms(parts))
    whole = times(tuple(chain(busy, idle)), tuple(chain(busy, idle)))
    assert ours == whole
    assert ours.receive is not None
    assert ours.receive.count == 120
    assert close_to(ours.receive.p50, 10 * US)
    assert close_to(ours.receive.p99, 1_000 * US)
    merged = decode_histogram(add_histograms(parts).receive_lag)
    assert sum(merged.counts) == 120, "the histogram itself is in the record"


def test_what_was_not_timed_is_null() -> None:
    assert times((), ()) == GeneratorTimes(send=None, receive=None)
    assert times(receive=()).receive is None
    assert times(receive=()).send is not None


def test_a_record_from_before_there_were_such_times_is_read_and_has_none() -> None:
    old = good_record().model_dump(mode="json")
    del old["client_ns"]
    del old["round_trip_ns"]
    del old["histograms"]["receive_lag"]
    del old["histograms"]["round_trip"]
    found = Record.model_validate(old)
    assert found.round_trip_ns == Distribution()
    assert found.client_ns == GeneratorTimes(send=None, receive=None)
    assert generator_shares(found) == ()


# --- the generator's part of a percentile


def test_the_part_is_the_sum_of_both_ends_at_the_same_percentile() -> None:
    ours = times(send=((4 * US, 9_800), (40 * US, 200)), receive=((6 * US, 960), (100 * US, 40)))
    middle, high = generator_shares(record(ours, latency=((MS, 9_500), (2 * MS, 500))))
    assert (middle.percentile, high.percentile) == ("p50", "p99")
    assert close_to(middle.ours_ns, 10 * US)
    assert close_to(middle.of_ns, MS)
    assert close_to(high.ours_ns, 140 * US)
    assert close_to(high.of_ns, 2 * MS)


def test_the_part_is_never_more_than_the_percentile() -> None:
    found = generator_shares(record(times(send=((5 * MS, OK),)), latency=((MS, OK),)))
    assert [part.share for part in found] == [1.0, 1.0]


def test_the_part_is_never_more_than_what_the_round_trip_leaves() -> None:
    # Sends and reads take 300 us each at p99, but never for the same request.
    ours = times(send=((4 * US, 9_800), (300 * US, 200)), receive=((6 * US, 960), (300 * US, 40)))
    trip = distribution(histogram((980 * US, 900), (1_500 * US, 100)))
    found = record(ours, latency=((MS, 9_500), (1_900 * US, 500)), round_trip_ns=trip)
    middle, high = generator_shares(found)
    assert close_to(middle.ours_ns, 10 * US), "the sum is less than the 20 us that are left"
    assert 395 * US < high.ours_ns < 405 * US, "not 600 us"
    slower = found.model_copy(update={"round_trip_ns": distribution(histogram((2 * MS, 1_000)))})
    assert [part.ours_ns for part in generator_shares(slower)] == [0, 0]


@pytest.mark.parametrize(
    ("stamped", "names"), [(99, []), (100, ["p50"]), (369, ["p50"]), (370, ["p50", "p99"])]
)
def test_a_percentile_takes_as_many_stamped_answers_as_can_bound_it(
    stamped: int, names: list[str]
) -> None:
    found = generator_shares(record(times(receive=((6 * US, stamped),))))
    assert [part.percentile for part in found] == names


def test_a_percentile_among_requests_that_never_ended_has_no_part() -> None:
    unended = counts(ok=OK, issued=OK + 300, scheduled=OK + 300, cancelled=300)
    found = generator_shares(record(times(), counts=unended))
    assert [part.percentile for part in found] == ["p50"]


# --- the check


def half(ns: int) -> GeneratorTimes:
    """Times of ``ns`` at each end."""
    return times(send=((ns, OK),), receive=((ns, 1_000),))


TEN_MS = ((10 * MS, OK),)
CASES: list[tuple[str, Record, Status, str]] = [
    ("little", record(times()), "pass", "10.0 us of p50 1.00 ms"),
    ("most of what is quick", record(half(120 * US), ((300 * US, OK),)), "pass", "80 %"),
    ("more than 250 us of p50", record(half(130 * US), ((300 * US, OK),)), "warn", "86.7 %"),
    ("less than 1 ms of p50", record(half(490 * US), ((1_100 * US, OK),)), "warn", "89.1 %"),
    ("9 % of an open loop's", record(half(450 * US), TEN_MS), "pass", "9 %"),
    ("11 %", record(half(550 * US), TEN_MS), "warn", "1.10 ms of p50 10.0 ms: 11 %"),
    ("24 %", record(half(1_200 * US), TEN_MS), "warn", "24 %"),
    ("26 %", record(half(1_300 * US), TEN_MS), "fail", "26 %"),
    (
        "500 us of p99 alone",
        record(times(send=((US, 9_800), (510 * US, 200))), ((400 * US, 9_500), (MS, 500))),
        "warn",
        "516 us of p99 1.00 ms",
    ),
    (
        "26 % of p99 alone",
        record(times(send=((US, 9_800), (2_600 * US, 200))), ((5 * MS, 9_500), (10 * MS, 500))),
        "fail",
        "2.61 ms of p99 10.0 ms",
    ),
    (
        "p50 fails, however far p99 is beyond its warning",
        record(
            times(send=((1_040 * US, 9_800), (2 * MS, 200))), ((4 * MS, 9_500), (10 * MS, 500))
        ),
        "fail",
        "1.05 ms of p50 4.00 ms",
    ),
    ("a third of a closed loop's", record(half(1_600 * US), TEN_MS, **closed()), "pass", "32 %"),
    ("more than half of it", record(half(2_600 * US), TEN_MS, **closed()), "bound",
     "52 %; the server's latency is at most this, and 4.80 ms without the generator's part, and"
     " the throughput a lower bound"),
    ("all of it is true, too", record(half(9 * MS), TEN_MS, **closed()), "bound", "100 %"),
    ("most of it, of a server nobody sees", record(half(3 * MS), TEN_MS, **closed(), server=None),
     "bound", "60 %"),
    ("most of it, while the server was full", record(half(3 * MS), TEN_MS, **closed(),
     server=FULL), "pass", "4.00 ms without"),
    ("most of it, while it was nearly full", record(half(3 * MS), TEN_MS, **closed(),
     server=NEARLY_FULL), "bound", "a lower bound"),
    ("most of p99 alone, which is no word on throughput", record(times(send=(
        (US, 9_800), (5 * MS, 200))), ((4 * MS, 9_500), (8 * MS, 500)), **closed()), "pass",
     "5.01 ms of p99 8.00 ms: 62.6 %; the server's latency is at most this, and 3.00 ms"
     " without the generator's part"),
    ("a unix socket", record(times(receive=()), connections=connections(family="unix")), "n/a",
     "unix socket"),
    ("nothing was sampled", record(times(receive=())), "n/a", "no answer's time of arrival"),
    ("too little was sampled", record(times(receive=((US, 99),))), "n/a", "99 answers"),
    ("an older record", record(GeneratorTimes()), "n/a", "no answer's time of arrival"),
    ("most never ended", record(times(), counts=counts(
        ok=OK, issued=3 * OK, scheduled=3 * OK, cancelled=2 * OK)), "n/a", "never ended"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "made", "status", "why"), CASES, ids=[c[0] for c in CASES])
def test_the_check_says(what: str, made: Record, status: Status, why: str) -> None:
    check = next(each for each in made.checks if each.name == "client-share")
    assert check.status == status, (what, check)
    assert why in check.why, (what, check)
    assert (check.value is None) == (check.limit is None) == (status == "n/a")


# --- how it is shown


def test_a_result_says_how_much_of_each_percentile_was_ours() -> None:
    made = record(
        times(send=((40 * US, OK),), receive=((100 * US, 1_000),)), latency=((293 * US, OK),)
    )
    text = "generator's part  140 us of p50 293 us   140 us of p99 293 us"
    assert generator_share_text(made) == text
    assert f"{'':13}{text}" in result_lines(made)


def test_a_result_says_nothing_of_what_is_not_known() -> None:
    assert not any("generator's part" in line for line in result_lines(record(GeneratorTimes())))


def test_a_page_shows_the_part_of_each_percentile_and_no_empty_column(tmp_path: Path) -> None:
    some = record(
        times(send=((40 * US, OK),), receive=((100 * US, 1_000),)), latency=((293 * US, OK),)
    )
    with Store.open(tmp_path / "store.sqlite3") as store:
        known = html(store, put_records(store, [some]))
        unknown = html(store, put_records(store, [record(GeneratorTimes())]))
    assert "p50 ours" in known
    assert "140 us" in known
    assert "was spent in the generator" in known
    assert "p50 ours" not in unknown


def test_exports_have_both_parts() -> None:
    values = record_values(record(times()))
    names = [f"client_{part}_{name}_ns" for part in ("send", "receive") for name in ("p50", "p99")]
    assert set(names) <= {each.name for each in TRIALS}
    assert [close_to(int(str(values[name])), US * us) for name, us in
            zip(names, (4, 4, 6, 6), strict=True)] == [True] * 4  # fmt: skip
    untimed = record_values(record(GeneratorTimes()))
    assert [untimed[name] for name in names] == [None] * 4


def test_a_time_that_was_sampled_says_of_how_many() -> None:
    assert times().receive == GeneratorTime(count=1_000, p50=6_003, p99=6_003, max=6_003)
