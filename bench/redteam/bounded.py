"""No printed bound may be on the wrong side: twelve ways to disturb a run whose truth is known.

`make redteam-bounds` disturbs the generator, the server and the machine in each way. The servers'
times and rates follow from their options, and every bound is compared with them
(docs/comparisons.md). TIMES says how often each way is played: 84 make a thousand runs, in an hour
and a half. Exit code 1 if a bound is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:1] = [str(TOP / folder) for folder in ("bench", "tests", "python")]

from machine import describe  # noqa: E402
from process import BenchError  # noqa: E402
from redteam.scenes import Burn, Crowd, Hindrance, Http, Played, Quota, Stop, hinder  # noqa: E402
from redteam.stage import Stage, open_stage  # noqa: E402
from setting import GENERATOR_CPU, SERVER_CPU, SettingError, find_setting  # noqa: E402

CLOSE = 1.03
"""A figure may be off by so much without any disturbance: a histogram's bins, a window's edges."""
SLACK_NS = 50_000_000
HOG_BYTES = 2 << 30


@dataclass(frozen=True)
class SlowTimers:
    """Lets the kernel wake the generator late: its timers may be off by 50 ms."""

    def begin(self, played: Played) -> None:
        """Begin when the engine is there."""
        pid = played.find_generator()
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                Path(f"/proc/{task.name}/timerslack_ns").write_text(str(SLACK_NS))
            except OSError as error:
                raise BenchError(f"the slack of timers cannot be set: {error}") from None


@dataclass(frozen=True)
class MemoryHog:
    """A process that writes to much memory, over and over, on the generator's CPU."""

    def begin(self, played: Played) -> None:
        """Begin at once."""
        played.stack.enter_context(_hog())


@contextmanager
def _hog() -> Iterator[None]:
    code = (
        f"import os\nos.sched_setaffinity(0, {{{GENERATOR_CPU}}})\nheld = bytearray({HOG_BYTES})\n"
        f"while True:\n    for at in range(0, {HOG_BYTES}, 4096): held[at] = held[at] + 1 & 255"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class StopServer:
    """Stops the server as `Stop` stops the generator: a machine that was suspended."""

    for_ms: float

    def begin(self, played: Played) -> None:
        """Wait for the first request."""
        played.server.await_first()
        times = (300, self.for_ms, 1000, 2)
        pid = played.server.process.pid
        played.stack.enter_context(hinder(played.stage, "stop", pid, *times))


WAYS: dict[str, Hindrance | None] = {
    "nothing": None,
    "the generator stops for 300 ms": Stop(300, after_ms=700),
    "it stops for 40 ms of every 200": Stop(40, 200, 20),
    "it stops for 1.2 s": Stop(1200, after_ms=500),
    "its CPU is taken for 50 ms of every 100": Burn(50, 100),
    "its CPU is shared with a process that never sleeps": Burn(60_000, 60_000),
    "the server's CPU is shared with one": Burn(60_000, 60_000, SERVER_CPU),
    "both CPUs are": Crowd((Burn(60_000, 60_000), Burn(60_000, 60_000, SERVER_CPU))),
    "the generator may use 20 % of a CPU": Quota(0.2, 100),
    "the server may use 20 % of a CPU": Quota(0.2, 100, "server"),
    "a process writes to 2 GiB of memory": MemoryHog(),
    "the generator's timers are 50 ms late": SlowTimers(),
    "the server stops for 200 ms, as a suspended machine": StopServer(200),
}
"""What disturbs the run; the first way is for comparison."""


@dataclass(frozen=True)
class Truth:
    """A server and a load whose figures follow from their options, in ms and per second."""

    server: str
    flags: str
    p50_ms: float
    p99_ms: float
    per_s: float


OPEN, CLOSED = "-c 32 --rate 400 -d 2s --warmup 300ms", "-c 16 -d 2s --warmup 300ms"
TRUTHS = (
    Truth("fixed=5ms", OPEN, 5, 5, 400),
    Truth("modes=1ms:50ms:0.1", OPEN, 1, 50, 400),
    # 1 % of the requests come in the first 10 ms of a pause, and wait for 90 ms or more.
    Truth("fixed=2ms freeze=100ms:1s", OPEN, 2, 92, 400),
    Truth("fixed=5ms", CLOSED, 5, 5, 16 / 0.005),
    Truth("fixed=2ms freeze=100ms:1s", CLOSED, 2, 92, 0.9 * 16 / 0.002),
)


@dataclass
class Tally:
    """The runs of a way: their verdicts, their bounds, and those bounds that are wrong."""

    verdicts: Counter[str] = field(default_factory=Counter)
    bounds: int = 0
    wrong: list[str] = field(default_factory=list)


def wrong_bounds(result: Mapping[str, Any], truth: Truth) -> tuple[int, list[str]]:
    """Return how many figures a result bounds, and those bounds that the truth contradicts."""
    bounds = result.get("bounds") or {}
    latency = result["latency_ns"]
    figures = [
        ("p50", "latency", (latency["p50"] or 0) / 1e6, truth.p50_ms),
        ("p99", "latency", (latency["p99"] or 0) / 1e6, truth.p99_ms),
        ("throughput", "throughput", result["throughput"]["ok_per_s"], truth.per_s),
    ]
    count, wrong = 0, []
    for name, kind, said, true in figures:
        direction = bounds.get(kind, "exact")
        count += direction in ("at_most", "at_least")
        bad = (direction == "at_most" and true > said * CLOSE) or (
            direction == "at_least" and true * CLOSE < said
        )
        if bad:
            wrong.append(f"{name} {direction.replace('_', ' ')} {said:.4g}, true {true:.4g}")
    return count, wrong


def play(stage: Stage, way: Hindrance | None, truth: Truth, tally: Tally) -> None:
    """Make one run and enter it."""
    seen = Http(truth.server, truth.flags, way).play(stage)
    tally.verdicts[seen.verdict] += 1
    if "latency_ns" not in seen.result:
        return
    count, wrong = wrong_bounds(seen.result, truth)
    tally.bounds += count
    tally.wrong += [
        f"{each} ({truth.server}, {truth.flags.split(' --warmup')[0]})" for each in wrong
    ]


def main() -> int:
    """Play all ways and print the table."""
    parser = argparse.ArgumentParser(description="Bounds of disturbed runs against the truth.")
    parser.add_argument("--times", type=int, default=5, help="runs of each way (5)")
    options = parser.parse_args()
    tallies = {name: Tally() for name in WAYS}
    try:
        find_setting()
        with open_stage() as stage:
            truths = itertools.cycle(TRUTHS)
            for _ in range(options.times):
                truth = next(truths)
                for name, way in WAYS.items():
                    play(stage, way, truth, tallies[name])
                    print(".", end="", file=sys.stderr, flush=True)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    print(describe())
    print(
        "\n| disturbance | runs | valid, suspect, invalid | bounds | wrong |\n|---|---|---|---|---|"
    )
    for name, tally in tallies.items():
        verdicts = ", ".join(str(tally.verdicts[each]) for each in ("valid", "suspect", "invalid"))
        runs = tally.verdicts.total()
        print(f"| {name} | {runs} | {verdicts} | {tally.bounds} | {len(tally.wrong)} |")
    wrong = [f"{name}: {each}" for name, tally in tallies.items() for each in tally.wrong]
    print("\n".join(["", *wrong]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
