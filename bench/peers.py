"""Our speed against wrk, h2load, ab, oha and hey, side by side in one interleaved run.

The servers run on CPU 0 the whole time, idle but for the one under load; the generators take turns
on CPU 1, one thread each, in orders of chance. What each number means is in bench/README.md. Prints
Markdown and, when it has taken enough pairs, writes it into docs/performance.md. Exit code 0 when
no target is missed, 1 when one is, 2 when this machine cannot run the benchmark.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import front
import generators
import many
from cells import (
    CONNECTIONS,
    CONNECTIONS_QUICK,
    EPOLL,
    NGINX,
    OURS,
    REFERENCE,
    TLS,
    Cell,
    Turn,
    groups,
    schedule,
    targets,
    without,
)
from commanded import ours_by_command
from engine import Work
from generators import Generator
from machine import Machine, absent_programs, describe
from marks import Mark, exit_code, mark_table
from oha import find_oha
from page import PERFORMANCE, write_section
from placement import Placement, Unknown, find_placement
from process import BenchError
from results import Sample, marks, memory_table, table
from servers import Server, by_command, cpu_s_between, epoll, nginx, reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.plan import DriverName

ROUNDS, ROUNDS_QUICK = 15, 3
SECONDS, SECONDS_QUICK = 2.0, 1.0
# A memory turn also connects, which takes a second or so by itself.
MEMORY_DURATION_S = 2.0
# Beside its duration: starting, connecting, ending.
TURN_EXTRA_S = 0.2


@dataclass(frozen=True)
class Cast:
    """Who is there, and why the others are not."""

    servers: Mapping[str, Server]
    tools: Mapping[str, Generator]
    secure_ours: Generator
    absent: Mapping[str, str]
    driver: DriverName
    """Asked of ours, at both ends."""
    placement: Placement | Unknown

    def generator(self, cell: Cell) -> Generator:
        """Ours speaks TLS by its command line."""
        return (
            self.secure_ours if (cell.server, cell.tool) == (TLS, OURS) else self.tools[cell.tool]
        )


def main() -> int:
    """Measures, prints, and says by its exit code whether a target is missed."""
    options = _options()
    try:
        binary = prepare_setting()
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    with _cast(binary, options.driver, build=not options.quick) as cast:
        return _report(options, binary, cast)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our speed against other generators.")
    parser.add_argument("--rounds", type=int, help=f"rounds ({ROUNDS}; {ROUNDS_QUICK} if quick)")
    parser.add_argument("--seconds", type=float, help=f"a turn ({SECONDS:g}; {SECONDS_QUICK:g})")
    parser.add_argument("--seed", type=int, default=1, help="shuffles the turns (1)")
    parser.add_argument("--quick", action="store_true", help="a first look, in three minutes")
    drivers = get_args(DriverName)
    parser.add_argument("--driver", choices=drivers, default="auto", help="of ours, both ends")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md alone")
    parser.add_argument("--json", metavar="FILE", help="write samples and marks there, too")
    options = parser.parse_args()
    options.rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    options.seconds = options.seconds or (SECONDS_QUICK if options.quick else SECONDS)
    options.connections = CONNECTIONS_QUICK if options.quick else CONNECTIONS
    return options


@contextmanager
def _cast(binary: Path, driver: DriverName, build: bool) -> Iterator[Cast]:
    """Every server and every generator that can be had, until the end."""
    absent = absent_programs()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {REFERENCE: stack.enter_context(reference(binary, SERVER_CPU, driver))}
        others = {
            NGINX: nginx(folder, SERVER_CPU),
            EPOLL: epoll(folder, SERVER_CPU),
            TLS: by_command(TLS, binary, SERVER_CPU, "--tls", "--driver", driver),
        }
        for name, other in others.items():
            try:
                if name not in absent:
                    servers[name] = stack.enter_context(other)
            except (BenchError, OSError) as error:
                absent[name] = str(error)
        tools: dict[str, Generator] = {
            OURS: generators.ours(binary),
            "wrk": generators.wrk,
            "h2load": generators.h2load,
            "ab": generators.ab,
            "hey": generators.hey,
        }
        try:
            tools["oha"] = generators.oha(find_oha(build))
        except BenchError as error:
            absent["oha"] = str(error)
        secure, placement = ours_by_command(binary, "--insecure"), find_placement()
        yield Cast(servers, tools, secure, absent, driver, placement)


def _report(options: argparse.Namespace, binary: Path, cast: Cast) -> int:
    listed = without(groups(options.connections), cast.absent)
    turns = schedule(listed, options.rounds, options.seed)
    machine, quiet = _describe(cast), Quiet()
    minutes = sum(_duration_s(turn, options.seconds) + TURN_EXTRA_S for turn in turns) / 60
    print(f"{machine}\n\n{len(turns)} turns, about {minutes:.0f} min\n", flush=True)
    samples = [*_measure(turns, cast, options.seconds)]
    many_marks, many_lines = many.marks(binary)
    marked = [*marks(samples, targets(options.connections), cast.absent), *many_marks]
    lines = [
        str(machine),
        "",
        f"Medians of {options.rounds} rounds of turns of {options.seconds:g} s. {quiet}",
        f"{cast.placement}",
        "",
        *mark_table(marked),
        "",
        *table(samples, listed),
        "",
        *memory_table(samples, [cell for group in listed for cell in group if cell.memory]),
        "",
        _driver_line(samples, cast.servers[REFERENCE]),
        *many_lines,
        *_front_line(cast.servers[REFERENCE], binary, options.seconds),
    ]
    print("\n".join(lines))
    if options.rounds >= ROUNDS and not options.no_page:
        write_section(PERFORMANCE, "peers", lines)
    if options.json:
        Path(options.json).write_text(json.dumps(_as_json(machine, samples, marked), indent=1))
    return exit_code(marked)


def _describe(cast: Cast) -> Machine:
    if "oha" in cast.absent:
        return describe()
    return describe({"oha": (str(find_oha(build=False)), "--version")})


def _measure(turns: Sequence[Turn], cast: Cast, seconds: float) -> Iterator[Sample]:
    """Every turn that could be measured; one that could not is named and left out."""
    for number, turn in enumerate(turns):
        try:
            yield cast.placement.measured(partial(_turn, turn, cast, seconds))
        except BenchError as error:
            print(f"{turn.cell}: left out: {error}", file=sys.stderr)
        _progress(turn, number + 1, len(turns))


def _turn(turn: Turn, cast: Cast, seconds: float) -> Sample:
    cell, server = turn.cell, cast.servers[turn.cell.server]
    duration_s = _duration_s(turn, seconds)
    work = Work(
        port=server.port,
        connections=cell.connections,
        depth=cell.depth,
        duration_s=duration_s,
        scheme=server.scheme,
        driver=cast.driver,
    )
    before = server.sample()
    took = cast.generator(cell)(work, GENERATOR_CPU, cell.memory)
    after = server.sample()
    return Sample(
        round=turn.round,
        cell=cell,
        requests=took.requests,
        wall_s=took.wall_s,
        cpu_s=took.cpu_s,
        server_cpu_s=cpu_s_between(before, after),
        peak_rss_bytes=took.peak_rss_bytes,
        driver=took.driver,
    )


def _duration_s(turn: Turn, seconds: float) -> float:
    return MEMORY_DURATION_S if turn.cell.memory else seconds


def _driver_line(samples: Sequence[Sample], server: Server) -> str:
    drivers = sorted({sample.driver for sample in samples if sample.driver})
    return f"Our generator ran on {' and '.join(drivers)}, the reference server on {server.driver}."


def _front_line(server: Server, binary: Path, seconds: float) -> list[str]:
    try:
        cost = front.measure(Work(server.port, CONNECTIONS[0], 1, seconds), binary)
    except BenchError as error:
        return [f"The front was not measured: {error}"]
    apart = f"{cost.cpu_s:.2f} CPU s in a run of {cost.run_s:g} s"
    return [f"The front, apart from the engine and not on its CPU: {apart}."]


def _progress(turn: Turn, done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\x1b[K{done}/{total} {turn.cell}", end=end, file=sys.stderr, flush=True)


def _as_json(machine: Machine, samples: Sequence[Sample], marked: Sequence[Mark]) -> object:
    return {
        "machine": asdict(machine),
        "samples": [asdict(sample) for sample in samples],
        "targets": [asdict(mark) | {"mark": mark.word} for mark in marked],
    }


if __name__ == "__main__":
    sys.exit(main())
