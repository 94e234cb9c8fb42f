"""How far the estimates beside lower bounds are off, by servers whose generator is throttled.

Where the generator is the limit, a throughput is a lower bound, and trueload prints an estimate
beside it: the throughput divided by the server's saturation. Here each server is first measured at
its limit, which is the truth. Then a control group leaves the generator only a part of the CPU time
that it needed for that, so that the server idles, and the estimate is compared with the truth.

`bench/estimates.py [ROUNDS]` takes ten servers that can be built on this machine, and at most 15
minutes besides their builds; then it writes docs/contributors/accuracy.md. `--only go/gin` measures
one, `--servers 3` three. A server that is not at its limit with all of the generator's CPU has no
known truth, and is left out. The server has CPU 0, the generator CPU 1. Needs root. Exit code 2 if
nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from counted import add_count
from machine import describe
from page import ACCURACY, write_section
from process import BenchError
from servers import subject
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, find_setting

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload  # noqa: E402
from redteam.limits import limited  # noqa: E402
from redteam.stage import engine_of  # noqa: E402
from trueload.verdict.machine import SERVER_LIMIT  # noqa: E402

ROUNDS, SERVERS = 3, 10
BUDGET_S = 14 * 60.0
RUN_MOST_S = 30.0
RUN = ("-c", "64", "-d", "2s", "--warmup", "700ms", "--cpus", str(GENERATOR_CPU))
SHARES = (0.95, 0.85, 0.75, 0.6)
"""Of the CPU time that keeps the server at its limit, a throttled generator gets these shares."""
QUOTA_MS, PERIOD_MS = 1.1, 2.0  # the kernel grants no less than 1 ms at a time

# Servers of many kinds first. The cheapest are the generator's match, and have no known truth.
NAMES = (
    *("c/nginx", "go/net-http", "rust/actix-web", "javascript/node-http", "go/fasthttp"),
    *("c/lighttpd", "rust/axum", "go/gin", "python/uvicorn", "c/apache", "rust/hyper", "c/h2o"),
    *("go/echo", "go/fiber", "javascript/express", "javascript/fastify"),
    *("python/starlette", "rust/ntex", "go/caddy", "python/flask", "c/epoll"),
)


@dataclass
class Truth:
    """A server's runs at its limit: throughput, its own saturation and the generator's."""

    runs: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """The median throughput."""
        return median(per_s for per_s, _, _ in self.runs)

    @property
    def is_known(self) -> bool:
        """Whether the server was at its limit, and nothing else."""
        return bool(self.runs) and median(busy for _, busy, _ in self.runs) >= SERVER_LIMIT

    @property
    def generator_share(self) -> float:
        """How much of its CPU the generator needed."""
        return median(share for _, _, share in self.runs)


@dataclass(frozen=True)
class Estimate:
    """A throttled run: how busy the server was, its throughput, and the estimate beside it."""

    server: str
    saturation: float
    per_s: float
    estimate_per_s: float | None


def measure(trueload: Trueload, url: str, share: float | None = None) -> dict[str, Any]:
    """Make one run, with a share of the generator's CPU. Raises `BenchError`."""
    with ExitStack() as stack:
        put = None
        if share is not None:
            put = stack.enter_context(limited(share, max(PERIOD_MS, QUOTA_MS / share)))
        process = trueload.start("http", url, *RUN, "--json", "-", "--no-save")
        if put is not None:
            put(engine_of(process.pid))
        try:
            out, err = process.communicate(timeout=RUN_MOST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise BenchError(f"a run took more than {RUN_MOST_S:.0f} s") from None
        try:
            found: dict[str, Any] = json.loads(out[out.index("{") :])
        except ValueError:
            raise BenchError(f"the run left no result: {err.strip()[-200:]}") from None
    if found["server"] is None or not found["throughput"]["ok_per_s"]:
        raise BenchError("the run does not say how busy the server was")
    return found


def measure_server(
    trueload: Trueload, name: str, rounds: int, end_s: float
) -> tuple[Truth, list[Estimate]]:
    """Measure a server at its limit and throttled, in turns. Raises `BenchError`."""
    truth = Truth()
    estimates: list[Estimate] = []
    with subject(name, SERVER_CPU) as server:
        url = f"http://127.0.0.1:{server.port}/"
        for _ in range(rounds):
            found = measure(trueload, url)
            generator = found["generator"]["cpu_share"]
            saturation = found["server"]["saturation"]
            truth.runs.append((found["throughput"]["ok_per_s"], saturation, generator))
            if not truth.is_known:
                break
            for share in SHARES:
                if time.monotonic() > end_s:
                    return truth, estimates
                estimates.append(_throttled(trueload, name, url, share * truth.generator_share))
    return truth, estimates


def _throttled(trueload: Trueload, name: str, url: str, share: float) -> Estimate:
    found = measure(trueload, url, share)
    per_s, estimate = (found["throughput"].get(key) for key in ("ok_per_s", "estimate_per_s"))
    return Estimate(name, found["server"]["saturation"], per_s, estimate)


BANDS = ((0.9, SERVER_LIMIT), (0.8, 0.9), (0.65, 0.8), (0.5, 0.65))
HEADER = ("server", "true", *(f"{low:.0%} to {high:.0%} busy" for low, high in BANDS))


def table(truths: dict[str, Truth], estimates: Sequence[Estimate]) -> list[str]:
    """The table in Markdown: each server's truth, and how far its estimates are off."""
    lines = [f"| {' | '.join(HEADER)} |", f"|---|--:|{'---|' * len(BANDS)}"]
    for name, truth in truths.items():
        own = [each for each in estimates if each.server == name]
        cells = [_off_text(_off(own, truths, band)) for band in BANDS]
        lines.append(f"| {name} | {truth.per_s:,.0f} | {' | '.join(cells)} |")
    everything = [_off(estimates, truths, band) for band in BANDS]
    middles = [f"{median(off):+.1%}" if off else "" for off in everything]
    within = [f"{_ninth(off):.1%}" if off else "" for off in everything]
    counts = [f"{len(off)}" if off else "" for off in everything]
    for what, cells in (("median", middles), ("nine of ten within", within), ("runs", counts)):
        lines.append(f"| *{what}* | | {' | '.join(cells)} |")
    return lines


def _off(
    estimates: Iterable[Estimate], truths: dict[str, Truth], band: tuple[float, float]
) -> list[float]:
    """How far estimates are off, of servers that were so busy."""
    low, high = band
    return sorted(
        each.estimate_per_s / truths[each.server].per_s - 1
        for each in estimates
        if each.estimate_per_s is not None and low <= each.saturation < high
    )


def _off_text(off: Sequence[float]) -> str:
    if not off:
        return ""
    return f"{off[0]:+.1%}" if len(off) == 1 else f"{off[0]:+.1%} to {off[-1]:+.1%}"


def _ninth(off: Sequence[float]) -> float:
    sizes = sorted(map(abs, off))
    return sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)]


def measure_all(
    trueload: Trueload, names: Sequence[str], wanted: int, rounds: int
) -> tuple[dict[str, Truth], list[Estimate]]:
    """Measure servers one after the other until there are so many, or the time is over."""
    truths: dict[str, Truth] = {}
    estimates: list[Estimate] = []
    end_s = time.monotonic() + BUDGET_S
    for name in names:
        if len(truths) == wanted or time.monotonic() > end_s:
            break
        try:
            truth, found = measure_server(trueload, name, rounds, end_s)
        except BenchError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            continue
        if not truth.is_known:
            busy, share = truth.runs[0][1:]
            why = f"{busy:.1%} busy beside a generator that was for {share:.1%}"
            print(f"{name}: left out: not at its limit, {why}", file=sys.stderr)
            continue
        truths[name] = truth
        estimates += found
        for each in found:
            off = (each.estimate_per_s or each.per_s) / truth.per_s - 1
            which = "estimate" if each.estimate_per_s else "no estimate, throughput"
            print(f"{name}: {each.saturation:.1%} busy, {which} {off:+.1%}", file=sys.stderr)
    return truths, estimates


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="How far estimates beside lower bounds are off.")
    parser.add_argument("--only", action="append", help="a server; repeatable")
    parser.add_argument("--servers", type=int, default=SERVERS, help=f"how many ({SERVERS})")
    add_count(parser, "ROUNDS", ROUNDS)
    options = parser.parse_args()
    quiet = Quiet()
    try:
        find_setting()
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # nginx's worker runs as another user
        trueload = Trueload(Path(folder))
        try:
            names = options.only or NAMES
            found = measure_all(trueload, names, options.servers, options.count)
        finally:
            trueload.close()
    if not found[0]:
        print("error: no server could be measured at its limit", file=sys.stderr)
        return 2
    lines = [str(describe()), "", *table(*found), "", str(quiet)]
    print("\n".join(lines))
    if len(found[0]) >= SERVERS and options.count >= ROUNDS:
        write_section(ACCURACY, "estimates", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
