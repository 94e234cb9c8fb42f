"""The live view on a terminal while a trial runs, and its key: ``q`` stops and saves.

How: the rows of panel.py and client_panel.py are drawn on every screen: by draw.py on the terminal,
by ``trueload.web`` on a page. ``rich`` is imported only if there is a terminal; in a pipe,
progress_log.py writes a line from time to time. The key is read only if the terminal is ours alone:
stdin and stderr are terminals, and we are in the foreground.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Protocol

from trueload.protocol.client_progress import ClientProgress, OnClientProgress
from trueload.record.schema import Record
from trueload.report.colour import is_terminal as is_terminal
from trueload.report.course import Course
from trueload.report.heading import Heading
from trueload.report.progress_log import progress_logger
from trueload.report.rows import Row, Size
from trueload.text import plain
from trueload.trial.spec import OnProgress, Progress, TrialSpec

STOP_KEYS = b"qQ"


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


class Screen(Protocol):
    """A place where the state of a measurement is shown: a terminal, or a page in a browser."""

    def tell(self, line: str) -> None:
        """Show a line that stays."""
        ...

    def draw(self, make: Callable[[Size], Sequence[Row]]) -> None:
        """Show the current state, if it is time; ``make`` makes its rows for a size."""
        ...


class Page(Screen, Protocol):
    """The page of ``--web``, which shows all the trials of a run."""

    def begin(self, heading: Heading, cpus: Sequence[int]) -> None:
        """Begin a trial; ``cpus`` are those that its generator alone should use, if any."""
        ...

    def end(self, record: Record) -> None:
        """Show the result of the trial."""
        ...


@contextmanager
def live_view(
    spec: TrialSpec,
    heading: Heading,
    labels: Mapping[str, str] = NO_LABELS,
    *,
    live: bool = True,
    page: Page | None = None,
) -> Iterator[OnProgress | None]:
    """Show a trial on the page, if there is one, and with ``live`` also on stderr.

    That is a view if stderr is a terminal, else a line from time to time in a long trial.
    """
    log = None
    if live and not is_terminal(sys.stderr):
        log = progress_logger(spec, heading.title, time.monotonic, _write_line)
    course = Course()
    with _screens(heading, live=live, page=page, cpus=spec.engine.cpus or ()) as screens:
        if screens:  # in a pipe nobody sees it
            from trueload.report.panel import load_rows

        def show(progress: Progress) -> None:
            if log is not None:
                log(progress)
            if progress.record is not None:
                if page is not None:  # a terminal gets the result of the whole run
                    page.end(progress.record)
                return
            if screens:
                course.receive(progress, is_open=spec.load.is_open)
            for screen in screens:
                for each in progress.news:
                    screen.tell(each)
                screen.draw(lambda size: load_rows(spec, progress, course, heading, size))

        yield show


@contextmanager
def _screens(
    heading: Heading, *, live: bool, page: Page | None, cpus: Sequence[int] = ()
) -> Iterator[list[Screen]]:
    with ExitStack() as stack:
        screens: list[Screen] = []
        if live and is_terminal(sys.stderr):
            from trueload.report.draw import LiveView

            view = LiveView(heading.title, time.monotonic, alone=heading.is_alone)
            screens.append(stack.enter_context(view))
        if page is not None:
            page.begin(heading, cpus)
            screens.append(page)
        yield screens


def _write_line(line: str) -> None:
    with suppress(OSError):  # the reader may have gone
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()


def watch(*, live: bool, page: Page | None = None) -> Watch:
    """Return the views of trials: the terminal's unless ``--no-live``, and the page, if any."""
    return partial(live_view, live=live, page=page) if live or page is not None else unwatched


@contextmanager
def client_view(
    heading: Heading, *, live: bool = True, page: Page | None = None
) -> Iterator[OnClientProgress | None]:
    """Show a client on the page, if there is one, and on stderr if it is a terminal."""
    from trueload.report.client_panel import ClientCourse, client_rows

    course = ClientCourse()
    with _screens(heading, live=live, page=page) as screens:

        def show(progress: ClientProgress) -> None:
            course.receive(progress)
            for screen in screens:
                screen.draw(lambda size: client_rows(progress, course, heading, size))

        yield show if screens else None


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
