"""The processes that do the work, the measured server or others behind it, and their choice."""

from __future__ import annotations

import os
from typing import Any

import pytest
from samples import PHASE, SERVER, good_record
from trueload.assemble.server import make_backends
from trueload.commands.place_options import read_placement
from trueload.errors import UserError
from trueload.machine.noise import NoiseSample, ProcessUse
from trueload.record.schema import Backend, Check, Record, Status
from trueload.request.traffic import Traffic
from trueload.trial.server_discovery import find_server
from trueload.trial.spec import TrialSpec, open_load

S = 1_000_000_000


def behind(*cpu_s: float, **changes: Any) -> dict[str, Any]:
    """A server that used 0.6 s of CPU, with backends that used these times."""
    found = tuple(Backend(pid=50 + n, name="app", cpu_s=each) for n, each in enumerate(cpu_s))
    server = SERVER.model_copy(update={"name": "nginx", "backends": found, **changes})
    return {"server": server}


def check(record: Record) -> Check:
    return next(each for each in record.checks if each.name == "backends")


PLAN = good_record().plan
AT_A_RATE = PHASE.model_copy(update={"load": open_load(100, PHASE.stop)})
CASES: list[tuple[str, dict[str, Any], Status, str]] = [
    ("nobody is behind it", {}, "pass", "no other process"),
    ("its processes are not known", {"server": None}, "n/a", "not known"),
    (
        "those behind it work more",
        behind(0.7),
        "warn",
        "and app (pid 50) behind it used",
    ),
    ("it is offered to name them", behind(0.7), "warn", "; --server-pid 50 measures it there"),
    (
        "together they work more",
        behind(0.5, 0.2),
        "warn",
        "app (pid 50) and 1 more behind it used 0.70 s",
    ),
    ("they work less, and it is busy", behind(0.6), "pass", "nginx used 0.60 s"),
    (
        "it waits for them",
        behind(0.1, saturation=0.49),
        "warn",
        "part of the work is done",
    ),
    ("it waits, though not for them", behind(0.05, saturation=0.1), "pass", ""),
    (
        "it waits for requests",
        {**behind(0.1, saturation=0.1), "plan": PLAN.model_copy(update={"window": AT_A_RATE})},
        "pass",
        "",
    ),
    (
        "the user named it",
        behind(9.0, source="named"),
        "pass",
        "app (pid 50) behind it used 9.00 s",
    ),
    ("it used nothing at all", behind(0.1, cpu_s=0.0, saturation=0.0), "warn", "were not measured"),
]


@pytest.mark.parametrize(("sentence", "changes", "status", "why"), CASES, ids=lambda v: str(v)[:40])
def test_work_behind_the_server_is_told(
    sentence: str, changes: dict[str, Any], status: Status, why: str
) -> None:
    found = check(good_record(**changes))
    assert found.status == status, (sentence, found)
    assert why in found.why, found
    assert ("--server-pid" in found.why) == (status == "warn")


def test_who_was_started_by_us_cannot_be_named() -> None:
    found = check(good_record(**behind(0.7, source="started")))
    assert (found.status, "--server-pid" in found.why) == ("warn", False)


def look(*used_s: float) -> NoiseSample:
    """Processes with pids from 50 on that have used these CPU times."""
    processes = {(50 + n, 1): ProcessUse(1, round(each * S), 0) for n, each in enumerate(used_s)}
    return NoiseSample(0, processes, 0, 1)


def test_what_those_behind_it_used_is_of_the_window() -> None:
    found = make_backends({50: "app", 52: "db"}, look(1.0, 1.0), look(1.5, 9.0, 2.0))
    assert [(each.pid, each.name, each.cpu_s) for each in found] == [
        (52, "db", 2.0),
        (50, "app", 0.5),
    ]
    assert make_backends({50: "app"}, None, look(1.0)) == ()


def test_a_process_that_is_named_is_the_server() -> None:
    where = read_placement(server_pid=os.getpid())
    spec = TrialSpec(url="http://h/", addresses=(), traffic=Traffic(), server_pid=where.server_pid)
    tree, source = find_server(spec)
    assert source == "named"
    assert tree is not None
    assert os.getpid() in tree.sample().pids


def test_a_process_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="no such process"):
        read_placement(server_pid=(1 << 22) - 1)
