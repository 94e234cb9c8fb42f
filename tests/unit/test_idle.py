"""The text about idle connections, from what was seen at each step."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from samples import check_of, good_record, server_tree, trial_facts
from trueload.assemble.observation import Observation, PhaseLog
from trueload.assemble.unfinished import NO_CONNECTIONS, measure_from_ticks
from trueload.machine.accounting import TreeSample
from trueload.protocol.plan import Measurement, Ready
from trueload.record.account import Step
from trueload.record.accounts.idle import IDLE, Idle, IdleStep, merged_failed
from trueload.report.accounts.idle import IDLE as IDLE_SHOWN
from trueload.verdict import judge

MIB = 1024 * 1024


def server(mib: float) -> TreeSample:
    return server_tree(rss_bytes=int(mib * MIB))


def measured(established: int, requested: int, seconds: float, **failed: int) -> Measurement:
    record = good_record()
    seen = Observation(
        id="",
        started_at="",
        url="",
        generate=record.plan.generate,
        warmup=None,
        window=record.plan.window,
        environment=record.environment,
    )
    found = NO_CONNECTIONS.model_copy(
        update={
            "requested": requested,
            "established": established,
            "failed": {name.replace("_", "."): count for name, count in failed.items()},
            "set_up_ns": int(seconds * 1e9),
        }
    )
    return measure_from_ticks(PhaseLog(), seen).model_copy(update={"connections": found})


def steps() -> list[Step]:
    return [
        Step(0, server(10.0), measured(64, 64, 0.1)),
        Step(1000, server(12.0), measured(1064, 1064, 0.5)),
        Step(5000, server(30.0), measured(5000, 5064, 1.0, connect_timeout=64)),
    ]


def account(seen: list[Step], held: int | None) -> Idle | None:
    window = SimpleNamespace(connections=SimpleNamespace(idle_open=held))
    made: Idle | None = IDLE.made(trial_facts(window, steps=seen, complete=held is not None))
    return made


def test_a_step_says_what_came_of_its_connections() -> None:
    made = account(steps(), held=4900)
    assert made is not None
    assert made.connections == 5000
    assert made.held == 4900
    assert made.server_bytes_per_connection == pytest.approx(20 * MIB / (5000 - 64))
    assert [step.connect_rate_per_s for step in made.steps] == [640.0, 2000.0, 3936.0]
    assert [step.failed for step in made.steps] == [{}, {}, {"connect.timeout": 64}]
    assert [step.server_rss_bytes for step in made.steps] == [10 * MIB, 12 * MIB, 30 * MIB]


UNKNOWN = [
    ("there was no staircase", [], "no record of it"),
    ("the server could not be seen", [Step(0, None, measured(1, 1, 1)),
     Step(9, None, measured(10, 10, 1))], None),
    ("its memory did not grow", [Step(0, server(5), measured(1, 1, 1)),
     Step(9, server(5), measured(10, 10, 1))], None),
    ("no connection was added", [Step(0, server(5), measured(1, 1, 1)),
     Step(9, server(6), measured(1, 10, 0))], None),
    ("the engine ended before", [Step(0, server(5), measured(1, 1, 1)), Step(9, server(6))], None),
    ("the server had gone", [Step(0, server(5), measured(1, 1, 1)),
     Step(9, TreeSample(0, {}, None), measured(10, 10, 1))], None),
]  # fmt: skip


@pytest.mark.parametrize(("what", "seen", "expected"), UNKNOWN, ids=lambda value: str(value)[:30])
def test_what_cannot_be_known_is_not_told(
    what: str, seen: list[Step], expected: str | None
) -> None:
    made = account(seen, held=None)
    if expected is not None:
        assert made is None, what
    else:
        assert made is not None, what
        assert made.server_bytes_per_connection is None, what


def test_failures_of_all_set_ups_are_added() -> None:
    ready = Ready(
        type="ready",
        at_ns=0,
        listen=None,
        requested=64,
        established=60,
        failed={"connect.timeout": 4},
        address=None,
    )
    assert merged_failed(ready, steps()) == {"connect.timeout": 68}
    assert merged_failed(None, []) == {}


def idle(held: int | None, each: float | None, *mib: float) -> Idle:
    made = tuple(
        IdleStep(
            idle=1000 * number,
            connections=64 + 1000 * number,
            established=64 + 1000 * number,
            failed={},
            connect_rate_per_s=4800.4,
            server_rss_bytes=int(size * MIB),
        )
        for number, size in enumerate(mib)
    )
    count = made[-1].idle
    return Idle(connections=count, held=held, server_bytes_per_connection=each, steps=made)


LINES = [
    (None, []),
    (idle(1000, 2048.0, 5, 7), [
        ("idle", "1,000 of 1,000 held to the end, 2.00 KiB of the server's memory each"),
        ("memory", "0 idle: 5.00 MiB, 1,000 idle: 7.00 MiB (connected at 4,800/s)"),
    ]),
    (idle(990, None, 5, 5), [
        ("idle", "990 of 1,000 held to the end; the server's memory did not grow: it had room for"
         " them"),
        ("memory", "0 idle: 5.00 MiB, 1,000 idle: 5.00 MiB (connected at 4,800/s)"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "lines"), LINES)
def test_people_are_told_what_idle_connections_cost(
    found: Idle | None, lines: list[tuple[str, str]]
) -> None:
    assert IDLE_SHOWN.shown(good_record().model_copy(update={"idle": found})) == lines


@pytest.mark.parametrize(("held", "status"), [(1000, "pass"), (999, "warn"), (None, "pass")])
def test_an_idle_connection_that_was_closed_makes_a_record_suspect(
    held: int | None, status: str
) -> None:
    record = judge(good_record().model_copy(update={"idle": idle(held, None, 5, 5)}))
    found = check_of(record, "connections")
    assert found.status == status, found
    if status == "warn":
        assert found.why == "1 of 1,000 idle ones were closed"
