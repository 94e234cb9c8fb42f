"""Better, worse or the same: two runs compared row by row.

Strategy: the records of each run are grouped into rows that mean the same on both sides (subject,
variant, load). Each metric of a row becomes the ratio of the medians, new to base, with its
interval and the claim that `difference` allows. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trueload.compare.certainty import OF_BASE, bounds_of, rule_ratios, spoiled_text
from trueload.compare.difference import Ratio, as_family, counted_once, of_too_few, of_trials
from trueload.protocol.exchange import RequestPlan
from trueload.protocol.plan import Closed, Open, Stage
from trueload.record.certainty import Ruling
from trueload.record.core_latency import moved_between_text
from trueload.record.figures import PERCENTILES, is_too_few, metric_value
from trueload.record.schema import Record
from trueload.record.thresholds import RATIO, Condition, is_metric
from trueload.text import by_number
from trueload.units import counted, format_count
from trueload.verdict import decide, is_lower_bound, worst_checks
from trueload.verdict.common import in_flight

MIDDLE = 0.5
METRICS = ("throughput", "mean", *(each.label for each in PERCENTILES if each.share >= MIDDLE))
PATH_SHOWN = 60  # characters: a note is one line


@dataclass(frozen=True)
class RowCompared:
    """One row, with the verdict of each side: the worst of its trials.

    ``rulings`` are those on its conditions.
    """

    name: str
    base_verdict: str
    new_verdict: str
    base_lower_bound: bool
    new_lower_bound: bool
    base_trials: int
    new_trials: int
    primary: str
    ratios: tuple[Ratio, ...]
    rulings: tuple[Ruling, ...]

    @property
    def verdict(self) -> str:
        """The worse of both verdicts."""
        order = ("invalid", "suspect", "valid")
        return min(self.base_verdict, self.new_verdict, key=order.index)


@dataclass(frozen=True)
class Comparison:
    """The rows that both runs have, the names of those that only one has, and notes."""

    rows: tuple[RowCompared, ...]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def spoiled(self) -> tuple[RowCompared, ...]:
        """The rows that have become invalid; all if all are invalid."""
        if all(row.verdict == "invalid" for row in self.rows):
            return self.rows
        return tuple(row for row in self.rows if row.new_verdict == "invalid" != row.base_verdict)

    @property
    def rulings(self) -> tuple[RowRuling, ...]:
        """The rulings on each row. A row that stays invalid, such as a trap, leaves nothing
        undecided."""
        stays = {row.name for row in self.rows if row.base_verdict == row.new_verdict == "invalid"}
        stays -= {row.name for row in self.spoiled}
        return tuple(
            RowRuling(row.name, each)
            for row in self.rows
            for each in row.rulings
            if each.state != "undecided" or row.name not in stays
        )


@dataclass(frozen=True)
class RowRuling:
    """What became of a condition on a row."""

    row: str
    ruling: Ruling

    def sentence(self) -> str:
        """A text such as ``throughput is 0.91 of the base, and --fail-on says throughput<0.95``."""
        return f"{self.row}: {self.ruling.why}" if self.row else self.ruling.why


Groups = Mapping[str, Sequence[Record]]


def compare(base: Groups, new: Groups, conditions: Sequence[Condition] = ()) -> Comparison:
    """Compare two runs row by row; rows are matched by name, as their order in a run is random."""
    both = sorted((name for name in new if name in base), key=by_number)
    sides = ([r.cpu_distance for name in both for r in side[name]] for side in (base, new))
    moved = moved_between_text(*sides)
    return Comparison(
        rows=tuple(_row(name, base[name], new[name], conditions) for name in both),
        only_base=tuple(sorted((name for name in base if name not in new), key=by_number)),
        only_new=tuple(sorted((name for name in new if name not in base), key=by_number)),
        notes=(
            *(
                f"{name + ': ' if name else ''}{note}"
                for name in both
                for note in _notes(base[name][0], new[name][0])
            ),
            *([moved] if moved else []),
        ),
    )


def _notes(base: Record, new: Record) -> Iterator[str]:
    """Yield what a reader must know about a row before its ratios."""
    old, now = _load(base), _load(new)
    if old != now:
        yield f"the loads differ: {old} against {now}"
    if _question(base) != _question(new):
        old, now = _question_text(base), _question_text(new)
        how = f": {old} against {now}" if old != now else " in headers, bodies or weights"
        yield f"what is asked differs{how}"


def _question(record: Record) -> object:
    """Return what is requested, without the server: two servers may be compared by it."""
    generate = record.plan.generate
    if record.client is not None or generate.exchange is not None:
        return _question_text(record)
    if generate.scenario:
        return [
            (step.name, step.repeat, step.take, step.think, _request(step.request))
            for step in generate.scenario
        ]
    if generate.replay is not None:
        return generate.replay.model_dump(exclude={"about"})
    if generate.request is None:
        return [(target.weight, _request(target.request)) for target in generate.targets]
    return _request(generate.request), bool(generate.tls)


def _request(request: RequestPlan) -> object:
    own = tuple(pair for pair in request.headers if pair[0].lower() != "host")
    return request.method, request.path, own, request.body_sha256, request.template


def _question_text(record: Record) -> str:
    generate = record.plan.generate
    if record.client is not None:
        return "by clients"
    if generate.exchange is not None:
        size = counted(record.plan.payload_bytes or 0, "byte")
        return f"{generate.exchange.kind} of {size}".replace("_", " ")
    if generate.scenario:
        return f"sessions of {counted(len(generate.scenario), 'step')}"
    if generate.replay is not None:
        return f"replay of {generate.replay.about}"
    if generate.request is None:
        return counted(len(generate.targets), "target")
    path = generate.request.path
    shown = path if len(path) <= PATH_SHOWN else f"{path[:PATH_SHOWN]}…"
    return f"{generate.request.method} {shown}{' over TLS' if generate.tls else ''}"


def _load(record: Record) -> str:
    generate, load = record.plan.generate, record.plan.window.load
    if record.client is not None:
        return f"a wait of {record.client.asked.wait_ms} ms"  # the rest is in the row's name
    parts = [counted(generate.connections, "connection")]
    parts += in_flight(generate)
    if generate.close:
        parts.append("one per request")
    if isinstance(load, Open) and load.arrivals == "recorded":
        parts.append("recorded arrivals")
    elif isinstance(load, Open):
        parts += [_stage(stage, "/s") for stage in load.stages]
    parts += [_stage(stage, " active") for stage in load.active] if isinstance(load, Closed) else []
    return f"{load.kind} loop, " + ", ".join(parts)


def _stage(stage: Stage, unit: str) -> str:
    ramp = f" to {format_count(stage.to)}{unit}" if stage.to != stage.from_ else ""
    return f"{format_count(stage.from_)}{unit}{ramp}"


def with_metrics(conditions: Sequence[Condition], primary: str | None = None) -> tuple[str, ...]:
    """The metrics to compare: the usual ones, and those that a condition names."""
    named = [part.metric for condition in conditions for part in condition.parts]
    return tuple(dict.fromkeys((*METRICS, *named, *([primary] if primary else []))))


# The metrics of a client that do not depend on its own claims.
OF_CLIENTS = ("throughput", "errors")


def _row(
    name: str, base: Sequence[Record], new: Sequence[Record], conditions: Sequence[Condition]
) -> RowCompared:
    metrics, primary = with_metrics(conditions), primary_of(conditions)
    if base[0].client is not None:
        metrics = tuple(metric for metric in metrics if metric in OF_CLIENTS)
    ratios = tuple(compare_records(base, new, metrics, primary))
    return RowCompared(
        name=name,
        base_verdict=decide(worst_checks(base)),
        new_verdict=decide(worst_checks(new)),
        base_trials=len(base),
        new_trials=len(new),
        ratios=ratios,
        primary=primary or primary_metric((*base, *new)),
        rulings=tuple(rule_ratios(conditions, ratios, {"base": base, "new": new}, OF_BASE)),
        base_lower_bound=is_lower_bound(worst_checks(base)),
        new_lower_bound=is_lower_bound(worst_checks(new)),
    )


def compare_records(
    base: Sequence[Record],
    new: Sequence[Record],
    metrics: Sequence[str] = METRICS,
    primary: str | None = None,
) -> list[Ratio]:
    """Compare each metric of two sides that have at least one record each."""
    sides = {"base": base, "new": new}
    ratios = [
        of_trials(
            metric,
            [metric_value(metric, record) for record in base],
            [metric_value(metric, record) for record in new],
            spoiled_text(metric, sides),
            bounds_of(metric, sides),
        )
        for metric in metrics
    ]
    return claimed_together(ratios, base, new, primary)


def claimed_together(
    ratios: Sequence[Ratio], base: Sequence[Record], new: Sequence[Record], primary: str | None
) -> list[Ratio]:
    """Return the ratios, with the claims that may be made over all metrics together."""
    records = [*base, *new]
    known = [
        of_too_few(found, *(any(is_too_few(found.metric, r) for r in some) for some in (base, new)))
        for found in ratios
    ]
    once = counted_once(known) if all(map(is_closed, records)) else known
    return as_family(once, primary or primary_metric(records))


def primary_metric(records: Sequence[Record]) -> str:
    """Return the primary metric for a comparison whose conditions name none.

    It is p99 under an open loop, where the throughput was asked for, and throughput otherwise.
    """
    asked = any(record.plan.window.load.kind == "open" for record in records)
    return "p99" if asked else "throughput"


def primary_of(conditions: Sequence[Condition]) -> str | None:
    """The metric that the first condition names."""
    return conditions[0].parts[0].metric if conditions else None


def stored_primary(plan: object) -> str | None:
    """The primary metric that a stored run of pairs was planned with; None if its plan has none."""
    found = plan.get("primary") if isinstance(plan, Mapping) else None
    return found if isinstance(found, str) and is_metric(found, RATIO) else None


def is_closed(record: Record) -> bool:
    """Whether throughput and mean latency are one number: a closed loop of requests."""
    return record.plan.window.load.kind == "closed" and record.deliveries is None
