"""Our speed over HTTP/2 against h2load, side by side in one interleaved run.

Each has one thread on a CPU of its own, as in `peers.py`. Measured are 1, 10 and 100 streams per
connection against the reference server and nginx in plain text; TLS; bodies of 64 KiB; the memory
of many streams; and the reference server's CPU beside nginx's, both under h2load. Ours uses its
default flow-control windows (`browser`), h2load its own of 1 GiB. `bare_http2.c`, a loop over
io_uring that only counts the ends of streams, shows how much of the cost is the kernel's. Exit
codes are those of `peers.py`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import generators
from cells import NGINX, OURS, REFERENCE, TLS, Cell, Target, schedule, without
from commanded import ours_by_command
from machine import absent_programs, describe
from marks import Limit, exit_code, mark_table
from page import PERFORMANCE, write_section
from placement import find_placement
from process import BenchError, built
from results import marks, memory_table, table
from rounds import ROUNDS, Cast, measure, minutes_of, parse_options, write_samples
from servers import Server, by_command, nginx_http2
from setting import SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.engine_options import DriverName

H2LOAD, BARE = "h2load", "a bare loop"
BODIES = "reference, 64 KiB"
BODY_PATH = "/bytes/65536"
CONNECTIONS = (8, 64)
STREAMS = (1, 10, 100)
# CPU per request, ours / h2load's, by streams per connection.
CPU_MOST = {1: 0.65, 10: 0.45, 100: 0.45}
TLS_STREAMS, TLS_MOST = 10, 0.60
# The target is 1.3 times h2load's bytes per CPU second.
BODY_STREAMS, BODY_MOST = 10, 1 / 1.3
MANY, MANY_STREAMS, MEMORY_MOST = 1_000, 10, 0.15
SERVER_STREAMS, SERVER_MOST = 100, 0.35


def groups() -> list[list[Cell]]:
    """List every group that is measured in rounds."""
    loads = [
        (server, connections, streams)
        for server in (REFERENCE, NGINX)
        for connections in CONNECTIONS
        for streams in STREAMS
    ]
    plain = [Cell(*load, OURS) for load in loads]
    others = [
        Cell(TLS, CONNECTIONS[-1], TLS_STREAMS, OURS),
        Cell(BODIES, CONNECTIONS[0], BODY_STREAMS, OURS),
        Cell(REFERENCE, MANY, MANY_STREAMS, OURS, memory=True),
    ]
    return [
        *([cell, cell.by(H2LOAD), cell.by(BARE)] for cell in plain),
        *([cell, cell.by(H2LOAD)] for cell in others),
    ]


def targets() -> list[Target]:
    """List the promised ratios, each with its limit."""
    listed = []
    for connections in CONNECTIONS:
        for streams in STREAMS:
            for server in (REFERENCE, NGINX):
                cell = Cell(server, connections, streams, OURS)
                listed.append(_against_h2load(cell, CPU_MOST[streams]))
            if streams == SERVER_STREAMS:
                cell = Cell(REFERENCE, connections, streams, H2LOAD)
                what = f"reference server's CPU per request / nginx's, {_load(cell)}, under h2load"
                listed.append(Target(what, "server", cell, cell.of(NGINX), Limit(SERVER_MOST)))
    listed.append(_against_h2load(Cell(TLS, CONNECTIONS[-1], TLS_STREAMS, OURS), TLS_MOST))
    listed.append(_against_h2load(Cell(BODIES, CONNECTIONS[0], BODY_STREAMS, OURS), BODY_MOST))
    memory = Cell(REFERENCE, MANY, MANY_STREAMS, OURS, memory=True)
    what = f"peak memory / h2load's, {_load(memory)}"
    listed.append(Target(what, "memory", memory, memory.by(H2LOAD), Limit(MEMORY_MOST)))
    return listed


def _against_h2load(cell: Cell, most: float) -> Target:
    what = f"CPU per request / h2load's, {cell.server}, {_load(cell)}"
    return Target(what, "generator", cell, cell.by(H2LOAD), Limit(round(most, 3)))


def _load(cell: Cell) -> str:
    streams = "1 stream" if cell.depth == 1 else f"{cell.depth} streams each"
    return f"{cell.connections:,} connections, {streams}"


@contextmanager
def _cast(binary: Path, driver: DriverName) -> Iterator[Cast]:
    """Start the servers and find the generators that can be had; the servers end with the block."""
    absent = absent_programs()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        flags = ("--http", "2", "--driver", driver)
        offered = {
            REFERENCE: by_command(REFERENCE, binary, SERVER_CPU, *flags),
            TLS: by_command(TLS, binary, SERVER_CPU, "--tls", *flags),
            NGINX: nginx_http2(folder, SERVER_CPU),
        }
        servers: dict[str, Server] = {}
        for name, server in offered.items():
            try:
                if name not in absent:
                    servers[name] = stack.enter_context(server)
            except (BenchError, OSError) as error:
                absent[name] = str(error)
        if REFERENCE in servers:
            servers[BODIES] = replace(servers[REFERENCE], name=BODIES, path=BODY_PATH)
        plain = partial(ours_by_command, binary, "--http", "2", at_once="--streams")
        tools = {OURS: plain(), H2LOAD: generators.h2load_http2}
        try:
            built(["gcc", "-O2", "-o", str(folder / "bare"), "bare_http2.c", "-luring"])
            tools[BARE] = generators.bare_http2(folder / "bare")
        except BenchError as error:
            absent[BARE] = str(error)
        yield Cast(servers, tools, plain("--insecure"), absent, driver, find_placement())


def main() -> int:
    """Measure, print, and return an exit code that says whether a target is missed."""
    options = parse_options("Our speed over HTTP/2 against h2load.")
    try:
        binary = prepare_setting()
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    with _cast(binary, options.driver) as cast:
        listed = without(groups(), cast.absent)
        turns = schedule(listed, options.rounds, options.seed)
        machine, quiet, minutes = describe(), Quiet(), minutes_of(turns, options.seconds)
        print(f"{len(turns)} turns, about {minutes:.0f} min\n", flush=True)
        samples = [*measure(turns, cast, options.seconds)]
    marked = marks(samples, targets(), cast.absent)
    lines = [
        str(machine),
        "",
        f"Medians of {options.rounds} rounds of turns of {options.seconds:g} s. {quiet}",
        f"{cast.placement} Depth is the number of streams on each connection.",
        "",
        *mark_table(marked),
        "",
        *table(samples, listed),
        "",
        *memory_table(samples, [cell for group in listed for cell in group if cell.memory]),
    ]
    print("\n".join(lines))
    if options.rounds >= ROUNDS and not options.no_page:
        write_section(PERFORMANCE, "http2", lines)
    if options.json:
        write_samples(options.json, machine, samples, marked)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
