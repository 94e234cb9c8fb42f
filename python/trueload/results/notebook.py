"""Results as they are shown in notebooks: a table of figures, the verdict and what stands against
it, in HTML that is inert whatever a peer said. Pure.

Must not know how results are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from trueload.report.text import plain
from trueload.units import format_count, format_rate, format_size

if TYPE_CHECKING:
    from trueload.results.ab import AbResult
    from trueload.results.result import Result
    from trueload.results.suite import SuiteResult

MARKS = {"valid": "✓", "suspect": "?", "invalid": "✗"}


def result_html(result: Result) -> str:
    """One command's result."""
    found = result.throughput
    rows = [("throughput", _rate(found.ok_per_s))]
    if found.bytes_in_per_s is not None and found.bytes_out_per_s is not None:
        into, out = format_size(found.bytes_in_per_s), format_size(found.bytes_out_per_s)
        rows.append(("bytes", f"in {into}/s, out {out}/s"))
    times = result.latency
    shown = (("p50", times.p50), ("p90", times.p90), ("p99", times.p99), ("max", times.max))
    rows.append(("latency", ", ".join(f"{name} {time}" for name, time in shown)))
    rows.append(("requests", f"{format_count(result.ok)} ok of {format_count(result.issued)}"))
    if result.failed:
        by_class = sorted(result.failed.items())
        rows.append(("failures", ", ".join(f"{name} {format_count(n)}" for name, n in by_class)))
    if result.search is not None:
        rows.append(("search", result.search.sentence))
    rows.append(("verdict", f"{MARKS[result.verdict]} {result.verdict}"))
    times_text = f", {len(result.records)} trials, medians" if len(result.records) > 1 else ""
    head = _text(f"{result.url}{times_text}")
    cells = "".join(
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{head}</caption>{cells}</table>{_list(result.reasons)}"


def suite_html(suite: SuiteResult) -> str:
    """A suite's result: a table for each load."""
    parts = []
    header = ("rank", "subject", "requests/s", "p99", "verdict", "why")
    for table in suite.tables:
        body = "".join(_row("td", cells) for cells in suite.cells(table))
        parts.append(
            f"<table><caption>{_text(table.load.title)}</caption>{_row('th', header)}{body}</table>"
        )
    return "".join(parts)


def ab_html(found: AbResult) -> str:
    """Two servers in turn: a line for each figure."""
    header = ("metric", "A", "B", "B / A", "where it lies", "B is")
    body = "".join(_row("td", cells) for cells in found.cells())
    of = len(found.paired.pairs)
    pairs = f"{of} pair{'' if of == 1 else 's'}"
    head = _text(f"A {found.names[0]}, B {found.names[1]}, {pairs}")
    verdict = _row("th", ("verdict", f"{MARKS[found.verdict]} {found.verdict}"))
    return (
        f"<table><caption>{head}</caption>{_row('th', header)}{body}{verdict}</table>"
        f"{_list(found.reasons)}"
    )


def _pair(name: str, value: str) -> str:
    return f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _rate(per_s: float | None) -> str:
    return "nothing measured" if per_s is None else format_rate(per_s, "requests")


def _text(text: str) -> str:
    return escape(plain(text))
