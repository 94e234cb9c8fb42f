"""A suite of clients as a plan: its cells, their order and limits, and the size of an order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from client_samples import CLAIM, REQUESTS, good_client_record
from trueload.compare.run_records import row_name
from trueload.compare.trials import compare
from trueload.errors import UserError
from trueload.report import table
from trueload.report.export.csv import csv_lines
from trueload.runner.client_session import patience_s, requests_for
from trueload.runner.cpus import Layout, NoLayout, lay_out_client
from trueload.suites.changes import Changes
from trueload.suites.clients import client_load
from trueload.suites.definition import Suite, load_suite
from trueload.suites.figures import figures
from trueload.suites.load_tables import tabulate
from trueload.suites.plan import (
    Cell,
    PlannedSubject,
    SuitePlan,
    cells,
    describe,
    make_plan,
    rounds,
    trials,
)
from trueload.suites.pools import PlannedPools, beyond_limits, pool_labels
from trueload.suites.summary import CellRows, RunCells

S = 1_000_000_000
ROOT = Path(__file__).resolve().parents[2]
SUITE = load_suite(ROOT / "suites" / "http-clients.toml")


def subject(name: str) -> PlannedSubject:
    return PlannedSubject(
        name=f"c/{name}",
        language="c",
        framework=name,
        variant="",
        category="platform",
        trap=False,
        digest="",
    )


def plan(suite: Suite = SUITE, names: Sequence[str] = "abcdef", **changes: Any) -> SuitePlan:
    return make_plan("http-clients", suite, [subject(name) for name in names], Changes(**changes))


def test_the_default_grid_takes_less_than_ten_minutes_for_six_clients() -> None:
    assert (
        describe(plan()) == "216 trials, about 9 min: 6 subjects x 6 loads x 6 repetitions, seed 1"
    )


def test_the_full_grid_is_the_published_one_under_both_limits_of_open_files() -> None:
    made = plan(full=True)
    pools = [load.pools for load in made.loads if load.pools is not None]
    assert len(pools) == 5 * 6 * 5 * 2
    assert {each.pools for each in pools} == {1, 4, 8, 16, 32}
    assert {each.pool_size for each in pools} == {32, 64, 128, 256, 512, 1024}
    assert {each.concurrency for each in pools} == {1024, 2048, 4096, 8192, 16384}
    assert {each.files for each in pools} == {0, 1024}
    assert len({load.key for load in made.loads}) == len(pools), "keys are apart"


def test_the_command_line_replaces_an_axis_of_the_pools() -> None:
    made = plan(pools=(2,), pool_size=(8,), concurrency=(16, 32))
    assert [load.title for load in made.loads] == [
        "2 pools of 8, 16 at once",
        "2 pools of 8, 32 at once",
    ]
    assert [load.key for load in made.loads] == [
        "pools 2 of 8 at once 16 multi",
        "pools 2 of 8 at once 32 multi",
    ]
    load = client_load(made, next(cells(made)))
    assert (load.wait_ms, load.timeout_ms, load.span_ns) == (10, 10_000, 1_200_000_000)
    assert load.setup("127.0.0.1:80").url == "http://127.0.0.1:80/wait/10"


def test_a_round_goes_through_all_cells_in_an_order_of_its_own_with_a_process_for_each() -> None:
    def order(seed: int) -> list[str]:
        return [trial.key for trial in trials(plan(seed=seed))]

    keys = order(1)
    assert keys == order(1) != order(2)
    assert sorted(keys) == sorted(order(2))
    first, second = keys[:108:3], keys[108::3]
    assert {key.removesuffix(" r1") for key in first} == {cell.key for cell in cells(plan())}
    assert [key.removesuffix(" r1") for key in first] != [k.removesuffix(" r4") for k in second]
    for number, key in enumerate(keys):
        begun = keys[number - number % 3].rpartition(" r")[0]
        assert key == f"{begun} r{number // 108 * 3 + number % 3 + 1}"


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [(1, [[1]]), (2, [[1], [2]]), (3, [[1, 2], [3]]), (6, [[1, 2, 3], [4, 5, 6]])],
)
def test_repetitions_are_divided_among_the_rounds(repeat: int, expected: list[list[int]]) -> None:
    assert [list(numbers) for numbers in rounds(plan(repeat=repeat))] == expected


# ((pools, size, concurrency, files), hard limit, ports, the message)
LIMITS = [
    ((1, 32, 16384, 0), 1024, 28_232, None),
    ((32, 32, 1024, 0), 1024, 28_232, "local.fds: 1,024 connections need 1,124 open files"),
    ((16, 1024, 16384, 0), 20_000, 28_232, None),
    ((32, 1024, 1024, 0), 20_000, 28_232, "32,868 open files, the hard limit is 20,000"),
    ((32, 1024, 16384, 1024), 20_000, 28_232, "the limit is 1,024"),
    ((32, 1024, 16384, 0), -1, None, None),
    ((32, 1024, 16384, 0), -1, 28_232, "local.ports: 32,768 connections need as many local"),
    ((1, 512, 16384, 1024), -1, 28_232, None),
]


@pytest.mark.parametrize(("load", "hard", "ports", "why"), LIMITS)
def test_a_cell_beyond_the_limits_of_files_and_ports_says_so(
    load: tuple[int, int, int, int], hard: int, ports: int | None, why: str | None
) -> None:
    count, size, at_once, files = load
    pools = PlannedPools(pools=count, pool_size=size, concurrency=at_once, files=files)
    found = beyond_limits(pools, hard, ports)
    assert found is None if why is None else found is not None and why in found


# (rate of the order before, time, concurrency, number of requests)
ORDERS = [
    (10_000.0, S, 100, 10_000),
    (10_000.0, S // 10, 100, 1_000),
    (1_000.0, S, 1_024, 2_048),
    (100.0, S, 1_024, 400),
    (0.0, S, 1_024, 1),
    (1e12, S, 1, 50_000_000),
]


@pytest.mark.parametrize(("rate", "span_ns", "at_once", "expected"), ORDERS)
def test_an_order_takes_about_the_time_and_keeps_all_busy(
    rate: float, span_ns: int, at_once: int, expected: int
) -> None:
    assert requests_for(rate, span_ns, at_once) == expected


def test_every_order_has_a_bound() -> None:
    assert patience_s(256, 0.0, 10_000) == 20
    assert patience_s(1_000, 500.0, 1_000) == 19


# (CPUs, cores, server threads, (the client's CPUs, the server's CPUs))
LAYOUTS: list[tuple[list[int], Any, int, tuple[tuple[int, ...], tuple[int, ...]] | None]] = [
    ([0, 1], "multi", 1, ((1,), (0,))),
    ([0, 1], "single", 1, ((1,), (0,))),
    ([0, 1, 2, 3], "multi", 1, ((1, 2, 3), (0,))),
    ([0, 1, 2, 3], "multi", 2, ((2, 3), (0, 1))),
    ([0], "multi", 1, None),
]


@pytest.mark.parametrize(("cpus", "cores", "threads", "expected"), LAYOUTS)
def test_the_client_has_the_cpus_that_the_server_leaves(
    cpus: list[int], cores: Any, threads: int, expected: tuple[Any, Any] | None
) -> None:
    found = lay_out_client(cores, cpus, {}, threads, False)
    if expected is None:
        assert isinstance(found, NoLayout)
    else:
        assert found == Layout(*expected, shared=False)


def rows(name: str, made: SuitePlan, load: int, **changes: Any) -> CellRows:
    """A cell with one repetition."""
    record = good_client_record(**changes)
    return CellRows(Cell(subject(name), made.loads[load]), measured=[figures(record, {})])


def test_all_cells_stand_in_one_table_by_throughput_and_errors_never_lead() -> None:
    made = plan(names="ab", repeat=1)
    failing = CLAIM.model_copy(update={"ok": 4_080, "failed": {"timeout.total": REQUESTS - 4_080}})
    after = [
        rows("a", made, 0),
        rows("b", made, 1, claim=failing),
        CellRows(Cell(subject("b"), made.loads[2]), unsupported="it has no pools"),
        CellRows(Cell(subject("a"), made.loads[3]), failed=["no answer within 20 s"]),
    ]
    [one] = tabulate(RunCells(tuple(after), (), ()), made)
    assert [s.cell.subject.name for s in one.ranked] == ["c/a"]
    assert [s.cell.subject.name for s in one.invalid] == ["c/b"]
    text = table.text([one], width=None, published=False)
    header, row = text.splitlines()[2:4]
    assert re.split(r"  +", header)[:6] == [
        *("client", "pools", "size", "at once", "Req/sec", "Error %")
    ]
    assert row.split()[:6] == ["c/a", "1", "32", "1024", "20000", "0.0"]
    assert "c/b, 1 pool of 256, 1,024 at once: errors: 15,920 of 20,000" in text
    assert "c/b, 4 pools of 32, 1,024 at once: it has no pools" in text
    assert "Unsupported:" in text
    lines = [line.rstrip() for line in csv_lines(table.sheet([one], published=False))]
    assert lines[0].startswith("Client,Pool Count,Pool Size,Concurrency,Req/sec,Error %,")
    assert len(lines) == 5
    assert "| c/a | 1 | 32 | 1024 | 20000 | 0.0 |" in table.markdown([one], published=False)


# (rows without figures, the lines about their reasons)
SUMMARIES = [
    ([("a", 0), ("a", 1), ("a", 2), ("a", 3)], ["c/a: it has no pools"]),
    ([("a", 0), ("a", 1), ("a", 2)], ["c/a, 3 of 4 loads: it has no pools"]),
    (
        [("a", 1), ("a", 2)],
        ["c/a, 1 pool of 256, 1,024 at once and 4 pools of 32, 1,024 at once: it has no pools"],
    ),
    ([("a", 2)], ["c/a, 4 pools of 32, 1,024 at once: it has no pools"]),
    ([("a", 0), ("b", 0)], [f"c/{n}, 1 pool of 32, 1,024 at once: it has no pools" for n in "ab"]),
]


@pytest.mark.parametrize(("cells", "lines"), SUMMARIES)
def test_the_reason_of_a_client_is_told_once_for_all_of_its_pools(
    cells: list[tuple[str, int]], lines: list[str]
) -> None:
    made = plan(names="ab", repeat=1)
    without = [
        CellRows(Cell(subject(name), made.loads[load]), unsupported="it has no pools")
        for name, load in cells
    ]
    others = [
        rows(name, made, load) for name in "ab" for load in range(4) if (name, load) not in cells
    ]
    tables = tabulate(RunCells((*without, *others), (), ()), made)
    text = table.text(tables, width=None, published=False)
    assert [line.strip() for line in text.splitlines() if "no pools" in line] == lines


WRONG = [
    ("", "pools = [1]\n", "has pools, pool_size and concurrency"),
    ("", "pools = [1]\npool_size = [1]\nconcurrency = [1]\npipeline = [2]\n", "axis of servers"),
    ("", "connections = [1]\n", "each load of a suite with [clients] needs pools"),
    ("", "files = [5]\n", "files in a load is for suites of clients"),
    ("wait = '1500us'", "", "whole milliseconds"),
    ("wait = '10ms'\nwall = 1", "", "'clients.wall' is not a key"),
]


@pytest.mark.parametrize(("clients", "load", "word"), WRONG)
def test_a_bad_suite_of_clients_gets_one_line(
    tmp_path: Path, clients: str, load: str, word: str
) -> None:
    path = tmp_path / "bad.toml"
    head = "about = ''\ncontract = 'http-client'\nduration = '1s'\n"
    section = clients or "wait = '10ms'"
    path.write_text(f"{head}[clients]\n{section}\n[[loads]]\n{load}")
    with pytest.raises(UserError) as caught:
        load_suite(path)
    assert word in caught.value.message
    assert "\n" not in caught.value.message


def test_rows_of_clients_are_compared_pool_by_pool() -> None:
    labels = {"subject": "c/a", "connections": "1024", "cores": "multi"}
    few = pool_labels(PlannedPools(pools=4, pool_size=256, concurrency=1024))
    one = pool_labels(PlannedPools(pools=1, pool_size=1024, concurrency=1024, files=2048))
    assert row_name({**labels, **few}) == "c/a, 4 pools of 256, 1,024 at once"
    assert row_name({**labels, **one}) == "c/a, 1 pool of 1024, 1,024 at once, 2,048 open files"
    record = good_client_record()
    [row] = compare({"c/a": [record]}, {"c/a": [record]}).rows
    assert [each.metric for each in row.ratios] == ["throughput"]
    assert row.ratios[0].ratio == 1
