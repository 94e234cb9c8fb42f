"""Runs into each of the published traps many times, and counts how often the verdict is invalid.

`bench/traps.py [TIMES]`, 20 by default. Exit code 1 if a trap was missed once.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload  # noqa: E402
from trap_runs import TRAPS, Trap, spring  # noqa: E402

TIMES = 20


def caught(trap: Trap, times: int) -> tuple[int, int]:
    """Runs that were invalid, and those of them where the trap's own check failed."""
    invalid = named = 0
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            trueload = Trueload(Path(folder))
            try:
                code, record = spring(trueload, trap)
            finally:
                trueload.close()
        failed = {check["name"] for check in record["checks"] if check["status"] == "fail"}
        invalid += code == 4 and record["verdict"] == "invalid"
        named += trap.check in failed
    return invalid, named


def main() -> int:
    """Every trap, a line each."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    missed = False
    for trap in TRAPS:
        invalid, named = caught(trap, times)
        missed |= invalid < times
        print(
            f"{invalid:>3} of {times} invalid, {named:>3} by {trap.check:<12} {trap.name}",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
