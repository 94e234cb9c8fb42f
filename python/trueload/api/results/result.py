"""The result of one command: its trials combined, with the figures and the verdict.

How: a thin view of records. The functions that `--fail-on` and reports use compute the figures.
With several trials the median counts, and in a search the deciding step. A request that failed, or
never ended, counts as slower than any that ended well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trueload.api.results.quantities import Share, Throughput, Time
from trueload.api.results.shown import Shown
from trueload.api.results.times import Percentiles, Times
from trueload.record import bound, figures
from trueload.record.bound import at_least
from trueload.record.schema import Check, Record, Verdict
from trueload.repetitions import median, median_of_bounds
from trueload.report.export.json import result_json
from trueload.report.result import repeated_lines, result_lines, verdict_lines
from trueload.report.sheets import OF_ROW, TRIALS, record_values
from trueload.search.decide import SafeLoad
from trueload.search.execute import SearchPlan, StepResult
from trueload.search.execute import outcome as search_outcome
from trueload.search.result import deciding, search_json, search_lines, sentence
from trueload.units import NS_PER_S, format_count, format_size
from trueload.verdict import decide, is_lower_bound, worst_checks

if TYPE_CHECKING:
    from trueload.api.results.plots import Plot

# The other columns of stored rows say nothing about a result in memory.
COLUMNS = ("run", "number", *(each.name for each in TRIALS if each not in OF_ROW))


@dataclass(frozen=True)
class SearchStep:
    """A step of a search: a load, its outcome, and the reason if our side was the limit."""

    load: float
    stage: str
    outcome: str
    why: str
    result: Result


@dataclass(frozen=True, repr=False)
class Search:
    """The result of a search (``limit=…``)."""

    plan: SearchPlan
    taken: tuple[StepResult, ...]

    @property
    def load(self) -> float | None:
        """The largest load that was confirmed to keep to the limit; None if no load was."""
        done = search_outcome(self.plan, self.taken)
        return done.load if isinstance(done, SafeLoad) else None

    @property
    def unit(self) -> str:
        """The unit of the load: ``requests/s``, ``sessions/s``, ``connections`` or ``clients``."""
        return self.plan.unit

    @property
    def is_lower_bound(self) -> bool:
        """Whether the server may carry more: our side was the limit, or no more was tried."""
        done = search_outcome(self.plan, self.taken)
        if not isinstance(done, SafeLoad):
            return False
        return done.limited_by != "server" or deciding(self.plan, self.taken).record.lower_bound

    @property
    def sentence(self) -> str:
        """The result in words."""
        return sentence(self.plan, self.taken)

    @property
    def steps(self) -> tuple[SearchStep, ...]:
        """The steps, in the order in which they ran."""
        return tuple(
            SearchStep(
                load=each.next.load,
                stage=each.next.purpose,
                outcome=each.judgement.outcome,
                why=each.judgement.why,
                result=Result(records=(each.record,)),
            )
            for each in self.taken
        )

    def __repr__(self) -> str:
        return f"<search: {self.sentence}>"


@dataclass(frozen=True, repr=False)
class Result(Shown, Percentiles):
    """What was measured.

    ``p50`` to ``p999`` are those of ``latency``. ``records`` hold everything
    (docs/reading-a-report.md). ``run_id`` names the run in the store, None if it was not saved.
    ``crossed`` has the conditions of ``fail_on`` that were true, and ``undecided`` those that this
    run was too disturbed to decide. ``search`` is set if there was a ``limit``. ``notes`` are the
    remarks made before the measurement.
    """

    records: tuple[Record, ...]
    run_id: str | None = None
    crossed: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    search: Search | None = None
    notes: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(tuple(record.id for record in self.records))  # a record has dicts

    @property
    def url(self) -> str:
        """The URL that was loaded."""
        return self.records[0].plan.url

    @property
    def started_at(self) -> str:
        """The start of the measurement, in UTC."""
        return self.records[0].started_at

    @property
    def partial(self) -> bool:
        """Whether it was cut short."""
        return any(record.partial for record in self.records)

    @property
    def verdict(self) -> Verdict:
        """``valid``, ``suspect`` or ``invalid``: whether the figures can be trusted."""
        return decide(self.checks)

    @property
    def lower_bound(self) -> bool:
        """Whether the server may carry more than ``throughput``; for a search, than its load."""
        return is_lower_bound(self.checks) or bool(self.search and self.search.is_lower_bound)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Each check, with its worst outcome if there are several trials."""
        return worst_checks(self.records)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The doubts about the figures: the checks that warn or fail."""
        return tuple(line.strip() for line in verdict_lines(self.records))

    @property
    def trials(self) -> tuple[Result, ...]:
        """Each trial as a result of its own."""
        return tuple(Result(records=(record,)) for record in self.records)

    @property
    def throughput(self) -> Throughput:
        """Requests and bytes per second; the medians of several trials."""
        found = [record.throughput for record in self.records]
        return Throughput(
            _median([each.ok_per_s for each in found]),
            _median([each.bytes_in_per_s for each in found]),
            _median([each.bytes_out_per_s for each in found]),
        )

    @cached_property
    def latency(self) -> Times:
        """Times from when a request was due to its last byte, as ``fail_on`` counts them."""
        return Times(self._latency)

    @cached_property
    def service(self) -> Times:
        """Times from when a request was sent, for requests that ended well."""
        return Times(self._service)

    @property
    def errors(self) -> Share:
        """The share of issued requests that failed; the median of several trials."""
        return Share(
            median([figures.metric_value("errors", record) for record in self.records]) or 0.0
        )

    @property
    def failed(self) -> dict[str, int]:
        """Failed requests by class, summed over the trials."""
        found: Counter[str] = Counter()
        for record in self.records:
            found.update(record.counts.failed)
        return dict(found)

    @property
    def ok(self) -> int:
        """The number of requests that ended well, summed over the trials."""
        return sum(record.counts.ok for record in self.records)

    @property
    def issued(self) -> int:
        """The number of requests that were sent, summed over the trials."""
        return sum(record.counts.issued for record in self.records)

    def summary(self) -> str:
        """The text that the command line would print."""
        if self.search is not None:
            lines = search_lines(self.search.plan, self.search.taken)
        elif len(self.records) == 1:
            lines = result_lines(self.records[0])
        else:
            lines = repeated_lines(self.records)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The value that ``--json`` writes."""
        if self.search is not None:
            found = self.search
            return search_json(found.plan, found.taken, self.run_id, interrupted=self.partial)
        return result_json(self.records, self.run_id)

    def rows(self) -> list[dict[str, object]]:
        """The trials, or the steps of a search, as rows: the columns of the CSV export."""
        records = self.records
        if self.search is not None:
            records = tuple(each.record for each in self.search.taken)
        return [
            {"run": self.run_id, "number": number, **record_values(record)}
            for number, record in enumerate(records, 1)
        ]

    def _framed(self) -> tuple[list[dict[str, object]], tuple[str, ...]]:
        return self.rows(), COLUMNS

    def plot(self, what: str = "percentiles") -> Plot:
        """A chart of the report: ``percentiles``, or ``latency`` or ``throughput`` over time.
        Raises ``UserError``."""
        from trueload.api.results.plots import plot_records

        return plot_records(self.records, what)

    def __repr__(self) -> str:
        return f"<{self.url}: {self._throughput}, p99 {self.p99}, {self._verdict}>"

    def _repr_html_(self) -> str:
        from trueload.api.results.notebook import figures_html, verdict_text

        times = f", {len(self.records)} trials, medians" if len(self.records) > 1 else ""
        rows = [*self._shown(), ("verdict", verdict_text(self._verdict))]
        return figures_html(f"{self.url}{times}", rows, self.reasons)

    def _shown(self) -> Iterator[tuple[str, str]]:
        """Yield the figures that a notebook shows, by label."""
        found, times = self.throughput, self.latency
        yield "throughput", self._throughput
        if found.bytes_in_per_s is not None and found.bytes_out_per_s is not None:
            into, out = format_size(found.bytes_in_per_s), format_size(found.bytes_out_per_s)
            yield "bytes", f"in {into}/s, out {out}/s"
        shown = {each.label: times.percentile(each.label) for each in figures.SHOWN}
        shown["max"] = times.max
        yield "latency", ", ".join(f"{name} {time}" for name, time in shown.items())
        yield "requests", f"{format_count(self.ok)} ok of {format_count(self.issued)}"
        if self.failed:
            by_class = sorted(self.failed.items())
            yield "failures", ", ".join(f"{name} {format_count(n)}" for name, n in by_class)
        if self.search is not None:
            yield "search", self.search.sentence

    @property
    def _throughput(self) -> str:
        return at_least(str(self.throughput), is_lower_bound(self.checks))

    @property
    def _verdict(self) -> str:
        return bound.verdict_text(self.verdict, self.lower_bound)

    def _time(self, name: str) -> Time:
        return self._latency(name)

    def _latency(self, name: str) -> Time:
        return _time(name, [figures.latency(record) for record in self.records])

    def _service(self, name: str) -> Time:
        return _time(name, [figures.service(record) for record in self.records])


def _median(values: list[float | None]) -> float | None:
    return median([value for value in values if value is not None])


def _time(name: str, trials: list[figures.Sample]) -> Time:
    ns, above = median_of_bounds([trial.bound(name) for trial in trials])
    if above or ns is None:
        return Time(math.inf, None if ns is None else ns / NS_PER_S)
    few = [trial.figures.largest_of for trial in trials] if name == "max" else []
    return Time(
        ns / NS_PER_S,
        too_few=any(trial.is_too_few(name) for trial in trials),
        at_most=sum(trial.is_overstated(name) for trial in trials) * 2 >= len(trials),
        largest_of=min((of for of in few if of is not None), default=None),
    )
