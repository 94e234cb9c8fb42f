"""Runs `trueload http` against the reference server with the CPUs kept apart, and counts verdicts.

An ordinary run on a quiet machine must come out valid in at least 19 of 20.

`bench/ordinary.py [TIMES] [FLAGS…]`; the server has CPU 0, the generator CPU 1. Exit code 1 if
fewer are valid.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

from marks import Limit, exit_code, mark, mark_table
from setting import GENERATOR_CPU, SERVER_CPU, Quiet

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload, start_server  # noqa: E402

TIMES = 20
VALID_SHARE = 0.95


def main() -> int:
    """The runs, a line each, and what stood against them."""
    words = sys.argv[1:]
    times = int(words.pop(0)) if words and words[0].isdigit() else TIMES
    quiet = Quiet()
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        trueload = Trueload(Path(folder))
        try:
            server = start_server(trueload, "--cpus", str(SERVER_CPU))
            for number in range(1, times + 1):
                flags = (
                    "-d",
                    "2s",
                    "--cpus",
                    str(GENERATOR_CPU),
                    "--json",
                    "-",
                    "--no-save",
                    *words,
                )
                record = trueload.run("http", server.url, *flags).json()
                crossed = [c for c in record["checks"] if c["status"] in ("warn", "fail")]
                verdicts[record["verdict"]] += 1
                reasons.update(check["name"] for check in crossed)
                why = "; ".join(f"{check['name']}: {check['why']}" for check in crossed)
                print(f"{number:>3} {record['verdict']:<8} {why}", flush=True)
        finally:
            trueload.close()
    valid, least = verdicts["valid"], math.ceil(VALID_SHARE * times)
    shown = f"{valid} of {times}; crossed checks: {dict(reasons) or 'none'}"
    what = "an ordinary run on a quiet machine: valid"
    marked = [mark(what, Limit(least, at_least=True, unit=f" of {times}"), valid, shown)]
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
