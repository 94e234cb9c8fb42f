"""What does a session cost? CPU per request of a scenario, against k6, locust, and plain requests.

The reference server runs on CPU 0, each generator on CPU 1, one at a time, as a closed loop of 64
users. All send the same session of three requests, whose second has a number that is taken from the
JSON of the first answer. A plain request of ours is `GET /` on as many connections. A round runs
every one of them once, in an order that `--seed` shuffles.

CPU time is that of a generator's whole life, its start included; ours is the engine's. Each ratio
is one of the medians of all rounds. Targets: k6 costs at least 15 times as much as our sessions,
locust 40 times, and our sessions at most 1.5 times as much as plain requests.

k6 and locust are looked for on the PATH; without them their targets are not measured. Prints
Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from commanded import run_http
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError, run
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting

ROUNDS = 5
USERS = 64
PATIENCE_S = 60.0
OURS, PLAIN, K6, LOCUST = "trueload, sessions", "trueload, GET /", "k6", "locust"
TARGETS = (
    (K6, OURS, Limit(15, at_least=True)),
    (LOCUST, OURS, Limit(40, at_least=True)),
    (OURS, PLAIN, Limit(1.5)),
)
"""Whose CPU per request is divided by whose, and the limit of the ratio."""
SCENARIO = """
[[step]]
name = "numbers"
request = { url = "/perf" }
take = { n = "json:/numbers/6" }
[[step]]
name = "item"
request = { url = "/item/{n}" }
[[step]]
name = "home"
request = { url = "/" }
"""
K6_SCRIPT = """
import http from "k6/http";
export const options = { vus: USERS, duration: "SECONDSs" };
export default function () {
  const n = http.get("URL/perf").json("numbers.6");
  http.get("URL/item/" + n);
  http.get("URL/");
}
"""
LOCUST_FILE = """
from locust import FastHttpUser, task
class Shop(FastHttpUser):
    @task
    def session(self):
        n = self.client.get("/perf").json()["numbers"][6]
        self.client.get(f"/item/{n}", name="/item")
        self.client.get("/")
"""


@dataclass(frozen=True)
class Turn:
    """One run of a generator: what it sent, and its CPU time."""

    requests: int
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        """CPU per request, in microseconds."""
        return self.cpu_s / self.requests * 1e6


@dataclass(frozen=True)
class Load:
    """What each generator is asked for."""

    url: str
    seconds: float
    folder: Path
    binary: Path


def _ours(load: Load, *flags: str) -> Turn:
    asked = ("-c", str(USERS), "-d", f"{load.seconds:g}s", *flags)
    done = run_http(load.binary, load.url, asked, load.seconds + PATIENCE_S)
    counts = done.record["counts"]
    if counts["failed"] or not counts["ok"] or done.cpu_s is None:
        raise BenchError(f"our generator failed requests, or did not end by itself: {counts}")
    return Turn(counts["ok"], done.cpu_s)


def _sessions(load: Load) -> Turn:
    file = load.folder / "three.toml"
    file.write_text(SCENARIO)
    return _ours(load, "--scenario", str(file))


def _k6(load: Load) -> Turn:
    script, summary = load.folder / "k6.js", load.folder / "k6.json"
    text = K6_SCRIPT.replace("USERS", str(USERS)).replace("SECONDS", f"{load.seconds:g}")
    script.write_text(text.replace("URL", load.url))
    summary.unlink(missing_ok=True)
    command = ["k6", "run", "--quiet", "--no-usage-report", "--summary-export", str(summary)]
    ended = _run([*command, str(script)], load)
    return Turn(read_k6(summary.read_text()), ended)


def _locust(load: Load) -> Turn:
    file, found = load.folder / "locustfile.py", load.folder / "locust_stats.csv"
    file.write_text(LOCUST_FILE)
    found.unlink(missing_ok=True)
    users = ("-u", str(USERS), "-r", str(USERS), "-t", f"{load.seconds:g}s", "--host", load.url)
    where = ("--csv", str(load.folder / "locust"), "--only-summary")
    ended = _run(["locust", "-f", str(file), "--headless", *users, *where], load)
    return Turn(read_locust(found.read_text()), ended)


def _run(command: Sequence[str], load: Load) -> float:
    """Run a generator to its end and return its CPU seconds."""
    return run(command, cpu=GENERATOR_CPU, timeout_s=load.seconds + PATIENCE_S).cpu_s


def read_k6(summary: str) -> int:
    """Return the requests in k6's summary. Raises ``BenchError`` if any failed."""
    metrics = json.loads(summary)["metrics"]
    sent, failed = metrics["http_reqs"]["count"], metrics["http_req_failed"]["passes"]
    if failed or not sent:
        raise BenchError(f"k6 failed {failed} of {sent} requests")
    return int(sent)


def read_locust(table: str) -> int:
    """Return the requests in locust's table. Raises ``BenchError`` if any failed."""
    rows = [row for row in csv.DictReader(table.splitlines()) if row["Name"] == "Aggregated"]
    if len(rows) != 1:
        raise BenchError("locust wrote no sum of its requests")
    sent, failed = int(rows[0]["Request Count"]), int(rows[0]["Failure Count"])
    if failed or not sent:
        raise BenchError(f"locust failed {failed} of {sent} requests")
    return sent


def generators() -> tuple[dict[str, Callable[[Load], Turn]], dict[str, str]]:
    """Return the generators that can be had, and why others cannot."""
    found: dict[str, Callable[[Load], Turn]] = {OURS: _sessions, PLAIN: _ours}
    others = {K6: _k6, LOCUST: _locust}
    absent = {name: "not installed" for name in others if shutil.which(name) is None}
    return found | {name: each for name, each in others.items() if name not in absent}, absent


def measure(
    tools: Mapping[str, Callable[[Load], Turn]], load: Load, rounds: int, seed: int
) -> dict[str, list[Turn]]:
    """Run every generator once in each round, in random order."""
    turns: dict[str, list[Turn]] = {name: [] for name in tools}
    random = Random(seed)
    for _ in range(rounds):
        for name in random.sample(list(tools), len(tools)):
            turns[name].append(tools[name](load))
    return turns


def judge(turns: Mapping[str, Sequence[Turn]], absent: Mapping[str, str]) -> list[Mark]:
    """Judge the ratios of medians. Pure."""
    costs = {name: median(turn.cpu_us for turn in found) for name, found in turns.items()}
    marked = []
    for one, other, limit in TARGETS:
        what = f"CPU per request, {one} / {other}"
        if one in absent:
            marked.append(mark(what, limit, None, absent[one]))
            continue
        ratio, rounds = costs[one] / costs[other], len(turns[one])
        shown = f"{ratio:.3g}, {rounds} round{'' if rounds == 1 else 's'}"
        marked.append(mark(what, limit, ratio, shown))
    return marked


def table(turns: Mapping[str, Sequence[Turn]], of: str = "request") -> list[str]:
    """Markdown with a row for each generator; `of` is what it sends. Pure."""
    head = f"| generator | {of}s a run | CPU µs/{of} | least to most |"
    lines = [head, "|---|--:|--:|---|"]
    for name, found in turns.items():
        costs = sorted(turn.cpu_us for turn in found)
        sent = f"{median(turn.requests for turn in found):,.0f}"
        lines.append(
            f"| {name} | {sent} | {median(costs):.2f} | {costs[0]:.2f} to {costs[-1]:.2f} |"
        )
    return lines


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU per request of sessions.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=5.0, help="a run (5)")
    parser.add_argument("--seed", type=int, default=1, help="order of the generators (1)")
    options = parser.parse_args()
    quiet, (tools, absent) = Quiet(), generators()
    try:
        binary = prepare_setting()
        with reference(binary, SERVER_CPU) as server, tempfile.TemporaryDirectory() as folder:
            url = f"http://127.0.0.1:{server.port}"
            load = Load(url, options.seconds, Path(folder), binary)
            turns = measure(tools, load, options.rounds, options.seed)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(turns, absent)
    versions = {name: (name, "--version") for name in (K6, LOCUST) if name not in absent}
    print(describe(versions), f"\n{USERS} users; rounds: {options.rounds}. {quiet}\n", sep="\n")
    print(*table(turns), "", *mark_table(marked), sep="\n")
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
