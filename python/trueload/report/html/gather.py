"""From the rows of a run to what a report says of it, in one pass that keeps little of each row.

How: rows stream by; checks are tallied, environments told apart, and of each record a dozen
figures are kept, with the number under which its row can be fetched again for a curve. A suite is
tabulated by its plan, as the command line does it; a search is judged anew from its steps; anything
else is grouped by what its rows say they are of. Pure. Must not know charts or HTML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from trueload import stats
from trueload.compare.pairs import Turn, read_turn
from trueload.errors import UserError
from trueload.record.distance import moved_text
from trueload.record.figures import latency
from trueload.record.schema import CpuDistance, Environment, Record, Verdict
from trueload.record.thresholds import Threshold
from trueload.report.html.entries import (
    CheckTally,
    Entry,
    Search,
    Section,
    Step,
    Told,
    Trial,
    Unit,
    in_order,
    with_own_names,
)
from trueload.report.result import load_text
from trueload.report.suite_json import read_plan as read_suite_plan
from trueload.search.decide import Found
from trueload.search.execute import UNITS, SearchPlan, Taken, outcome
from trueload.search.found import deciding, read_plan, read_steps, sentence
from trueload.stats import parse_percentile
from trueload.store.runs import Damaged, Row, Run
from trueload.suites.plan import PlannedLoad, SuitePlan, describe, was_cut_short
from trueload.suites.pools import PlannedPools
from trueload.suites.steps import search_plan
from trueload.suites.summary import (
    Figures,
    LoadTable,
    Summary,
    collect,
    figures,
    tabulate,
    together,
)
from trueload.text import plain
from trueload.units import format_cpu_list
from trueload.verdict import SEVERITY

NAME_LENGTH_MAX = 120
# Of a search all steps are judged again; no search takes as many.
SEARCH_STEPS_MAX = 500
STORED = "its plan cannot be read by this version: its rows are shown one by one"


@dataclass(frozen=True)
class _Note:
    """Where a row is, what it counts for among its repetitions, and of which pair it is."""

    seq: int
    score: float
    verdict: Verdict
    partial: bool
    turn: Turn | None


@dataclass
class _Steps:
    """Those of one search of a suite; what came of it stands beside the last one."""

    taken: list[Step] = field(default_factory=list)
    last: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Tally:
    """What is counted over all rows of a run while they pass."""

    run: Run
    checks: dict[str, CheckTally] = field(default_factory=dict)
    environments: dict[str, Environment] = field(default_factory=dict)
    generators: dict[str, None] = field(default_factory=dict)
    notes: dict[str, _Note] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    distances: list[CpuDistance | None] = field(default_factory=list)
    judge: Callable[[Row, Record], Step | None] | None = None
    is_of_search: bool = False
    steps: dict[tuple[str, str], dict[str, _Steps]] = field(default_factory=dict)

    def passing(self, rows: Iterable[Row | Damaged]) -> Iterator[Row | Damaged]:
        """The same rows, counted; what ``judge`` makes a step of is kept as one."""
        for row in rows:
            if isinstance(row, Damaged):
                number = "a row" if row.number is None else f"row {row.number}"
                self.damaged.append(plain(f"{number} is damaged: {row.why}"))
                yield row
                continue
            self.rows[row.outcome] = self.rows.get(row.outcome, 0) + 1
            if row.record is not None:
                self._count(row, row.record)
            yield row

    def _count(self, row: Row, record: Record) -> None:
        score = row.labels.get("clients") or record.throughput.ok_per_s or 0.0
        self.notes[record.id] = _Note(
            row.seq, _number(score), record.verdict, record.partial, read_turn(row.labels)
        )
        self.distances.append(record.cpu_distance)
        environment = record.environment
        self.environments.setdefault(environment.model_dump_json(), environment)
        if record.client is None:
            self.generators.setdefault(_generator_text(record))
        self._judge(row, record)

    def _judge(self, row: Row, record: Record) -> None:
        judge = None if was_cut_short(row.key) else self.judge
        if judge is not None and (step := judge(row, record)) is not None:
            of = self.steps.setdefault((row.labels.get("subject", ""), _load_key(row)), {})
            steps = of.setdefault(row.labels.get("repetition", ""), _Steps())
            steps.taken.append(step)
            steps.last = row.labels
        if "step" in row.labels or self.is_of_search:
            return  # what is said of a search is said of the step that decided
        self.check(record, _name_of(row, record))

    def check(self, record: Record, where: str) -> None:
        """Count what came of the checks of a record."""
        for check in record.checks:
            tally = self.checks.setdefault(check.name, CheckTally(check.name))
            tally.counts[check.status] = tally.counts.get(check.status, 0) + 1
            if tally.worst is None or SEVERITY[check.status] > SEVERITY[tally.worst.status]:
                tally.worst, tally.where = check, where


def gather(run: Run, rows: Iterable[Row | Damaged]) -> Told:
    """Everything that a report says of a run."""
    tally = Tally(run)
    notes: tuple[str, ...] = ()
    if run.kind == "suite" and (plan := _suite_plan(run)) is not None:
        sections = _of_suite(plan, tally, rows)
        notes = (describe(plan),)
    elif run.kind == "search" and (searched := _search_plan(run)) is not None:
        sections = _of_search(searched, tally, rows)
    else:
        sections = _of_rows(tally, rows)
        notes = (STORED,) if run.kind in ("suite", "search") else ()
    return Told(
        run=run,
        sections=sections,
        checks=tuple(tally.checks.values()),
        environments=tuple(tally.environments.values()),
        generators=tuple(tally.generators),
        rows=tally.rows,
        damaged=tuple(tally.damaged),
        moved=moved_text(tally.distances),
        notes=notes,
    )


def _suite_plan(run: Run) -> SuitePlan | None:
    try:
        return read_suite_plan(run)
    except UserError:
        return None


def _search_plan(run: Run) -> SearchPlan | None:
    try:
        return read_plan(run.plan)
    except (UserError, ValueError, KeyError, TypeError):
        return None


# ---- suites


def _of_suite(plan: SuitePlan, tally: Tally, rows: Iterable[Row | Damaged]) -> tuple[Section, ...]:
    if plan.broadcast is not None:
        tally.judge = partial(_suite_step, search_plan(plan, 1))
    tables = tabulate(collect(plan, tally.passing(rows)), plan)
    return tuple(_of_table(plan, table, tally) for table in tables if table.everything)


def _of_table(plan: SuitePlan, table: LoadTable, tally: Tally) -> Section:
    unit: Unit = "requests/s"
    if plan.broadcast is not None:
        unit = "clients"
    elif "echo" in plan.contract:
        unit = "messages/s"
    return Section(
        title=table.title,
        unit=unit,
        entries=with_own_names([_of_summary(each, tally) for each in table.everything]),
        searches=_suite_searches(plan, table, tally),
        published=table.published,
        broadcast=plan.broadcast is not None,
    )


def _of_summary(summary: Summary, tally: Tally) -> Entry:
    """Ranks are the suite's own."""
    shown, pools = summary.figures, summary.cell.load.pools
    notes = [tally.notes[id_] for id_ in summary.record_ids if id_ in tally.notes]
    # Of clients all loads stand in one section.
    under = "" if pools is None else f" {pools_text(pools)}"
    return Entry(
        name=_short(f"{summary.cell.subject.name}{under}"),
        run=tally.run.id,
        outcome=summary.outcome,
        verdict=summary.verdict,
        why=plain(summary.why),
        score=None if shown is None else shown.score,
        interval=summary.interval,
        rank=summary.rank,
        trap=summary.cell.subject.trap,
        repetitions=summary.repetitions,
        counted=summary.counted,
        figures=shown,
        middle=_middle(notes),
        summary=summary,
        trials=_trials(notes),
    )


def pools_text(pools: PlannedPools) -> str:
    """``4x256 for 1,024``: pool count, pool size, and requests asked for at once."""
    return f"{pools.pools}x{pools.pool_size} for {pools.concurrency:,}"


def _middle(notes: Sequence[_Note]) -> int | None:
    """The row in the middle by its score, of those that are not invalid where there are any."""
    able = [note for note in notes if note.verdict != "invalid"] or list(notes)
    able.sort(key=lambda note: note.score)
    return able[(len(able) - 1) // 2].seq if able else None


def _trials(notes: Sequence[_Note]) -> tuple[Trial, ...]:
    """The trials that may be compared with others."""
    whole = [note for note in notes if not note.partial and note.verdict != "invalid"]
    return tuple(Trial(note.score, note.turn) for note in whole)


def _suite_step(plan: SearchPlan, row: Row, record: Record) -> Step | None:
    """None of a row that is no step that can be read."""
    taken = _taken(plan, [(row.labels, record)])
    return _step(taken[0], _decisive(plan).metric) if taken else None


def _suite_searches(plan: SuitePlan, table: LoadTable, tally: Tally) -> tuple[Search, ...]:
    """The last search of each subject; what came of it is kept with the step that decided."""
    if plan.broadcast is None:
        return ()
    wanted = search_plan(plan, table.load.connections)
    found = []
    for planned in plan.subjects:
        by_repetition = tally.steps.get((planned.name, _key(table.load)))
        if not by_repetition:
            continue
        steps = next(reversed(by_repetition.values()))
        last = steps.last
        largest = None if last.get("unfound") else _number(last.get("clients", "")) or None
        found.append(
            _search(
                _short(planned.name),
                wanted,
                steps.taken,
                largest=largest,
                bound=largest is not None and last.get("limited_by") != "server",
                said=last.get("result", ""),
            )
        )
    return tuple(found)


def _load_key(row: Row) -> str:
    return f"{row.labels.get('connections', '')} {row.labels.get('cores', '')}"


def _key(load: PlannedLoad) -> str:
    return f"{load.connections} {load.cores}"


# ---- searches


def _of_search(
    plan: SearchPlan, tally: Tally, rows: Iterable[Row | Damaged]
) -> tuple[Section, ...]:
    tally.is_of_search = True
    stored: list[tuple[Mapping[str, str], Record]] = []
    for row in tally.passing(rows):
        if isinstance(row, Row) and row.record is not None and len(stored) < SEARCH_STEPS_MAX:
            stored.append((row.labels, row.record))
    taken = _taken(plan, stored)
    if not taken:
        return ()
    decided, done, name = deciding(plan, taken).record, outcome(plan, taken), tally.run.title
    found = done if isinstance(done, Found) else None
    tally.check(decided, _short(name))
    search = _search(
        _short(name),
        plan,
        [_step(each, _decisive(plan).metric) for each in taken],
        largest=found.load if found else None,
        bound=found is not None and found.limited_by != "server",
        said=sentence(plan, taken),
    )
    entry = _repeated(_short(name), tally.run.id, [figures(decided, {})], [tally.notes[decided.id]])
    what = "rate" if plan.axis == "rate" else f"number of {plan.axis}"
    return (
        Section(
            title=f"the largest {what} with {plan.limit.text}",
            unit=_unit(decided),
            entries=in_order([entry]),
            searches=(search,),
            broadcast=plan.axis == "clients",
        ),
    )


def _taken(plan: SearchPlan, stored: Sequence[tuple[Mapping[str, str], Record]]) -> list[Taken]:
    """Nothing where what is stored cannot be read."""
    try:
        return read_steps(plan, stored)
    except (ValueError, KeyError, TypeError):
        return []


def _decisive(plan: SearchPlan) -> Threshold:
    """The part of the limit that a curve shows: its highest percentile."""
    return max(plan.limit.parts, key=lambda each: parse_percentile(each.metric) or 0.0)


def _search(
    name: str,
    plan: SearchPlan,
    steps: Sequence[Step],
    *,
    largest: float | None,
    bound: bool,
    said: str,
) -> Search:
    part = _decisive(plan)
    timed = parse_percentile(part.metric) is not None or part.metric == "mean"
    return Search(
        name=name,
        unit=UNITS[plan.axis],
        limit=plan.limit.text,
        metric=part.metric,
        limit_ns=float(part.limit) if timed else None,
        largest=largest,
        bound=bound,
        sentence=plain(said),
        steps=tuple(steps),
    )


def _step(taken: Taken, metric: str) -> Step:
    timed = parse_percentile(metric) is not None or metric == "mean"
    values = [v.value for v in taken.judgement.values if v.threshold.metric == metric and timed]
    return Step(
        load=taken.next.load,
        stage=taken.next.stage,
        outcome=taken.judgement.outcome,
        latency=latency(taken.record).figures,
        decisive_ns=values[0] if values and math.isfinite(values[0]) else None,
    )


# ---- anything else


def _of_rows(tally: Tally, rows: Iterable[Row | Damaged]) -> tuple[Section, ...]:
    """Rows of a single command, or of a plan that cannot be read: those of the same program under
    the same load belong together."""
    measured: dict[tuple[str, Unit, str], list[tuple[Figures, _Note]]] = {}
    apart: list[Entry] = []
    for row in tally.passing(rows):
        if isinstance(row, Damaged) or "step" in row.labels:
            continue
        if row.record is None:
            apart.append(_unmeasured(row, tally.run.id))
            continue
        key = (load_text(row.record), _unit(row.record), _name_of(row, row.record))
        kept = (figures(row.record, row.labels), tally.notes[row.record.id])
        measured.setdefault(key, []).append(kept)
    entries: dict[tuple[str, Unit], list[Entry]] = {}
    for (title, unit, name), some in measured.items():
        found, notes = [each for each, _ in some], [note for _, note in some]
        entries.setdefault((title, unit), []).append(_repeated(name, tally.run.id, found, notes))
    if apart:
        entries[("not measured", "requests/s")] = apart
    return tuple(
        Section(title=title, unit=unit, entries=with_own_names(in_order(some)))
        for (title, unit), some in entries.items()
    )


def _repeated(name: str, run: str, found: Sequence[Figures], notes: Sequence[_Note]) -> Entry:
    """Trials of the same by one command: the median, and the worst verdict, as the command says."""
    worst = max(found, key=lambda each: ("valid", "suspect", "invalid").index(each.verdict))
    rates = [each.ok_per_s or 0.0 for each in found]
    return Entry(
        name=name,
        run=run,
        outcome="measured",
        verdict=worst.verdict,
        why="" if worst.verdict == "valid" else plain("; ".join(worst.reasons)),
        score=stats.median(rates),
        interval=stats.interval(rates),
        repetitions=len(found),
        counted=len(found),
        figures=together(found),
        middle=_middle(notes),
        trials=_trials(notes),
    )


def _unmeasured(row: Row, run: str) -> Entry:
    name = row.labels.get("subject") or row.key or f"row {row.number}"
    why = plain(row.reason or "no reason given")
    return Entry(_short(name), run, row.outcome, None, why)


def _name_of(row: Row, record: Record) -> str:
    return _short(row.labels.get("subject") or record.plan.url)


def _short(name: str) -> str:
    return plain(name, NAME_LENGTH_MAX).strip() or "without a name"


def _unit(record: Record) -> Unit:
    return "requests/s" if record.plan.generate.exchange is None else "messages/s"


def _number(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _generator_text(record: Record) -> str:
    """How it was sent: ``epoll, 1 thread on CPU 1``."""
    found = record.generator
    threads = f"{found.threads} thread{'' if found.threads == 1 else 's'}"
    cpus = f" on CPU {format_cpu_list(found.cpus)}" if found.cpus else ""
    return plain(f"{found.driver or 'no driver'}, {threads}{cpus}")
