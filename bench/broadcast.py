"""What it costs to receive a broadcast: CPU per delivered message of about 300 bytes.

Servers run on CPU 0, clients on CPU 1. Messages arrive in two ways. *Piled up*: many in one read,
from a server that holds them back (`coalescing.py`). *Each by itself*: from the reference server,
with one message in flight. In each way our engine takes turns with clients written for this
benchmark: one goroutine per connection (Go, gorilla), as in the published method, and one task per
connection (Python, websockets). Where each message comes by itself there is a third: a loop that
only reads and counts bytes (`bare_receive.c`). Each ratio is of two runs in the same round.

Targets:

- Piled up, at most 0.15 µs per delivery.
- Each by itself, at most 1.1 times the bare loop: there the kernel is the cost.
- A client with a goroutine or task per connection costs at least ten times ours. Go is judged piled
  up, where the client is the cost; Python is judged each by itself.
- 15,000 clients of the reference server receive every message once, and our CPU is not the limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from broadcasts import Cost, Shape, bare, build_bare, build_gorilla, gorilla, ours, tasks
from engine import serving
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from process import BENCH, BenchError, prepare
from results import Spread, shown_ratio, spread
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.exchange import ServeWs

ROUNDS = 15
PILED, ALONE = Shape(200, 2_000, 200), Shape(1_000, 100, 1)
MANY = Shape(15_000, 40, 4)
PILED_MOST = Limit(0.15, unit=" µs")
BARE_MOST = Limit(1.1)
PER_TASK_LEAST = Limit(10, at_least=True)
SHARE_MOST = Limit(80, unit=" %")
OURS, BARE, GO, PYTHON = "trueload", "bare loop", "Go, a goroutine each", "Python, a task each"

Client = Callable[[int, Shape], Cost]
Costs = dict[str, list[Cost]]


@contextmanager
def piling(enough: int) -> Iterator[int]:
    """Run the server that lets messages pile up; yields its port."""
    command = [sys.executable, str(BENCH / "coalescing.py"), str(enough)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=prepare(SERVER_CPU),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()


def rounds(clients: Mapping[str, Client], port: int, shape: Shape, count: int) -> Costs:
    """Run all clients `count` times, rotating their order from round to round."""
    found: Costs = {name: [] for name in clients}
    names = list(clients)
    for number in range(count):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(clients[name](port, shape))
    return found


def ratios(found: Costs, one: str, two: str) -> Spread | None:
    """The ratio of two clients' CPU per delivery, taken within each round."""
    pairs = zip(found.get(one, ()), found.get(two, ()), strict=False)
    return spread([first.ns_per_delivery / second.ns_per_delivery for first, second in pairs])


def judge_ratio(found: Costs, one: str, two: str, limit: Limit, how: str) -> Mark:
    """Judge the ratio of two clients against its limit."""
    what, measured = f"CPU per delivery, {how}: {one} / {two}", ratios(found, one, two)
    if measured is None:
        return mark(what, limit, None, "one of the two could not be had")
    return mark(what, limit, measured.middle, shown_ratio(measured))


def judge_piled(found: Costs) -> Mark:
    """Judge the cost of a delivery when many come in one read."""
    costs = spread([cost.ns_per_delivery / 1e3 for cost in found[OURS]])
    assert costs is not None
    shown = f"{costs.middle:.3f} µs ({costs.least:.3f} to {costs.most:.3f})"
    return mark("CPU per delivery, piled up", PILED_MOST, costs.middle, shown)


def judge_many(cost: Cost | None, why: str) -> list[Mark]:
    """Judge the run with many clients; if there is no cost, `why` is the reason."""
    share = None if cost is None else cost.cpu_share * 100
    had = None if cost is None else float(MANY.clients)
    each = f"{MANY.clients:,} clients, each message once"
    least = Limit(MANY.clients, at_least=True)
    shown = why if cost is None else f"{MANY.clients:,}, {cost.per_s:,.0f} deliveries/s"
    return [
        mark(each, least, had, shown),
        mark("our share of a CPU with them", SHARE_MOST, share, why or f"{share:.0f} %"),
    ]


def rows(how: str, shape: Shape, found: Costs) -> list[str]:
    """One table row per client, with its cost relative to ours."""
    listed = []
    for name, costs in found.items():
        if costs:
            own = f"{median(cost.ns_per_delivery for cost in costs) / 1e3:.3f}"
            rate = f"{median(cost.per_s for cost in costs):,.0f}"
            ratio = ratios(found, name, OURS)
            last = "" if ratio is None or name == OURS else shown_ratio(ratio)
            shown = f"{shape.clients:,} clients, {shape.concurrent} in flight"
            listed.append(f"| {how}, {shown} | {name} | {own} | {rate} | {last} |")
    return listed


def others(folder: Path) -> tuple[dict[str, Client], list[str]]:
    """Return the other clients that can be run here, and the reasons why some cannot."""
    there: dict[str, Client] = {PYTHON: lambda port, shape: tasks(GENERATOR_CPU, port, shape)}
    absent = []
    try:
        loop = build_bare(folder)
        there[BARE] = lambda port, shape: bare(loop, GENERATOR_CPU, port, shape)
    except BenchError as error:
        absent.append(f"{BARE}: {error}")
    try:
        program = build_gorilla(folder)
        there[GO] = lambda port, shape: gorilla(program, GENERATOR_CPU, port, shape)
    except BenchError as error:
        absent.append(f"{GO}: {error}")
    return there, absent


def measure(binary: Path, count: int) -> tuple[Costs, Costs, Cost | None, list[str]]:
    """Run everything: piled up, each by itself, many clients; also return what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        there, missing = others(Path(folder))
        clients = {OURS: lambda port, shape: ours(binary, GENERATOR_CPU, port, shape), **there}
        heaped = {name: client for name, client in clients.items() if name != BARE}
        with piling(PILED.concurrent) as port:
            piled = rounds(heaped, port, PILED, count)
        with serving(binary, SERVER_CPU, service=ServeWs(dialect="json")) as (port, _, _):
            alone = rounds(clients, port, ALONE, count)
            try:
                many = ours(binary, GENERATOR_CPU, port, MANY)
            except BenchError as error:
                many = None
                missing.append(f"{MANY.clients:,} clients: {error}")
    return piled, alone, many, missing


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU per delivery of a broadcast.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        piled, alone, many, missing = measure(prepare_setting(), options.rounds)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = [
        judge_piled(piled),
        judge_ratio(alone, OURS, BARE, BARE_MOST, "each by itself"),
        judge_ratio(piled, GO, OURS, PER_TASK_LEAST, "piled up"),
        judge_ratio(alone, PYTHON, OURS, PER_TASK_LEAST, "each by itself"),
        *judge_many(many, "" if many else missing[-1]),
    ]
    head = "| messages come | client | CPU µs/delivery | deliveries/s | its / ours |"
    body = [*rows("piled up", PILED, piled), *rows("each by itself", ALONE, alone)]
    runs = f"Medians of {options.rounds} rounds. {quiet}"
    lines = [str(describe()), "", *missing, runs, "", head, "|---|---|--:|--:|--:|", *body, ""]
    lines += mark_table(marked)
    print("\n".join(lines))
    if options.rounds >= ROUNDS and not options.no_page:
        write_section(ACCURACY, "broadcast", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
