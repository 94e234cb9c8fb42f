"""Collects what a report says about a run, in one pass that keeps little of each row.

How: rows stream by. Checks are counted, and environments are told apart. A dozen figures of each
record are kept, with the number by which its row can be fetched again for a curve. A suite is
tabulated by its plan, as on the command line. A search is judged again from its steps. Anything
else is grouped by the rows' labels. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from trueload.errors import UserError
from trueload.record.figures import latency, percentile_share
from trueload.record.schema import Check, CoreLatency, Environment, Record, Status
from trueload.record.thresholds import Threshold
from trueload.report.html.entries import in_order, with_own_names
from trueload.report.result import load_text
from trueload.report.suite_json import read_plan as read_suite_plan
from trueload.search.decide import SafeLoad
from trueload.search.execute import SearchPlan, StepResult, outcome
from trueload.search.result import deciding, read_plan, read_steps, sentence
from trueload.store.rows import DamagedRow, Row, Run
from trueload.suites.figures import Figures, figures
from trueload.suites.load_tables import LoadTable, tabulate
from trueload.suites.plan import PlannedLoad, SuitePlan, describe, was_cut_short
from trueload.suites.steps import Search, Step, search_plan
from trueload.suites.summary import Summary, Unit, collect, repeated
from trueload.text import plain
from trueload.units import counted, format_count, format_cpu_list
from trueload.verdict import CHECKS, SEVERITY

NAME_LENGTH_MAX = 120
STATUSES: tuple[Status, ...] = ("fail", "warn", "bound", "pass", "n/a")
# All steps of a search are judged again; no search takes this many.
SEARCH_STEPS_MAX = 500
STORED = "its plan cannot be read by this version: its rows are shown one by one"


@dataclass
class _Steps:
    """The steps of one search in a suite; the labels of the last one have the result."""

    taken: list[Step] = field(default_factory=list)
    last: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CheckTally:
    """One check over all rows: how often it came out how, and the worst of it with its entry
    and what to do about it."""

    name: str
    counts: Counter[Status] = field(default_factory=Counter)
    worst: Check | None = None
    where: str = ""
    remedy: str = ""

    @property
    def status(self) -> Status:
        return self.worst.status if self.worst is not None else "n/a"

    @property
    def why(self) -> str:
        return plain(self.worst.why) if self.worst is not None else ""

    @property
    def meaning(self) -> str:
        return CHECKS[self.name].meaning if self.name in CHECKS else ""

    @property
    def counts_text(self) -> str:
        """A text: ``1 fail, 12 pass``."""
        shown = [status for status in STATUSES if self.counts[status]]
        return ", ".join(f"{format_count(self.counts[status])} {status}" for status in shown)


@dataclass
class RunReport:
    """A run with everything that a report says of it, counted as its rows pass."""

    run: Run
    sections: tuple[LoadTable, ...] = ()
    notes: tuple[str, ...] = ()
    checks: dict[str, CheckTally] = field(default_factory=dict)
    environments: dict[str, Environment] = field(default_factory=dict)
    generators: dict[str, None] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    core_latencies: list[CoreLatency | None] = field(default_factory=list)
    judge: Callable[[Row, Record], Step | None] | None = None
    is_of_search: bool = False
    steps: dict[tuple[str, str], dict[str, _Steps]] = field(default_factory=dict)

    def passing(self, rows: Iterable[Row | DamagedRow]) -> Iterator[Row | DamagedRow]:
        """Yield the same rows, and count them; keep those that ``judge`` turns into a step."""
        for row in rows:
            if isinstance(row, DamagedRow):
                self.damaged.append(plain(str(row)))
                yield row
                continue
            self.rows[row.outcome] += 1
            if row.record is not None:
                self._count(row, row.record)
            yield row

    def _count(self, row: Row, record: Record) -> None:
        self.core_latencies.append(record.cpu_distance)
        environment = record.environment
        # The load differs from trial to trial; the page shows that before the first one.
        machine = environment.model_copy(update={"load_average": None})
        self.environments.setdefault(machine.model_dump_json(), environment)
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
            return  # only the deciding step of a search counts
        self.check(record, _name_of(row, record))

    def check(self, record: Record, where: str) -> None:
        """Count the outcomes of a record's checks."""
        for check in record.checks:
            tally = self.checks.setdefault(check.name, CheckTally(plain(check.name)))
            tally.counts[check.status] += 1
            if tally.worst is None or SEVERITY[check.status] > SEVERITY[tally.worst.status]:
                tally.worst, tally.where = check, where
                explained = CHECKS.get(check.name)
                tally.remedy = explained.remedy_for(record) if explained else ""


def gather(run: Run, rows: Iterable[Row | DamagedRow]) -> RunReport:
    """Return everything that a report says about a run."""
    report = RunReport(run)
    if run.kind == "suite" and (plan := _suite_plan(run)) is not None:
        report.sections = _of_suite(plan, report, rows)
        report.notes = (describe(plan),)
    elif run.kind == "search" and (searched := _search_plan(run)) is not None:
        report.sections = _of_search(searched, report, rows)
    else:
        report.sections = _of_rows(report, rows)
        report.notes = (STORED,) if run.kind in ("suite", "search") else ()
    return report


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


def _of_suite(
    plan: SuitePlan, report: RunReport, rows: Iterable[Row | DamagedRow]
) -> tuple[LoadTable, ...]:
    if plan.broadcast is not None:
        report.judge = partial(_suite_step, search_plan(plan, 1))
    tables = tabulate(collect(plan, report.passing(rows)), plan)
    return tuple(_of_table(plan, table, report) for table in tables if table.everything)


def _of_table(plan: SuitePlan, table: LoadTable, report: RunReport) -> LoadTable:
    """Return the table for the report; ranks are the suite's own."""
    entries = [
        replace(each, name=_short(each.name), run=report.run.id, why=plain(each.why))
        for each in table.everything
    ]
    return replace(
        table,
        everything=with_own_names(entries),
        searches=_suite_searches(plan, table, report),
    )


def _suite_step(plan: SearchPlan, row: Row, record: Record) -> Step | None:
    """Return the step of a row; None if the row is no readable step."""
    taken = _taken(plan, [(row.labels, record)])
    return _step(taken[0], _decisive(plan).metric) if taken else None


def _suite_searches(plan: SuitePlan, table: LoadTable, report: RunReport) -> tuple[Search, ...]:
    """Return each subject's last search; the labels of its last step have the result."""
    if plan.broadcast is None:
        return ()
    wanted = search_plan(plan, table.load.connections)
    found = []
    for planned in plan.subjects:
        by_repetition = report.steps.get((planned.name, _key(table.load)))
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
                sentence_text=last.get("result", ""),
            )
        )
    return tuple(found)


def _load_key(row: Row) -> str:
    return f"{row.labels.get('connections', '')} {row.labels.get('cores', '')}"


def _key(load: PlannedLoad) -> str:
    return f"{load.connections} {load.cores}"


# ---- searches


def _of_search(
    plan: SearchPlan, report: RunReport, rows: Iterable[Row | DamagedRow]
) -> tuple[LoadTable, ...]:
    report.is_of_search = True
    stored: list[tuple[Mapping[str, str], Record]] = []
    seqs: dict[str, int] = {}
    for row in report.passing(rows):
        if isinstance(row, Row) and row.record is not None and len(stored) < SEARCH_STEPS_MAX:
            stored.append((row.labels, row.record))
            seqs[row.record.id] = row.seq
    taken = _taken(plan, stored)
    if not taken:
        return ()
    decided, done, name = deciding(plan, taken).record, outcome(plan, taken), report.run.title
    found = done if isinstance(done, SafeLoad) else None
    report.check(decided, _short(name))
    search = _search(
        _short(name),
        plan,
        [_step(each, _decisive(plan).metric) for each in taken],
        largest=found.load if found else None,
        bound=found is not None and found.limited_by != "server",
        sentence_text=sentence(plan, taken),
    )
    entry = _repeated(_short(name), report.run.id, [figures(decided, {}, seqs[decided.id])])
    what = "rate" if plan.axis == "rate" else f"number of {plan.axis}"
    return (
        LoadTable(
            title=f"the largest {what} with {plan.limit.text}",
            unit=_unit(decided),
            everything=in_order([entry]),
            searches=(search,),
            broadcast=plan.axis == "clients",
        ),
    )


def _taken(
    plan: SearchPlan, stored: Sequence[tuple[Mapping[str, str], Record]]
) -> list[StepResult]:
    """Return the steps; none if what is stored cannot be read."""
    try:
        return read_steps(plan, stored)
    except (ValueError, KeyError, TypeError):
        return []


def _decisive(plan: SearchPlan) -> Threshold:
    """Return the part of the limit that a curve shows: the one with the highest percentile."""
    return max(plan.limit.parts, key=lambda each: percentile_share(each.metric) or 0.0)


def _search(
    name: str,
    plan: SearchPlan,
    steps: Sequence[Step],
    *,
    largest: float | None,
    bound: bool,
    sentence_text: str,
) -> Search:
    part = _decisive(plan)
    timed = percentile_share(part.metric) is not None or part.metric == "mean"
    return Search(
        name=name,
        unit=plan.unit,
        limit=plan.limit.text,
        metric=part.metric,
        limit_ns=float(part.limit) if timed else None,
        largest=largest,
        bound=bound,
        sentence=plain(sentence_text),
        steps=tuple(steps),
    )


def _step(taken: StepResult, metric: str) -> Step:
    timed = percentile_share(metric) is not None or metric == "mean"
    values = [v for v in taken.judgement.values if v.threshold.metric == metric and timed]
    return Step(
        load=taken.next.load,
        stage=taken.next.purpose,
        outcome=taken.judgement.outcome,
        latency=latency(taken.record).figures,
        decisive_ns=values[0].value if values and math.isfinite(values[0].value) else None,
        decisive_text=values[0].value_text() if values else "",
    )


# ---- anything else


def _of_rows(report: RunReport, rows: Iterable[Row | DamagedRow]) -> tuple[LoadTable, ...]:
    """Group the rows of a single command, or of a plan that cannot be read.

    Rows of the same program under the same load belong together.
    """
    measured: dict[tuple[str, Unit, str], list[Figures]] = {}
    apart: list[Summary] = []
    for row in report.passing(rows):
        if isinstance(row, DamagedRow) or "step" in row.labels:
            continue
        if row.record is None:
            apart.append(_unmeasured(row, report.run.id))
            continue
        key = (load_text(row.record), _unit(row.record), _name_of(row, row.record))
        measured.setdefault(key, []).append(figures(row.record, row.labels, row.seq))
    entries: dict[tuple[str, Unit], list[Summary]] = {}
    for (title, unit, name), found in measured.items():
        entries.setdefault((title, unit), []).append(_repeated(name, report.run.id, found))
    if apart:
        entries[("not measured", "requests/s")] = apart
    return tuple(
        LoadTable(title=title, unit=unit, everything=with_own_names(in_order(some)))
        for (title, unit), some in entries.items()
    )


def _repeated(name: str, run: str, found: Sequence[Figures]) -> Summary:
    """Return a summary of one command's trials of the same load."""
    entry = repeated(name, run, found)
    return replace(entry, why=plain(entry.why))


def _unmeasured(row: Row, run: str) -> Summary:
    name = row.labels.get("subject") or row.key or f"row {row.number}"
    why = plain(row.reason or "no reason given")
    return Summary(_short(name), run, row.outcome, None, why)


def _name_of(row: Row, record: Record) -> str:
    """The program of a row; a side of `trueload ab` has its letter before it."""
    name = row.labels.get("subject") or record.plan.url
    side = row.labels.get("side")
    return _short(f"{side.upper()}: {name}" if side in ("a", "b") else name)


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
    """Return a text on the generator: ``epoll, 1 thread on CPU 1``."""
    found = record.generator
    threads = counted(found.threads, "thread")
    cpus = f" on CPU {format_cpu_list(found.cpus)}" if found.cpus else ""
    return plain(f"{found.driver or 'no driver'}, {threads}{cpus}")
