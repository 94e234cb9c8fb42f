"""The outcome of each of several requests and origins, as tables."""

from __future__ import annotations

from dataclasses import replace

from trueload.record import figures
from trueload.record.accounts.origins import OriginRecord
from trueload.record.accounts.sessions import SessionsRecord, of_sessions
from trueload.record.accounts.targets import TargetRecord, of_target
from trueload.record.figures import BRIEF, TABLED
from trueload.record.schema import Record
from trueload.report.account import AccountView
from trueload.report.grid import Grid, text_lines
from trueload.report.quantile import quantile_text
from trueload.stats import Distribution
from trueload.text import plain
from trueload.units import format_count

SHOWN_MAX = 20
NAME_LENGTH_MAX = 60
ORIGIN_HEADER = ("origin", "connections", "requests", "ok", "failed")
HEADER = ("target", "weight", "requests", "ok", "failed", *BRIEF, "max of answers")
STEP_HEADER = ("step", "repeat", "requests", "ok", "failed", "skipped")
STEP_TIMES = (*TABLED, "max of answers")
SESSION = "the whole session"
"""The last row of a scenario: sessions that have ended, and their times without pauses."""


def target_grid(record: Record) -> Grid | None:
    """Return a table with a target, or a step, per row; None for a single request."""
    if record.sessions is not None:
        follows = record.redirects is not None
        rows = [_step_cells(step, follows=follows) for step in record.targets or ()]
        header = (*STEP_HEADER, *(("redirects",) if follows else ()), *STEP_TIMES)
        return _grid(header, [*rows, _session_cells(record.sessions, follows=follows)])
    return _grid(HEADER, [_cells(target) for target in record.targets or ()])


def origin_grid(record: Record) -> Grid | None:
    """Return a table with an origin per row; None for a single origin."""
    return _grid(ORIGIN_HEADER, [_origin_cells(origin) for origin in record.origins or ()])


def _grid(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Grid | None:
    return Grid(header, tuple(rows), left=frozenset(header[:1])) if rows else None


def _table(grid: Grid | None) -> list[str]:
    if grid is None:
        return []
    # The row of whole sessions is always shown.
    of_steps = grid.header[0] == STEP_HEADER[0]
    last = grid.rows[-1:] if of_steps and len(grid.rows) > SHOWN_MAX else ()
    lines = ["", *text_lines(replace(grid, rows=(*grid.rows[:SHOWN_MAX], *last), left=None))]
    more = len(grid.rows) - SHOWN_MAX - len(last)
    return lines + ([f"and {format_count(more)} more: --json has them all"] if more > 0 else [])


def _step_cells(step: TargetRecord, *, follows: bool) -> tuple[str, ...]:
    counts = step.counts
    return (
        plain(step.name or step.url, NAME_LENGTH_MAX),
        format_count(step.weight),
        format_count(counts.issued),
        format_count(counts.ok),
        format_count(figures.failed(counts)),
        format_count(counts.skipped),
        *([format_count(counts.redirects)] if follows else []),
        *_times(of_target(step).figures),
    )


def _session_cells(sessions: SessionsRecord, *, follows: bool) -> tuple[str, ...]:
    ended = (sessions.ok + sessions.failed, sessions.ok, sessions.failed)
    times = _times(of_sessions(sessions).figures)
    none = [""] * (2 if follows else 1)
    return (SESSION, "", *(format_count(count) for count in ended), *none, *times)


def _times(found: Distribution) -> list[str]:
    return [quantile_text(found.at(name)) for name in (*TABLED, "max")]


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
    counts, latency = target.counts, of_target(target).figures
    return (
        plain(target.name or f"{target.method} {target.url}", NAME_LENGTH_MAX),
        format_count(target.weight),
        format_count(counts.issued),
        format_count(counts.ok),
        format_count(figures.failed(counts)),
        *(quantile_text(latency.at(name)) for name in (*BRIEF, "max")),
    )


def target_lines(record: Record) -> list[str]:
    """Return a table with a target per line, and a blank line; none for a single request."""
    lines = _table(target_grid(record))
    return [*lines, ""] if lines else []


TARGETS = AccountView(
    name="targets",
    after="origins",
    order=1,
    block=target_lines,
    grid=target_grid,
    grid_of="request",
)
ORIGINS = AccountView(
    name="origins",
    after="answers",
    order=2,
    block=lambda record: _table(origin_grid(record)),
    grid=origin_grid,
    grid_of="origin",
)
