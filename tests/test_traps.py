"""The published traps are detected: each makes the verdict invalid, by its own check."""

from __future__ import annotations

import pytest
from harness import Trueload
from trap_runs import LONG, TRAPS, StopForEverybody, Trap, spring


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_makes_the_verdict_invalid(trueload: Trueload, trap: Trap) -> None:
    code, record = spring(trueload, trap)
    failed = {check["name"] for check in record["checks"] if check["status"] == "fail"}
    of_check = [check["why"] for check in record["checks"] if check["name"] == trap.check]
    assert trap.check in failed, (of_check, failed)
    assert record["verdict"] == "invalid"
    assert code == 4


def test_a_server_that_stops_for_everybody_starves_nobody(trueload: Trueload) -> None:
    stops = Trap("it stops for everybody", StopForEverybody(20), "steady-state", LONG)
    code, record = spring(trueload, stops)
    checks = {check["name"]: check for check in record["checks"]}
    assert checks["starvation"]["status"] == "pass", checks["starvation"]
    failed = {name for name, check in checks.items() if check["status"] == "fail"}
    assert {"errors", "steady-state"} & failed, {k: v["why"] for k, v in checks.items()}
    assert code == 4
