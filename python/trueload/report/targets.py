"""The outcome of each of several requests and origins, as tables and as lines of text. Pure.

Must not know: terminals.
"""

from __future__ import annotations

from dataclasses import replace

from trueload.record import figures
from trueload.record.schema import OriginRecord, Record, TargetRecord
from trueload.report.grid import Grid, text_lines
from trueload.report.times import quantile_text
from trueload.text import plain
from trueload.units import format_count

SHOWN_MAX = 20
NAME_LENGTH_MAX = 60
ORIGIN_HEADER = ("origin", "connections", "requests", "ok", "failed")
HEADER = ("target", "weight", "requests", "ok", "failed", "p50", "p99", "max of answers")


def target_lines(record: Record) -> list[str]:
    """Return a table with a target per line; none for a single request."""
    lines = _table(target_grid(record))
    return [*lines, ""] if lines else []


def origin_lines(record: Record) -> list[str]:
    """Return a table with an origin per line; none for a single origin."""
    return _table(origin_grid(record))


def target_grid(record: Record) -> Grid | None:
    """Return a table with a target per row; None for a single request."""
    return _grid(HEADER, [_cells(target) for target in record.targets or ()])


def origin_grid(record: Record) -> Grid | None:
    """Return a table with an origin per row; None for a single origin."""
    return _grid(ORIGIN_HEADER, [_origin_cells(origin) for origin in record.origins or ()])


def _grid(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Grid | None:
    return Grid(header, tuple(rows), left=frozenset(header[:1])) if rows else None


def _table(grid: Grid | None) -> list[str]:
    if grid is None:
        return []
    lines = ["", *text_lines(replace(grid, rows=grid.rows[:SHOWN_MAX], left=None))]
    more = len(grid.rows) - SHOWN_MAX
    return lines + ([f"and {format_count(more)} more: --json has them all"] if more > 0 else [])


def _origin_cells(origin: OriginRecord) -> tuple[str, ...]:
    made, asked, counts = origin.established, origin.requested, origin.counts
    known = made is not None and asked is not None
    of = f" of {format_count(asked or 0)}" if made != asked else ""
    shown = (counts.issued, counts.ok, figures.failed(counts)) if counts else ()
    return (
        plain(origin.url, NAME_LENGTH_MAX),
        f"{format_count(made or 0)}{of}" if known else "",
        *(format_count(figure) for figure in shown),
        *([""] * (3 - len(shown))),
    )


def _cells(target: TargetRecord) -> tuple[str, ...]:
    counts, latency = target.counts, figures.of_target(target).figures
    return (
        plain(target.name or f"{target.method} {target.url}", NAME_LENGTH_MAX),
        format_count(target.weight),
        format_count(counts.issued),
        format_count(counts.ok),
        format_count(figures.failed(counts)),
        *(quantile_text(latency.at(name)) for name in ("p50", "p99", "max")),
    )
