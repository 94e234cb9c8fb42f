"""Turns a view into one file: HTML that is self-contained, runs no script and contacts nobody.

How: jinja2 with everything escaped. The one style sheet and the drawings are the only parts that
are not, and both are made here and in ``draw``. A content security policy allows that style sheet
by its hash and nothing else. So even content that slipped through could not act.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from trueload import __version__
from trueload.report.grid import MARKS, html_table
from trueload.report.html.charts.theme import COLOURS, SERIES, TitledChart
from trueload.report.html.draw import inline, to_svg
from trueload.report.html.tiles import across
from trueload.report.html.view import View

UNBROKEN_MAX = 12


@dataclass(frozen=True)
class Plot:
    """A drawn chart: the name of its file, and its SVG."""

    name: str
    svg: str


class Plots:
    """Draws each chart once, for the page and for files."""

    def __init__(self) -> None:
        self._svg: dict[int, str] = {}
        self._numbers = itertools.count(1)

    def svg(self, drawn: TitledChart) -> str:
        if id(drawn) not in self._svg:
            self._svg[id(drawn)] = to_svg(drawn.chart)
        return self._svg[id(drawn)]

    def inline(self, drawn: TitledChart) -> Markup:
        prefix = f"d{next(self._numbers)}-"
        # Not escaped: `inline` leaves only shapes and text in it.
        return Markup(inline(self.svg(drawn), prefix, f"{drawn.title}. {drawn.description}"))

    def files(self, view: View) -> list[Plot]:
        """Return every chart of the report with a name for its file, in order."""
        found = [(part, drawn) for part in view.parts for drawn in part.drawn]
        return [
            Plot(f"{number:02}-{part.anchor}-{drawn.slug}", self.svg(drawn))
            for number, (part, drawn) in enumerate(found, 1)
        ]


def render(view: View, plots: Plots) -> str:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["drawing"] = plots.inline
    environment.filters["prose"] = prose
    environment.filters["unbroken"] = unbroken
    environment.filters["across"] = across
    environment.filters["mark"] = lambda text: text if text in MARKS else ""
    # Not escaped: `html_table` escapes each cell.
    environment.filters["table"] = lambda grid: Markup(html_table(grid))
    style = stylesheet()
    page = environment.from_string(_read("page.html"))
    # Not escaped: it is our own, and its hash is of the unescaped text.
    return page.render(view=view, style=Markup(style), policy=policy(style), version=__version__)


def prose(text: str) -> Markup:
    """Return a sentence for the page; what it has in backticks becomes code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def unbroken(text: str) -> str:
    """Return a short figure, such as ``≤ 2.71 ms``, as a text that no line breaks."""
    return text.replace(" ", "\N{NO-BREAK SPACE}") if len(text) <= UNBROKEN_MAX else text


def stylesheet() -> str:
    """Return the style sheet with the colours of the charts, without its comments."""
    series = [COLOURS.index(pair) for pair in SERIES]
    colours = [{"light": light, "dark": dark} for light, dark in COLOURS]
    text = re.sub(r"/\*.*?\*/", "", _read("page.css"), flags=re.DOTALL)
    environment = Environment(autoescape=False, undefined=StrictUndefined)
    return environment.from_string(text).render(colours=colours, series=series).strip() + "\n"


def policy(style: str) -> str:
    """Return the content security policy, which allows only this style sheet."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


def _read(name: str) -> str:
    return files("trueload.report.html").joinpath(name).read_text(encoding="utf-8")
