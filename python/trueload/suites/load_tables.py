"""The tables of a suite: its rows by load, each ranked among those that can be ranked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trueload import repetitions
from trueload.record.schema import Verdict
from trueload.suites.definition import PublishedTable
from trueload.suites.plan import PlannedLoad, SuitePlan
from trueload.suites.ranks import REPETITIONS_MIN, RowScore, known_above, places
from trueload.suites.steps import Search
from trueload.suites.summary import RunCells, Summary, Unit, summarise


@dataclass(frozen=True)
class LoadTable:
    """Programs under the same load, which may be compared: those that are ranked, the best first,
    and apart from them, with their reasons, the invalid, the traps, and those that were not
    measured. Of a suite there are `planned`, its load, and `published`, what others said of it. Of
    clients all loads stand in one table, as published: the load is the first one."""

    title: str
    unit: Unit
    everything: tuple[Summary, ...]
    searches: tuple[Search, ...] = ()
    published: tuple[PublishedTable, ...] = ()
    broadcast: bool = False
    planned: PlannedLoad | None = None

    @property
    def load(self) -> PlannedLoad:
        """That of a suite."""
        assert self.planned is not None, "it is of a suite"
        return self.planned

    @property
    def ranked(self) -> tuple[Summary, ...]:
        """The rows that may be ranked, the best first."""
        return tuple(row for row in self.everything if row.can_rank)

    @property
    def too_few(self) -> int | None:
        """How many repetitions a row has, where they are too few to rank the rows."""
        return too_few_repetitions(self.ranked)

    @property
    def invalid(self) -> tuple[Summary, ...]:
        rest = (row for row in self.everything if not row.can_rank and not row.trap)
        return tuple(row for row in rest if row.outcome == "measured")

    @property
    def traps(self) -> tuple[Summary, ...]:
        return tuple(row for row in self.everything if row.trap and row.outcome == "measured")

    @property
    def unmeasured(self) -> tuple[Summary, ...]:
        return tuple(row for row in self.everything if row.outcome != "measured")

    @property
    def measured(self) -> tuple[Summary, ...]:
        return (*self.ranked, *self.invalid, *self.traps)


def tabulate(collected: RunCells, plan: SuitePlan) -> list[LoadTable]:
    """One table per load, of clients one per limit of open files, in the plan's order. Pure."""
    first = {_table_key(load): load for load in reversed(plan.loads)}
    by_load: dict[PlannedLoad, list[Summary]] = {}
    for load in plan.loads:
        by_load.setdefault(first[_table_key(load)], [])
    for rows in collected.cells:
        if (summary := summarise(rows)) is not None:
            by_load[first[_table_key(rows.cell.load)]].append(summary)
    return [_table(load, summaries, plan) for load, summaries in by_load.items()]


def _table_key(load: PlannedLoad) -> PlannedLoad | int:
    """What the loads of one table have in common."""
    return load if load.pools is None else load.pools.files


def _table(load: PlannedLoad, summaries: Sequence[Summary], plan: SuitePlan) -> LoadTable:
    measured = sorted((s for s in summaries if s.outcome == "measured"), key=_by_throughput)
    ours = [s for s in measured if not s.trap]
    rest = [
        *(s for s in ours if not s.can_rank),
        *(s for s in measured if s.trap),
        *(s for s in summaries if s.outcome != "measured"),
    ]
    unit: Unit = "messages/s" if "echo" in plan.contract else "requests/s"
    return LoadTable(
        title=_title_of(load),
        unit=unit if plan.broadcast is None else "clients",
        everything=(*_ranked([s for s in ours if s.can_rank]), *rest),
        published=tuple(
            each for each in plan.published_tables if each.connections == load.connections
        ),
        broadcast=plan.broadcast is not None,
        planned=load,
    )


def _title_of(load: PlannedLoad) -> str:
    if load.pools is None:
        return load.title
    files = (
        f"{load.pools.files:,} open files"
        if load.pools.files
        else "as many open files as there are"
    )
    return f"HTTP clients, each with {files}"


def _by_throughput(summary: Summary) -> tuple[float, str]:
    return (-(summary.score or 0.0), summary.cell.subject.name)


def _ranked(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """The rows in order, with the ranks that each may have if there are repetitions enough."""
    summaries = in_order_of_figures(summaries)
    if too_few_repetitions(summaries) is not None:
        return tuple(summaries)
    found = places(len(summaries), known_above(scored_alike(summaries)))
    return tuple(replace(each, places=where) for each, where in zip(summaries, found, strict=True))


def scored_alike(rows: Sequence[Summary]) -> list[RowScore]:
    """What rows of one suite are ranked by: ratios to the reference, if all have them."""
    if not all(row.ratios for row in rows):
        return [row.scored for row in rows]
    return [
        RowScore(row.ratios, repetitions.median(row.ratios) or 0.0, row.lower_bound) for row in rows
    ]


def in_order_of_figures(rows: Sequence[Summary]) -> list[Summary]:
    """The rows of a suite, those first that have the most of what they are ranked by."""
    found = zip(rows, scored_alike(rows), strict=True)
    return [row for row, _ in sorted(found, key=lambda each: (-each[1].median, each[0].name))]


def too_few_repetitions(rows: Iterable[Summary]) -> int | None:
    """The fewest repetitions of a row of a suite, where they are too few to rank the rows."""
    fewest = min((row.repetitions for row in rows if row.planned is not None), default=None)
    return fewest if fewest is not None and fewest < REPETITIONS_MIN else None


def run_verdict(tables: Iterable[LoadTable]) -> Verdict | None:
    """The verdict on the whole run: invalid if nothing is ranked, suspect if anything measured is
    not valid, None if nothing was measured. Pure."""
    measured = [s for t in tables for s in (*t.ranked, *t.invalid)]
    if not measured:
        return None
    if not any(summary.can_rank for summary in measured):
        return "invalid"
    return "valid" if all(summary.verdict == "valid" for summary in measured) else "suspect"
