"""What a detached run keeps beside the store: its output, its exit code, and who carries it out.

How: each run has a folder by its id. Its process holds a lock in there until it ends, however it
ends, and the kernel tells which process holds it (fcntl(2), F_GETLK). So nothing can be stale, not
even after the machine went down. Progress is one line and one view, each replaced by the next, so
it takes no space. A view is made only while somebody watches, who leaves the size of a terminal.
Must not know: what a run does, or how it got into the background.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from trueload.files.private import make_folder, open_descriptor, open_text
from trueload.store.lock import FLOCK

DETACHED_ENDING = "-detached"
"""Suffix of the folder of all detached runs, after the name of the store."""
LOG_BYTES_MAX = 1024**2  # of stderr, and of the part before it: a run may last for weeks
FRESH_S = 3.0  # the age of a view, or of a terminal's size, from which on nobody is there

CURRENT: ContextVar[DetachedFiles | None] = ContextVar("current", default=None)
"""The files of the detached run that this process carries out."""


def all_detached(store: Path) -> Path:
    """The folder of all detached runs, beside the store itself, whatever link leads there."""
    real = Path(os.path.realpath(store))
    return real.with_name(real.name + DETACHED_ENDING)


class DetachedFiles:
    """The files of one detached run."""

    def __init__(self, store: Path, run_id: str) -> None:
        self.folder = all_detached(store) / run_id
        self.stdout = self.folder / "stdout"
        self.stderr = self.folder / "stderr"
        self.stderr_before = self.folder / "stderr.before"
        self._lock = self.folder / "lock"
        self._exit_code = self.folder / "exit-code"
        self._progress = self.folder / "progress"
        self._view = self.folder / "view"
        self._size = self.folder / "size"

    def exist(self) -> bool:
        """Whether the run was detached."""
        return self.stdout.exists()

    def begin(self) -> None:
        """Make the files, and hold them until this process ends. Raises ``OSError``."""
        make_folder(self.folder)
        held = open_descriptor(self._lock, os.O_RDWR)  # until the end: closing would release it
        fcntl.fcntl(held, fcntl.F_SETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        for old in self.folder.iterdir():  # of a run that is resumed
            if old != self._lock:
                old.unlink()
        for path in (self.stderr, self.stdout):  # the last one shows that all are there
            os.close(self.open_output(path))
        CURRENT.set(self)

    def process(self) -> int | None:
        """The number of the process that carries the run out, 0 or less if it is on another
        machine or in another container; None once it has ended. Raises ``OSError``."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, process = FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        return None if kind == fcntl.F_UNLCK else int(process)

    def open_output(self, path: Path) -> int:
        """Open a new file for output; what is written is added at its end. Raises ``OSError``."""
        return open_descriptor(path, os.O_WRONLY | os.O_APPEND)

    def turn_stderr(self, descriptor: int) -> None:
        """Let ``descriptor`` write to a new file once the present one is long; keep that, in place
        of the one before it."""
        if os.fstat(descriptor).st_size < LOG_BYTES_MAX:
            return
        self.stderr.replace(self.stderr_before)
        fresh = self.open_output(self.stderr)
        os.dup2(fresh, descriptor)
        os.close(fresh)

    def exit_code(self) -> int | None:
        """The exit code of the run; None if it has not ended by itself."""
        try:
            return int(_read(self._exit_code))
        except ValueError:
            return None

    def write_exit_code(self, code: int) -> None:
        """Write down how the run ended."""
        _replace(self._exit_code, str(code))

    def progress(self) -> str:
        """The latest line of progress; empty if there is none."""
        return _read(self._progress)

    def write_progress(self, line: str) -> None:
        """Replace the line of progress."""
        _replace(self._progress, line)

    def view(self) -> Any:
        """The latest view; None if there is none, or it is out of date."""
        return _fresh(self._view)

    def write_view(self, view: Any) -> None:
        """Replace the view, any value that JSON can hold."""
        _replace(self._view, json.dumps(view))

    def size(self) -> Any:
        """The size that a view should have; None if nobody watches."""
        return _fresh(self._size)

    def write_size(self, width: int, height: int) -> None:
        """Ask for views of this size, for the next moments."""
        _replace(self._size, json.dumps([width, height]))

    def remove(self) -> None:
        """Remove the files of a run that is deleted."""
        shutil.rmtree(self.folder, ignore_errors=True)


def end_detached(code: int) -> None:
    """Write down how this process ends, if it carries out a detached run."""
    if (files := CURRENT.get()) is not None:
        files.write_exit_code(code)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _fresh(path: Path) -> Any:
    try:
        if time.time() - path.stat().st_mtime > FRESH_S:
            return None
        return json.loads(_read(path))
    except (OSError, ValueError):
        return None


def _replace(path: Path, text: str) -> None:
    """Replace a file, so that nobody reads half of it. A full disk, or a run that was deleted
    meanwhile, must not disturb a measurement."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        with open_text(part) as file:
            file.write(text)
        part.replace(path)
