"""``trueload serve``: the reference server, with a count of what it saw at the end.

How: the engine serves. This command waits for its lines, prints where it listens, and ends it on
the first signal. It must start quickly, as suites start it as a subject. So nothing of the
statistics, the store or the terminal is imported here.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trueload.commands.flags import command
from trueload.commands.protocols import PROTOCOLS, Server
from trueload.commands.serve_flags import reader_of_serving
from trueload.errors import ExitCode
from trueload.files import outputs
from trueload.interrupt import Interrupt
from trueload.places.names import ThisMachine
from trueload.units import counted, format_count

if TYPE_CHECKING:
    from trueload.commands.serve import Serving
    from trueload.engines.engine import Engine
    from trueload.protocol.plan import Ready, Serve, Served
    from trueload.protocol.server_report import ServerReport

HELP = """Run the reference server for {of} until Ctrl-C.

{what} At the end, it reports what it saw.

Example: trueload serve {example}
"""


def register(app: typer.Typer) -> None:
    """Add the command and its protocols."""
    serve = typer.Typer(help="Run a reference server.")
    for name, protocol in PROTOCOLS.items():
        server = protocol.server
        help_text = HELP.format(of=server.of, what=server.what, example=f"{name} {server.example}")
        serve.command(name, help=help_text)(command(reader_of_serving(name), run_server))
    app.add_typer(serve, name="serve")


def run_server(serving: Serving) -> int:
    """Serve until told to end."""
    from trueload.commands.serve import begin, end, write_certificate
    from trueload.engines.binary import find_engine
    from trueload.engines.engine import Engine, EngineError
    from trueload.places.open import open_place

    plan = serving.plan
    if plan.cpus and isinstance(serving.place, ThisMachine):
        # Pin the engine's own main thread there too, so that the whole process counts as pinned.
        os.sched_setaffinity(0, plan.cpus)
    with Interrupt() as interrupt, contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(open_place(serving.place, find_engine()))
            with Engine.start(place) as engine:
                ready = begin(engine, serving, interrupt)
                written = write_certificate(ready, stack)
                _announce(ready, serving, written)
                served = _serve(engine, interrupt)
                seen = _record(engine, plan)
                served = end(engine) or served
        except EngineError as error:
            raise error.as_user_error("while serving") from error
    server = PROTOCOLS[serving.loaded_by].server
    _report(served, seen, ready, plan, server, serving.json_path)
    return ExitCode.OK


def _announce(ready: Ready | None, serving: Serving, certificate: Path | None) -> None:
    from trueload.commands.serve import loading_command, url_of

    if ready is None:
        return
    plan = serving.plan
    sys.stderr.write(f"listening on {url_of(ready, serving)}\n")
    sys.stderr.write(f"load it with: {loading_command(ready, serving, certificate)}\n")
    if plan.driver not in ("auto", ready.driver):
        sys.stderr.write(f"note: the driver is {ready.driver} ({ready.driver_note})\n")
    sys.stderr.flush()


def _serve(engine: Engine, interrupt: Interrupt) -> Served | None:
    """Wait for a signal, or the engine's own end; return the last counts."""
    from trueload.commands.serve import POLL_S
    from trueload.engines.engine import EngineError
    from trueload.protocol.plan import Done, Error, Served

    served: Served | None = None
    while not interrupt.requested:
        message = engine.receive(POLL_S)
        if isinstance(message, Served):
            served = message
        elif isinstance(message, Error):
            raise EngineError("engine", f"the engine: {message.message}")
        elif isinstance(message, Done):
            raise EngineError("engine", f"the engine ended by itself: {message.why}")
    return served


def _record(engine: Engine, plan: Serve) -> ServerReport | None:
    """Return what was seen of the clients from start to end, if it was recorded."""
    from trueload.commands.serve import STOP_S
    from trueload.engines.engine import seen_since_mark
    from trueload.protocol.exchange import ServeHttp

    if not (isinstance(plan.service, ServeHttp) and plan.service.record):
        return None
    return seen_since_mark(engine, "all", STOP_S)


class _Count(int):
    """A count whose format is its noun: ``{requests:request}``."""

    def __format__(self, noun: str) -> str:
        return counted(self, noun) if noun else format_count(self)


def _work(served: Served, plan: Serve, server: Server) -> str:
    """Return what was done, and on how many connections if there are any."""
    counts = {name: _Count(count) for name, count in served if isinstance(count, int)}
    work = server.done.format_map(counts)
    if served.deliveries:
        work += f" and {counted(served.deliveries, 'delivery', 'deliveries')}"
    if not server.has_connections:
        return work
    return (
        f"{work} on {counted(served.accepted, 'connection')} ({served.open_peak:,} at once);"
        f" {served.malformed:,} malformed, {served.aborted:,} aborted{_ended(served)}"
        f"{_handshakes(served, plan)}"
    )


def _ended(served: Served) -> str:
    """Return which connections the server ended by itself, if any."""
    ended = {"timed out": served.timed_out, "refused": served.refused}
    return "".join(f", {count:,} {how}" for how, count in ended.items() if count)


def _handshakes(served: Served, plan: Serve) -> str:
    if plan.tls is None:
        return ""
    return (
        f"; {counted(served.handshakes_full, 'full handshake')},"
        f" {served.handshakes_resumed:,} resumed, {served.tls_failed:,} failed"
    )


def _report(
    served: Served | None,
    seen: ServerReport | None,
    ready: Ready | None,
    plan: Serve,
    server: Server,
    json_path: Path | None,
) -> None:
    if served is not None:
        sys.stderr.write(f"{_work(served, plan, server)}\n")
    if seen is not None:
        from trueload.report.server_report import seen_lines  # late: a server starts quicker so

        sys.stderr.write("".join(f"  {line}\n" for line in seen_lines(seen)))
    if json_path is not None:
        counts = None if served is None else served.model_dump(mode="json", exclude={"type"})
        if counts is not None and ready is not None:
            counts |= {"driver": ready.driver, "driver_note": ready.driver_note}
        if counts is not None and seen is not None:
            counts |= {"record": seen.model_dump(mode="json", exclude={"type", "id"})}
        outputs.write_text(json_path, json.dumps(counts) + "\n")
