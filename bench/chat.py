"""Are the times of a conversation true? Compared with the log of a chat that answers late.

Each run starts a chat on CPU 0 that holds every answer back for 5 to 40 ms, as its seed draws, and
logs when each message came and when its answer was sent. Our generator has 100 conversations of 20
messages, 32 at a time, on CPU 1. The log's messages are counted, and its p50 and p99 compared with
those of the run: the buckets of a step are 2 % wide. A run's times have those of its handshakes,
which are shorter than any answer, so they are put before the log's. Ours may be longer by the way
of a message and of its answer, which the log does not see.

Target: in 20 of 20 runs the counts are equal, and both percentiles are within 2 % or 50 us. Prints
Markdown with marks. Exit code 1 if the target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from commanded import run_http
from machine import describe
from marks import Limit, exit_code, mark, mark_table
from process import BenchError, prepare
from setting import SERVER_CPU, Quiet, SettingError, prepare_setting
from websockets.asyncio.server import ServerConnection, serve

RUNS = 20
CONNECTIONS, CONVERSATIONS, MESSAGES = 32, 100, 20
HELD_S = (0.005, 0.040)
SHARE, SLACK_NS = 0.02, 50_000
QUANTILES = (50, 99)
READY_S, PATIENCE_S = 20.0, 60.0
SCENARIO = f"""
[[step]]
name = "say"
send = "{{counter}} {{repeat}}"
expect = "text:{{counter}} {{repeat}}"
repeat = {MESSAGES}
"""


@dataclass(frozen=True)
class Run:
    """A run: messages and percentiles, of the chat's log and ours."""

    logged: int
    counted: int
    truth_ns: tuple[int, ...]
    ours_ns: tuple[int, ...]

    @property
    def is_right(self) -> bool:
        """Whether the counts are equal and the percentiles near enough."""
        pairs = zip(self.truth_ns, self.ours_ns, strict=True)
        near = all(abs(ours - true) <= max(SHARE * true, SLACK_NS) for true, ours in pairs)
        return near and self.logged == self.counted

    @property
    def row(self) -> str:
        """A row of the table."""
        pairs = zip(self.truth_ns, self.ours_ns, strict=True)
        times = [f"{ns / 1e6:.2f}" for pair in pairs for ns in pair]
        cells = [f"{self.logged:,}", f"{self.counted:,}", *times, "yes" if self.is_right else "no"]
        return f"| {' | '.join(cells)} |"


async def _chat(seed: int) -> None:
    """Serve until SIGTERM; print the port at first, and the log in the end."""
    log, random, over = list[int](), Random(seed), asyncio.Event()

    async def talk(connection: ServerConnection) -> None:
        async for message in connection:
            came_ns = time.monotonic_ns()
            await asyncio.sleep(random.uniform(*HELD_S))
            log.append(time.monotonic_ns() - came_ns)
            await connection.send(message)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with serve(talk, "127.0.0.1", 0, compression=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await over.wait()
    print(json.dumps(log), flush=True)


@contextmanager
def _chatting(seed: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the port of a chat, and a list that has its log afterwards."""
    command, log = [sys.executable, __file__, "--serve", str(seed)], list[int]()
    prepared = prepare(SERVER_CPU)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=prepared) as chat:
        try:
            assert chat.stdout is not None
            yield int(chat.stdout.readline()), log
            chat.terminate()
            log += json.loads(chat.communicate(timeout=READY_S)[0])
        finally:
            chat.kill()


def percentile(values: Sequence[int], quantile: int) -> int:
    """Return the smallest value that so many percent of all do not exceed."""
    return sorted(values)[ceil(len(values) * quantile / 100) - 1]


def _ours(record: dict[str, Any]) -> tuple[int, int, tuple[int, ...]]:
    """Return the messages, the handshakes, and the percentiles of both."""
    connects, says = (step["counts"]["ok"] for step in record["targets"])
    return says, connects, tuple(record["latency_ns"][f"p{each}"] for each in QUANTILES)


def measure(binary: Path, seed: int) -> Run:
    """Have the conversations once. Raises ``BenchError`` if that fails."""
    with tempfile.TemporaryDirectory() as folder, _chatting(seed) as (port, log):
        file = Path(folder) / "chat.toml"
        file.write_text(SCENARIO)
        flags = ["-c", str(CONNECTIONS), "--requests", str(CONVERSATIONS), "--scenario", str(file)]
        done = run_http(binary, f"ws://127.0.0.1:{port}/", flags, PATIENCE_S, "ws")
    counted, connects, ours_ns = _ours(done.record)
    all_ns = [0] * connects + log
    return Run(len(log), counted, tuple(percentile(all_ns, each) for each in QUANTILES), ours_ns)


def main() -> int:
    """Measure, print Markdown, and judge the target."""
    parser = argparse.ArgumentParser(description="Times of conversations against a chat's log.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs ({RUNS})")
    parser.add_argument("--serve", type=int, metavar="SEED", help="be the chat")
    options = parser.parse_args()
    if options.serve is not None:
        asyncio.run(_chat(options.serve))
        return 0
    quiet = Quiet()
    try:
        binary = prepare_setting()
        runs = [measure(binary, seed) for seed in range(options.runs)]
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    right = sum(run.is_right for run in runs)
    what = "runs whose counts are equal, and p50 and p99 within 2 % or 50 us"
    limit = Limit(options.runs, at_least=True)
    marked = [mark(what, limit, right, f"{right} of {options.runs}")]
    print(describe({}), f"\n{quiet}\n", sep="\n")
    print("| logged | counted | p50, log | p50, ours | p99, log | p99, ours (ms) | right |")
    print("|--:|--:|--:|--:|--:|--:|---|", *(run.row for run in runs), "", sep="\n")
    print(*mark_table(marked), sep="\n")
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
