"""Each host's results, as text, as a table, as CSV and as metrics."""

from __future__ import annotations

import csv
from typing import Any

from samples import GOOD_HOST, counts, distribution, good_record, histogram
from trueload.metrics import names
from trueload.metrics.families import make_families
from trueload.metrics.tally import Tally
from trueload.record.accounts.generator_times import GeneratorTime, GeneratorTimes
from trueload.record.groups import make_groups
from trueload.record.schema import Host, Record
from trueload.report.accounts.hosts import HEADER, host_grid, host_lines
from trueload.report.export import export, measured_row
from trueload.report.sheets import HOSTS
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.store.rows import Run
from trueload.trial.spec import Progress, TrialSpec

MS = 1_000_000
LATENCY = histogram((2 * MS, 950), (9 * MS, 50))
TIMES = GeneratorTime(count=1_000, p50=1_000, p99=2_000, max=3_000)


def host(place: str, **changes: Any) -> Host:
    fields = {
        "place": place,
        "requested": 5,
        "connections": 4,
        "connect_failed": {"connect.refused": 1},
        "ok": 1_000,
        "ok_per_s": 1_000.0,
        "counts": counts(ok=1_000, issued=1_004, failed={"reset": 3, "status": 1}, unsent=7),
        "latency": LATENCY,
        "latency_ns": distribution(LATENCY),
        "client_ns": GeneratorTimes(send=TIMES, receive=TIMES),
        "clock_bound_ns": MS // 10,
        "start_ns": 5,
        **changes,
    }
    return GOOD_HOST.model_copy(update=fields)


def two() -> Record:
    return good_record(hosts=(host("near"), host("far", lost="it died")))


def test_the_text_has_each_hosts_failures_and_what_it_did_not_send() -> None:
    _, far, near = host_lines(two())  # a lost host comes first
    assert near.startswith(
        "near  1,000 ok on 4   3 reset, 1 status failed   7 unsent   p50 2.00 ms"
    )
    assert far.endswith("lost: it died")


def test_the_table_has_a_row_for_each_host() -> None:
    grid = host_grid(two())
    assert grid is not None
    near, far = (dict(zip(HEADER, row, strict=True)) for row in grid.rows)
    assert (near["host"], near["connections"], near["ok"]) == ("near", "4", "1,000")
    assert (near["failed"], near["unsent"]) == ("3 reset, 1 status", "7")
    assert (near["p50"], near["p99"]) == ("2.00 ms", "9.00 ms")
    assert (near["send p99"], near["clock ±"], near["lost"]) == ("2.00 us", "100 us", "")
    assert far["lost"] == "it died"
    assert host_grid(good_record()) is None


def rows_of(*records: Record) -> list[dict[str, str]]:
    run = Run(
        seq=1,
        id="r",
        kind="http",
        title="t",
        command=(),
        plan=None,
        seed=None,
        started_at="",
        state="finished",
        ended_at=None,
        row_count=len(records),
    )
    rows = [measured_row(number, record) for number, record in enumerate(records, 1)]
    return list(csv.DictReader("".join(export(run, rows, "hosts")).splitlines()))


def test_the_csv_has_a_row_for_each_host_of_each_trial() -> None:
    near, far = rows_of(good_record(), two())
    assert tuple(near) == tuple(each.name for each in HOSTS)
    assert (near["run"], near["number"], near["place"], near["lost"]) == ("r", "2", "near", "")
    assert (near["requested"], near["connections"]) == ("5", "4")
    assert near["connect_failed"] == "connect.refused=1"
    assert (near["issued"], near["ok"], near["unsent"], near["failed"]) == (
        "1004",
        "1000",
        "7",
        "4",
    )
    assert near["failed_by_class"] == "reset=3; status=1"
    assert int(near["latency_p50_ns"]) // 10_000 == 200
    assert (near["client_send_p99_ns"], near["clock_bound_ns"]) == ("2000", "100000")
    assert (far["place"], far["lost"]) == ("far", "it died")


def samples(record: Record, metric: Any) -> dict[tuple[str, ...], Any]:
    """The samples of a metric at the end of a trial, by the values of their labels."""
    spec = TrialSpec(url="http://h/", addresses=(), traffic=Traffic(request=Request(host="h")))
    tally = Tally.of(spec, (), (), 0).receive(Progress("ended", 0, None, record=record))
    return {
        tuple(text for _, text in sample.labels): sample.value
        for family in make_families([tally])
        if family.metric is metric
        for sample in family.samples
    }


def test_the_metrics_have_each_host() -> None:
    requests = samples(two(), names.HOST_REQUESTS)
    assert requests["near", "ok"] == 1_000
    assert requests["near", "failed", "reset"] == 3
    assert requests["far", "unsent"] == 7
    assert round(samples(two(), names.HOST_PERCENTILE)["far", "0.5"], 4) == 0.002
    assert samples(two(), names.HOST_GENERATOR_PERCENTILE)["near", "send", "0.99"] == 2e-6
    assert samples(two(), names.HOST_CLOCK)["near",] == 1e-4
    assert samples(two(), names.HOST_LOST) == {("near",): 0.0, ("far",): 1.0}
    assert samples(good_record(), names.HOST_LOST) == {}


def test_each_group_has_its_results() -> None:
    hosts = (
        host("a", group="eu"),
        host("b", group="us", ok_per_s=None),
        host("c", group="eu"),
        host("d", group="eu", lost="died"),
        host("e"),
    )
    eu, us, none = make_groups(hosts)
    assert (eu.name, eu.hosts, eu.lost, eu.connections, eu.ok) == ("eu", 3, 1, 8, 2_000)
    assert (eu.failed, eu.unsent, eu.ok_per_s) == (8, 14, 2_000)
    assert (eu.latency_ns.count, eu.latency_ns.p50) == (2_000, us.latency_ns.p50)
    assert (us.name, us.hosts, us.ok_per_s) == ("us", 1, None)
    assert (none.name, none.hosts) == (None, 1)
    lines = host_lines(good_record(hosts=hosts, groups=(eu, us, none)))
    assert lines[1].startswith(
        "group eu: 3 hosts   2,000 ok on 8   2,000/s   8 failed   p50 2.00 ms"
    )
    assert lines[1].endswith("1 lost")
    assert lines[3].startswith("no group: 1 host ")
    assert make_groups((host("a"), host("b"))) == ()
    assert rows_of(good_record(hosts=hosts))[0]["group"] == "eu"
