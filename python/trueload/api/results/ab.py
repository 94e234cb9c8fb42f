"""The result of two servers measured in turn: the ratio B to A of each figure, and its interval.

How: a thin view of the trials. The ratios are those that the command and the report show. There is
at least one whole pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueload.api.results.result import COLUMNS, Result
from trueload.api.results.shown import Shown
from trueload.compare.difference import Ratio, Word
from trueload.compare.pairs import compare_pairs
from trueload.compare.trials import METRICS
from trueload.errors import UserError
from trueload.record.schema import Check, Record, Verdict
from trueload.record.thresholds import RATIO, is_metric
from trueload.record.turn import Letter
from trueload.repetitions import Interval
from trueload.report.ab import PairedTrials, paired_json, paired_lines
from trueload.report.compare import pairs_text, ratio_cells
from trueload.report.result import verdict_lines
from trueload.report.sheets import record_values
from trueload.text import plain
from trueload.units import counted

if TYPE_CHECKING:
    from trueload.api.results.plots import Plot

AB_COLUMNS = ("run", "number", "pair", "side", "subject", *COLUMNS[2:])


@dataclass(frozen=True, repr=False)
class AbResult(Shown):
    """Side B against side A.

    ``paired`` holds all trials and ratios. ``run_id`` names the run in the store, None if it was
    not saved.
    """

    paired: PairedTrials
    run_id: str | None = None

    def __hash__(self) -> int:
        return hash((self.run_id, self.names))  # a record has dicts

    @property
    def names(self) -> tuple[str, str]:
        """The names of both sides: a URL or a subject each."""
        return self.paired.names

    @property
    def ratio(self) -> float | None:
        """B's throughput to A's, as the median of the pairs; None if it is undefined."""
        return self.of("throughput").ratio

    @property
    def interval(self) -> Interval | None:
        """The interval of ``ratio``: 95 % from six pairs on, else the range; None with one pair."""
        return self.of("throughput").within

    @property
    def word(self) -> Word:
        """What ``ratio`` means for B: ``better``, ``worse``, ``same`` or ``unclear``."""
        return self.of("throughput").word

    @property
    def ratios(self) -> dict[str, Ratio]:
        """Each figure that is compared, by name."""
        return {each.metric: each for each in self.paired.ratios}

    def of(self, metric: str) -> Ratio:
        """Return one figure: ``"throughput"``, ``"mean"`` or a percentile. Raises ``UserError``."""
        if not is_metric(metric, RATIO):
            raise UserError(
                f"'{metric}' is not a metric to compare", f"it is one of {', '.join(METRICS)}"
            )
        known = self.ratios.get(metric)
        named = self.paired.named
        return known or compare_pairs(self.paired.pairs, (*METRICS, metric), named)[-1]

    @property
    def a(self) -> Result:
        """The trials of A, with their medians."""
        return self._side("a")

    @property
    def b(self) -> Result:
        """The trials of B, with their medians."""
        return self._side("b")

    @property
    def pairs(self) -> tuple[tuple[Result, Result], ...]:
        """Both trials of each whole pair, A's first."""
        return tuple((Result((each.a,)), Result((each.b,))) for each in self.paired.pairs)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every trial, in the order of measuring."""
        return tuple(self.paired.records)

    @property
    def partial(self) -> bool:
        """Whether it was cut short."""
        return self.paired.interrupted

    @property
    def verdict(self) -> Verdict:
        """``valid``, ``suspect`` or ``invalid``: the worst of all trials."""
        return self.paired.verdict

    @property
    def lower_bound(self) -> bool:
        """Whether a trial of either side is a lower bound; ``word`` takes that into account."""
        return self.paired.lower_bound

    @property
    def checks(self) -> tuple[Check, ...]:
        """Each check, with its worst outcome over all trials."""
        return self.paired.checks

    @property
    def reasons(self) -> tuple[str, ...]:
        """The doubts about the figures: the checks that warn or fail."""
        return tuple(line.strip() for line in verdict_lines(self.paired.records))

    @property
    def crossed(self) -> tuple[str, ...]:
        """The conditions of ``fail_on`` that the ratios make true, in words."""
        return self.paired.sentences("crossed")

    @property
    def undecided(self) -> tuple[str, ...]:
        """The conditions that these trials were too disturbed to decide, with the reasons."""
        return self.paired.sentences("undecided")

    def cells(self) -> list[tuple[str, ...]]:
        """The rows to show: metric, A, B, ratio, its interval and what B is."""
        return [ratio_cells(each) for each in self.paired.ratios]

    def summary(self) -> str:
        """The text that the command line would print."""
        return "\n".join(paired_lines(self.paired))

    def to_dict(self) -> dict[str, Any]:
        """The value that ``--json`` writes."""
        return paired_json(self.paired, self.run_id)

    def rows(self) -> list[dict[str, object]]:
        """The trials as rows, with pair and side: the columns of the CSV export."""
        names = dict(zip("ab", self.names, strict=True))
        return [
            {
                "run": self.run_id,
                "number": number,
                "pair": turn.pair,
                "side": turn.letter,
                "subject": names[turn.letter],
                **record_values(record),
            }
            for number, (turn, record) in enumerate(self.paired.taken, 1)
        ]

    def _framed(self) -> tuple[list[dict[str, object]], tuple[str, ...]]:
        return self.rows(), AB_COLUMNS

    def plot(self, what: str = "ratios") -> Plot:
        """A chart of the report: the ``ratios``, or a trial in the middle of each side.

        The latter is drawn as ``percentiles``, or as ``latency`` or ``throughput`` over time.
        Raises ``UserError``.
        """
        from trueload.api.results.plots import plot_pairs

        return plot_pairs(self.paired, what)

    def __repr__(self) -> str:
        found = self.of("throughput")
        _, _, _, ratio, within, word = ratio_cells(found)
        a, b = (plain(name) for name in self.names)
        lies = f", {within}" if within else ""
        return f"<{b} against {a}: throughput {ratio}{lies}, {word}, {self.paired.verdict_text}>"

    def _repr_html_(self) -> str:
        from trueload.api.results.notebook import table_html

        header = ("metric", "A", "B", "B / A", "interval", "B is")
        of = counted(len(self.paired.pairs), "pair")
        head = f"A {self.names[0]}, B {self.names[1]}, {of}"
        more = pairs_text(self.paired.ratios, self.paired.primary)
        notes = [*([more] if more else []), *self.reasons]
        return table_html(head, header, self.cells(), self.paired.verdict_text, notes)

    def _side(self, letter: Letter) -> Result:
        return Result(records=tuple(self.paired.of_side(letter)))
