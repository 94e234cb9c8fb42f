"""Our speed against wrk, ab and h2load, side by side in one interleaved run: `make bench`.

The reference server and nginx run on CPU 0 the whole time, idle but for the one under load; the
generators take turns on CPU 1, in an order shuffled for each round by a seed. What each number
means is in bench/README.md. Exit code 0 when every target is met, 1 when one is not, 2 when this
machine cannot run the benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import front
import generators
from cells import CONNECTIONS, OURS, Cell, Turn, memory_cells, schedule, targets
from engine import Work
from front import Front
from generators import Generator
from machine import Machine, describe, missing_programs
from process import BenchError
from results import Mark, Sample, marks, marks_table, memory_table, table
from servers import ROOT, Server, cpu_s_between, nginx, reference

SERVER_CPU, GENERATOR_CPU = 0, 1
MEMORY_DURATION_S = 4.0


def main() -> int:
    """Measures, prints, and says by its exit code whether the targets are met."""
    options = _options()
    binary = engine_path()
    problem = _problem(binary)
    if problem is not None:
        print(f"error: {problem[0]}\nhint: {problem[1]}", file=sys.stderr)
        return 2
    machine = describe()
    turns = schedule(options.rounds, options.seed)
    print(machine)
    print(f"{len(turns)} turns, {options.rounds} rounds, {options.seconds:g} s each\n", flush=True)
    samples, front_cost = _measure(turns, binary, options.seconds)
    marked = marks(samples, targets())
    print("\n".join([*table(samples), "", *memory_table(samples, memory_cells()), ""]))
    print("\n".join(marks_table(marked)))
    if front_cost is not None:
        cost = f"{front_cost.cpu_s:.2f} CPU s in a run of {front_cost.run_s:g} s"
        print(f"\nthe front, apart from the engine and not on its CPU: {cost}")
    if options.json:
        Path(options.json).write_text(json.dumps(_as_json(machine, samples, marked), indent=1))
    return 0 if all(mark.word == "pass" for mark in marked) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our speed against wrk, ab and h2load.")
    parser.add_argument("--rounds", type=int, help="rounds (7; 3 with --quick)")
    parser.add_argument("--seconds", type=float, help="seconds a turn (2; 1 with --quick)")
    parser.add_argument("--seed", type=int, default=1, help="shuffles the turns (1)")
    parser.add_argument(
        "--quick", action="store_true", help="a first impression, in a minute or two"
    )
    parser.add_argument("--json", metavar="FILE", help="write samples and marks there, too")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.seconds = options.seconds or (1.0 if options.quick else 2.0)
    return options


def engine_path() -> Path:
    """The engine under test: `TRUELOAD_ENGINE`, else the build, else the one installed."""
    named = os.environ.get("TRUELOAD_ENGINE")
    beside = Path(sys.executable).parent / "trueload-engine"
    built = ROOT / "target" / "release" / "trueload-engine"
    return Path(named) if named else (built if built.exists() else beside)


def _problem(binary: Path) -> tuple[str, str] | None:
    """What keeps this machine from running the benchmark, and the cure."""
    if len(os.sched_getaffinity(0)) < 2:
        return "the server and the generator need a CPU each", "run it where there are two CPUs"
    if not binary.exists():
        return f"no engine at {binary}", "`make setup` builds it"
    missing = missing_programs()
    if missing:
        return f"not installed: {', '.join(missing)}", "install them with apt-get"
    return None


def _measure(
    turns: Sequence[Turn], binary: Path, seconds: float
) -> tuple[list[Sample], Front | None]:
    """Every turn that could be measured; one that could not is named and left out."""
    tools: dict[str, Generator] = {
        OURS: generators.ours(binary),
        "wrk": generators.wrk,
        "ab": generators.ab,
        "h2load": generators.h2load,
    }
    samples = []
    with (
        tempfile.TemporaryDirectory() as folder,
        reference(binary, SERVER_CPU) as ours,
        nginx(Path(folder), SERVER_CPU) as other,
    ):
        servers = {server.name: server for server in (ours, other)}
        for turn in turns:
            try:
                samples.append(
                    _turn(turn, servers[turn.cell.server], tools[turn.cell.tool], seconds)
                )
            except BenchError as error:
                print(f"{_name(turn.cell)}: left out: {error}", file=sys.stderr)
            _progress(turn, len(samples), len(turns))
        return samples, _front(ours, binary, seconds)


def _front(server: Server, binary: Path, seconds: float) -> Front | None:
    try:
        return front.measure(Work(server.port, CONNECTIONS[0], 1, seconds), binary)
    except BenchError as error:
        print(f"the front: left out: {error}", file=sys.stderr)
        return None


def _turn(turn: Turn, server: Server, generator: Generator, seconds: float) -> Sample:
    cell = turn.cell
    duration_s = MEMORY_DURATION_S if cell.memory else seconds
    before = server.sample()
    took = generator(
        Work(server.port, cell.connections, cell.depth, duration_s), GENERATOR_CPU, cell.memory
    )
    after = server.sample()
    return Sample(
        round=turn.round,
        cell=cell,
        requests=took.requests,
        wall_s=took.wall_s,
        cpu_s=took.cpu_s,
        server_cpu_s=cpu_s_between(before, after),
        peak_rss_bytes=took.peak_rss_bytes,
    )


def _name(cell: Cell) -> str:
    return f"{cell.tool} on {cell.server}, {cell.connections} connections, depth {cell.depth}"


def _progress(turn: Turn, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{total} {_name(turn.cell)}", end="", file=sys.stderr, flush=True)


def _as_json(machine: Machine, samples: Sequence[Sample], marked: Sequence[Mark]) -> object:
    return {
        "machine": asdict(machine),
        "samples": [asdict(sample) for sample in samples],
        "targets": [asdict(mark) | {"mark": mark.word} for mark in marked],
    }


if __name__ == "__main__":
    sys.exit(main())
