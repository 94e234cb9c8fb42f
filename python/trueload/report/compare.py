"""A comparison as text, Markdown (for a pull request), JUnit XML (for CI) or JSON. Pure.

How: each row becomes a small table of its metrics once, and the writers only lay it out. Names from
a manifest or a peer lose their control characters here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from trueload.compare.difference import CLAIMS, Ratio
from trueload.compare.trials import Comparison, RowCompared
from trueload.grouping import grouped
from trueload.record.bound import verdict_text
from trueload.record.certainty import SIGNS
from trueload.record.figures import label
from trueload.repetitions import PAIRS_MOST, Interval
from trueload.report.export.junit import RULED, Case, Kind, junit
from trueload.report.export.markdown import markdown_cell, markdown_lines
from trueload.report.grid import Grid, text_lines
from trueload.text import folded, plain
from trueload.units import TOO_FEW, counted, format_count, format_duration

Format = Literal["text", "markdown", "junit", "json"]
HEADER = ("metric", "base", "new", "new / base", "interval", "verdict")
SCHEMA = 1


@dataclass(frozen=True)
class ShownComparison:
    """All that is shown: the names of two sides, and the comparison."""

    base: str
    new: str
    comparison: Comparison


def render(compared: ShownComparison, format_: Format) -> str:
    """Return the comparison in one of the formats, with a newline at its end."""
    return RENDERERS[format_](compared)


def ratio_cells(found: Ratio) -> tuple[str, ...]:
    """Return the cells of one metric."""
    return (
        label(found.metric),
        TOO_FEW if found.base_too_few else _side(found.metric, found.base, found.base_cv),
        TOO_FEW if found.new_too_few else _side(found.metric, found.new, found.new_cv),
        "" if found.too_few else SIGNS.get(found.bound, "").lstrip() + _times(found.ratio),
        within_text(found.within),
        found.verdict,
    )


def ratio_grid(found: Sequence[Ratio]) -> Grid:
    """Return a table with one metric per row."""
    rows = tuple(map(ratio_cells, found))
    return Grid(HEADER, rows, marks=tuple(each.word for each in found))


def brief_lines(found: Sequence[Ratio]) -> list[str]:
    """Return the ratios of B to A as fit a terminal: without spreads, each reason once below."""
    rows = [(*(_brief(cell) for cell in ratio_cells(each)[:-1]), each.word) for each in found]
    kinds = {each.within.kind for each in found if each.within is not None}
    header = ("metric", "A", "B", "B / A", kinds.pop() if len(kinds) == 1 else "interval", "B is")
    reasons = grouped((each for each in found if each.why), lambda each: f"{each.word}: {each.why}")
    told = [f"{', '.join(label(e.metric) for e in some)} {why}" for why, some in reasons.items()]
    return [
        *text_lines(Grid(header, tuple(rows))),
        *(line for text in told for line in folded(plain(text))),
    ]


def _brief(cell: str) -> str:
    return cell.partition(" (")[0]


def within_text(within: Interval | None) -> str:
    """Return an interval as text: ``0.90 to 0.95 (95 % interval)``."""
    if within is None or (within.low == 0 and math.isinf(within.high)):
        return ""
    if math.isinf(within.high) and within.low < within.high:
        return f"at least {_times(within.low)} ({within.kind})"
    if within.low == 0 < within.high:
        return f"at most {_times(within.high)} ({within.kind})"
    return f"{_times(within.low)} to {_times(within.high)} ({within.kind})"


def pairs_text(ratios: Sequence[Ratio], primary: str) -> str:
    """Say how many pairs find a small difference, if the primary metric shows none."""
    first = next((each for each in ratios if each.metric == primary), None)
    if first is None or first.word in CLAIMS or first.pairs_needed is None:
        return ""
    found = f"a difference of 3 % in {primary} takes"
    if math.isinf(first.pairs_needed):
        return f"{found} more than {PAIRS_MOST} pairs at this spread"
    needed = f"{first.pairs_needed:.0f}"
    return f"{found} some {needed} pairs at this spread (trueload compare --repeat {needed})"


def _times(value: float | None) -> str:
    if value is None:
        return "?"
    if math.isinf(value):
        return "endless"
    return f"{value:.3f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def _side(metric: str, value: float, cv: float | None) -> str:
    return value_text(metric, value) + ("" if cv is None else f" (CV {cv * 100:.1f} %)")


def value_text(metric: str, value: float) -> str:
    """Return one side of a metric as text: ``45,123/s``, ``1.20 ms``."""
    if metric == "throughput":
        return f"{format_count(value)}/s"
    return "unknown" if math.isinf(value) else format_duration(value)


def _notes(compared: ShownComparison) -> list[str]:
    comparison = compared.comparison
    lines = [f"note: {plain(note)}" for note in comparison.notes]
    for names, where in ((comparison.only_base, "base"), (comparison.only_new, "new")):
        lines += [f"only in {where}: {plain(name) or 'its one row'}" for name in names]
    return lines


def _trials(row: RowCompared) -> str:
    times = f"{row.base_trials} against {counted(row.new_trials, 'trial')}"
    base = verdict_text(row.base_verdict, row.base_lower_bound)
    new = verdict_text(row.new_verdict, row.new_lower_bound)
    return times if base == new == "valid" else f"{times}; base {base}, new {new}"


def threshold_lines(comparison: Comparison) -> list[str]:
    """Return a line for each condition that was crossed, undecided, or kept in spite of a
    disturbance."""
    told = [each for each in comparison.rulings if each.ruling.why]
    return [f"threshold {each.ruling.state}: {plain(each.sentence())}" for each in told]


def _text(compared: ShownComparison) -> str:
    comparison = compared.comparison
    lines = [f"base {plain(compared.base)}, new {plain(compared.new)}"]
    for row in comparison.rows:
        title = f"{plain(row.name)}: " if row.name else ""
        lines += ["", f"{title}{_trials(row)}"]
        lines += text_lines(ratio_grid(row.ratios))
        lines += [text] if (text := pairs_text(row.ratios, row.primary)) else []
    lines += ["", *notes] if (notes := _notes(compared)) else []
    lines += threshold_lines(comparison)
    return "\n".join(lines) + "\n"


def _markdown(compared: ShownComparison) -> str:
    lines = [f"**trueload**: {markdown_cell(compared.new)} against {markdown_cell(compared.base)}"]
    for row in compared.comparison.rows:
        lines += [
            "",
            f"**{markdown_cell(row.name)}** ({_trials(row)})" if row.name else _trials(row),
        ]
        lines += ["", *markdown_lines(ratio_grid(row.ratios))]
        lines += ["", text] if (text := pairs_text(row.ratios, row.primary)) else []
    listed = [*_notes(compared), *threshold_lines(compared.comparison)]
    lines += ["", *(f"- {markdown_cell(line)}" for line in listed)] if listed else []
    return "\n".join(lines) + "\n"


def _junit(compared: ShownComparison) -> str:
    return junit(_cases(compared.comparison))


def _cases(comparison: Comparison) -> Iterator[Case]:
    """Yield a test case for each row and metric, and for each condition.

    A condition that is crossed is a failure, one that is undecided an error. So is a row that has
    become invalid; but where all conditions are decided, that is skipped, as the exit code has it.
    """
    for row in comparison.rows:
        if row in comparison.spoiled:
            kind: Kind = "skipped" if comparison.rulings else "error"
            side = "base" if row.new_verdict != "invalid" else "new"
            yield Case(row.name, "verdict", kind, f"the {side} run is invalid")
        for found in row.ratios:
            cells = zip(HEADER, ratio_cells(found), strict=True)
            text = ", ".join(f"{name} {cell}" for name, cell in cells)
            yield Case(row.name, found.metric, text=text)
    for each in comparison.rulings:
        ruling = each.ruling
        kept = "" if RULED[ruling.state] else ruling.why
        name = f"--fail-on {ruling.condition.text}"
        yield Case(each.row, name, RULED[ruling.state], each.sentence(), kept)
    for name in (*comparison.only_base, *comparison.only_new):
        yield Case(name, "row", "skipped", "only one of the two runs has it")


def _json(compared: ShownComparison) -> str:
    comparison = compared.comparison
    return (
        json.dumps(
            {
                "schema": SCHEMA,
                "base": compared.base,
                "new": compared.new,
                "verdict": worst_verdict(comparison),
                "rows": [row_json(row) for row in comparison.rows],
                "only_base": list(comparison.only_base),
                "only_new": list(comparison.only_new),
                "notes": list(comparison.notes),
                "crossed": _rulings_json(comparison, "crossed"),
                "undecided": _rulings_json(comparison, "undecided"),
            }
        )
        + "\n"
    )


def _rulings_json(comparison: Comparison, state: str) -> list[dict[str, str]]:
    return [
        {"row": each.row, "condition": each.ruling.condition.text, "sentence": each.sentence()}
        for each in comparison.rulings
        if each.ruling.state == state
    ]


def worst_verdict(comparison: Comparison) -> str:
    """Return the worst verdict of the rows."""
    verdicts = {row.verdict for row in comparison.rows}
    return next((name for name in ("invalid", "suspect", "valid") if name in verdicts), "invalid")


def row_json(row: RowCompared) -> dict[str, Any]:
    """Return one row; what is infinite or unknown is null."""
    fields = {name: value for name, value in vars(row).items() if name != "rulings"}
    ratios = [ratio_json(each) for each in row.ratios]
    return {"name": row.name, "verdict": row.verdict, **fields, "ratios": ratios}


def ratio_json(found: Ratio) -> dict[str, Any]:
    """Return one metric, with values in ns or per second."""
    fields = asdict(found)
    within = fields.pop("within")
    shown = {name: finite(value) for name, value in fields.items()}
    interval = {k: finite(v) for k, v in within.items()} if within else None
    return {**shown, "interval": interval}


def finite(value: Any) -> Any:
    """Return the value, or None for a float that JSON cannot express."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


RENDERERS: dict[Format, Callable[[ShownComparison], str]] = {
    "text": _text,
    "markdown": _markdown,
    "junit": _junit,
    "json": _json,
}
