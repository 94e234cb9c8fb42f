"""A suite of broadcasts: what is stored of a search, and the table made from it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from broadcast_samples import broadcast
from samples import OK, histogram
from trueload.protocol.plan import Histograms, Requests
from trueload.record.schema import Record
from trueload.report import table
from trueload.report.export.csv import csv_lines
from trueload.report.html.gather import gather
from trueload.search.decide import Try
from trueload.search.execute import search
from trueload.stats import decode_histogram, summarise
from trueload.store.rows import Row, Run
from trueload.suites.broadcast import searched
from trueload.suites.figures import MACHINE_CHECKS, figures
from trueload.suites.load_tables import LoadTable, tabulate
from trueload.suites.plan import (
    PARTIAL,
    Cell,
    PlannedBroadcast,
    PlannedLoad,
    PlannedSubject,
    SuitePlan,
    Trial,
)
from trueload.suites.steps import search_plan
from trueload.suites.summary import collect

MS = 1_000_000
LOAD = PlannedLoad(connections=1_000, pipeline=1, cores="single", broadcast=True)


def subject(name: str) -> PlannedSubject:
    return PlannedSubject(
        name=f"c/{name}",
        language="c",
        framework=name,
        variant="",
        category="micro",
        trap=False,
        digest="",
    )


def plan(*subjects: PlannedSubject, repeat: int = 1) -> SuitePlan:
    return SuitePlan(
        suite="s",
        contract="ws-shootout",
        subjects=subjects,
        loads=(LOAD,),
        stop=Requests(count=100),
        warmup=None,
        timeout_ns=1,
        close=False,
        threads=1,
        repeat=repeat,
        seed=1,
        files=0,
        share_cpus=False,
        port=None,
        broadcast=PlannedBroadcast(
            limit="receipt_p95<500ms", concurrent=4, padding_bytes=200, steps=None
        ),
    )


def received(p95_ms: float, record_id: str) -> Record:
    """A step whose receipts all took this long."""
    latency = histogram((int(p95_ms * MS), OK))
    histograms = Histograms(
        latency=latency, service=latency, connect=None, first_byte=latency, total=None
    )
    found = summarise(decode_histogram(latency))
    fields: dict[str, Any] = {"id": record_id, "histograms": histograms, "latency_ns": found}
    return broadcast().model_copy(update=fields)


def rows_of(
    whole: SuitePlan, each: PlannedSubject, carries: float, repetition: int = 1, end: str = ""
) -> list[Row]:
    """The stored rows of a subject that carries ``carries`` clients.

    ``end`` is appended to the keys.
    """
    wanted = search_plan(whole, 1_000)
    numbers = itertools.count(1)

    def measure(following: Try, ns: int) -> Record:
        kept = following.load <= carries
        return received(400 if kept else 600, f"{each.name} {next(numbers)}")

    taken = list(search(wanted, measure))
    found = searched(wanted, taken)
    key = f"{Trial(Cell(each, LOAD), repetition).key}{end}"
    load = {"connections": str(LOAD.connections), "cores": LOAD.cores}
    labels = {"subject": each.name, "repetition": f"r{repetition}", "digest": "", **load}
    steps = [
        row(f"{key} step {step.labels['step']}", {**labels, **step.labels}, step.record)
        for step in found.steps
    ]
    return [*steps, row(key, {**labels, **found.labels}, found.record)]


def row(key: str, labels: dict[str, str], record: Record) -> Row:
    return Row(
        number=1,
        seq=1,
        added_at="2026-11-20T19:33:59.488Z",
        key=key,
        outcome="measured",
        reason=None,
        detail=None,
        labels=labels,
        record=record,
    )


@pytest.fixture
def two() -> LoadTable:
    much, little = subject("much"), subject("little")
    whole = plan(much, little)
    rows = [*rows_of(whole, little, 1_000), *rows_of(whole, much, 1_914)]
    (found,) = tabulate(collect(whole, rows), whole)
    return found


def test_subjects_are_ranked_by_the_clients_that_they_carried(two: LoadTable) -> None:
    assert [summary.cell.subject.framework for summary in two.ranked] == ["much", "little"]
    best = two.ranked[0]
    assert best.figures is not None
    assert best.figures.carried is not None
    assert best.figures.carried.clients == 1_894
    assert best.interval is not None
    assert (best.interval.low, best.interval.high) == (1_894, 1_915)


def test_the_table_has_a_row_and_the_steps_of_each_subject(two: LoadTable) -> None:
    shown = table.text([two], width=None, published=False)
    header, *rows = shown.splitlines()[2:5]
    assert header.split()[:7] == [
        *("subject", "clients", "interval", "median", "p95", "lost", "CPU"),
    ]
    assert rows[0].split()[:4] == ["c/much", "1894", "1894-1915", "400.0"]
    whole = table.text([two], width=80, published=True).splitlines()[2]
    assert whole.split()[4:11] == [
        *("clients", "interval", "median", "p95", "deliveries/s", "lost", "memory/client"),
    ]
    steps = shown.partition("c/much, the steps of its last repetition:")[2].split("\n\n")[0]
    loads = [line.split()[0] for line in steps.splitlines()[3:] if line.startswith("  ")]
    assert loads == [
        *("1,000", "2,000", "1,414", "1,682", "1,834", "1,915", "1,874", "1,894", "1,894"),
    ]
    assert steps.rstrip().endswith("confirm, kept")


def test_a_step_is_no_repetition(two: LoadTable) -> None:
    assert [summary.repetitions for summary in two.ranked] == [1, 1]
    assert [len(summary.record_ids) for summary in two.ranked] == [1, 1]


def loads_shown(whole: SuitePlan, rows: list[Row]) -> tuple[list[float], list[float]]:
    """The loads of the search in the table, and of the one that a report draws."""
    (found,) = tabulate(collect(whole, rows), whole)
    (shown,) = found.ranked
    run = Run(
        seq=1,
        id="run",
        kind="suite",
        title="s",
        command=(),
        plan=whole.model_dump(mode="json"),
        seed=1,
        started_at="2026-11-20T19:33:59.488Z",
        state="finished",
        ended_at=None,
        row_count=len(rows),
    )
    (section,) = gather(run, rows).sections
    (search_of,) = section.searches
    return (
        [float(text.split()[0].replace(",", "")) for text in shown.steps],
        [step.load for step in search_of.steps],
    )


def loads(rows: list[Row]) -> list[float]:
    return [float(row.labels["load"]) for row in rows]


def test_of_many_repetitions_the_steps_of_the_last_are_shown() -> None:
    one = subject("one")
    whole = plan(one, repeat=10)
    rows = [
        rows_of(whole, one, 1_000 if number == 10 else 1_914, number) for number in range(1, 11)
    ]
    expected = loads(rows[-1])
    assert expected != loads(rows[-2])
    assert loads_shown(whole, list(itertools.chain(*rows))) == (expected, expected)


def test_the_steps_of_a_repetition_that_was_cut_short_are_not_among_those_of_the_next() -> None:
    one = subject("one")
    whole = plan(one)
    again = rows_of(whole, one, 1_914)
    rows = [*rows_of(whole, one, 1_000, end=PARTIAL), *again]
    assert loads_shown(whole, rows) == (loads(again), loads(again))


def test_the_table_is_written_for_other_programs(two: LoadTable) -> None:
    lines = [line.rstrip() for line in csv_lines(table.sheet([two], published=False))]
    assert lines[0].split(",")[4] == "clients"
    assert lines[1].split(",")[4:6] == ["1894", "1894-1915"]
    assert "| 1894 | 1894-1915 |" in table.markdown([two], published=True)


def test_a_search_that_our_side_kept_from_a_result_is_no_row_of_nothing() -> None:
    found = figures(received(100, "r"), {"clients": "0", "unfound": "generator", "result": "why"})
    assert (found.verdict, found.carried, found.reasons[0]) == ("invalid", None, "why")
    assert found.failed_checks[0] in MACHINE_CHECKS
    nothing = figures(received(600, "r"), {"clients": "0", "unfound": "", "result": "none"})
    assert nothing.carried is not None
    assert nothing.carried.clients == 0
