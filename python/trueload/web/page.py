"""The page of a run: a screen of the live view that browsers show, at most one state a second.

How: a state is made only if somebody watches, on the front's thread, as the live view is. It is
HTML in which every text is escaped, with rows for two widths; live.css shows those that fit.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from html import escape
from http import HTTPStatus
from importlib.resources import files

from trueload.closeable import Closeable
from trueload.errors import UserError
from trueload.record.schema import Record
from trueload.report.heading import Heading
from trueload.report.result import result_lines
from trueload.report.rows import Row, Size
from trueload.store.runs import Store
from trueload.text import plain
from trueload.web.server import HTML, Answer, PageServer

EVERY_S = 1.0
EARLY_S = 0.05  # ticks are 250 ms apart, more or less
SIZES = {"wide": Size(116, 60), "narrow": Size(42, 90)}  # on a desk, and on a phone
LINES_MAX = 200
REPORT = "report"
NOT_SAVED = "The run was not saved, so there is no report. This is its last state."
FILES = {"": ("html", HTML), "live.css": ("css", "text/css"), "live.js": ("js", "text/javascript")}


class WebPage(Closeable):
    """The page of one run. Raises ``UserError`` if it cannot be served."""

    def __init__(self, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = PageServer(port, {name: _file(*each) for name, each in FILES.items()})
        self.url = self._server.url
        self._clock = clock
        self._due_s = float("-inf")
        self._title = self._drawn = ""
        self._result: list[str] = []
        self._told: deque[str] = deque(maxlen=LINES_MAX)

    @property
    def viewers(self) -> int:
        return self._server.viewers

    def begin(self, heading: Heading, cpus: Sequence[int]) -> None:
        """Begin a trial, off the CPUs of its generator if there are others."""
        self._title = plain(heading.title)
        ours = os.sched_getaffinity(0)
        self._server.keep_to(ours - set(cpus) or ours)

    def tell(self, line: str) -> None:
        self._told.append(line)

    def draw(self, make: Callable[[Size], Sequence[Row]]) -> None:
        """Send the current state, if it is time and anybody watches."""
        now_s = self._clock()
        if self.viewers and now_s >= self._due_s - EARLY_S:
            self._due_s = now_s + EVERY_S
            drawn = {name: rows_html(make(size)) for name, size in SIZES.items()}
            self._drawn = "".join(f'<pre class="{name}">{drawn[name]}</pre>' for name in drawn)
            self._server.publish(self._event())

    def end(self, record: Record) -> None:
        self._result = [f"The result of {self._title}:", "", *result_lines(record)]

    def finish(self, run_id: str | None, stopped: Callable[[], bool]) -> None:
        """Turn the page into the report of a run, if anybody watches; takes bounded time."""
        if self.viewers:
            report, end = make_report(run_id)
            self._server.hand_out(self._event(end), report, stopped)

    def close(self) -> None:
        self._server.close()

    def _event(self, end: str = "") -> bytes:
        below = [lines for lines in (self._result[:LINES_MAX], self._told) if lines]
        texts = ["\n".join(map(plain, lines)) for lines in below]
        html = self._drawn + "".join(f"<pre>{escape(text)}</pre>" for text in texts)
        state = {"title": self._title, "html": html, "end": end}
        return f"data: {json.dumps(state)}\n\n".encode()


def _file(ending: str, kind: str) -> Answer:
    body = files("trueload.web").joinpath(f"live.{ending}").read_bytes()
    return Answer(HTTPStatus.OK, body, kind)


def rows_html(rows: Sequence[Row]) -> str:
    """Return rows as HTML: a tone is a class. Pure."""
    return "\n".join(
        "".join(f'<span class="{tone}">{escape(text)}</span>' for text, tone in row) for row in rows
    )


def make_report(run_id: str | None) -> tuple[bytes | None, str]:
    """Return the report of a run and ``REPORT``, or nothing and why there is none."""
    if run_id is None:
        return None, NOT_SAVED
    try:
        from trueload.report.html import make

        with Store.open() as store:
            return make.page(make.make(store, [store.find_run(run_id)])).encode(), REPORT
    except UserError as error:
        return None, f"There is no report: {error.message}; {error.hint}. This is the last state."
