"""The time that a report takes and the size of its page: over 20 records, and over 10,000.

`bench/report.py [RECORDS]` (two minutes); targets: 3 s and 3 MB, 30 s and 15 MB. It makes the
stores itself: suites of subjects under loads, whose records have a window of ten seconds and
histograms of about 600 buckets. Timed is the command from start to end, as a user waits for it; for
the small store the median of five. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from counted import parse_count
from marks import Limit, Mark, exit_code, mark, mark_table

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from samples import good_record, histogram  # noqa: E402
from trueload.protocol.plan import Duration, Histograms, Second  # noqa: E402
from trueload.record.schema import Record  # noqa: E402
from trueload.stats import decode_histogram, summarise  # noqa: E402
from trueload.store.runs import Store  # noqa: E402
from trueload.suites.plan import PlannedLoad, PlannedSubject, SuitePlan, trials  # noqa: E402
from trueload.verdict import judge  # noqa: E402

MB = 1_000_000
SECONDS = 10
LARGE = 10_000
# (subjects, loads, repetitions), and how often the report is timed.
SMALL_SHAPE, SMALL_TIMES = (5, 2, 2), 5
LARGE_LOADS, LARGE_REPETITIONS = 10, 10


def sample(chance: random.Random) -> Record:
    """A record of ten seconds with a random latency histogram."""
    middle = chance.uniform(12, 14)
    values = {int(chance.lognormvariate(middle, 0.5)): 1 + chance.randrange(50) for _ in range(900)}
    latency = histogram(*values.items())
    found = summarise(decode_histogram(latency))
    per_s = max(1, found.count // SECONDS)
    series = tuple(
        Second(
            t_s=second,
            ok=per_s + chance.randrange(per_s // 10 + 1),
            failed=0,
            latency={index: chance.randrange(1, 9) for index in range(600, 700)},
        )
        for second in range(SECONDS)
    )
    record = good_record()
    return judge(
        record.model_copy(
            update={
                "latency_ns": found,
                "service_ns": found,
                "histograms": Histograms(
                    latency=latency, service=latency, connect=None, first_byte=latency, total=None
                ),
                "series": series,
                "window": record.window.model_copy(update={"window_ns": SECONDS * 10**9}),
                "throughput": record.throughput.model_copy(update={"ok_per_s": float(per_s)}),
            }
        )
    )


def plan(subjects: int, loads: int, repetitions: int) -> SuitePlan:
    """The plan of a suite with this many subjects, loads and repetitions."""
    return SuitePlan(
        suite="made-up",
        contract="http-plaintext",
        subjects=tuple(
            PlannedSubject(
                name=f"language{number % 7}/framework-{number}",
                language=f"language{number % 7}",
                framework=f"framework-{number}",
                variant="",
                category="platform",
                trap=False,
                digest="0",
            )
            for number in range(subjects)
        ),
        loads=tuple(
            PlannedLoad(connections=2**number, pipeline=1, cores="single")
            for number in range(loads)
        ),
        stop=Duration(ns=SECONDS * 10**9),
        warmup=None,
        timeout_ns=5 * 10**9,
        close=False,
        threads=1,
        repeat=repetitions,
        seed=1,
        files=0,
        share_cpus=False,
        port=None,
    )


def fill(path: Path, wanted: SuitePlan) -> None:
    """Create a store with a run of that plan."""
    chance = random.Random(1)
    kinds = [sample(chance) for _ in range(40)]
    with Store.open(path) as store:
        store._db.execute("PRAGMA synchronous = OFF")  # it need not survive a crash
        run = store.new_run(kind="suite", title="made-up", plan=wanted.model_dump(mode="json"))
        for number, trial in enumerate(trials(wanted)):
            record = chance.choice(kinds).model_copy(update={"id": f"record-{number}"})
            store.add_record(
                run, record, key=trial.key, labels={"subject": trial.cell.subject.name}
            )
        store.end_run(run)


def timed(store: Path, page: Path) -> float:
    """Return the seconds that the command takes, from its start to its end."""
    command = [sys.executable, "-m", "trueload", "report", "last", "-o", str(page)]
    env = {**os.environ, "TRUELOAD_STORE": str(store), "PYTHONPATH": str(ROOT / "python")}
    since_s = time.perf_counter()
    subprocess.run(command, env=env, check=True)
    return time.perf_counter() - since_s


def measured(folder: Path, shape: tuple[int, int, int], times: int) -> tuple[int, float, float]:
    """Return the number of records, the seconds and the megabytes of one shape."""
    wanted = plan(*shape)
    store, page = folder / f"{times}.sqlite3", folder / f"{times}.html"
    fill(store, wanted)
    took_s = median(timed(store, page) for _ in range(times))
    return shape[0] * shape[1] * shape[2], took_s, page.stat().st_size / MB


def marks(found: tuple[int, float, float], limit_s: float, limit_mb: float) -> list[Mark]:
    """Judge the time and the size of one report."""
    records, took_s, size_mb = found
    what = f"a report over {records:,} records"
    return [
        mark(f"{what}: time", Limit(limit_s, unit=" s"), took_s, f"{took_s:.2f} s"),
        mark(f"{what}: size", Limit(limit_mb, unit=" MB"), size_mb, f"{size_mb:.2f} MB"),
    ]


def main() -> int:
    """Measure both stores and judge them."""
    count = parse_count(__doc__, "RECORDS", LARGE)
    subjects = max(1, count // (LARGE_LOADS * LARGE_REPETITIONS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = measured(folder, SMALL_SHAPE, SMALL_TIMES)
        large = measured(folder, (subjects, LARGE_LOADS, LARGE_REPETITIONS), 1)
    marked = [*marks(small, 3, 3), *marks(large, 30, 15)]
    print("\n".join(mark_table(marked)))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
