"""The rows of a run as figures: repetitions of a cell together, one cell at a time.

How: the store's rows stream by; of each record only a dozen numbers are kept, so that a
run of 10,000 cells needs little memory. What may be ranked is decided here, purely: a
peer that misbehaved in any repetition is invalid, while the machine's own trouble may
spoil fewer than half of them.

Must not know: how a table is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trueload import stats
from trueload.record import figures as of_record
from trueload.record.distance import moved_text
from trueload.record.schema import (
    Check,
    CpuDistance,
    Generator,
    Idle,
    Record,
    Server,
    Verdict,
)
from trueload.store.runs import Damaged, Outcome, Row
from trueload.suites.client_figures import ClientFigures, client_figures
from trueload.suites.client_figures import together as clients_together
from trueload.suites.definition import PublishedTable
from trueload.suites.plan import Cell, PlannedLoad, SuitePlan, was_cut_short
from trueload.suites.steps import step_text
from trueload.verdict import CHECKS, SEVERITY, client_parts
from trueload.verdict.apachebench import ApacheBench, apachebench

# Checks that fail because of the machine or the generator, not of the subject: another
# repetition can stand in for the one that they spoilt.
MACHINE_CHECKS = frozenset(
    name for name, check in CHECKS.items() if check.fault in ("generator", "machine", "either")
)

# A search that our own side kept from its result is as if the generator had been the limit.
UNFOUND = {"generator": "generator-limit"}

# Latencies of a table that may lie among requests without a time.
SHOWN_RANKS = ("p25", "p50", "p75", "p99")
BOUNDED = (*SHOWN_RANKS, "p95")


@dataclass(frozen=True)
class Carried:
    """What one repetition of a broadcast came to: the most clients that kept to the limit, 0 if
    none did, and the fewest that did not (None: more was not tried, or our side was the limit);
    what was measured with that many."""

    clients: float
    above: float | None
    p95_ms: float | None
    deliveries_per_s: float | None
    lost: float | None
    bytes_per_connection: float | None


@dataclass(frozen=True)
class Figures:
    """What one repetition left. Latencies in ms, None when nothing was answered well;
    `latency_at_least` names those that are only lower bounds, because requests have no time;
    `min_ms` and `max_ms` are of answers;
    `p50_ours_ms` and `p99_ours_ms` are the generator's own part, None where it is not known;
    `cpu_share` is the subject's CPU time over the window, 1.0 for one CPU."""

    record_id: str
    verdict: Verdict
    failed_checks: tuple[str, ...]
    reasons: tuple[str, ...]
    response_bytes: int | None
    requests: int
    errors: int
    ok_per_s: float | None
    bytes_per_s: float | None
    min_ms: float | None
    p25_ms: float | None
    p50_ms: float | None
    p75_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    latency_at_least: tuple[str, ...]
    cpu_share: float | None
    peak_rss_bytes: int | None
    p50_ours_ms: float | None = None
    p99_ours_ms: float | None = None
    carried: Carried | None = None
    idle: Idle | None = None
    apachebench: ApacheBench | None = None
    client: ClientFigures | None = None

    def ms(self, name: str) -> float | None:
        """A percentile by its name; the p95 is only there of a broadcast."""
        if name == "p95":
            return None if self.carried is None else self.carried.p95_ms
        found: float | None = getattr(self, f"{name}_ms")
        return found

    @property
    def score(self) -> float | None:
        """What rows are ranked by: the clients that a broadcast carried, the goodput of a client,
        else requests per second."""
        if self.client is not None:
            return self.client.goodput_per_s
        return self.ok_per_s if self.carried is None else self.carried.clients


def figures(record: Record, labels: Mapping[str, str]) -> Figures:
    """The numbers of a row that a table needs. Pure."""
    latency = of_record.latency(record).figures
    died, fault = labels.get("died"), labels.get("fault")
    failed = [check for check in record.checks if check.status == "fail"]
    failed.sort(key=lambda check: check.name in MACHINE_CHECKS)  # the subject's own come first
    noted = failed or [check for check in record.checks if check.status == "warn"]
    reasons = [f"{check.name}: {check.why}" for check in noted]
    if record.trouble is not None:
        reasons.insert(0, record.trouble.what)  # the cause of what the checks found
    unfound = labels.get("unfound")
    if unfound:
        reasons.insert(0, labels.get("result", ""))
    if died:
        reasons.insert(0, f"the subject ended in mid-run: {died}")
    if fault:
        reasons.insert(0, fault)
    window_s = record.window.window_ns / 1e9
    subject = _subject_usage(record)
    ours_ns = {part.percentile: part.ours_ns for part in client_parts(record)}
    return Figures(
        record_id=record.id,
        verdict="invalid" if died or fault or unfound else record.verdict,
        failed_checks=(
            *(["died"] if died else []),
            *(["fault"] if fault else []),
            *([UNFOUND.get(unfound, unfound)] if unfound else []),
            *(check.name for check in failed),
        ),
        reasons=tuple(reasons),
        response_bytes=int(labels["response_bytes"]) if "response_bytes" in labels else None,
        requests=record.counts.issued,
        errors=of_record.failed(record.counts),
        ok_per_s=record.throughput.ok_per_s,
        bytes_per_s=record.throughput.bytes_in_per_s,
        min_ms=_ms(latency.min),
        p25_ms=_ms(latency.p25),
        p50_ms=_ms(latency.p50),
        p75_ms=_ms(latency.p75),
        p99_ms=_ms(latency.p99),
        max_ms=_ms(latency.max),
        latency_at_least=tuple(
            name
            for name in (BOUNDED if "clients" in labels else SHOWN_RANKS)
            if name in latency.at_least
        ),
        cpu_share=_share(subject.cpu_s, window_s) if subject is not None else None,
        peak_rss_bytes=subject.peak_rss_bytes if subject is not None else None,
        p50_ours_ms=_ms(ours_ns.get("p50")),
        p99_ours_ms=_ms(ours_ns.get("p99")),
        carried=_carried(record, labels),
        idle=record.idle,
        client=client_figures(record),
    )


def _subject_usage(record: Record) -> Server | Generator | None:
    """The subject's process tree: a client stands where the generator does."""
    return record.server if record.client is None else record.generator


def _share(cpu_s: float | None, window_s: float) -> float | None:
    return cpu_s / window_s if cpu_s is not None and window_s > 0 else None


def _carried(record: Record, labels: Mapping[str, str]) -> Carried | None:
    if "clients" not in labels or labels.get("unfound"):
        return None
    above, found = labels.get("above"), record.deliveries
    return Carried(
        clients=float(labels["clients"]),
        above=float(above) if above and labels.get("limited_by") == "server" else None,
        p95_ms=_ms(of_record.latency(record).figures.p95),
        deliveries_per_s=found.per_s if found is not None else None,
        lost=found.lost + found.duplicate if found is not None else None,
        bytes_per_connection=record.server.bytes_per_connection if record.server else None,
    )


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6


@dataclass
class CellRows:
    """What the store holds of one cell; `steps` are those of its searches, by repetition in the
    order of storing, as rows of text."""

    cell: Cell
    measured: list[Figures] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    digests: set[str] = field(default_factory=set)
    skipped: str | None = None
    unsupported: str | None = None
    steps: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """One cell as a table shows it. Figures are of the repetitions that count: requests and
    errors their sums, min and max the extremes, the rest medians. `best` is the repetition
    with the highest throughput, as published tables take it; `steps` are those of the last
    search."""

    cell: Cell
    outcome: Outcome
    verdict: Verdict | None
    why: str
    repetitions: int
    counted: int
    figures: Figures | None
    interval: stats.Interval | None
    best: Figures | None
    record_ids: tuple[str, ...]
    rank: int | None = None
    steps: tuple[str, ...] = ()

    @property
    def ranked(self) -> bool:
        """Whether the cell may take a place: measured, not invalid, and no trap."""
        return (
            self.outcome == "measured"
            and self.verdict != "invalid"
            and not self.cell.subject.trap
            and self.interval is not None
        )


@dataclass(frozen=True)
class Collected:
    """A run's rows by cell, in the plan's order, with what concerns the whole: ``moved`` says
    whether the host moved the CPUs from row to row, empty where it did not."""

    cells: tuple[CellRows, ...]
    checks: tuple[Check, ...]
    damaged: tuple[str, ...]
    moved: str = ""


def collect(plan: SuitePlan, rows: Iterable[Row | Damaged]) -> Collected:
    """Reads the rows once, keeping a dozen numbers of each."""
    by_key: dict[str, CellRows] = {}
    for subject in plan.subjects:
        for load in plan.loads:
            cell = Cell(subject, load)
            by_key[cell.key] = CellRows(cell)
    checks: dict[str, Check] = {}
    damaged: list[str] = []
    distances: list[CpuDistance | None] = []
    for row in rows:
        if isinstance(row, Damaged):
            number = "a row" if row.number is None else f"row {row.number}"
            damaged.append(f"{number} is damaged: {row.why}")
            continue
        into = by_key.get(row.key.rpartition(" r")[0])
        if into is None:
            continue
        searched = plan.broadcast is not None and not was_cut_short(row.key)
        if row.record is not None and searched:
            _add_step(into, plan, row.record, row.labels)
        if "step" in row.labels:
            continue
        _add(into, plan, row)
        distances += [] if row.record is None else [row.record.cpu_distance]
        for check in row.record.checks if row.record is not None else ():
            known = checks.get(check.name)
            if known is None or SEVERITY[check.status] > SEVERITY[known.status]:
                checks[check.name] = check
    return Collected(
        tuple(by_key.values()), tuple(checks.values()), tuple(damaged), moved_text(distances)
    )


def _add_step(into: CellRows, plan: SuitePlan, record: Record, labels: Mapping[str, str]) -> None:
    """The steps of a search are stored in order, but for the one that decides: it comes last."""
    text = step_text(plan, float(labels["load"]), labels["stage"], record)
    into.steps.setdefault(labels.get("repetition", ""), []).append(text)


def _add(into: CellRows, plan: SuitePlan, row: Row) -> None:
    if was_cut_short(row.key):
        return  # done again by --resume, or the run has no more of it
    if row.record is not None:
        found = figures(row.record, row.labels)
        if plan.report == "apachebench":
            length = row.labels.get("document_bytes")
            made = apachebench(row.record, int(length) if length else None)
            found = replace(found, apachebench=made)
        into.measured.append(found)
        into.digests.add(row.labels.get("digest", ""))
    elif row.outcome == "unsupported":
        into.unsupported = row.reason or ""
    elif row.outcome == "skipped":
        into.skipped = row.reason or ""
    else:
        into.failed.append(row.reason or "")


def summarise(rows: CellRows) -> Summary | None:
    """One cell; None if the store holds nothing of it yet. Pure."""
    done = rows.measured
    if not done:
        if rows.failed:
            return _without_figures(rows, "failed", rows.failed[-1])
        if rows.unsupported is not None:
            return _without_figures(rows, "unsupported", rows.unsupported)
        if rows.skipped is not None:
            return _without_figures(rows, "skipped", rows.skipped)
        return None
    verdict, why = judge(done, rows.failed)
    if verdict == "valid" and len(rows.digests) > 1:
        verdict, why = "suspect", "the subject changed in mid-run: its repetitions differ in kind"
    counted = [each for each in done if each.verdict != "invalid"]
    shown = done if verdict == "invalid" or not counted else counted
    rates = [each.score for each in shown if each.score is not None]
    return Summary(
        cell=rows.cell,
        outcome="measured",
        verdict=verdict,
        why=why,
        repetitions=len(done) + len(rows.failed),
        counted=len(shown),
        figures=together(shown),
        interval=_bracket(shown) or stats.interval(rates),
        best=max(shown, key=lambda each: each.score or 0.0),
        record_ids=tuple(each.record_id for each in done),
        steps=tuple(next(reversed(rows.steps.values()), ())),
    )


def _bracket(shown: Sequence[Figures]) -> stats.Interval | None:
    """Where a single search says that its result lies; of several, their spread does."""
    found = shown[0].carried
    if len(shown) > 1 or found is None or found.above is None:
        return None
    return stats.Interval(found.clients, found.above, "range")


def judge(done: Sequence[Figures], failed: Sequence[str]) -> tuple[Verdict, str]:
    """The verdict of a cell from its repetitions, with the reason in one line. Pure.

    A failure that is the subject's own in any repetition makes the cell invalid. Where the
    machine spoilt repetitions, more than half of all must be left, and the cell is suspect.
    """
    total = len(done) + len(failed)
    invalid = [each for each in done if each.verdict == "invalid"]
    for each in invalid:
        if not set(each.failed_checks) <= MACHINE_CHECKS or not each.failed_checks:
            return "invalid", _first_reason([each], total)
    if 2 * (len(invalid) + len(failed)) >= total:
        return "invalid", _first_reason(invalid, total) or failed[-1]
    if invalid:
        lost = f"{len(invalid)} of {total} repetitions left out"
        return "suspect", f"{lost}: {_first_reason(invalid, total)}"
    if failed:
        return "suspect", f"{len(failed)} of {total} repetitions failed: {failed[-1]}"
    suspect = [each for each in done if each.verdict == "suspect"]
    if suspect:
        return "suspect", _first_reason(suspect, total)
    return "valid", ""


def _first_reason(some: Sequence[Figures], total: int) -> str:
    for each in some:
        if each.reasons:
            return each.reasons[0]
    return "its checks failed" if some else ""


def _without_figures(rows: CellRows, outcome: Outcome, why: str) -> Summary:
    return Summary(
        cell=rows.cell,
        outcome=outcome,
        verdict=None,
        why=why,
        repetitions=len(rows.failed),
        counted=0,
        figures=None,
        interval=None,
        best=None,
        record_ids=(),
    )


def together(some: Sequence[Figures]) -> Figures:
    """What several repetitions come to, at least one. Pure."""

    def middle(values: Iterable[float | None]) -> float | None:
        return stats.median([value for value in values if value is not None])

    def extreme(pick: Literal["min", "max"], values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return (min(known) if pick == "min" else max(known)) if known else None

    times = {name: _median_time(name, some) for name in BOUNDED}
    peak = middle(each.peak_rss_bytes for each in some)
    by_rate = sorted(some, key=lambda each: each.ok_per_s or 0.0)
    sizes = [each.response_bytes for each in some if each.response_bytes is not None]
    return Figures(
        record_id="",
        verdict=some[0].verdict,
        failed_checks=(),
        reasons=(),
        response_bytes=sizes[-1] if sizes else None,
        requests=sum(each.requests for each in some),
        errors=sum(each.errors for each in some),
        ok_per_s=middle(each.ok_per_s for each in some),
        bytes_per_s=middle(each.bytes_per_s for each in some),
        min_ms=extreme("min", (each.min_ms for each in some)),
        p25_ms=times["p25"][0],
        p50_ms=times["p50"][0],
        p75_ms=times["p75"][0],
        p99_ms=times["p99"][0],
        max_ms=extreme("max", (each.max_ms for each in some)),
        latency_at_least=tuple(name for name, (ms, above) in times.items() if above and ms),
        cpu_share=middle(each.cpu_share for each in some),
        peak_rss_bytes=None if peak is None else int(peak),
        p50_ours_ms=middle(each.p50_ours_ms for each in some),
        p99_ours_ms=middle(each.p99_ours_ms for each in some),
        carried=_carried_together(
            [each.carried for each in some if each.carried is not None], times["p95"][0]
        ),
        idle=_idle_in_the_middle([each.idle for each in some if each.idle is not None]),
        apachebench=by_rate[(len(some) - 1) // 2].apachebench,
        client=clients_together([each.client for each in some if each.client is not None]),
    )


def _idle_in_the_middle(some: Sequence[Idle]) -> Idle | None:
    """The staircase whose cost is the median, so that its steps belong together."""
    known = [idle for idle in some if idle.server_bytes_per_connection is not None]
    if not known:
        return some[0] if some else None
    known.sort(key=lambda idle: idle.server_bytes_per_connection or 0.0)
    return known[(len(known) - 1) // 2]


def _carried_together(some: Sequence[Carried], p95_ms: float | None) -> Carried | None:
    def middle(name: str) -> float | None:
        values = [getattr(each, name) for each in some]
        return stats.median([value for value in values if value is not None])

    if not some:
        return None
    return Carried(
        clients=middle("clients") or 0.0,
        above=middle("above"),
        p95_ms=p95_ms,
        deliveries_per_s=middle("deliveries_per_s"),
        lost=sum(each.lost or 0 for each in some),
        bytes_per_connection=middle("bytes_per_connection"),
    )


def _median_time(name: str, some: Sequence[Figures]) -> tuple[float | None, bool]:
    """The median of one percentile, and whether it is only a lower bound."""
    return stats.median_of_bounds([(each.ms(name), name in each.latency_at_least) for each in some])


@dataclass(frozen=True)
class LoadTable:
    """All cells of one load: ranked by throughput, and apart from them, with their reasons,
    the invalid, the traps, and those that were not measured. `published` is what others said of
    such a load. Of clients all loads stand in one table, as published: `load` is the first one."""

    load: PlannedLoad
    ranked: tuple[Summary, ...]
    invalid: tuple[Summary, ...]
    traps: tuple[Summary, ...]
    unmeasured: tuple[Summary, ...]
    published: tuple[PublishedTable, ...] = ()

    @property
    def everything(self) -> tuple[Summary, ...]:
        """All of them, in the order in which they are shown."""
        return (*self.ranked, *self.invalid, *self.traps, *self.unmeasured)

    @property
    def title(self) -> str:
        """For people."""
        pools = self.load.pools
        if pools is None:
            return self.load.title
        files = f"{pools.files:,} open files" if pools.files else "as many open files as there are"
        return f"HTTP clients, each with {files}"


def tabulate(collected: Collected, plan: SuitePlan) -> list[LoadTable]:
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
    traps = [s for s in measured if s.cell.subject.trap]
    ours = [s for s in measured if not s.cell.subject.trap]
    return LoadTable(
        load=load,
        ranked=_ranked([s for s in ours if s.ranked]),
        invalid=tuple(s for s in ours if not s.ranked),
        traps=tuple(traps),
        unmeasured=tuple(s for s in summaries if s.outcome != "measured"),
        published=tuple(
            each for each in plan.published_tables if each.connections == load.connections
        ),
    )


def _by_throughput(summary: Summary) -> tuple[float, str]:
    shown = summary.figures
    rate = shown.score if shown is not None and shown.score is not None else 0.0
    return (-rate, summary.cell.subject.name)


def _ranked(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """Rank = 1 + the number of subjects whose interval lies wholly above (design §6)."""
    ranks = stats.ranks([s.interval for s in summaries if s.interval is not None])
    return tuple(
        Summary(**{**summary.__dict__, "rank": rank})
        for summary, rank in zip(summaries, ranks, strict=True)
    )


def run_verdict(tables: Iterable[LoadTable]) -> Verdict | None:
    """Of the run as a whole: invalid if nothing is ranked, suspect if anything measured is
    not valid, None if nothing was measured. Pure."""
    measured = [s for t in tables for s in (*t.ranked, *t.invalid)]
    if not measured:
        return None
    if not any(summary.ranked for summary in measured):
        return "invalid"
    return "valid" if all(summary.verdict == "valid" for summary in measured) else "suspect"
