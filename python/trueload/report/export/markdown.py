"""Tables as Markdown. Text is inert, whoever wrote it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

from trueload.record import figures
from trueload.record.bound import at_least
from trueload.record.figures import BRIEF
from trueload.record.schema import REPORTED_STATUSES
from trueload.report.grid import BOLD, Grid
from trueload.report.quantile import quantile_text
from trueload.store.rows import DamagedRow, Row, Run
from trueload.text import plain
from trueload.units import format_count

TRIALS = ("row", "what", "requests/s", "ok", "failed", *BRIEF, "max of answers", "verdict")


def run_markdown(run: Run, rows: Iterable[Row | DamagedRow]) -> Iterator[str]:
    """Yield a run: its title and the table of its trials."""
    yield f"# {markdown_cell(run.title)}\n\nRun {run.id}, {run.started_at}, {run.state}.\n\n"
    yield from trials_markdown(rows)


def trials_markdown(rows: Iterable[Row | DamagedRow]) -> Iterator[str]:
    """Yield the table of trials, with the figures that people ask for."""
    yield from (f"{line}\n" for line in markdown_rows(TRIALS, map(_trial_cells, rows)))


def _trial_cells(row: Row | DamagedRow) -> tuple[str, ...]:
    if isinstance(row, DamagedRow):
        return (str(row.number), "damaged", *[""] * 6, row.why)
    what = row.key or " ".join(row.labels.values())
    if row.record is None:
        return (str(row.number), what, *[""] * 6, f"{row.outcome}: {row.reason}")
    record, latency = row.record, figures.latency(row.record).figures
    crossed = [c for c in record.checks if c.status in REPORTED_STATUSES]
    why = "".join(f"; {check.name}: {check.why}" for check in crossed)
    per_s = record.throughput.ok_per_s
    return (
        str(row.number),
        what or record.plan.url,
        "" if per_s is None else at_least(format_count(per_s), record.lower_bound),
        format_count(record.counts.ok),
        format_count(figures.failed(record.counts)),
        *(quantile_text(latency.at(name)) for name in (*BRIEF, "max")),
        record.verdict_text + why,
    )


def markdown_lines(grid: Grid) -> Iterator[str]:
    return markdown_rows(grid.header, grid.rows, grid.left, grid.marks)


def markdown_rows(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: frozenset[str] | None = None,
    marks: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table whose rows come one by one.

    The last cell of a row marked better or worse is bold.
    """
    yield _line(header)
    yield _line("---" if left is None or name in left else "---:" for name in header)
    for row, mark in zip(rows, chain(marks, repeat("")), strict=False):
        cells = [markdown_cell(cell) for cell in row]
        cells[-1] = f"**{cells[-1]}**" if mark in BOLD else cells[-1]
        yield _line(cells)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_cell(text: str) -> str:
    """Escape text for Markdown, so that it contains neither table bars nor markup."""
    shown = plain(text)
    for special in "\\`*_[]<>|#!":
        shown = shown.replace(special, f"\\{special}")
    return shown
