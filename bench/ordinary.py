"""Runs `trueload http` against the reference server with the CPUs kept apart, and counts verdicts.

An ordinary run on a quiet machine must come out valid in at least 19 of 20.

`bench/ordinary.py [TIMES] [FLAGS…]`; the server has CPU 0, the generator CPU 1. Exit code 1 if
fewer are valid.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

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
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        trueload = Trueload(Path(folder))
        try:
            server = start_server(trueload, "--cpus", "0")
            for number in range(1, times + 1):
                flags = ("-d", "2s", "--cpus", "1", "--json", "-", "--no-save", *words)
                record = trueload.run("http", server.url, *flags).json()
                crossed = [c for c in record["checks"] if c["status"] in ("warn", "fail")]
                verdicts[record["verdict"]] += 1
                reasons.update(check["name"] for check in crossed)
                why = "; ".join(f"{check['name']}: {check['why']}" for check in crossed)
                print(f"{number:>3} {record['verdict']:<8} {why}", flush=True)
        finally:
            trueload.close()
    print(f"{verdicts['valid']} of {times} valid; {dict(verdicts)}; {dict(reasons)}")
    return int(verdicts["valid"] < VALID_SHARE * times)


if __name__ == "__main__":
    sys.exit(main())
