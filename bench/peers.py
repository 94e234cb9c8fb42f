"""Our speed against wrk, h2load, ab, oha, hey and k6, side by side in one interleaved run.

The servers run on CPU 0 the whole time, all idle but the one under load. The generators take turns
on CPU 1, one thread each, in random order. bench/README.md says what each number means. Prints
Markdown and, when it has taken enough pairs, writes it into docs/performance.md. Exit code 0 when
no target is missed, 1 when one is, 2 when this machine cannot run the benchmark.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import front
import generators
import many
from built import find_built
from cells import (
    CONNECTIONS,
    CONNECTIONS_QUICK,
    EPOLL,
    NGINX,
    OURS,
    REFERENCE,
    TLS,
    groups,
    schedule,
    targets,
    without,
)
from commanded import ours_by_command
from engine import Work
from generators import Generator
from machine import Machine, absent_programs, describe
from marks import exit_code, mark_table
from page import PERFORMANCE, write_section
from placement import find_placement
from process import BenchError
from results import Sample, marks, memory_table, table
from rounds import ROUNDS, Cast, measure, minutes_of, parse_options, write_samples
from servers import Server, by_command, epoll, nginx, reference
from setting import SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.engine_options import DriverName


def main() -> int:
    """Measure, print, and return an exit code that says whether a target is missed."""
    options = parse_options("Our speed against other generators.")
    options.connections = CONNECTIONS_QUICK if options.quick else CONNECTIONS
    try:
        binary = prepare_setting()
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    with _cast(binary, options.driver, build=not options.quick) as cast:
        return _report(options, binary, cast)


@contextmanager
def _cast(binary: Path, driver: DriverName, build: bool) -> Iterator[Cast]:
    """Start the servers and find the generators that can be had; the servers end with the block."""
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
        built: dict[str, Callable[[Path], Generator]] = {
            "oha": generators.oha,
            "k6": partial(generators.k6, folder=folder),
        }
        for name, generator in built.items():
            try:
                tools[name] = generator(find_built(name, build))
            except BenchError as error:
                absent[name] = str(error)
        secure, placement = ours_by_command(binary, "--insecure"), find_placement()
        yield Cast(servers, tools, secure, absent, driver, placement)


def _report(options: argparse.Namespace, binary: Path, cast: Cast) -> int:
    listed = without(groups(options.connections), cast.absent)
    turns = schedule(listed, options.rounds, options.seed)
    machine, quiet = _describe(cast), Quiet()
    minutes = minutes_of(turns, options.seconds)
    print(f"{machine}\n\n{len(turns)} turns, about {minutes:.0f} min\n", flush=True)
    samples = [*measure(turns, cast, options.seconds)]
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
        write_samples(options.json, machine, samples, marked)
    return exit_code(marked)


def _describe(cast: Cast) -> Machine:
    there = [name for name in ("oha", "k6") if name not in cast.absent]
    return describe({name: (str(find_built(name, build=False)), "--version") for name in there})


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


if __name__ == "__main__":
    sys.exit(main())
