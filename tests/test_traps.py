"""The published traps are detected: each makes the verdict invalid, by its own check."""

from __future__ import annotations

import pytest
from harness import Trueload
from trap_runs import TRAPS, Trap, spring


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_makes_the_verdict_invalid(trueload: Trueload, trap: Trap) -> None:
    code, record = spring(trueload, trap)
    failed = {check["name"] for check in record["checks"] if check["status"] == "fail"}
    of_check = [check["why"] for check in record["checks"] if check["name"] == trap.check]
    assert trap.check in failed, (of_check, failed)
    assert record["verdict"] == "invalid"
    assert code == 4
