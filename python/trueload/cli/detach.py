"""``--detach``: the run goes on in the background, without its terminal.

How: the command line is read and checked as always. Then the process forks, so that nothing of it
stands in a file. The child is a session of its own, which no terminal hangs up. Its output goes to
the terminal until the run has its id, so mistakes are reported here, and from then on to the files
of the run. Until then the parent waits and passes Ctrl-C on. Must not know: what is measured.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from trueload.cli.streams import PatientFile
from trueload.commands.flags import with_flags_of
from trueload.commands.job import announce
from trueload.errors import ExitCode, UserError
from trueload.store.detached import DetachedFiles
from trueload.store.runs import ON_HOLD, Run

Understood = TypeVar("Understood")

DetachOption = Annotated[
    bool,
    typer.Option(
        "--detach",
        help=(
            "Go on in the background, also after the end of this terminal; `trueload attach`"
            " shows the run, or stops it."
        ),
    ),
]


def detachable(
    understand: Callable[..., Understood], act: Callable[[Understood], int]
) -> Callable[..., int]:
    """Return a command, as ``flags.command`` does, with the option ``--detach``."""

    @with_flags_of(understand, without=())
    def run(detach: DetachOption = False, **flags: Any) -> int:
        asked = understand(**flags)
        if not detach:
            return act(asked)
        check_detach(flags)
        return _run_detached(lambda: act(asked), quiet=flags.get("quiet", False))

    run.__doc__ = understand.__doc__  # the help of a command that has no other
    return run


def check_detach(flags: dict[str, Any]) -> None:
    """Raise ``UserError`` for flags that have no use in the background."""
    if flags.get("dry_run"):
        raise UserError("--dry-run runs nothing that could be detached", "leave --detach out")
    if flags.get("no_save"):
        raise UserError("--detach is for a run that is saved", "leave --no-save out")
    if str(flags.get("json_path")) == "-":
        raise UserError(
            "--json - has no stdout once the run is detached",
            "name a file for --json, or use --format json, which `trueload attach` prints",
        )


def _run_detached(work: Callable[[], int], *, quiet: bool) -> int:
    """Do the work in a process of its own session; return once its run has begun, or failed to.

    In that process this is a call like any other, and the command ends there as always.
    """
    told, tell = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(told)
        os.setsid()
        ON_HOLD.set(functools.partial(_leave_terminal, tell))
        return work()
    os.close(tell)
    run_id, code = _await_begin(child, told)
    if not run_id:
        return code
    sys.stdout.write(f"{run_id}\n")
    if not quiet:
        announce(f"it goes on in the background; show it: trueload attach {run_id}")
        announce(f"stop it, and save what is measured: trueload attach {run_id} --stop")
    return ExitCode.OK


def _leave_terminal(tell: int, store: Path, run: Run) -> None:
    """Move this process's input and output to the files of its run, and tell its id."""
    ON_HOLD.set(lambda store, run: None)
    files = DetachedFiles(store, run.id)
    try:
        files.begin()
        opened = [os.open(os.devnull, os.O_RDONLY)]
        opened += [files.open_output(path) for path in (files.stdout, files.stderr)]
    except OSError as error:
        raise UserError(
            f"the files of a detached run cannot be made in {files.folder}: {error.strerror}",
            "make the store's folder writable, or set TRUELOAD_STORE to a file elsewhere",
        ) from error
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the terminal may have gone
            stream.flush()
    for number, descriptor in enumerate(opened):
        os.dup2(descriptor, number)
        os.close(descriptor)
    log = io.BufferedWriter(_Log(files))
    sys.stderr = io.TextIOWrapper(log, "utf-8", "backslashreplace", line_buffering=True)
    with contextlib.suppress(OSError):
        os.write(tell, run.id.encode())
    os.close(tell)


class _Log(PatientFile):
    """The stderr of a detached run, of which only the end is kept."""

    def __init__(self, files: DetachedFiles) -> None:
        super().__init__(sys.stderr.fileno(), "w", closefd=False)
        self._files = files

    def write(self, data: object) -> int:
        """Write as ``PatientFile`` does."""
        with contextlib.suppress(OSError):  # then the log becomes longer
            self._files.turn_stderr(self.fileno())
        return super().write(data)


def _await_begin(child: int, told: int) -> tuple[str, int]:
    """Return the id of the child's run; if it ended before, an empty text and its exit code."""
    with os.fdopen(told, "rb", buffering=0) as begun:
        run_id = _passing_on(child, lambda: begun.read(100)).decode()
    if run_id:
        return run_id, ExitCode.OK
    code = os.waitstatus_to_exitcode(_passing_on(child, lambda: os.waitpid(child, 0))[1])
    if code < 0:
        raise UserError(
            f"the run was killed before it began: {signal.strsignal(-code)}",
            "repeat it; if it happens again, look for the reason in the log of the system",
            ExitCode.NOTHING_MEASURED,
        )
    return "", code


Waited = TypeVar("Waited")


def _passing_on(child: int, wait: Callable[[], Waited]) -> Waited:
    """Wait, and pass each Ctrl-C on to the child, which ends as it would without --detach."""
    while True:
        try:
            return wait()
        except KeyboardInterrupt:
            # Not SIGINT, which a shell lets its background jobs ignore.
            os.kill(child, signal.SIGTERM)
