"""Ten thousand connections on the reference server, run after run: were all there, did any fail?

`bench/c10k.py [TIMES]`, 20 by default, which takes some ten minutes. It first runs `trueload http`
as a user would, alternating between one connection per request and kept connections, `TIMES` runs
of each. All of them use one server and one port, so that ports and closed connections of one run
can get in the way of the next. Then it runs the suite `c10k`, which primes each run and restarts
the server. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counted import parse_count
from marks import Limit, Mark, exit_code, mark, mark_table
from setting import GENERATOR_CPU, SERVER_CPU

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "python")]

from harness import Trueload, kill_group, start_server  # noqa: E402

TIMES = 20
CONNECTIONS, REQUESTS = 10_000, 20_000
TRIAL_S = 180.0  # far longer than a trial takes
SINGLE = {
    ("--close",): f"{CONNECTIONS:,} connections to one server, one per request: all, none failed",
    (): f"{CONNECTIONS:,} connections to one server, kept: all, none failed",
}
KINDS = {
    (True, 0): f"suite c10k, {CONNECTIONS:,} connections, one per request: all, none failed",
    (False, 0): f"suite c10k, {CONNECTIONS:,} connections, kept: all, none failed",
    (False, CONNECTIONS): f"suite c10k, 64 beside {CONNECTIONS:,} idle ones: all held, none failed",
}


def run_single(trueload: Trueload, times: int) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Run the single commands one after another against one server; return their records."""
    server = start_server(trueload, "--cpus", str(SERVER_CPU))
    words = ["http", f"{server.url}/perf", "-c", str(CONNECTIONS), "--requests", str(REQUESTS)]
    words += ["--cpus", str(GENERATOR_CPU), "--timeout", "30s", "--no-save", "--json", "-"]
    records: dict[tuple[str, ...], list[dict[str, Any]]] = {flags: [] for flags in SINGLE}
    for _ in range(times):
        for flags, found in records.items():
            ended = trueload.run(*words, *flags, timeout_s=TRIAL_S)
            # A run that failed to start has no record, so it is missing in the count.
            if ended.out:
                found.append(ended.json())
    kill_group(server.process)
    return records


def run_suite(trueload: Trueload, times: int) -> list[dict[str, Any]]:
    """Run the suite; return the records of all its trials."""
    whole = trueload.folder / "c10k.json"
    words = ("suite", "run", "c10k", "--subjects", "rust/trueload", "--repeat", str(times))
    timeout_s = TRIAL_S * times * len(KINDS)
    ended = trueload.run(*words, "--json", str(whole), cwd=ROOT, timeout_s=timeout_s)
    if ended.code not in (0, 4):
        raise SystemExit(f"the suite could not be run ({ended.code}): {ended.err.strip()}")
    records: list[dict[str, Any]] = json.loads(whole.read_text())["trials"]
    return records


def kind_of(record: dict[str, Any]) -> tuple[bool, int]:
    """Tell which of the suite's loads a record belongs to, as a key of `KINDS`."""
    idle = record["idle"]
    return record["plan"]["generate"]["close"], 0 if idle is None else idle["connections"]


def faults(record: dict[str, Any]) -> list[str]:
    """List what went wrong in a record; empty when nothing did."""
    found = []
    missing = record["connections"]["requested"] - record["connections"]["established"]
    if record["connections"]["requested"] < CONNECTIONS or missing:
        found.append(f"{missing} connections not established")
    for name, counts in (("priming", record["warmup"]["counts"]), ("run", record["counts"])):
        if counts["failed"]:
            found.append(f"{name}: {counts['failed']}")
        if counts["ok"] != counts["scheduled"]:
            found.append(f"{name}: {counts['ok']} of {counts['scheduled']} answered")
    idle = record["idle"]
    if idle is not None and idle["held"] != idle["connections"]:
        found.append(f"{idle['held']} idle connections held")
    if record["partial"]:
        found.append("cut short")
    return found


def judge(what: str, records: Sequence[dict[str, Any]], times: int) -> tuple[Mark, list[str]]:
    """Judge the records of one load; return the mark and lines that describe the result. Pure."""
    amiss = [fault for record in records for fault in faults(record)]
    good = sum(not faults(record) for record in records)
    limit = Limit(times, at_least=True, unit=f" of {times}")
    lines = [f"{what.partition(':')[0]}: {figures_of(records)}"] if records else []
    lines += [f"  {fault}" for fault in dict.fromkeys(amiss)]
    return mark(what, limit, good, f"{good} of {times}"), lines


def figures_of(records: Sequence[dict[str, Any]]) -> str:
    """Medians over the runs, for information: they have no target."""
    per_s = statistics.median(record["throughput"]["ok_per_s"] or 0.0 for record in records)
    longest = statistics.median(record["latency_ns"]["max"] or 0 for record in records) / 1e6
    verdicts = Counter(record["verdict"] for record in records)
    shown = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
    each = [(record["idle"] or {}).get("server_bytes_per_connection") for record in records]
    known = [bytes_ for bytes_ in each if bytes_ is not None]
    cost = f"; {statistics.median(known):.0f} B of its memory each" if known else ""
    return f"{per_s:,.0f} requests/s, longest {longest:.0f} ms{cost}; verdicts: {shown}"


def main() -> int:
    """Run everything, print the results, and exit with 1 if a target is missed."""
    times = parse_count(__doc__, "TIMES", TIMES)
    with tempfile.TemporaryDirectory() as folder:
        trueload = Trueload(Path(folder))
        try:
            single = run_single(trueload, times)
            of_suite = run_suite(trueload, times)
        finally:
            trueload.close()
    by_load = {SINGLE[flags]: records for flags, records in single.items()}
    for kind, what in KINDS.items():
        by_load[what] = [record for record in of_suite if kind_of(record) == kind]
    judged = [judge(what, records, times) for what, records in by_load.items()]
    marked = [each for each, _ in judged]
    lines = [line for _, several in judged for line in several]
    print("\n".join([*lines, "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
