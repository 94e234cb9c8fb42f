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
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from trueload.cli.runs import RunArgument, show_run
from trueload.closing import Closing
from trueload.commands.job import announce
from trueload.errors import ExitCode, UserError
from trueload.report.attached import read_view
from trueload.report.colour import wants_colour, without_colour
from trueload.report.live import is_terminal
from trueload.store.detached import DetachedFiles
from trueload.store.runs import Run, Store

if TYPE_CHECKING:
    from trueload.report.draw import LiveView

LOOK_S = 0.1  # between two looks at the files
LINES_SHOWN = 20  # of what was printed before, if more will come

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
        with (
            Tail(files.stderr, sys.stderr) as log,
            Tail(files.stdout, sys.stdout) as result,
            _progress_of(files) as progress,
        ):
            if files.process() is not None and (hidden := log.skip_all_but(LINES_SHOWN)):
                announce(f"({hidden:,} earlier lines are in {files.stderr})")
            _follow(files, progress, (log, result))
    except KeyboardInterrupt:
        how = "was told to stop; its result" if stop else "goes on; stop it"
        announce(f"\nrun {found.id} {how}: trueload attach {found.id}{'' if stop else ' --stop'}")
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


def _report_killed(run: Run) -> int:
    """Show what is saved of a run that could not say how it ended."""
    show_run(run.id)
    again = (
        f"go on with: trueload suite run --resume {run.id}" if run.kind == "suite" else "repeat it"
    )
    raise UserError(
        f"run {run.id} ended without a result: its process was killed, or the machine went down",
        f"above is what had been saved; {again}",
        ExitCode.INTERRUPTED,
    )


def _follow(files: DetachedFiles, progress: _Lines, tails: tuple[Tail, ...]) -> None:
    """Show what is new, until the run has ended."""
    going_on = True
    while going_on:
        # Asked before anything is read: what the run prints last comes before its end.
        going_on = files.process() is not None
        news = [tail.read(whole=not going_on) for tail in tails]
        if any(news) or not going_on:
            progress.hide()
        for tail, new in zip(tails, news, strict=True):
            tail.print(new)
        if going_on:
            progress.show()
            time.sleep(LOOK_S)


class Tail(Closing):
    """Shows a file that another process adds to, also after it began a new one by that name."""

    def __init__(self, path: Path, out: TextIO) -> None:
        self._path = path
        self._out = out
        self._coloured = wants_colour(out, os.environ)
        self._file = path.open("rb")
        self._begun = b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def skip_all_but(self, lines: int) -> int:
        """Skip what is there but for its last lines; return how many lines are skipped."""
        there = self._file.read().splitlines(keepends=True)
        self._file.seek(-sum(map(len, there[-lines:])), os.SEEK_CUR)
        return max(0, len(there) - lines)

    def read(self, *, whole: bool) -> bytes:
        """Return the lines that are new, the last one only ``whole`` even if it has no end."""
        self._begun += self._file.read()
        if not self._is_current():
            self._begun += self._file.read()  # what came before the change
            self._file.close()
            self._file = self._path.open("rb")
            self._begun += self._file.read()
        end = len(self._begun) if whole else self._begun.rfind(b"\n") + 1
        new, self._begun = self._begun[:end], self._begun[end:]
        return new

    def print(self, text: bytes) -> None:
        """Print lines that were read, as they would look here."""
        if text:
            self._out.flush()
            self._out.buffer.write(text if self._coloured else without_colour(text))
            self._out.flush()

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:  # the run is being deleted
            return True


class _Lines(Closing):
    """The progress of a run as lines, for a pipe."""

    def __init__(self, files: DetachedFiles) -> None:
        self._files = files
        self._shown = ""

    def show(self) -> None:
        """Show the progress, if it is new."""
        line = self._files.progress()
        if line not in ("", self._shown):
            announce(line)
        self._shown = line

    def hide(self) -> None:
        """Make room for other output."""

    def close(self) -> None:
        """Leave nothing of it on the screen."""
        self.hide()


class _View(_Lines):
    """The progress of a run as a live view, on a terminal."""

    _live: LiveView | None = None
    _title = ""

    def show(self) -> None:
        """Draw the latest view of the run, and ask it for more."""
        from trueload.report.draw import LiveView, inside

        self._files.write_size(*inside(*os.get_terminal_size(sys.stderr.fileno()), alone=True))
        if (view := self._files.view()) is None:
            self.hide()
            return
        title, rows = read_view(view)
        if self._live is None or title != self._title:
            self.hide()
            self._title = title
            live = LiveView(title, time.monotonic, keys="Ctrl-C leaves the run as it is")
            self._live = live.__enter__()
        self._live.draw(lambda size: rows)

    def hide(self) -> None:
        """Remove the view from the screen."""
        if self._live is not None:
            self._live.close()
            self._live = None


def _progress_of(files: DetachedFiles) -> _Lines:
    return _View(files) if is_terminal(sys.stderr) else _Lines(files)
