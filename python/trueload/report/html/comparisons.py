"""Ratios: side B against side A of `trueload compare`, and each further run against the first.

How: the ratios are those that the commands `compare` and `runs diff` compute from the same records.
They need whole records, so runs with very many rows are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueload.compare.difference import Ratio
from trueload.compare.run_records import read_side
from trueload.compare.trials import compare
from trueload.errors import UserError
from trueload.record.bound import verdict_text
from trueload.report.ab import stored_pairs
from trueload.report.compare import pairs_text
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.runs import Store
from trueload.text import plain
from trueload.units import counted

ROWS_MAX = 400  # of a run: all its records are held at once
SHOWN_MAX = 12


@dataclass(frozen=True)
class MetricRatios:
    """One comparison of ``new`` with ``base`` by metric; ``primary`` was named beforehand."""

    title: str
    base: str
    new: str
    ratios: tuple[Ratio, ...]
    primary: str
    note: str = ""


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of a report, and why others are impossible."""

    found: tuple[MetricRatios, ...]
    notes: tuple[str, ...] = ()


def of_pairs(run: Run, rows: Iterable[Row | DamagedRow]) -> MetricRatios | None:
    """Return the comparison of a run of `trueload compare`; None without a whole pair."""
    paired = stored_pairs(run, rows, most=ROWS_MAX)
    pairs = paired.pairs
    if not pairs:
        return None
    a, b = map(plain, paired.names)
    count = f"{counted(len(pairs), 'pair')}, measured in turns"
    more = _sentence(pairs_text(paired.ratios, paired.primary))
    note = f"A: {a}. B: {b}. {count}.{more}"
    return MetricRatios(f"{b} against {a}", "A", "B", paired.ratios, paired.primary, note)


def _sentence(text: str) -> str:
    return f" {text[0].upper()}{text[1:]}." if text else ""


def of_runs(store: Store, runs: Sequence[Run]) -> Comparisons:
    """Compare each run with the first, row by row."""
    found: list[MetricRatios] = []
    notes: list[str] = []
    first, *others = runs
    for other in others:
        if max(first.row_count, other.row_count) > ROWS_MAX:
            notes.append(
                f"Runs of more than {ROWS_MAX} rows are not compared here; `trueload runs"
                f" compare {first.id} {other.id}` does it."
            )
            continue
        try:
            base, new = read_side(first.id, store), read_side(other.id, store)
        except UserError as error:
            notes.append(f"{other.id} is not compared with {first.id}: {plain(error.message)}.")
            continue
        compared = compare(base.rows, new.rows)
        if not compared.rows:
            notes.append(f"{other.id} and {first.id} have no row in common.")
        for row in compared.rows:
            name = f"{plain(row.name)}: " if row.name else ""
            trials = f"{row.base_trials} against {counted(row.new_trials, 'trial')}"
            old = verdict_text(row.base_verdict, row.base_lower_bound)
            now = verdict_text(row.new_verdict, row.new_lower_bound)
            verdicts = f"; {first.id} is {old}, {other.id} is {now}."
            verdicts += _sentence(pairs_text(row.ratios, row.primary))
            title = f"{name}{other.id} against {first.id}"
            note = trials + verdicts
            found.append(MetricRatios(title, first.id, other.id, row.ratios, row.primary, note))
        notes += [f"{plain(note)}." for note in compared.notes]
    if len(found) > SHOWN_MAX:
        notes.append(
            f"{len(found) - SHOWN_MAX} more comparisons are left out here; `trueload runs diff`"
            " has them."
        )
    return Comparisons(tuple(found[:SHOWN_MAX]), tuple(notes))
