"""Runs into each of the published traps many times, and counts how often the verdict is invalid.

`bench/traps.py [TIMES]`, 20 by default, which takes some ten minutes. Exit code 1 if a trap was
missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from counted import parse_count
from marks import Limit, Mark, exit_code, mark, mark_table

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload  # noqa: E402
from trap_runs import TRAPS, Trap, spring  # noqa: E402

TIMES = 20


def caught(trap: Trap, times: int) -> int:
    """Count the runs that were invalid by the trap's own check; other reasons do not count."""
    count = 0
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            trueload = Trueload(Path(folder))
            try:
                code, record = spring(trueload, trap)
            finally:
                trueload.close()
        failed = {check["name"] for check in record["checks"] if check["status"] == "fail"}
        count += code == 4 and record["verdict"] == "invalid" and trap.check in failed
    return count


def spring_often(trap: Trap, times: int) -> Mark:
    """Run into the trap `times` times and judge it."""
    count = caught(trap, times)
    limit = Limit(times, at_least=True, unit=f" of {times}")
    return mark(f"{trap.name}: invalid by `{trap.check}`", limit, count, f"{count} of {times}")


def main() -> int:
    """Run into every trap, and print a line for each."""
    times = parse_count(__doc__, "TIMES", TIMES)
    marked = []
    for trap in TRAPS:
        marked.append(spring_often(trap, times))
        if sys.stderr.isatty():
            print(f"{marked[-1].measured}: {trap.name}", file=sys.stderr)
    print("\n".join(mark_table(marked)))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
