"""ApacheBench's figures from a record: as published, and where they are unknown."""

from __future__ import annotations

from typing import Any

import pytest
from samples import counts, good_record, histogram, plan
from trueload.protocol.exchange import RequestPlan
from trueload.protocol.plan import Duration, Phase, Requests
from trueload.record.schema import Record, Throughput, Warmup, Window
from trueload.report.apachebench import percentile_lines, result_lines, times_lines
from trueload.stats import Distribution, decode_histogram, summarise
from trueload.trial.spec import CLOSED
from trueload.verdict.apachebench import Times, apachebench

MS = 1_000_000
TAKEN_NS = 8_124_498_000
REQUESTS = Requests(count=20_000)
PERF = RequestPlan(method="GET", path="/perf", headers=(), body_sha256=None)
LATENCY = histogram((10 * MS, 10_000), (39 * MS, 9_000), (7_014 * MS, 1_000))


def phase(name: str) -> Phase:
    return Phase(id=name, load=CLOSED, connections=None, stop=REQUESTS, at_ns=None)


def published(*, close: bool = True, primed: bool = True, **changes: Any) -> Record:
    """A run like the published one: 20,000 requests over 10,000 connections in 8.124 s."""
    record = good_record()
    connect = histogram((2 * MS, 10_000), (1_042 * MS, 10_000)) if close else None
    total = histogram((12 * MS, 10_000), (8_030 * MS, 10_000)) if close else None
    histograms = record.histograms.model_copy(
        update={
            "latency": LATENCY,
            "service": LATENCY,
            "first_byte": LATENCY,
            "connect": connect,
            "total": total,
        }
    )
    times = summarise(decode_histogram(LATENCY))
    fields: dict[str, Any] = {
        "plan": record.plan.model_copy(
            update={
                "generate": plan(connections=10_000, close=close, request=PERF),
                "window": phase("window"),
                "warmup": phase("warm-up") if primed else None,
            }
        ),
        "warmup": Warmup(
            counts=counts(ok=19_238, issued=20_000, failed={"timeout.total": 762}), wall_s=31.5
        ),
        "window": Window(
            window_ns=TAKEN_NS,
            drain_ns=0,
            connect_wall_s=1.0,
            wall_s=40.0,
            host_idle_share=None,
        ),
        "counts": counts(scheduled=20_000, issued=20_000, ok=20_000),
        "throughput": Throughput(
            ok_per_s=None, bytes_in_per_s=3_180_000 / (TAKEN_NS / 1e9), bytes_out_per_s=None
        ),
        "histograms": histograms,
        "latency_ns": times,
        "service_ns": times,
        "first_byte_ns": times,
        "connect_ns": summarise(decode_histogram(connect)),
        "total_ns": summarise(decode_histogram(total)),
    }
    return record.model_copy(update={**fields, **changes})


PRINTED = """\
Document Path:          /perf
Document Length:        84 bytes

Concurrency Level:      10000
Time taken for tests:   8.124 seconds
Complete requests:      20000
Failed requests:        0
Total transferred:      3180000 bytes
HTML transferred:       1680000 bytes
Requests per second:    2461.69 [#/sec] (mean)
Time per request:       4062.249 [ms] (mean)
Time per request:       0.406 [ms] (mean, across all concurrent requests)
Transfer rate:          382.24 [Kbytes/sec] received"""


def test_the_published_run_would_be_printed_as_it_was() -> None:
    assert "\n".join(result_lines(apachebench(published(), 84))) == PRINTED


def test_the_table_of_times_has_all_four_lines() -> None:
    found = apachebench(published(), 84)
    connect = found.connect
    shown = [connect.min, connect.mean, connect.sd, connect.median, connect.max]
    assert shown == pytest.approx([2, 522, 520, 2, 1042], rel=0.01)
    assert found.processing == found.waiting
    assert found.total.max == pytest.approx(8030, rel=0.01)
    lines = times_lines(found)
    assert lines[1] == "              min  mean[+/-sd] median   max"
    assert [line.split()[0] for line in lines[2:]] == [
        "Connect:", "Processing:", "Waiting:", "Total:",
    ]  # fmt: skip
    assert lines[2].split()[1:] == ["2", "522", "520.0", "2", "1042"]


def test_over_kept_connections_the_set_up_takes_no_time() -> None:
    found = apachebench(published(close=False), 84)
    assert found.connect == Times(0.0, 0.0, 0.0, 0.0, 0.0)
    assert found.total == found.processing, "nothing else is in it"
    assert found.connects == 0
    assert "Keep-Alive requests:    20000" in result_lines(found)


# Failed and unfinished requests are slower than any: the percentages that become lower bounds.
WORSE = [
    ("none", {"ok": 20_000}, []),
    ("a few that failed", {"ok": 20_000, "failed": {"reset": 10}}, [100]),
    ("one in nine failed", {"ok": 20_000, "failed": {"timeout.total": 2_500}},
     [90, 95, 98, 99, 100]),
    ("some never ended", {"ok": 20_000, "cancelled": 500}, [98, 99, 100]),
    ("some were never sent", {"ok": 20_000, "unsent": 500}, [98, 99, 100]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "changed", "above"), WORSE, ids=lambda value: str(value)[:25])
def test_a_percentage_among_requests_that_failed_is_a_lower_bound(
    what: str, changed: dict[str, Any], above: list[int]
) -> None:
    issued = sum(changed.get("failed", {}).values()) + 20_000 + changed.get("cancelled", 0)
    found = apachebench(published(counts=counts(**{**changed, "issued": issued})), 84)
    assert [each.percent for each in found.percentiles if each.above] == above, what
    assert found.complete == 20_000 + sum(changed.get("failed", {}).values()), "as ab counts them"
    shown = percentile_lines(found)
    assert (shown[-1].split()[1] == ">") == bool(above), shown
    assert ("(longest request)" in shown[-1]) == (not above)


def test_a_run_of_which_nothing_ended_well_has_no_times() -> None:
    nothing = good_record().histograms.model_copy(
        update=dict.fromkeys(("latency", "service", "connect", "first_byte", "total"))
    )
    changes: dict[str, Any] = dict.fromkeys(
        ("latency_ns", "service_ns", "first_byte_ns", "connect_ns", "total_ns"), Distribution()
    )
    failed = counts(ok=0, issued=50, failed={"reset": 50})
    record = published(histograms=nothing, counts=failed, **changes)
    found = apachebench(record)
    assert found.total == Times(None, None, None, None, None)
    assert found.html_bytes is None
    assert "(no request ended well)" in times_lines(found)[2]
    assert percentile_lines(found)[-1] == " 100%       -"


def test_connections_have_a_rate_only_if_they_were_opened_in_the_run() -> None:
    inside = apachebench(published())
    assert inside.connects == 20_000
    assert inside.connect_per_s == pytest.approx(2461.69, rel=1e-4)
    assert apachebench(published(primed=False)).connect_per_s is None, "before the window"
    assert apachebench(published(close=False)).connects == 0


def test_the_priming_run_and_the_servers_whole_life_are_told() -> None:
    found = apachebench(published())
    assert found.priming is not None
    assert found.priming.complete == 20_000
    assert found.priming.failed == {"timeout.total": 762}
    assert (found.server_user_s, found.server_system_s) == (1.0, 2.0)
    assert found.server_peak_rss_bytes == 3_000_000
    assert apachebench(published(primed=False)).priming is None
    alone = apachebench(published(server=None))
    assert (alone.server_user_s, alone.server_peak_rss_bytes) == (None, None)
    empty = published(window=good_record().window.model_copy(update={"window_ns": 0}))
    assert apachebench(empty).per_s is None


def test_a_duration_is_measured_as_well_as_a_number_of_requests() -> None:
    record = good_record()
    assert isinstance(record.plan.window.stop, Duration)
    found = apachebench(record, 2)
    assert (found.complete, found.per_s, found.html_bytes) == (10_000, 10_000, 20_000)
