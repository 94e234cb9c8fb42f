"""Runs one suite of five subjects five times, and compares what each run said.

`bench/stability.py [RUNS]` takes some 20 minutes. It waits a minute between runs, so that the
machine can change. Targets: in each run, each subject's figure lies within 5 % of its median over
all runs, and no two runs rank two subjects in opposite orders. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from counted import add_count
from marks import Limit, Mark, exit_code, mark, mark_table
from setting import Quiet

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "python")]

from harness import Trueload  # noqa: E402

RUNS = 5
PAUSE_S = 60.0
SUBJECTS = ("c/nginx", "go/fasthttp", "go/net-http", "rust/actix-web", "javascript/node-http")
LOAD = ("-c", "64", "-d", "2s", "--warmup", "500ms", "--repeat", "6")
WITHIN = 0.05
RUN_MOST_S = 900.0


def run_suite(trueload: Trueload, seed: int) -> list[dict[str, Any]]:
    """The rows of one run, which has an order of its own."""
    chosen = ("--subjects", ",".join(f"{name}:default" for name in SUBJECTS))
    asked = ("suite", "run", "quick", *chosen, *LOAD, "--seed", str(seed), "--json", "-")
    ended = trueload.run(*asked, cwd=ROOT, timeout_s=RUN_MOST_S)
    rows: list[dict[str, Any]] = ended.json()["rows"]
    return rows


def name_of(row: Mapping[str, Any]) -> str:
    """The subject of a row."""
    return f"{row['language']}/{row['framework']}"


def told(run: Sequence[Mapping[str, Any]]) -> str:
    """One run, in a line."""
    cells = []
    for row in run:
        figures = row["figures"] or {}
        ranks = f"{row['rank']}-{row['rank_last']}" if row["rank"] else row["verdict"]
        cells.append(f"{name_of(row)} {figures.get('ok_per_s') or 0:,.0f} ({ranks})")
    return "; ".join(cells)


def farthest(values: Sequence[float]) -> float:
    """How far the value that is farthest from the median is from it, as a share."""
    middle = median(values)
    return max(abs(value / middle - 1) for value in values)


def contradicted(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Pairs of subjects that one run ranks in one order, and another in the other."""
    found = []
    for a, b in combinations(SUBJECTS, 2):
        orders = set()
        for run in runs:
            rows = {name_of(row): row for row in run}
            if not all(name in rows and rows[name]["rank"] for name in (a, b)):
                continue
            one, other = rows[a], rows[b]
            if one["rank_last"] < other["rank"]:
                orders.add((a, b))
            elif other["rank_last"] < one["rank"]:
                orders.add((b, a))
        if len(orders) > 1:
            found.append(f"{a} and {b}")
    return found


def judge(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mark]:
    """A mark for each subject, and one for the orders."""
    limit = Limit(WITHIN * 100, at_least=False, unit=" %")
    marks = []
    for name in SUBJECTS:
        rates = [row["figures"]["ok_per_s"] for run in runs for row in run if name_of(row) == name]
        what = f"{name}: its figure in each run, from the median of all"
        shown = " ".join(f"{rate:,.0f}" for rate in rates)
        marks.append(mark(what, limit, farthest(rates) * 100 if rates else None, shown))
    against = contradicted(runs)
    orders = Limit(0, at_least=False, unit="")
    said = ", ".join(against) or "none"
    return [*marks, mark("pairs of subjects ranked both ways", orders, len(against), said)]


def main() -> int:
    """The runs, a line each, and the table."""
    parser = argparse.ArgumentParser(description="Runs one suite several times.")
    add_count(parser, "RUNS", RUNS)
    count = parser.parse_args().count
    quiet = Quiet()
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        trueload = Trueload(Path(folder))
        try:
            for number in range(1, count + 1):
                if number > 1:
                    time.sleep(PAUSE_S)
                runs.append(run_suite(trueload, number))
                print(f"{number}: {told(runs[-1])}", flush=True)
        finally:
            trueload.close()
    marked = judge(runs)
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
