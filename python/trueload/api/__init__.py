"""``import trueload``: the commands that measure, as functions.

How: arguments become the words of a command line (``cli.words``), which the command's own code
parses and runs. What it would print is returned as a typed result. So an option is declared once,
and there is one way to measure. Nothing is printed. A signal ends a measurement as on the command
line and what was measured is saved. Then the signal goes to the handler that was installed before:
Ctrl-C becomes a ``KeyboardInterrupt``. A function blocks until its result is there, also in a
thread and under a running asyncio loop. Nothing here needs the main thread or a loop.

Must not know: what any option means.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from trueload.api.options import (
    AbOptions,
    HttpOptions,
    ServeHttpOptions,
    ServeOptions,
    ServeWsOptions,
    SuiteOptions,
    TcpOptions,
    UdpOptions,
    WsOptions,
)
from trueload.api.results.result import Result, Search
from trueload.api.signatures import naming
from trueload.errors import ExitCode, UserError

if TYPE_CHECKING:
    from trueload.api.results.ab import AbResult
    from trueload.api.results.suite import SuiteResult
    from trueload.api.server import Server
    from trueload.commands.job import Job, Saved
    from trueload.commands.words import Words
    from trueload.interrupt import Interrupt
    from trueload.store.runs import Run

__all__ = [
    "NothingMeasuredError",
    "Server",
    "ab",
    "http",
    "load",
    "runs",
    "serve",
    "suite",
    "tcp",
    "udp",
    "ws",
]

# Options of what is printed; a caller of a function cannot use them.
_OF_PRINTING = {
    "json": "call .to_dict() of the result",
    "format": "print the result, or call .to_dict() of it",
    "quiet": "leave it out: nothing is printed",
    "no_live": "leave it out: nothing is printed",
    "live": "leave it out: nothing is printed",
}
_OF_SUITES = {
    **_OF_PRINTING,
    "published": "trueload runs export RUN --published",
    "dry_run": "`trueload suite run NAME --dry-run` prints the plan",
}


class NothingMeasuredError(UserError):
    """No connection became usable; ``result`` holds what is known all the same."""

    def __init__(self, why: UserError, result: Result) -> None:
        super().__init__(why.message, why.hint, why.exit_code)
        self.result = result


@naming(HttpOptions)
def http(url: str | None = None, /, **options: Unpack[HttpOptions]) -> Result:
    """Load an HTTP server: ``http("http://127.0.0.1:8080/", connections=64, duration=5)``.

    Options are those of `trueload http --help`, with ``_`` for ``-``. A ``body`` that is a dict or
    a list is sent as JSON. Raises ``UserError``.
    """
    from trueload.api.body import with_json_body

    return _loaded("http", url, with_json_body(options))


@naming(WsOptions)
def ws(url: str, /, **options: Unpack[WsOptions]) -> Result:
    """Load a WebSocket server: ``ws("ws://127.0.0.1:8080/ws", mode="broadcast", step=100)``.

    Options are those of `trueload ws --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return _loaded("ws", url, options)


@naming(TcpOptions)
def tcp(where: str, /, **options: Unpack[TcpOptions]) -> Result:
    """Load a TCP echo server: ``tcp("127.0.0.1:9000", size=64, duration=5)``.

    Options are those of `trueload tcp --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return _loaded("tcp", where, options)


@naming(UdpOptions)
def udp(where: str, /, **options: Unpack[UdpOptions]) -> Result:
    """Load a UDP echo server: ``udp("127.0.0.1:9000", size=64, duration=5)``.

    Options are those of `trueload udp --help`, with ``_`` for ``-``. Raises ``UserError``.
    """
    return _loaded("udp", where, options)


@naming(AbOptions)
def ab(url_a: str, url_b: str, /, **options: Unpack[AbOptions]) -> AbResult:
    """Compare two servers by alternating pairs of trials: ``ab(url_a, url_b, duration=5)``.

    A side is a URL or a subject's name. Options are those of `trueload ab --help`, with ``_`` for
    ``-``; ``repeat`` is the number of pairs. A subject that must be built first is reported on
    stderr, as by the command. Raises ``UserError``.
    """
    from trueload.api.body import with_json_body
    from trueload.api.results.ab import AbResult
    from trueload.commands.ab import measure_ab, read_ab
    from trueload.commands.job import announce, nothing_measured
    from trueload.commands.words import understand
    from trueload.engines.engine import find_engine
    from trueload.interrupt import Interrupt
    from trueload.metrics.exports import exporting
    from trueload.report.live import unwatched

    asked = with_json_body(options)
    understood = understand(("ab",), read_ab, (url_a, url_b), asked, _OF_PRINTING)
    find_engine()
    job = understood.meaning.quietly(understood.words)
    interrupt = Interrupt()
    try:
        with (
            interrupt,
            exporting(job.jobs[0].metrics, {"command": "ab"}, interrupt, announce) as exports,
        ):
            done, saved = measure_ab(job, interrupt, watch=exports.beside(unwatched))
    finally:
        interrupt.hand_on()
    _warn(saved, stacklevel=3)
    for turn, record in done.taken:
        if record.connections.established == 0:
            why = nothing_measured(job.jobs["ab".index(turn.letter)], record)
            raise NothingMeasuredError(why, Result(records=(record,), run_id=saved.run_id))
    if not done.pairs:
        raise UserError("it was ended before a pair was whole", "measure again")
    return AbResult(done, saved.run_id)


@naming(SuiteOptions)
def suite(name: str | None = None, /, **options: Unpack[SuiteOptions]) -> SuiteResult:
    """Run a suite of the catalogue, or of a file: ``suite("http-servers", subjects=["go"])``.

    Options are those of `trueload suite run --help`, with ``_`` for ``-``. Progress is shown on
    stderr, as by the command. Raises ``UserError``.
    """
    from trueload.api.results.suite import SuiteResult
    from trueload.commands.suite import execute, read_suite, start_suite
    from trueload.commands.words import understand
    from trueload.suites.execute import Execution

    understood = understand(("suite", "run"), read_suite, (name,), options, _OF_SUITES)
    done: list[SuiteResult] = []
    asked: list[Interrupt] = []

    def finish(work: Execution, interrupt: Interrupt) -> int:
        asked.append(interrupt)
        run = execute(work, interrupt)
        done.append(SuiteResult.read(work.store, run))
        return ExitCode.OK

    try:
        start_suite(replace(understood.meaning, words=understood.words), finish)
    finally:
        for interrupt in asked:
            interrupt.hand_on()
    return done[0]


@overload
def serve(protocol: Literal["http"] = "http", /, **options: Unpack[ServeHttpOptions]) -> Server: ...
@overload
def serve(protocol: Literal["ws"], /, **options: Unpack[ServeWsOptions]) -> Server: ...
@overload
def serve(protocol: Literal["tcp", "udp"], /, **options: Unpack[ServeOptions]) -> Server: ...
@naming(ServeHttpOptions, ServeWsOptions)
def serve(protocol: str = "http", /, **options: Any) -> Server:
    """A reference server for a ``with`` block: ``with serve("http") as server: http(server.url)``.

    ``protocol`` is ``http``, ``ws``, ``tcp`` or ``udp``. Options are those of `trueload serve http
    --help` and so on, with ``_`` for ``-``. The server listens on a free port unless ``listen``
    names an address.
    """
    from trueload.api.server import Server
    from trueload.commands.serve import SERVERS
    from trueload.commands.words import understand

    if protocol not in SERVERS:
        known = ", ".join(SERVERS)
        raise UserError(f"there is no reference server '{protocol}'", f"it is one of {known}")
    options = {"listen": "127.0.0.1:0", **options}
    understood = understand(("serve", protocol), SERVERS[protocol].read, (), options, _OF_PRINTING)
    return Server(understood.meaning)


def runs() -> list[Run]:
    """Return every run in the store, oldest first."""
    from trueload.store.runs import Store

    with Store.open() as store:
        return store.runs()


def load(run: str = "last", /) -> Result | SuiteResult | AbResult:
    """Return a run of the store. Raises ``UserError``.

    ``run`` is its id, the start of its id, or ``last``.
    """
    from trueload.api.results.stored import load_run
    from trueload.store.runs import Store

    with Store.open() as store:
        return load_run(store, run)


def _loaded(protocol: str, where: str | None, options: Mapping[str, Any]) -> Result:
    """Load a server, as the command of that protocol does."""
    from trueload.commands.protocols import reader_of_job
    from trueload.commands.words import understand

    read = reader_of_job(protocol)
    return _measured(understand((protocol,), read, (where,), options, _OF_PRINTING))


def _measured(understood: Words[Job]) -> Result:
    """Run a job as the command does, without showing anything."""
    from trueload.commands.job import nothing_measured
    from trueload.engines.engine import find_engine
    from trueload.interrupt import Interrupt

    find_engine()
    job = replace(understood.meaning, words=understood.words)
    interrupt = Interrupt()
    try:
        with interrupt:
            result = _searched(job, interrupt) if job.search is not None else _tried(job, interrupt)
    finally:
        interrupt.hand_on()
    if result is None:
        raise UserError("it was ended before anything was measured", "measure again")
    if all(record.connections.established == 0 for record in result.records):
        raise NothingMeasuredError(nothing_measured(job, result.records[0]), result)
    return result


def _tried(job: Job, interrupt: Interrupt) -> Result:
    from trueload.commands.run import measure_job
    from trueload.metrics.exports import exporting
    from trueload.report.live import unwatched

    notes: list[str] = []
    with exporting(job.metrics, {"command": job.kind}, interrupt, notes.append) as exports:
        done = measure_job(job, interrupt, watch=exports.beside(unwatched), announce=notes.append)
    _warn(done.saved)
    return Result(
        records=done.records,
        run_id=done.saved.run_id,
        crossed=tuple(each.sentence() for each in done.over),
        notes=tuple(notes),
    )


def _searched(job: Job, interrupt: Interrupt) -> Result | None:
    from trueload.commands.search import measure_search
    from trueload.metrics.exports import exporting
    from trueload.report.live import unwatched
    from trueload.search.found import deciding

    assert job.search is not None, "it is for searches"
    notes: list[str] = []
    with exporting(job.metrics, {"command": job.kind}, interrupt, notes.append) as exports:
        seen = exports.beside(unwatched)
        done = measure_search(job, job.search, interrupt, watch=seen)
    _warn(done.saved)
    if not done.taken:
        return None
    return Result(
        records=(deciding(job.search, done.taken).record,),
        run_id=done.saved.run_id,
        crossed=tuple(each.sentence() for each in done.over),
        notes=tuple(notes),
        search=Search(job.search, done.taken),
    )


def _warn(saved: Saved, stacklevel: int = 4) -> None:
    """Warn of a store that failed during the run; the result is complete all the same."""
    if saved.error is not None:
        warnings.warn(f"{saved.error.message}; {saved.error.hint}", stacklevel=stacklevel)


def __getattr__(name: str) -> object:
    if name == "Server":
        from trueload.api.server import Server

        return Server
    raise AttributeError(f"module 'trueload.api' has no attribute '{name}'")
