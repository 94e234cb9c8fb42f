"""The live view on a terminal while a trial runs, and its key: ``q`` stops and saves.

How: draw.py draws the rows of panel.py and client_panel.py. ``rich`` is imported only if there is a
terminal; in a pipe, progress_log.py writes a line from time to time. The key is read only if the
terminal is ours alone: stdin and stderr are terminals, and we are in the foreground.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Protocol, TextIO

from trueload.protocol.client_progress import ClientProgress, OnClientProgress
from trueload.report.client_panel import ClientCourse, client_rows
from trueload.report.course import Course
from trueload.report.heading import Heading
from trueload.report.panel import load_rows
from trueload.report.progress_log import progress_logger
from trueload.text import plain
from trueload.trial.spec import OnProgress, Progress, TrialSpec

STOP_KEYS = b"qQ"


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal; a closed stream is none."""
    try:
        return stream.isatty()
    except ValueError:
        return False


NO_LABELS: Mapping[str, str] = {}


class Watch(Protocol):
    """A function that receives the progress of a trial, under a heading.

    ``labels`` tell the trial from the others of its run.
    """

    def __call__(
        self, spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
    ) -> AbstractContextManager[OnProgress | None]: ...


def unwatched(
    spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
) -> AbstractContextManager[OnProgress | None]:
    """A watch that shows nothing."""
    return nullcontext(None)


@contextmanager
def live_view(
    spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
) -> Iterator[OnProgress | None]:
    """Show a view on stderr if it is a terminal, else a line from time to time in a long trial."""
    if not is_terminal(sys.stderr):
        yield progress_logger(spec, heading.title, time.monotonic, _write_line)
        return
    from trueload.report.draw import LiveView

    course = Course()
    with LiveView(heading.title, time.monotonic, alone=heading.is_alone) as view:

        def show(progress: Progress) -> None:
            if progress.record is not None:
                return  # the end has its own result
            course.receive(progress, is_open=spec.load.is_open)
            for each in progress.news:
                view.tell(each)
            view.draw(lambda size: load_rows(spec, progress, course, heading, size))

        yield show


def _write_line(line: str) -> None:
    with suppress(OSError):  # the reader may have gone
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()


def watch(*, live: bool) -> Watch:
    """Return the live view, or none with ``--no-live``."""
    return live_view if live else unwatched


@contextmanager
def client_view(heading: Heading) -> Iterator[OnClientProgress | None]:
    """Show the view of a client on stderr if it is a terminal, else nothing."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from trueload.report.draw import LiveView

    course = ClientCourse()
    with LiveView(heading.title, time.monotonic, alone=heading.is_alone) as view:

        def show(progress: ClientProgress) -> None:
            course.receive(progress)
            view.draw(lambda size: client_rows(progress, course, heading, size))

        yield show


@contextmanager
def stop_key(stop: Callable[[], None], *, wanted: bool = True) -> Iterator[None]:
    """Call ``stop`` once ``q`` is pressed, if there is a view.

    The terminal is restored at the end. Without a terminal, or in the background, nothing is read.
    """
    if not (wanted and is_terminal(sys.stderr) and is_terminal(sys.stdin) and _is_in_front()):
        yield
        return
    import termios
    import tty

    keys = sys.stdin.fileno()
    before = termios.tcgetattr(keys)
    ended, end = os.pipe()
    reader = threading.Thread(target=_read_keys, args=(keys, ended, stop), daemon=True)
    try:
        # Read keys one by one, and do not echo them; Ctrl-C keeps its meaning.
        tty.setcbreak(keys, termios.TCSANOW)
        reader.start()
        yield
    finally:
        os.close(end)
        if reader.ident is not None:
            reader.join()
        os.close(ended)
        with suppress(termios.error):
            termios.tcsetattr(keys, termios.TCSANOW, before)


def _read_keys(keys: int, ended: int, stop: Callable[[], None]) -> None:
    while True:
        ready, _, _ = select.select([keys, ended], [], [])
        if ended in ready:
            return
        try:
            pressed = os.read(keys, 64)
        except OSError:
            return
        if any(key in STOP_KEYS for key in pressed):
            stop()
            return
        if not pressed:
            return


def _is_in_front() -> bool:
    """Whether we are in the foreground, so that no other job's keys are taken."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
