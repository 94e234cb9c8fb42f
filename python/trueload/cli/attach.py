"""``trueload attach``: shows what a detached run prints, and ends with its exit code.

How: the files of the run are read as they grow, until its process has ended. Must not know: what is
measured.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, TextIO

import typer

from trueload.cli.runs import RunArgument, show_run
from trueload.closing import Closing
from trueload.commands.job import announce
from trueload.errors import ExitCode, UserError
from trueload.store.detached import DetachedFiles
from trueload.store.runs import Run, Store

LOOK_S = 0.1  # between two looks at the files
LINES_SHOWN = 20  # of what was told before, such as the progress until now

HELP = """Follow a run that was started with --detach, print its result, and end with its exit code.

Ctrl-C leaves the run as it is. If the run has ended, its result is printed at once. `last` is the
latest run that was detached.

Example: trueload attach last

Stop the run, and save what it measured: trueload attach last --stop
"""

StopOption = Annotated[
    bool,
    typer.Option("--stop", help="End the run as Ctrl-C would; what was measured is saved."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("attach", help=HELP)(attach)


def attach(run: RunArgument, stop: StopOption = False) -> int:
    """One detached run, until it ends."""
    found, files = find_detached(run)
    try:
        if stop:
            _stop(found, files)
        with Tail(files.stderr, sys.stderr) as log, Tail(files.stdout, sys.stdout) as result:
            if hidden := log.skip_all_but(LINES_SHOWN):
                announce(f"({hidden:,} earlier lines are in {files.stderr})")
            while _is_going_on(files, log, result):
                time.sleep(LOOK_S)
    except KeyboardInterrupt:
        announce(f"\nrun {found.id} goes on; stop it: trueload attach {found.id} --stop")
        return ExitCode.INTERRUPTED
    code = files.exit_code()
    if code is None:
        return _report_killed(found)
    return code


def find_detached(selector: str) -> tuple[Run, DetachedFiles]:
    """Return a detached run and its files; ``last`` is the latest one. Raises ``UserError``."""
    with Store.open() as store:
        runs = store.runs() if selector == "last" else [store.find_run(selector)]
        for run in reversed(runs):
            files = DetachedFiles(store.path, run.id)
            if files.exist():
                return run, files
    if selector == "last":
        raise UserError("no run was started with --detach", "`trueload runs list` shows the others")
    raise UserError(
        f"run {run.id} was not started with --detach",
        f"`trueload runs show {run.id}` shows what is saved of it",
    )


def _stop(run: Run, files: DetachedFiles) -> None:
    process = files.process()
    if process is None:
        return
    if process <= 0:
        raise UserError(
            f"run {run.id} is carried out on another machine, or in another container",
            "stop it there",
        )
    os.kill(process, signal.SIGTERM)


def _is_going_on(files: DetachedFiles, *tails: Tail) -> bool:
    """Show what is new, and return whether more may come."""
    going_on = files.process() is not None  # asked first: its last words come before its end
    for tail in tails:
        tail.show()
    return going_on


def _report_killed(run: Run) -> int:
    """Show what is saved of a run that could not say how it ended."""
    show_run(run.id)
    raise UserError(
        f"run {run.id} ended without a result: its process was killed, or the machine went down",
        "above is what had been saved; repeat the run",
        ExitCode.INTERRUPTED,
    )


class Tail(Closing):
    """Shows a file that another process adds to, also after it began a new one by that name."""

    def __init__(self, path: Path, out: TextIO) -> None:
        self._path = path
        self._out = out
        self._file = path.open("rb")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def skip_all_but(self, lines: int) -> int:
        """Skip what is there but for its last lines; return how many lines are skipped."""
        there = self._file.read().splitlines(keepends=True)
        self._file.seek(-sum(map(len, there[-lines:])), os.SEEK_CUR)
        return max(0, len(there) - lines)

    def show(self) -> None:
        """Show what is new."""
        self._copy()
        if not self._is_current():
            self._copy()  # what came before the change
            self._file.close()
            self._file = self._path.open("rb")
            self._copy()

    def _copy(self) -> None:
        if new := self._file.read():
            self._out.flush()
            self._out.buffer.write(new)
            self._out.flush()

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:  # the run is being deleted
            return True
