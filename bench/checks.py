"""The time that checks and statistics of a large suite take: records read, judged and tabulated.

`bench/checks.py [RECORDS]`, 10,000 by default; the target is 10 s. The records are copies of one
realistic trial. Timed is what a reader of the store does with each of them: every check and the
figures of its row; then an interval for every six rows, and the ranks. Exit code 1 if it takes
longer.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from counted import parse_count
from marks import Limit, exit_code, mark, mark_table

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from samples import good_record, histogram  # noqa: E402
from trueload.record.schema import Record  # noqa: E402
from trueload.repetitions import interval, median  # noqa: E402
from trueload.suites.figures import figures  # noqa: E402
from trueload.suites.ranks import RowScore, known_above  # noqa: E402
from trueload.verdict import judge  # noqa: E402

RECORDS = 10_000
TARGET = Limit(10, unit=" s")
REPETITIONS = 6
# Rows of one table: each is compared with each other.
ROWS = 100


def sample() -> Record:
    """A record whose histogram has about 600 buckets."""
    chance = random.Random(1)
    values = {int(chance.lognormvariate(13, 0.5)): 1 + chance.randrange(50) for _ in range(1_000)}
    latency = histogram(*values.items())
    record = good_record()
    kept = record.histograms.model_copy(update={"latency": latency, "service": latency})
    return record.model_copy(update={"histograms": kept})


def main() -> int:
    """Measure each part once, in CPU seconds."""
    count = parse_count(__doc__, "RECORDS", RECORDS)
    record = sample()
    text = record.model_dump_json(by_alias=True)
    parts: dict[str, float] = {}

    def timed(name: str, since_s: float) -> float:
        now_s = time.process_time()
        parts[name] = now_s - since_s
        return now_s

    at_s = time.process_time()
    records = [Record.model_validate_json(text) for _ in range(count)]
    at_s = timed("read", at_s)
    records = [judge(each) for each in records]
    at_s = timed("checks", at_s)
    rows = [figures(each, {}) for each in records]
    at_s = timed("figures", at_s)
    chance = random.Random(2)
    per_s = [(row.ok_per_s or 0) * chance.uniform(0.9, 1.1) for row in rows]
    cells = [per_s[at : at + REPETITIONS] for at in range(0, count, REPETITIONS)]
    for cell in cells:
        interval(cell)
    known_above([RowScore(cell, median(cell) or 0.0) for cell in cells[:ROWS]])
    timed("intervals and ranks", at_s)
    judged_s = sum(seconds for name, seconds in parts.items() if name != "read")
    shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items())
    what = f"checks and statistics of {count:,} records, reading not counted"
    marked = [mark(what, TARGET, judged_s, f"{judged_s:.2f} s ({shown})")]
    print("\n".join(mark_table(marked)))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
