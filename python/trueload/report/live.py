"""The live panel on a terminal while a trial runs, and its key: ``q`` stops and saves.

How: ``rich`` draws what panel.py and client_panel.py say; it is imported only when there is a
terminal; in a pipe told.py has a line from time to time. The key is read only where the terminal is
ours alone: both ends of it, and in the foreground. Must not decide anything, and a panel that
cannot be drawn must not disturb a measurement.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from trueload.protocol.client_progress import ClientProgress, OnClientProgress
from trueload.report.client_panel import ClientCourse, client_lines
from trueload.report.panel import Course, panel_lines
from trueload.report.told import telling
from trueload.text import plain
from trueload.trial.spec import OnProgress, Progress, TrialSpec

if TYPE_CHECKING:
    from rich.live import Live

STOP_KEYS = b"qQ"


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at it; a stream that has been closed is none."""
    try:
        return stream.isatty()
    except ValueError:
        return False


NO_LABELS: Mapping[str, str] = {}


class Watch(Protocol):
    """What is told how a trial goes on, under a title for people; ``labels`` tell it from the
    other trials of its run."""

    def __call__(
        self, spec: TrialSpec, title: str, labels: Mapping[str, str] = NO_LABELS
    ) -> AbstractContextManager[OnProgress | None]: ...


def unwatched(
    spec: TrialSpec, title: str, labels: Mapping[str, str] = NO_LABELS
) -> AbstractContextManager[OnProgress | None]:
    """Nobody watches."""
    return nullcontext(None)


@contextmanager
def live_view(
    spec: TrialSpec, title: str, labels: Mapping[str, str] = NO_LABELS
) -> Iterator[OnProgress | None]:
    """A panel on stderr if that is a terminal, else a line of a long trial from time to time."""
    if not is_terminal(sys.stderr):
        yield telling(spec, title, time.monotonic, _tell)
        return
    course = Course()
    with LivePanel(title) as panel:

        def show(progress: Progress) -> None:
            if progress.record is not None:
                return  # of the end there is a result
            is_open = spec.load.is_open
            course.add(progress.tick, is_open=is_open, hosts=progress.hosts)
            panel.draw(panel_lines(spec, progress, course))

        yield show


def _tell(line: str) -> None:
    with suppress(OSError):  # whoever read it may have gone
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()


def watch(*, live: bool) -> Watch:
    """The live view, unless somebody said ``--no-live``."""
    return live_view if live else unwatched


@contextmanager
def client_view(title: str) -> Iterator[OnClientProgress | None]:
    """The panel of a client at work on stderr if that is a terminal, else nothing."""
    if not is_terminal(sys.stderr):
        yield None
        return
    course = ClientCourse()
    with LivePanel(title) as panel:

        def show(progress: ClientProgress) -> None:
            course.add(progress.served)
            panel.draw(client_lines(progress, course))

        yield show


class LivePanel:
    """A frame with a title around lines that change."""

    def __init__(self, title: str) -> None:
        self._title = plain(title)
        self._live: Live | None = None

    def __enter__(self) -> LivePanel:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            # The terminal may have gone; what was measured is what counts.
            with suppress(OSError):
                self._live.__exit__(kind, error, trace)

    def draw(self, lines: Sequence[str]) -> None:
        """Draw one state."""
        if self._live is not None:
            try:
                self._live.update(self._panel(lines), refresh=True)
            except OSError:
                self._live = None

    def _panel(self, lines: Sequence[str]) -> Any:
        from rich.panel import Panel
        from rich.text import Text

        return Panel(
            Text("\n".join(lines)),
            title=Text(self._title),
            title_align="left",
            subtitle=Text("q stops and saves"),
            subtitle_align="right",
            expand=False,
        )


@contextmanager
def stop_key(stop: Callable[[], None], *, wanted: bool = True) -> Iterator[None]:
    """Calls ``stop`` once ``q`` is pressed, where there is a panel; the terminal is put back at the
    end. Without a terminal, or in the background, nothing is read."""
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
        # Keys come one by one and are not shown; Ctrl-C stays what it is.
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
    """Whether the terminal's keys are ours: another foreground job's are not to be taken."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
