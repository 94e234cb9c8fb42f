"""The rows of a run as figures: repetitions of a cell together, one cell at a time.

How: the store's rows stream by; of each record only a dozen numbers are kept, so that a
run of 10,000 cells needs little memory. What may be ranked is decided here, purely: a
peer that misbehaved in any repetition is invalid, while the machine's own trouble may
spoil fewer than half of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trueload import repetitions
from trueload.record.core_latency import moved_text
from trueload.record.schema import Check, CoreLatency, Record, Verdict
from trueload.store.rows import DamagedRow, Outcome, Row
from trueload.suites.figures import MACHINE_CHECKS, UNEVEN, Figures, figures, together
from trueload.suites.pairs import Pairing, is_reference
from trueload.suites.plan import Cell, SuitePlan, cells, was_cut_short
from trueload.suites.ranks import Places, RowScore
from trueload.suites.states import usual_of
from trueload.suites.steps import step_text
from trueload.units import counted
from trueload.verdict import SEVERITY
from trueload.verdict.apachebench import apachebench


@dataclass
class CellRows:
    """What the store holds of one cell, for which so many repetitions are `planned`; `steps` are
    those of its searches, by repetition in the order of storing, as rows of text."""

    cell: Cell
    measured: list[Figures] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    digests: set[str] = field(default_factory=set)
    skipped: str | None = None
    unsupported: str | None = None
    planned: int = 0
    steps: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """The score of one trial, its pair and side where it was measured in pairs, its ratio to the
    reference where that was measured beside it."""

    score: float
    pair: int | None = None
    side: str = ""
    ratio: float | None = None


@dataclass(frozen=True)
class Summary:
    """One program under one load, its repetitions together.

    Figures are of the repetitions that count: requests and errors their sums, min and max the
    extremes, the rest medians. `score` is what it is ranked by; `best` is the repetition with the
    highest throughput, as published tables take it; `middle` the stored row of the one that stands
    for all in curves. `trials` are those by which it is compared with others, `places` the ranks
    that it may have. Of a suite there are `planned`, the cell, and `steps`, those of its last
    search.
    """

    name: str
    run: str
    outcome: Outcome
    verdict: Verdict | None
    why: str
    score: float | None = None
    interval: repetitions.Interval | None = None
    places: Places | None = None
    trap: bool = False
    repetitions: int = 0
    counted: int = 0
    figures: Figures | None = None
    best: Figures | None = None
    middle: int | None = None
    planned: Cell | None = None
    record_ids: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        """That of a suite."""
        assert self.planned is not None, "it is of a suite"
        return self.planned

    @property
    def side(self) -> str:
        """``a`` or ``b``, if all trials are of one side of pairs."""
        sides = {each.side for each in self.trials}
        return sides.pop() if len(sides) == 1 else ""

    @property
    def lower_bound(self) -> bool:
        """Whether it carries at least its score, and perhaps more."""
        return self.verdict != "invalid" and self.figures is not None and self.figures.lower_bound

    @property
    def rank(self) -> int | None:
        """The best rank that it may have; None where none is known."""
        return None if self.places is None else self.places.first

    @property
    def scored(self) -> RowScore:
        """What it is ranked by where not all have ratios."""
        scores = tuple(trial.score for trial in self.trials)
        return RowScore(scores, self.score or 0.0, self.lower_bound)

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratio of each trial to the reference, if each has one; else none."""
        found = tuple(trial.ratio for trial in self.trials if trial.ratio is not None)
        return found if len(found) == len(self.trials) else ()

    @property
    def can_rank(self) -> bool:
        """Whether it may stand among the ranked: measured, not invalid, and no trap."""
        return (
            self.outcome == "measured"
            and self.verdict != "invalid"
            and not self.trap
            and self.interval is not None
        )


@dataclass(frozen=True)
class RunCells:
    """A run's rows by cell, in the plan's order, with what concerns the whole: ``moved`` says
    whether the host moved the CPUs from row to row, empty where it did not."""

    cells: tuple[CellRows, ...]
    checks: tuple[Check, ...]
    damaged: tuple[str, ...]
    moved: str = ""


def collect(plan: SuitePlan, rows: Iterable[Row | DamagedRow]) -> RunCells:
    """Reads the rows once, keeping a dozen numbers of each."""
    by_key = {cell.key: CellRows(cell, planned=plan.repeat) for cell in cells(plan)}
    checks: dict[str, Check] = {}
    damaged: list[str] = []
    latencies: list[CoreLatency | None] = []
    pairing = Pairing()
    for row in rows:
        if isinstance(row, DamagedRow):
            damaged.append(str(row))
            continue
        if is_reference(row.labels):
            pairing.reference(row)
            continue
        into = by_key.get(row.key.rpartition(" r")[0])
        if into is None:
            continue
        searched = plan.broadcast is not None and not was_cut_short(row.key)
        if row.record is not None and searched:
            _add_step(into, plan, row.record, row.labels)
        if "step" in row.labels:
            continue
        if _add(into, plan, row):
            pairing.trial(into.cell.load.key, into.measured)
        latencies += [] if row.record is None else [row.record.cpu_distance]
        for check in row.record.checks if row.record is not None else ():
            known = checks.get(check.name)
            if known is None or SEVERITY[check.status] > SEVERITY[known.status]:
                checks[check.name] = check
    found = tuple(by_key.values())
    if plan.takes_again:
        _mark_unlike(found)
    return RunCells(found, tuple(checks.values()), tuple(damaged), moved_text(latencies))


def _mark_unlike(cells: Sequence[CellRows]) -> None:
    """Says of each repetition why it is unlike most of the run, where it is."""
    usual = usual_of([each.state for rows in cells for each in rows.measured])
    for rows in cells:
        rows.measured = [replace(each, unlike=usual.unlike(each.state)) for each in rows.measured]


def _add_step(into: CellRows, plan: SuitePlan, record: Record, labels: Mapping[str, str]) -> None:
    """The steps of a search are stored in order, but for the one that decides: it comes last."""
    text = step_text(plan, float(labels["load"]), labels["stage"], record)
    into.steps.setdefault(labels.get("repetition", ""), []).append(text)


def _add(into: CellRows, plan: SuitePlan, row: Row) -> bool:
    """Adds a row to its cell; whether it has figures."""
    if was_cut_short(row.key):
        return False  # done again by --resume, or the run has no more of it
    if row.record is not None:
        found = figures(row.record, row.labels, row.seq)
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
    return row.record is not None


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
    alike, left_out = without_unlike(done, rows.planned)
    verdict, why = judge(alike, rows.failed)
    if left_out and verdict != "invalid":
        left_out_text = f"{len(left_out)} of {counted(len(done), 'repetition')} left out"
        left_out_text += f": {left_out[0].unlike}"
        why = f"{why}; {left_out_text}" if why else left_out_text
        verdict = verdict if len(alike) >= rows.planned else "suspect"
    if remark := next((each.remark for each in alike if each.remark), ""):
        why = f"{why}; {remark}" if why else remark
    if verdict == "valid" and len(rows.digests) > 1:
        verdict, why = "suspect", "the subject changed in mid-run: its repetitions differ in kind"
    shown = alike if verdict == "invalid" else countable(alike) or alike
    rates = [each.score for each in shown if each.score is not None]
    return replace(
        repeated(_name_of(rows.cell), "", alike, shown),
        verdict=verdict,
        why=why,
        interval=_bracket(shown) or repetitions.interval(rates),
        record_ids=tuple(each.record_id for each in done),
        trap=rows.cell.subject.trap,
        repetitions=len(done) + len(rows.failed),
        planned=rows.cell,
        steps=tuple(next(reversed(rows.steps.values()), ())),
    )


def without_unlike(done: Sequence[Figures], planned: int) -> tuple[list[Figures], list[Figures]]:
    """The repetitions of a cell that count, and those left out because the machine was in another
    state. None is left out if no more than half of those planned would remain, nor one in which the
    subject itself failed."""
    out = [each for each in done if each.unlike and not has_own_fault(each)]
    if not out or 2 * (len(done) - len(out)) <= planned:
        return list(done), []
    return [each for each in done if each not in out], out


def countable(done: Sequence[Figures]) -> list[Figures]:
    """The repetitions that are not invalid. If the machine spoiled half of all or more, also those
    whose throughput is at least what it shows."""
    able = [each for each in done if each.verdict != "invalid"]
    if 2 * len(able) > len(done):
        return able
    return [each for each in done if each.verdict != "invalid" or each.lower_bound]


def has_own_fault(figures: Figures) -> bool:
    """Whether the repetition is invalid, and not only by what the machine did, or made uneven."""
    failed = set(figures.failed_checks)
    left = failed - MACHINE_CHECKS - (UNEVEN if failed & MACHINE_CHECKS else set())
    return figures.verdict == "invalid" and (bool(left) or not failed)


def _name_of(cell: Cell) -> str:
    """A subject; of clients, whose loads all stand in one table, with its pools."""
    pools = cell.load.pools
    return cell.subject.name if pools is None else f"{cell.subject.name} {pools.short}"


def repeated(
    name: str, run: str, done: Sequence[Figures], shown: Sequence[Figures] | None = None
) -> Summary:
    """Trials of the same: the medians of those that are ``shown``, and the worst verdict of all."""
    shown = done if shown is None else shown
    worst = max(done, key=lambda each: ("valid", "suspect", "invalid").index(each.verdict))
    rates = [each.score or 0.0 for each in shown]
    able = countable(done)
    found = together(shown)
    by_score = sorted(able or done, key=lambda each: each.score or 0.0)
    return Summary(
        name=name,
        run=run,
        outcome="measured",
        verdict=worst.verdict,
        why="; ".join(worst.reasons) or _all_reasons(done),
        score=found.score,
        interval=repetitions.interval(rates),
        repetitions=len(done),
        counted=len(shown),
        figures=found,
        best=max(shown, key=lambda each: each.score or 0.0),
        middle=by_score[(len(by_score) - 1) // 2].seq,
        record_ids=tuple(each.record_id for each in done),
        trials=tuple(
            Trial(each.score or 0.0, each.pair, each.side, each.ratio)
            for each in able
            if not each.partial
        ),
    )


def _bracket(shown: Sequence[Figures]) -> repetitions.Interval | None:
    """Where a single search says that its result lies; of several, their spread does."""
    found = shown[0].carried
    if len(shown) > 1 or found is None or found.above is None:
        return None
    return repetitions.Interval(found.clients, found.above, "range")


def judge(done: Sequence[Figures], failed: Sequence[str]) -> tuple[Verdict, str]:
    """The verdict of a cell from its repetitions, with the reason in one line. Pure.

    A failure that is the subject's own in any repetition makes the cell invalid. Where the
    machine spoiled repetitions, more than half of all must be left, and the cell is suspect. So it
    is if less is left, but the spoiled ones have at least the throughput that they show.
    """
    total = len(done) + len(failed)
    invalid = [each for each in done if each.verdict == "invalid"]
    for each in invalid:
        if has_own_fault(each):
            return "invalid", _all_reasons([each])
    if 2 * (len(invalid) + len(failed)) >= total:
        if not failed and all(each.lower_bound for each in invalid):
            return "suspect", f"disturbed, so at least this much: {_all_reasons(invalid)}"
        # Why a repetition came to nothing tells more than what the machine did to another.
        return "invalid", failed[-1] if failed else _all_reasons(invalid)
    if invalid:
        lost = f"{len(invalid)} of {counted(total, 'repetition')} left out"
        return "suspect", f"{lost}: {_all_reasons(invalid)}"
    if failed:
        return "suspect", f"{len(failed)} of {counted(total, 'repetition')} failed: {failed[-1]}"
    suspect = [each for each in done if each.verdict == "suspect"]
    if suspect:
        return "suspect", _all_reasons(suspect)
    return "valid", _all_reasons([each for each in done if each.lower_bound])


def _all_reasons(some: Sequence[Figures]) -> str:
    """Each reason once: of a check what it said first."""
    by_check: dict[str, str] = {}
    for reason in (reason for each in some for reason in each.reasons):
        by_check.setdefault(reason.partition(":")[0], reason)
    if by_check:
        return "; ".join(by_check.values())
    return "its checks failed" if any(each.verdict == "invalid" for each in some) else ""


def _without_figures(rows: CellRows, outcome: Outcome, why: str) -> Summary:
    return Summary(
        name=_name_of(rows.cell),
        run="",
        outcome=outcome,
        verdict=None,
        why=why,
        trap=rows.cell.subject.trap,
        repetitions=len(rows.failed),
        planned=rows.cell,
    )


Unit = Literal["requests/s", "messages/s", "clients"]
