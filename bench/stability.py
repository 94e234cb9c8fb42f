"""Runs one suite of five subjects several times, and compares what each run said.

`bench/stability.py [RUNS]` takes some 20 minutes. It waits a minute between runs, so that the
machine can change. Targets: in each run, each subject's ratio to the reference lies within 5 % of
its median over all runs, and no two runs rank two subjects in opposite orders. Beside it stands how
far the rates themselves were apart. Exit code 1 if a target is missed.

With `--copies` the five subjects are copies of one under five names. Targets: no run ranks a copy
above another, and intervals of the ratios to the reference are narrower than those of the rates.
"""

from __future__ import annotations

import argparse
import shutil
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
COPIED, COPIES = ("go", "fasthttp"), 5
WITHIN = 0.05
RUN_MOST_S = 900.0


def run_suite(
    trueload: Trueload, seed: int, subjects: Sequence[str], folder: Path
) -> list[dict[str, Any]]:
    """The rows of one run, which has an order of its own."""
    chosen = ("--subjects", ",".join(f"{name}:default" for name in subjects))
    asked = ("suite", "run", "quick", *chosen, *LOAD, "--pair", "reference")
    env = {"TRUELOAD_HOME": str(ROOT)}
    more = ("--seed", str(seed), "--json", "-")
    ended = trueload.run(*asked, *more, cwd=folder, env=env, timeout_s=RUN_MOST_S)
    rows: list[dict[str, Any]] = ended.json()["rows"]
    return rows


def make_copies(folder: Path) -> tuple[str, ...]:
    """Five copies of one subject in a catalogue of their own, with the reference."""
    language, name = COPIED
    reference = ("rust", "trueload")
    shutil.copytree(ROOT.joinpath("subjects", *reference), folder.joinpath("subjects", *reference))
    names = [f"copy-{number}" for number in range(1, COPIES + 1)]
    for copy in names:
        shutil.copytree(ROOT / "subjects" / language / name, folder / "subjects" / language / copy)
    return tuple(f"{language}/{copy}" for copy in names)


def width(interval: Mapping[str, float]) -> float:
    """The width of an interval, as a share of its middle."""
    return (interval["high"] - interval["low"]) / ((interval["high"] + interval["low"]) / 2)


def name_of(row: Mapping[str, Any]) -> str:
    """The subject of a row."""
    return f"{row['language']}/{row['framework']}"


def run_text(run: Sequence[Mapping[str, Any]]) -> str:
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


def judge_copies(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mark]:
    """Whether copies were told apart, and how wide the intervals of rates and of ratios are."""
    ranked = [[row for row in run if row["rank"]] for run in runs]
    false = sum(any(row["rank_last"] != len(some) for row in some) for some in ranked)
    rows = [row for run in runs for row in run if row["interval"] and row["ratio_interval"]]
    rates = [width(row["interval"]) for row in rows]
    ratios = [width(row["ratio_interval"]) for row in rows]
    narrower = median(ratios) / median(rates) if rows else None
    shown = f"{median(ratios):.1%} against {median(rates):.1%}" if rows else "no row has a ratio"
    return [
        mark("runs that rank a copy above another", Limit(0), false, f"{false} of {len(runs)}"),
        mark("width of the ratio's interval / of the rate's", Limit(1), narrower, shown),
    ]


def judge(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mark]:
    """A mark for each subject, and one for the orders."""
    limit = Limit(WITHIN * 100, at_least=False, unit=" %")
    marks = []
    for name in SUBJECTS:
        found = [row["figures"] for run in runs for row in run if name_of(row) == name]
        ratios = [figures["ratio"] for figures in found if figures and figures["ratio"]]
        rates = [figures["ok_per_s"] for figures in found if figures]
        what = f"{name}: its ratio in each run, from the median of all"
        shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
        if rates:
            shown += f" (rates: {farthest(rates):.1%})"
        whole = len(ratios) == len(runs)
        marks.append(mark(what, limit, farthest(ratios) * 100 if whole else None, shown))
    against = contradicted(runs)
    orders = Limit(0, at_least=False, unit="")
    detail = ", ".join(against) or "none"
    return [*marks, mark("pairs of subjects ranked both ways", orders, len(against), detail)]


def main() -> int:
    """The runs, a line each, and the table."""
    parser = argparse.ArgumentParser(description="Runs one suite several times.")
    add_count(parser, "RUNS", RUNS)
    parser.add_argument("--copies", action="store_true", help="five copies of one subject")
    options = parser.parse_args()
    count = options.count
    quiet = Quiet()
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subjects = make_copies(folder) if options.copies else SUBJECTS
        trueload = Trueload(folder / "trueload")
        try:
            for number in range(1, count + 1):
                if number > 1:
                    time.sleep(PAUSE_S)
                runs.append(run_suite(trueload, number, subjects, folder))
                print(f"{number}: {run_text(runs[-1])}", flush=True)
        finally:
            trueload.close()
    marked = judge_copies(runs) if options.copies else judge(runs)
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
