"""The result of `trueload compare` as text, as JSON, and as a comparison in other formats. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trueload.compare.certainty import OF_A, rule_ratios
from trueload.compare.difference import Ratio
from trueload.compare.pairs import Pair, compare_pairs, pair_ratios, whole_pairs
from trueload.compare.trials import (
    Comparison,
    RowCompared,
    primary_metric,
    primary_of,
    stored_primary,
    with_metrics,
)
from trueload.record.bound import at_least, verdict_text
from trueload.record.certainty import Ruling
from trueload.record.core_latency import moved_text
from trueload.record.schema import SCHEMA, Check, Record, Verdict
from trueload.record.thresholds import Condition
from trueload.record.turn import Letter, Turn, read_turn
from trueload.report.accounts.tls import tls_text
from trueload.report.compare import ShownComparison, brief_lines, finite, pairs_text, ratio_json
from trueload.report.result import reason_lines, verdict_lines
from trueload.store.rows import DamagedRow, Row, Run
from trueload.text import APART, folded, labelled, plain
from trueload.units import format_rate
from trueload.verdict import decide, is_lower_bound, worst_checks


@dataclass(frozen=True)
class PairedTrials:
    """The trials in the order of measuring; the ratios are of whole pairs."""

    names: tuple[str, str]
    seed: int | None
    taken: tuple[tuple[Turn, Record], ...]
    ratios: tuple[Ratio, ...]
    rulings: tuple[Ruling, ...]
    interrupted: bool
    named: str | None = None

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        taken: Sequence[tuple[Turn, Record]],
        *,
        seed: int | None,
        conditions: Sequence[Condition] = (),
        interrupted: bool = False,
        named: str | None = None,
    ) -> PairedTrials:
        """Compare the trials, and rule on the conditions on their ratios.

        ``named`` is the primary metric if no condition names it.
        """
        pairs, named = whole_pairs(taken), primary_of(conditions) or named
        ratios = tuple(compare_pairs(pairs, with_metrics(conditions, named), named))
        sides = {"A": [each.a for each in pairs], "B": [each.b for each in pairs]}
        rulings = tuple(rule_ratios(conditions, ratios, sides, OF_A))
        return cls(names, seed, tuple(taken), ratios, rulings, interrupted, named)

    @property
    def primary(self) -> str:
        """The metric that is shown first: the one that a condition names, else by the load."""
        return self.named or primary_metric(self.records)

    def sentences(self, state: Literal["crossed", "undecided"]) -> tuple[str, ...]:
        """Tell the conditions that were crossed, or that bounds could not decide."""
        return tuple(each.why for each in self.rulings if each.state == state)

    @property
    def records(self) -> list[Record]:
        """Every trial, in the order of measuring."""
        return [record for _, record in self.taken]

    @property
    def pairs(self) -> list[Pair]:
        """The whole pairs."""
        return whole_pairs(self.taken)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Each check, with its worst outcome over all trials."""
        return worst_checks(self.records)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all trials; invalid if nothing was measured."""
        return decide(self.checks) if self.checks else "invalid"

    @property
    def lower_bound(self) -> bool:
        """Whether a trial is a lower bound."""
        return is_lower_bound(self.checks)

    @property
    def verdict_text(self) -> str:
        """The verdict as text."""
        return verdict_text(self.verdict, self.lower_bound)

    def of_side(self, letter: Letter) -> list[Record]:
        """The trials of one side."""
        return [record for turn, record in self.taken if turn.letter == letter]


def stored_pairs(
    run: Run, rows: Iterable[Row | DamagedRow], most: int | None = None
) -> PairedTrials:
    """Return the comparison of a stored run, of its first ``most`` trials.

    Of the conditions only the primary metric is stored.
    """
    taken: list[tuple[Turn, Record]] = []
    names: dict[Letter, str] = {"a": "A", "b": "B"}
    for row in rows:
        if isinstance(row, DamagedRow) or row.record is None or len(taken) == most:
            continue
        if (turn := read_turn(row.labels)) is not None:
            taken.append((turn, row.record))
            names[turn.letter] = row.labels.get("subject") or names[turn.letter]
    return PairedTrials.of(
        (names["a"], names["b"]),
        taken,
        seed=run.seed,
        interrupted=run.state not in ("finished", "partial"),
        named=stored_primary(run.plan),
    )


def paired_json(paired: PairedTrials, run_id: str | None) -> dict[str, Any]:
    """Return one object: verdict, checks and ratios at the top, the records under ``trials``."""
    pairs = paired.pairs
    return {
        "schema": SCHEMA,
        "id": run_id,
        "started_at": paired.records[0].started_at if paired.records else None,
        "partial": paired.interrupted,
        "verdict": paired.verdict,
        "lower_bound": paired.lower_bound,
        "checks": [check.model_dump(mode="json") for check in paired.checks],
        "a": paired.names[0],
        "b": paired.names[1],
        "seed": paired.seed,
        "pairs": len(pairs),
        "primary": paired.primary,
        "crossed": list(paired.sentences("crossed")),
        "undecided": list(paired.sentences("undecided")),
        "ratios": [
            {**ratio_json(each), "pairs": [finite(one) for one in pair_ratios(each.metric, pairs)]}
            for each in paired.ratios
        ],
        "trials": [
            {**record.model_dump(mode="json"), "pair": turn.pair, "side": turn.letter}
            for turn, record in paired.taken
        ],
    }


def paired_lines(paired: PairedTrials) -> list[str]:
    """Return the lines to show: the verdict and the doubts, the pairs, and the ratios."""
    lines = [f"{letter} {plain(name)}" for letter, name in zip("AB", paired.names, strict=True)]
    for letter, record in {turn.letter: record for turn, record in paired.taken}.items():
        if text := tls_text(record):
            lines.append(f"{letter.upper()} {text}")
    lines += ["", *labelled("verdict", paired.verdict_text)]
    lines += [*reason_lines(verdict_lines(paired.records)), ""]
    found: dict[int, dict[Letter, Record]] = {}
    for turn, record in paired.taken:
        found.setdefault(turn.pair, {})[turn.letter] = record
    lines += [f"pair {number:<4}{_pair_text(both)}" for number, both in found.items()]
    if paired.ratios:
        lines += ["", *brief_lines(paired.ratios)]
        lines += folded(text) if (text := pairs_text(paired.ratios, paired.primary)) else []
    lines += labelled("moved", moved_text(record.cpu_distance for record in paired.records))
    return lines


def _pair_text(both: Mapping[Letter, Record]) -> str:
    def one(letter: Letter, record: Record) -> str:
        rate = at_least(format_rate(record.throughput.ok_per_s or 0), record.lower_bound)
        return f"{letter.upper()} {rate} {record.verdict}"

    return APART.join(one(letter, record) for letter, record in both.items())


def compared(paired: PairedTrials) -> ShownComparison:
    """Return side b against side a in the form of a comparison of two runs."""
    pairs = len(paired.pairs)
    sides = [worst_checks(some) for some in (paired.of_side("a"), paired.of_side("b"))]
    row = RowCompared(
        name="",
        base_verdict=decide(sides[0]),
        new_verdict=decide(sides[1]),
        base_trials=pairs,
        new_trials=pairs,
        ratios=paired.ratios,
        primary=paired.primary,
        rulings=paired.rulings,
        base_lower_bound=is_lower_bound(sides[0]),
        new_lower_bound=is_lower_bound(sides[1]),
    )
    base, new = paired.names
    return ShownComparison(base, new, Comparison((row,), (), ()))
