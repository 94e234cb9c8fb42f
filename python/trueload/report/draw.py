"""A live view, drawn on a terminal with rich, in colour, at the terminal's current size.

How: the rows are made again for each drawing, so a drawing follows the terminal's size. It is drawn
at most twice a second, on every other tick: a drawing takes a few milliseconds, while a measurement
runs. A view that cannot be drawn must not disturb a measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.style import Style

from trueload.closeable import Closeable
from trueload.report.rows import Row, Size, Tone, framed
from trueload.text import plain

GAP_S = 0.5  # between two drawings
EARLY_S = 0.05  # ticks are 250 ms apart, more or less
FRAME = Size(4, 2)
WIDTH_MIN = 20  # a narrower terminal has no room for a view
ABOVE_MIN = 24  # from this height on, some lines are left for what stands above the view
ABOVE = 4
KEYS = "q stops and saves"

STYLES: dict[Tone, Style] = {
    "text": Style(),
    # No grey: in some palettes it is the background's colour.
    "label": Style(dim=True),
    "strong": Style(bold=True),
    "good": Style(color="green"),
    "warn": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "rate": Style(color="green", bold=True),
    "middle": Style(color="cyan"),
    "tail": Style(color="magenta"),
    "bar": Style(color="blue"),
}

Make = Callable[[Size], Sequence[Row]]
"""Makes the rows of a view for the size inside its frame."""


class Pace:
    """The times to draw at: on average ``GAP_S`` apart or more, by a clock in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due_s = float("-inf")

    def is_due(self) -> bool:
        """Whether it is time to draw; sets the next time."""
        now_s = self._clock()
        if now_s < self._due_s - EARLY_S:
            return False
        self._due_s = max(now_s, self._due_s) + GAP_S
        return True


class RichRows:
    """Rows in the form that rich draws."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Segment.line()
        for row in self._rows:
            for tone, spans in groupby(row, key=itemgetter(1)):
                yield Segment("".join(span.text for span in spans), STYLES[tone])
            yield line


def frame(rows: Sequence[Row], title: str, width: int) -> RichRows:
    """Return the rows in a frame as wide as the terminal."""
    return RichRows(framed(rows, plain(title), KEYS, width))


def inside(width: int, height: int, *, alone: bool) -> Size:
    """Return the size inside the frame on a terminal of this size.

    The last line is the cursor's, and lines above the view should stay in sight.
    """
    above = ABOVE if not alone and height >= ABOVE_MIN else 0
    return Size(max(width - FRAME.width, 1), max(height - 1 - FRAME.height - above, 1))


class LiveView(Closeable):
    """A frame with a title on stderr, drawn repeatedly, and removed at the end."""

    def __init__(self, title: str, clock: Callable[[], float], *, alone: bool = True) -> None:
        self._title = title
        self._alone = alone
        self._pace = Pace(clock)
        self._console = Console(stderr=True)
        self._drawn = Size(0, 0)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        live = Live(console=self._console, transient=True, auto_refresh=False)
        with suppress(OSError):
            live.__enter__()
            self._live = live
        return self

    def close(self) -> None:
        """Remove the view from the screen."""
        if self._live is not None:
            # The terminal may have gone; what matters is what was measured.
            with suppress(OSError):
                self._live.stop()

    def tell(self, line: str) -> None:
        """Write a line above the view, where it stays and remains in sight."""
        self._alone = False
        if self._live is not None:
            with suppress(OSError):
                # A view as high as the terminal would push the line out of sight.
                self._live.update("", refresh=True)
                self._drawn = Size(0, 0)
                self._console.print(plain(line), markup=False, highlight=False)

    def draw(self, make: Make) -> None:
        """Draw the current state, if it is time."""
        if self._live is None or not self._pace.is_due():
            return
        width, height = self._console.size
        rows = make(inside(width, height, alone=self._alone)) if width >= WIDTH_MIN else ()
        try:
            self._unwrap(width)
            if not rows:
                self._live.update("", refresh=True)
                self._drawn = Size(0, 0)
                return
            self._live.update(frame(rows, self._title, width), refresh=True)
        except OSError:
            self._live = None
            return
        self._drawn = Size(width, len(rows) + FRAME.height)

    def _unwrap(self, width: int) -> None:
        """Erase the extra lines of a terminal that became narrower.

        It wraps each drawn line into several, and rich would erase only as many as it drew.
        """
        if not 0 < width < self._drawn.width:
            return
        extra = self._drawn.height * (-(-self._drawn.width // width) - 1)
        erase = (ControlType.ERASE_IN_LINE, 2)
        upwards = ((ControlType.CURSOR_UP, 1), erase) * extra
        self._console.control(Control(ControlType.CARRIAGE_RETURN, erase, *upwards))
